// A run on a store, for kill_test: commits generation after generation and says so, until killed.
//   store_writer FILE

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "offload/nvme/open_disk.h"
#include "src/base/error.h"
#include "tests/offload/store/store_files.h"

namespace {

void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) != std::ssize(line)) ::_exit(1);
}

}  // namespace

int main(int, char** arguments) {
  using namespace ferry;
  try {
    const auto disk = test::open_store_file(arguments[1]);
    ExtentStore store(*disk, {.run = "killed"});
    for (int64_t number = store.committed().number + 1;; ++number) {
      test::commit_numbered(store, static_cast<uint64_t>(number));
      say(fmt::format("committed {}\n", number));
      if (number % 3 != 0) continue;
      // The oldest first: there is room for two.
      if (const auto pins = store.pins(); pins.size() == test::kFileKept) {
        say(fmt::format("unpins {}\n", pins[0]));
        store.unpin(pins[0]);
      }
      store.pin(fmt::format("checkpoint-{}", number));
      say(fmt::format("pinned checkpoint-{}\n", number));
    }
  } catch (const Error& error) {
    say(fmt::format("failed {}\n", error.what()));
    return error.exit_code();
  }
}
