// Runs whose states lie on a drive, and the drive fails them: it gives errors, is full, slow, or
// stops to answer, its files go, or the machine forbids what makes it fast. Each run ends with a
// clear error and goes on from what is safe, or goes on at once as it says; always with the bits of
// an undisturbed one. What takes root or other programs is skipped where they are not there.

#include <gmock/gmock.h>

#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/store_place.h"
#include "tests/offload/nvme/forbid.h"
#include "tests/offload/nvme/mounted.h"
#include "tests/offload/nvme/served_file.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/** A file system of its own behind a drive that does what the filters of nbdkit say. */
class ServedDrive {
 public:
  /** Mounted at `at`, unless why() says why not. */
  ServedDrive(const fs::path& at, std::vector<std::string> filters) : at_(at) {
    const fs::path image = at.string() + ".image";
    if (!MountedImage::make(image, 1024)) {
      why_ = "mkfs.ext4 does not run here";
      return;
    }
    std::vector<std::string> words = filters;
    const auto options = std::ranges::find_if(
        words, [](const std::string& word) { return !word.starts_with("--filter="); });
    words.insert(words.insert(options, "file") + 1, image.string());
    served_ = std::make_unique<ServedFile>(at.string() + ".served", std::move(words), why_);
    if (why_.empty()) mount();
  }
  ~ServedDrive() {
    mounted_.reset();
    // The loop device holds the file a little longer.
    for (int i = 0; served_ && i < 100 && is_held(); ++i)
      std::this_thread::sleep_for(10ms);
  }
  const std::string& why() const { return why_; }
  /** As if it had been taken out and put in again. */
  void mount() {
    mounted_.reset();
    mounted_ = std::make_unique<MountedImage>(at_.string() + ".served", at_);
    if (!*mounted_) why_ = "no file can be mounted here (that takes root)";
  }
  ServedFile& served() { return *served_; }

 private:
  bool is_held() const {
    for (const fs::directory_entry& device : fs::directory_iterator("/sys/block")) {
      std::error_code error;
      const fs::path file = device.path() / "loop/backing_file";
      if (fs::exists(file, error) && text_of(file).starts_with(at_.string() + ".served"))
        return true;
    }
    return false;
  }

  fs::path at_;
  std::string why_;
  std::unique_ptr<ServedFile> served_;
  std::unique_ptr<MountedImage> mounted_;  // last: it goes first
};

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++n;
  return n;
}

class BadDrives : public RunTest {
 protected:
  void SetUp() override {
    if (fs::exists(root_ / "whole/final")) return;
    ASSERT_EQ(ferry(new_run("whole", {"--epochs=1"})).code(), 0) << text_of(root_ / "err");
  }

  static std::vector<std::string> on_drive(const std::string& run,
                                           const std::string& drive = "drive") {
    fs::create_directories(root_ / drive);
    return new_run(run,
                   {"--epochs=1", "--placement=nvme", "--nvme-path=" + (root_ / drive).string()});
  }
  static pid_t start_with(const std::vector<std::string>& words,
                          const std::function<void()>& first) {
    return start_ferry(root_, words, "", first);
  }
  static void expect_as_whole(const std::string& run) {
    EXPECT_EQ(curve_of("whole"), curve_of(run));
    for (const char* file : {"final/model.safetensors", "predictions.jsonl"})
      EXPECT_TRUE(text_of(root_ / "whole" / file) == text_of(root_ / run / file))
          << run << "/" << file;
  }
  /** It was left with an error of the drive; here it goes on. */
  static void expect_goes_on(const std::string& run) {
    EXPECT_EQ(ferry({"runs", "check", run}).code(), 0) << text_of(root_ / "err");
    EXPECT_EQ(ferry({"train", "--resume=" + run}).code(), 0) << text_of(root_ / "err");
    EXPECT_THAT(text_of(root_ / "out"), HasSubstr("resumed at step "));
    expect_as_whole(run);
  }
  static fs::path store_of(const std::string& run) {
    return runs::store_place_of(root_ / run).value().files.front().path;
  }
};

/** Reads and writes of the drive, from one moment on. */
TEST_F(BadDrives, ADriveWithErrorsEndsTheRunAndItGoesOn) {
  for (const std::string call : {"pwrite", "pread"}) {
    SCOPED_TRACE(call);
    const std::string run = "errors_" + call;
    const fs::path trigger = root_ / "trigger";
    ServedDrive drive(root_ / ("drive_" + call),
                      {"--filter=error", "error=EIO", "error-" + call + "-rate=100%",
                       "error-file=" + trigger.string()});
    if (!drive.why().empty()) GTEST_SKIP() << drive.why();
    const pid_t child = start(on_drive(run, "drive_" + call));
    wait_for_line(run, 10);
    std::ofstream(trigger).flush();
    const Outcome outcome = await_end(child);
    EXPECT_EQ(outcome.code(), 5) << outcome.err;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr(store_of(run).string()), HasSubstr("Input/output error - ")));
    fs::remove(trigger);
    drive.mount();
    expect_goes_on(run);
  }
}

