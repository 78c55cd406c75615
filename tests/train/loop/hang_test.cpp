// Every hang ends: a disk that never answers, wherever the run meets it, and Ctrl-C while data and
// weights are read.

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class Hangs : public RunTest {
 protected:
  /** Starts with a disk on which this call of such a path never returns. */
  static pid_t start_on_hung_disk(const std::vector<std::string>& arguments,
                                  const char* call,
                                  const char* path,
                                  const std::string& prefix) {
    const std::pair<const char*, const char*> settings[] = {{"LD_PRELOAD", HUNG_DISK},
                                                            {"FERRY_HUNG_CALL", call},
                                                            {"FERRY_HUNG_PATH", path},
                                                            {"FERRY_WATCHDOG_S", "2"}};
    for (const auto& [name, value] : settings)
      ::setenv(name, value, 1);
    const pid_t child = start(arguments, prefix);
    for (const auto& [name, value] : settings)
      ::unsetenv(name);
    return child;
  }
};

TEST_F(Hangs, ADiskThatNeverAnswersEndsTheRunAndItGoesOn) {
  const std::vector<std::string> more = {"--epochs=1"};
  for (const char* device : {"cpu", "simulated"}) {
    std::vector<std::string> own = more;
    own.push_back(std::string("--device=") + device);
    const std::string whole = std::string("whole_") + device;
    ASSERT_EQ(ferry(new_run(whole, own)).code(), 0);
    struct Place {
      const char *name, *path;
    };
    // In the thread that saves, in the one that trains, and at the run's end.
    for (const Place& place :
         {Place{"saving", "checkpoint-14.tmp/state"}, Place{"metrics", "metrics.jsonl"},
          Place{"final", "final.partial"}}) {
      SCOPED_TRACE(std::string(device) + ", " + place.name);
      const std::string run = std::string(place.name) + "_" + device;
      const pid_t child = start_on_hung_disk(new_run(run, own), "fsync", place.path, "hung_");
      const Outcome outcome = await_end(child, "hung_");
      EXPECT_EQ(outcome.code(), 5) << outcome.err;
      EXPECT_NE(outcome.err.find("nothing has moved for"), std::string::npos) << outcome.err;
      EXPECT_NE(outcome.err.find("--resume '"), std::string::npos) << outcome.err;
      EXPECT_NE(outcome.err.find(run + "'"), std::string::npos) << outcome.err;
      const Outcome again = ferry({"train", "--resume=" + run});
      EXPECT_EQ(again.code(), 0) << again.err;
      EXPECT_EQ(text_of(root_ / run / "final/model.safetensors"),
                text_of(root_ / whole / "final/model.safetensors"));
    }
  }
}

TEST_F(Hangs, CtrlCLeavesAtOnceWhileDataAndWeightsAreRead) {
  for (const char* path : {"train.tsv", "dev.tsv", "model.safetensors", "vocab.txt"}) {
    SCOPED_TRACE(path);
    fs::remove(root_ / "early_err");
    const pid_t child =
        start_on_hung_disk(new_run("never", {"--device=cpu"}), "open", path, "early_");
    wait_until(
        [&] { return text_of(root_ / "early_err").find("the disk hangs") != std::string::npos; });
    ::kill(child, SIGINT);
    const Outcome outcome = await_end(child, "early_");  // the disk would hang for ever
    EXPECT_TRUE(outcome.code() == 130 || WTERMSIG(outcome.status) == SIGINT) << outcome.err;
    EXPECT_FALSE(fs::exists(root_ / "never"));
  }
}

TEST_F(Hangs, APauseIsNoHang) {
  ::setenv("FERRY_WATCHDOG_S", "4", 1);
  const pid_t child = start(new_run("paused", {"--device=cpu", "--epochs=1000"}), "paused_");
  ::unsetenv("FERRY_WATCHDOG_S");
  wait_for_line("paused", 1);
  EXPECT_EQ(ferry({"runs", "pause", "paused"}, "ask_").code(), 0);
  std::this_thread::sleep_for(10s);  // more than twice that
  EXPECT_EQ(ferry({"runs", "stop", "paused"}, "ask_").code(), 0);
  EXPECT_EQ(await_end(child, "paused_").code(), 130);
}

}  // namespace
}  // namespace ferry::test
