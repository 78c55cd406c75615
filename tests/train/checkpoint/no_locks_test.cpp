// Runs on a file system without locks: the heartbeat in run.json stands in for them.

#include <atomic>
#include <cstdlib>

#include "src/runs/heartbeat.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class NoLocks : public RunTest {
 protected:
  void SetUp() override { ::setenv("LD_PRELOAD", NO_LOCKS, 1); }
  void TearDown() override { ::unsetenv("LD_PRELOAD"); }
  static std::string phase_of(const std::string& run) {
    EXPECT_EQ(ferry({"runs", "show", run, "--json"}, "ask_").code(), 0)
        << text_of(root_ / "ask_err");
    return nlohmann::json::parse(text_of(root_ / "ask_out")).at("phase");
  }
};

TEST_F(NoLocks, NeverTwoTrainersAndNoLiveRunIsLost) {
  const pid_t child = start(new_run("alone", {"--epochs=100000"}));
  wait_for_line("alone", 10);
  EXPECT_EQ(phase_of("alone"), "training");
  const Outcome second = ferry({"train", "--resume=alone"}, "ask_");
  EXPECT_EQ(second.code(), 2) << second.err;
  EXPECT_NE(second.err.find("another process (" + std::to_string(child) + ") is training"),
            std::string::npos)
      << second.err;
  ::kill(child, SIGKILL);
  wait_for(child);
  EXPECT_EQ(phase_of("alone"), "lost");
  const pid_t again = start({"train", "--resume=alone"});
  wait_until([] {
    return text_of(root_ / "out").find("resumed at step") != std::string::npos &&
           text_of(root_ / "err").find("\ntraining ") != std::string::npos;
  });
  ::kill(again, SIGTERM);
  EXPECT_EQ(wait_for(again).code(), 130) << text_of(root_ / "err");
  EXPECT_EQ(phase_of("alone"), "stopped");
}

TEST_F(NoLocks, OfTwoThatBeginTogetherOneTrains) {
  ASSERT_EQ(ferry(new_run("both", {"--max-steps=7"})).code(), 0) << text_of(root_ / "err");
  fs::remove_all(root_ / "both/final");
  const pid_t a = start({"train", "--resume=both", "--max-steps=100000"}, "a_"),
              b = start({"train", "--resume=both", "--max-steps=100000"}, "b_");
  int status = 0;
  const pid_t ended = waitpid(-1, &status, 0);  // the one that gave way
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2)
      << text_of(root_ / (ended == a ? "a_err" : "b_err"));
  const pid_t other = ended == a ? b : a;
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0) << "it trains";
  wait_for_line("both", 9);
  ::kill(other, SIGTERM);
  EXPECT_EQ(wait_for(other).code(), 130);
}

/** run.json of a trainer on another machine. */
void write_far_run(const fs::path& run, int beats) {
  nlohmann::ordered_json process = runs::this_process();
  process["boot"] = "another machine's";
  const fs::path file = run / "run.json", partial = run / ".run.json";
  std::ofstream(partial) << nlohmann::ordered_json{
      {"phase", "training"}, {"heartbeat", {{"process", process}, {"beats", beats}}}};
  fs::rename(partial, file);
}

TEST_F(NoLocks, ATrainerOnAnotherMachineIsKnownByItsBeats) {
  const fs::path run = root_ / "far";
  fs::create_directories(run);
  write_far_run(run, 1);
  EXPECT_FALSE(runs::is_trainer_alive(run, 300ms)) << "it does not beat any more";
  std::atomic<bool> ends = false;
  std::thread far([&] {
    for (int beats = 2; !ends; ++beats) {
      std::this_thread::sleep_for(200ms);
      write_far_run(run, beats);
    }
  });
  EXPECT_TRUE(runs::is_trainer_alive(run, 10s));
  ends = true;
  far.join();
}

TEST_F(NoLocks, AProcessOfTheSameNumberIsAnother) {
  const fs::path run = root_ / "reused";
  fs::create_directories(run);
  nlohmann::ordered_json process = runs::this_process();
  const auto write = [&] {
    std::ofstream(run / "run.json") << nlohmann::ordered_json{
        {"phase", "training"}, {"heartbeat", {{"process", process}, {"beats", 1}}}};
  };
  write();
  EXPECT_TRUE(runs::is_trainer_alive(run));
  process["started"] = process["started"].get<int64_t>() - 1;
  write();
  EXPECT_FALSE(runs::is_trainer_alive(run)) << "at once: it is this machine's";
}

/** Both may make the tokens then; the second one's file takes the place of the first one's. */
TEST_F(NoLocks, TokensAreKeptAllTheSame) {
  const auto run = [](const std::string& name) {
    return new_run(name, {"--max-steps=2", "--token-cache=tokens"});
  };
  const pid_t a = start(run("tokens_a"), "a_"), b = start(run("tokens_b"), "b_");
  EXPECT_EQ(wait_for(a, "a_").code(), 0) << text_of(root_ / "a_err");
  EXPECT_EQ(wait_for(b, "b_").code(), 0) << text_of(root_ / "b_err");
  EXPECT_EQ(curve_of("tokens_a"), curve_of("tokens_b"));
  int n_files = 0;
  for (const auto& entry : fs::directory_iterator(root_ / "tokens"))
    n_files += entry.path().extension() == ".tokens";
  EXPECT_EQ(n_files, 2);  // training and evaluation data
}

}  // namespace
}  // namespace ferry::test
