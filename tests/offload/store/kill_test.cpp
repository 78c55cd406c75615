// kill -9 of a process that writes to a store, at any moment, again and again on one file. 20 times
// here; FERRY_LONG=1: 300.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "offload/store/store.h"
#include "src/base/unique_fd.h"
#include "tests/files/test_files.h"
#include "tests/offload/store/store_files.h"

namespace ferry {
namespace {

using namespace test;
using namespace std::chrono_literals;

/** Runs the writer for a while, kills it, and returns what it said. */
std::string run_and_kill(const std::filesystem::path& file,
                         std::chrono::microseconds after,
                         bool uses_io_uring) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd from(ends[0]), to(ends[1]);
  const pid_t writer = ::fork();
  if (writer == 0) {
    ::dup2(to.get(), STDOUT_FILENO);
    if (!uses_io_uring) ::setenv("FERRY_NO_IO_URING", "1", 1);
    ::execl(FERRY_STORE_WRITER, FERRY_STORE_WRITER, file.c_str(), nullptr);
    ::_exit(127);
  }
  to.close();
  std::string said;
  char buffer[4096];
  // It is killed while it works, not while it starts.
  ssize_t n = ::read(from.get(), buffer, sizeof buffer);
  if (n > 0) said.append(buffer, static_cast<size_t>(n));
  std::this_thread::sleep_for(after);
  ::kill(writer, SIGKILL);
  while ((n = ::read(from.get(), buffer, sizeof buffer)) > 0)
    said.append(buffer, static_cast<size_t>(n));
  int status = 0;
  ::waitpid(writer, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << said;
  return said;
}

/** The state that the writer spoke of. */
struct Said {
  int64_t committed = 0;
  std::set<std::string> pins;
  std::string unpins;  ///< under way, or done

  void hear(const std::string& text) {
    unpins.clear();
    std::istringstream lines(text);
    for (std::string verb, name; lines >> verb >> name;) {
      if (verb == "committed") committed = std::stoll(name);
      if (verb == "pinned") pins.insert(name);
      if (verb == "unpins") pins.erase(unpins = name);
    }
  }
};

TEST(Kill, LeavesTheLastGenerationAndEveryCheckpoint) {
  const int n_kills = std::getenv("FERRY_LONG") ? 300 : 20;
  const TempDir dir;
  const auto file = dir / "states";
  ExtentStore::create(*open_store_file(file), file_segments(), kFileKept, "killed");
  std::mt19937_64 dice(1);
  Said said;
  int n_between = 0;
  for (int i = 0; i < n_kills; ++i) {
    SCOPED_TRACE(i);
    said.hear(run_and_kill(file, std::chrono::microseconds(dice() % 40'000), i % 4 != 0));
    ASSERT_FALSE(HasFailure());

    const auto disk = open_store_file(file);
    const ExtentStore store(*disk, {.run = "killed"});
    const int64_t number = store.committed().number;
    ASSERT_TRUE(number == said.committed || number == said.committed + 1)
        << number << " after " << said.committed;
    n_between += number != said.committed;
    EXPECT_TRUE(is_generation(store, store.committed(), static_cast<uint64_t>(number)));
    auto missing = said.pins;
    for (const std::string& pin : store.pins()) {
      missing.erase(pin);
      const auto of = std::stoull(pin.substr(pin.find('-') + 1));
      EXPECT_TRUE(is_generation(store, store.pinned(pin), of)) << pin;
    }
    EXPECT_TRUE(missing.empty()) << *missing.begin();
    EXPECT_TRUE(store.check().empty());
    said.committed = number;
    const auto pins = store.pins();
    said.pins = {pins.begin(), pins.end()};
  }
  RecordProperty("generations", static_cast<int>(said.committed));
  RecordProperty("killed_between_commit_and_word_of_it", n_between);
  fmt::print("{} kills in {} generations, {} between a commit and the word of it\n", n_kills,
             said.committed, n_between);
}

}  // namespace
}  // namespace ferry