TEST_F(BadDrives, ADriveThatStopsIsLeftByTheDeadline) {
  ServedDrive drive(root_ / "drive_stops", {});
  if (!drive.why().empty()) GTEST_SKIP() << drive.why();
  const pid_t child =
      start_with(on_drive("stops", "drive_stops"), [] { ::setenv("FERRY_WATCHDOG_S", "2", 1); });
  wait_for_line("stops", 10);
  drive.served().stop();
  wait_until([] { return text_of(root_ / "err").find("runs report") != std::string::npos; });
  // A flush holds its thread in the kernel, and that the process, until the drive answers.
  if (!has_ended_within(child, 3s)) drive.served().go_on();
  const Outcome outcome = await_end(child);
  EXPECT_EQ(outcome.code(), 5) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(store_of("stops").string()),
                                 HasSubstr("the drive gave no answer for 2 s")));
  drive.served().go_on();
  drive.mount();
  expect_goes_on("stops");
}

/** Each request takes a hundred times what it does on a drive. */
TEST_F(BadDrives, ASlowDriveIsWaitedFor) {
  if (!is_long()) GTEST_SKIP() << "FERRY_LONG=1 takes that time";
  ServedDrive drive(root_ / "drive_slow",
                    {"--filter=delay", "delay-read=10ms", "delay-write=10ms"});
  if (!drive.why().empty()) GTEST_SKIP() << drive.why();
  EXPECT_EQ(ferry(on_drive("slow", "drive_slow")).code(), 0) << text_of(root_ / "err");
  expect_as_whole("slow");
}

TEST_F(BadDrives, AFullDriveIsToldAtTheStartAndHarmsNoRun) {
  for (const auto& [mib, fits] : {std::pair{2, false}, std::pair{8, true}}) {
    const std::string run = "full_" + std::to_string(mib);
    const fs::path image = root_ / (run + ".image");
    if (!MountedImage::make(image, mib)) GTEST_SKIP() << "mkfs.ext4 does not run here";
    MountedImage drive(image, root_ / ("drive_" + run));
    if (!drive) GTEST_SKIP() << kNoMount;
    std::vector<std::string> words = on_drive(run, "drive_" + run);
    words.push_back("--nvme-memory=6MiB");
    const pid_t child = start(words);
    if (!fits) {
      const Outcome refused = await_end(child);
      EXPECT_EQ(refused.code(), 3) << refused.err;
      EXPECT_FALSE(fs::exists(root_ / run));
      for (const fs::directory_entry& entry : fs::directory_iterator(drive.path()))
        EXPECT_NE(entry.path().extension(), runs::kStoreExtension) << entry.path();
      continue;
    }
    // Another program takes the rest.
    wait_for_line(run, 10);
    std::ofstream other(drive.path() / "other", std::ios::binary);
    const std::string block(4096, 'x');
    while (other.write(block.data(), std::ssize(block)).flush()) {
    }
    EXPECT_EQ(fs::space(drive.path()).available, 0u);
    const Outcome outcome = await_end(child);
    EXPECT_EQ(outcome.code(), 0) << outcome.err;
    expect_as_whole(run);
  }
}

/** The states are still in the open file: the next checkpoint has them itself. */
TEST_F(BadDrives, WhereItsFileIsRemovedCheckpointsHoldTheStates) {
  for (const bool goes_whole : {false, true}) {
    const std::string run = goes_whole ? "directory_gone" : "file_gone";
    const pid_t child = start(on_drive(run, "drive_" + run));
    wait_for_line(run, 10);
    const fs::path store = store_of(run);
    if (goes_whole)
      fs::remove_all(store.parent_path());
    else
      fs::remove(store);
    wait_until([&] { return fs::exists(root_ / run / "checkpoint-21/COMPLETE"); });
    ::kill(child, SIGKILL);
    const Outcome killed = wait_for(child);
    EXPECT_EQ(count(killed.err, store.string()), 1) << killed.err;
    fs::create_directories(store.parent_path());
    EXPECT_EQ(ferry({"train", "--resume=" + run}).code(), 0) << text_of(root_ / "err");
    EXPECT_THAT(text_of(root_ / "out"), HasSubstr("resumed at step "));
    expect_as_whole(run);
  }
}

TEST_F(BadDrives, WithoutIoUringTheSameBits) {
  const pid_t child = start_with(on_drive("forbidden"), [] {
    if (!forbid_io_uring()) ::_exit(77);
  });
  const Outcome outcome = wait_for(child);
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_EQ(count(outcome.err, "io_uring cannot be used (it is forbidden here)"), 1) << outcome.err;
  expect_as_whole("forbidden");
}

TEST_F(BadDrives, WithoutLockedMemoryTheSameBits) {
  const pid_t child = start_with(on_drive("unlocked"), [] {
    if (!give_up_locking()) ::_exit(77);
  });
  const Outcome outcome = wait_for(child);
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  // Memory that a GPU copies from is registered; what the CPU computes in is not.
  EXPECT_EQ(count(outcome.err, "of buffers could not be registered"), device() == "cuda")
      << outcome.err;
  expect_as_whole("unlocked");
}

TEST_F(BadDrives, PartsOfTransfersAreAskedForAgain) {
  const pid_t child = start_with(on_drive("short"), [] {
    ::setenv("LD_PRELOAD", SHORT_TRANSFERS, 1);
    ::setenv("FERRY_NO_IO_URING", "1", 1);
  });
  const Outcome outcome = wait_for(child);
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  expect_as_whole("short");
}

}  // namespace
}  // namespace ferry::test
