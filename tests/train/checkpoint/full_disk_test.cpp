// A disk that is full at the end of a run: the trained model waits for room and is not lost. On a
// small file system of its own, mounted where only this process and its children see it.

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "offload/nvme/open_disk.h"
#include "offload/store/store.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/store_place.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class FullDisk : public RunTest {
 protected:
  void SetUp() override {
    const bool is_root = geteuid() == 0;
    const uid_t user = getuid();
    if (::unshare(CLONE_NEWNS | (is_root ? 0 : CLONE_NEWUSER)) != 0)
      GTEST_SKIP() << "no mount namespace of its own: " << std::strerror(errno);
    if (!is_root) std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    fs::create_directories(small());
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("ferry_test", small().c_str(), "tmpfs", 0, "size=32m") != 0)
      GTEST_SKIP() << "no file system may be mounted: " << std::strerror(errno);
    is_mounted_ = true;
  }
  void TearDown() override {
    if (is_mounted_) ::umount2(small().c_str(), MNT_DETACH);
  }
  static fs::path small() { return root_ / "small"; }

  /** Takes all room again and again, until the run says that it waits; a checkpoint that failed
   * gives back what it had. */
  static void fill_until_it_waits() {
    std::ofstream filler(small() / "filler", std::ios::binary);
    const std::string block(4096, 'x');
    wait_until([&] {
      filler.clear();
      while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
      }
      return text_of(root_ / "err").find("the run waits for room") != std::string::npos;
    });
  }
  static std::vector<std::string> long_run(const std::string& run,
                                           std::vector<std::string> more = {}) {
    more.emplace_back("--epochs=12");
    return new_run(run, more);
  }
  static pid_t run_into_a_full_disk(const std::string& run,
                                    const std::vector<std::string>& more = {}) {
    const pid_t child = start(long_run("small/" + run, more));
    wait_until([&] { return fs::exists(small() / run / "checkpoint-7/COMPLETE"); });
    fill_until_it_waits();
    return child;
  }

 private:
  bool is_mounted_ = false;
};

TEST_F(FullDisk, TheTrainedModelWaitsForRoom) {
  ASSERT_EQ(ferry(long_run("whole")).code(), 0) << text_of(root_ / "err");
  const pid_t child = run_into_a_full_disk("late");
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it waits";
  EXPECT_FALSE(fs::exists(small() / "late/final"));
  fs::remove(small() / "filler");
  const Outcome outcome = wait_for(child);
  EXPECT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("there is room again"), std::string::npos) << outcome.err;
  EXPECT_EQ(text_of(root_ / "whole/final/model.safetensors"),
            text_of(small() / "late/final/model.safetensors"));
  const auto about = nlohmann::json::parse(text_of(small() / "late/run.json"));
  EXPECT_EQ(about.at("phase"), "finished");
  EXPECT_FALSE(about.contains("waits_for"));
}

/** The run's directory is full, its states lie elsewhere: a checkpoint without its files keeps
 * nothing there. */
TEST_F(FullDisk, ACheckpointThatFailsPinsNothing) {
  fs::create_directories(root_ / "drive");
  const pid_t child = run_into_a_full_disk(
      "pinned", {"--placement=nvme", "--nvme-path=" + (root_ / "drive").string()});
  std::vector<std::string> complete, pins;
  for (const auto& checkpoint : runs::complete_checkpoints(small() / "pinned"))
    complete.push_back(checkpoint.path.filename().string());
  {
    const auto place = runs::store_place_of(small() / "pinned").value();
    const auto disk = open_disk(place.paths(), place.n_bytes, {.reads_only = true});
    pins = ExtentStore(*disk, {}, ExtentStore::Access::read_only).pins();
  }
  EXPECT_EQ(pins, complete);
  EXPECT_NE(complete.back(), "checkpoint-300");
  fs::remove(small() / "filler");
  const Outcome outcome = wait_for(child);
  EXPECT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_NE(outcome.err.find("could not be written"), std::string::npos) << outcome.err;
  EXPECT_EQ(ferry({"runs", "check", "small/pinned"}).code(), 0) << text_of(root_ / "err");
}

TEST_F(FullDisk, CtrlCLeavesWithoutIt) {
  const pid_t child = run_into_a_full_disk("left");
  ::kill(child, SIGINT);
  const Outcome outcome = wait_for(child);
  EXPECT_EQ(outcome.code(), 130) << outcome.err;
  EXPECT_NE(outcome.err.find("stopped without saving, at step 300; continue from step "),
            std::string::npos)
      << outcome.err;
  fs::remove(small() / "filler");
  EXPECT_EQ(ferry({"train", "--resume=small/left"}).code(), 0) << text_of(root_ / "err");
  EXPECT_TRUE(fs::exists(small() / "left/final"));
}

TEST_F(FullDisk, TokensThatDoNotFitAreAFault) {
  {
    std::ofstream lines(root_ / "lines.txt");
    for (int i = 0; i < 800'000; ++i)
      lines << "the red car is old\n";
  }
  const auto run = [](const std::string& cache) {
    return ferry({"train", "--model=model", "--task=mlm", "--dataset=lines.txt", "--device=cpu",
                  "--max-steps=1", "--train-batch-size=4", "--max-length=16", "--output-dir=tokens",
                  "--token-cache=" + cache});
  };
  const Outcome full = run("small/tokens");
  EXPECT_EQ(full.code(), 5) << full.err;
  for (const char* part :
       {"the disk of '", "is full after ", "name another directory with token_cache"})
    EXPECT_NE(full.err.find(part), std::string::npos) << full.err;
  for (const auto& entry : fs::directory_iterator(small() / "tokens"))
    EXPECT_EQ(entry.path().extension(), ".files") << entry.path();
  EXPECT_FALSE(fs::exists(root_ / "tokens"));
}

}  // namespace
}  // namespace ferry::test
