// The index of runs: found again from anywhere, by several processes at once, and no more than a
// convenience when its file will not do.

#include "src/runs/index/run_index.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/config/config_fixture.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

class Index : public testing::Test {
 protected:
  fs::path make_run(const std::string& name) const {
    return directory_.write(name + "/run.json", "{}").parent_path();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const fs::path& run : RunIndex(file_).all())
      found.push_back(run.filename().string());
    std::ranges::sort(found);
    return found;
  }
  /** The output of `work` on standard error. */
  template <typename F>
  static std::string said_by(F&& work) {
    testing::internal::CaptureStderr();
    work();
    return testing::internal::GetCapturedStderr();
  }

  config::TemporaryDirectory directory_;
  fs::path file_ = directory_.path() / "data/ferry/runs.db";
};

using Names = std::vector<std::string>;

TEST_F(Index, KnowsARunOnceAndForgetsOneThatIsGone) {
  const fs::path a = make_run("here/a"), b = make_run("here/b"), c = make_run("disk/runs/c");
  for (const fs::path& run : {a, b, c, a / ".", a / "../a/"})
    RunIndex(file_).add(run);
  EXPECT_EQ(names(), (Names{"a", "b", "c"}));
  fs::remove_all(a);
  fs::rename(directory_.path() / "disk", directory_.path() / "away");  // not mounted
  EXPECT_EQ(names(), Names{"b"});
  make_run("here/a");
  fs::rename(directory_.path() / "away", directory_.path() / "disk");
  EXPECT_EQ(names(), (Names{"b", "c"})) << "what was removed is forgotten, what was away is not";
}

TEST_F(Index, SeveralProcessesAtOnce) {
  constexpr int kProcesses = 6, kRuns = 15;
  for (int p = 0; p < kProcesses; ++p)
    for (int r = 0; r < kRuns; ++r)
      make_run("r" + std::to_string(p) + "_" + std::to_string(r));
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    for (int r = 0; r < kRuns; ++r)
      RunIndex(file_).add(directory_.path() / ("r" + std::to_string(p) + "_" + std::to_string(r)));
    _exit(0);
  }
  for (pid_t child : children)
    waitpid(child, nullptr, 0);
  EXPECT_EQ(names().size(), size_t{kProcesses * kRuns});
}

TEST_F(Index, ADamagedFileIsMadeAnew) {
  const fs::path a = make_run("a"), b = make_run("b");
  RunIndex(file_).add(a);
  std::ofstream(file_, std::ios::binary) << std::string(5000, 'x');
  const std::string said = said_by([&] { RunIndex(file_).add(b); });
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_NE(said.find("made anew"), said.npos) << said;
  EXPECT_EQ(names(), Names{"b"});
  // Only its inside, below an intact head.
  std::fstream(file_, std::ios::in | std::ios::out | std::ios::binary).seekp(4096)
      << std::string(4096, '\xff');
  EXPECT_NE(said_by([&] { RunIndex(file_).add(a); }).find("made anew"), said.npos);
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(Index, ALockedFileIsDoneWithout) {
  const fs::path a = make_run("a");
  RunIndex(file_).add(a);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  const std::string said = said_by([&] {
    RunIndex index(file_);
    index.add(make_run("b"));
    EXPECT_TRUE(index.all().empty());
  });
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_NE(said.find("locked"), said.npos) << said;
  sqlite3_close(other);
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(Index, AnUnwritablePlaceIsDoneWithout) {
  const std::string said = said_by([&] {
    RunIndex index("/proc/none/runs.db");
    index.add(make_run("a"));
    EXPECT_TRUE(index.all().empty());
  });
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_NE(said.find("going on without it"), said.npos) << said;
}

}  // namespace
}  // namespace ferry::runs
