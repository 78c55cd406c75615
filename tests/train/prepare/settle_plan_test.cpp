// The choice of a plan by the whole program: by steps that are timed before a new run, on a machine
// whose profile promises all plans nearly the same time. No time is asserted.

#include <fcntl.h>
#include <sys/file.h>

#include <fstream>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using nlohmann::json;

class SettledPlan : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    std::ofstream data(root_ / "full.tsv");
    data << "text\tlabel\n";
    for (int i = 0; i < 40; ++i) {  // 32 tokens each with the ends: as many as the model takes
      const std::string colour = i % 2 == 0 ? "red" : "blue";
      for (int w = 0; w < 29; ++w)
        data << (w % 2 == 0 ? "old " : "car ");
      data << colour << "\t" << colour << "\n";
    }
  }
  /** Of a machine whose products take seconds, all at one rate: micro-batches make no difference,
   * and runs are long. */
  void SetUp() override {
    const json host = {
        {"threads", 1},
        {"memory_bytes", int64_t{1} << 34},
        {"memory_bytes_per_s", 1e15},
        {"adamw", {{{"threads", 1}, {"alone", 1e12}}}},
        {"gemms", {{{"type", "fp32"}, {"rows", 64}, {"width", 64}, {"flops_per_s", 5e6}}}},
        {"attentions",
         {{{"type", "fp32"},
           {"backend", "cpu_math"},
           {"length", 128},
           {"head_width", 64},
           {"forward_flops_per_s", 1e15},
           {"backward_flops_per_s", 1e15}}}}};
    fs::create_directories(profile_file().parent_path());
    std::ofstream(profile_file()) << json{{"version", 5}, {"name", "planted"}, {"host", host}};
  }
  static fs::path profile_file() { return root_ / "data/ferry/machine.json"; }
  static json profile() { return json::parse(text_of(profile_file())); }
  static json record_of(const std::string& run) {
    return json::parse(text_of(root_ / run / "run.json"));
  }

  static std::vector<std::string> words(const std::string& verb,
                                        const std::vector<std::string>& more) {
    std::vector<std::string> all = {verb,           "--model=model",        "--dataset=full.tsv",
                                    "--device=cpu", "--train-batch-size=8", "--intra-op-threads=1",
                                    "--lr=3e-3"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /** Long by what is promised, and over in a moment. */
  static Outcome train(const std::string& run, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--output-dir=" + run, "--max-steps=200", "--save-steps=50",
                               "--eval-strategy=no"});
    return ferry(words("train", more));
  }
  static bool has_timed(const Outcome& outcome) {
    return outcome.err.find("timing a step of plans") != std::string::npos;
  }
  static std::string bits_of(const std::string& run) {
    return curve_of(run) + text_of(root_ / run / "final/model.safetensors");
  }
};

TEST_F(SettledPlan, IsTheFastestOfThoseThatWereTimedAndIsRemembered) {
  Outcome outcome = train("a", {"--json"});
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_TRUE(has_timed(outcome)) << outcome.err;
  EXPECT_NE(outcome.err.find("not taken: "), std::string::npos) << outcome.err;
  const json record = record_of("a"), tried = record["plan"]["tried"];
  ASSERT_GE(tried.size(), 2u) << record["plan"];
  double fastest_s = 1e9, taken_s = 0;
  int64_t taken_size = 0;
  for (const json& one : tried) {
    EXPECT_GT(one["promised_seconds"], 0);
    fastest_s = std::min(fastest_s, one["step_seconds"].get<double>());
    if (!one["is_taken"]) continue;
    EXPECT_EQ(taken_s, 0) << "only one is taken";
    taken_s = one["step_seconds"];
    taken_size = one["micro_batch_size"];
    EXPECT_EQ(one["why"], record["plan"]["why"]);
  }
  EXPECT_EQ(taken_s, fastest_s);
  // The identity is that of the choice, and so are settings and events.
  EXPECT_EQ(record["identity"]["per_device_train_batch_size"], taken_size);
  EXPECT_NE(text_of(root_ / "a/config.toml")
                .find("per_device_train_batch_size = " + std::to_string(taken_size)),
            std::string::npos);
  std::istringstream events(text_of(root_ / "out"));
  bool has_plan = false;
  size_t n_choosing = 0;
  for (std::string line; std::getline(events, line);) {
    const json event = json::parse(line);
    if (event["event"] == "choosing") {
      EXPECT_FALSE(has_plan);
      ASSERT_LT(n_choosing, tried.size());
      EXPECT_EQ(event["why"], tried[n_choosing]["why"]);
      EXPECT_EQ(event["n"], ++n_choosing);
      EXPECT_GE(event["n_most"], tried.size());
    } else if (event["event"] == "plan") {
      has_plan = true;
      EXPECT_EQ(event["tried"], tried);
    }
  }
  EXPECT_TRUE(has_plan);
  EXPECT_EQ(n_choosing, tried.size());
  EXPECT_NE(outcome.err.find("choosing the plan (1 of at most "), std::string::npos);
  EXPECT_NE(outcome.err.find("the plan is chosen: "), std::string::npos);
  EXPECT_NE(text_of(root_ / "a/train.log").find("not taken: "), std::string::npos);
  // The steps and the end of the run changed no time that was learnt before the run.
  ASSERT_EQ(profile()["learnt"].size(), tried.size());
  for (size_t i = 0; i < tried.size(); ++i) {
    const double step_s = tried[i]["step_seconds"];
    EXPECT_NEAR(profile()["learnt"][i]["step_s"].get<double>(), step_s, 1e-3 * step_s);
  }

  // The next run of the kind knows it, and so does `ferry plan`.
  const std::string learnt = profile()["learnt"].dump();
  outcome = train("b");
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_FALSE(has_timed(outcome)) << outcome.err;
  EXPECT_EQ(record_of("b")["plan"]["micro_batch_size"], taken_size);
  EXPECT_FALSE(record_of("b")["plan"].contains("tried"));
  EXPECT_EQ(record_of("b")["plan"]["timed"].get<std::string>().size(), 10u);
  EXPECT_EQ(profile()["learnt"].dump(), learnt);
  EXPECT_EQ(bits_of("a"), bits_of("b"));
  outcome = ferry(words("plan", {"--max-steps=200", "--json"}));
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  const json plan = json::parse(text_of(root_ / "out"));
  EXPECT_EQ(plan["micro_batch_size"], taken_size);
  EXPECT_EQ(plan["time"]["timed"], record_of("b")["plan"]["timed"]);
  EXPECT_NEAR(plan["time"]["step_s"], taken_s, 1e-3 * taken_s);

  // Timing draws nothing and leaves nothing: a run that is told its micro-batch has the same bits.
  outcome = train("c", {"--measure-plans=off", "--micro-batch-size=" + std::to_string(taken_size)});
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_EQ(bits_of("a"), bits_of("c"));
}

TEST_F(SettledPlan, AResumedRunTimesNothing) {
  const pid_t child = start(words("train", {"--output-dir=killed", "--max-steps=1000",
                                            "--save-steps=50", "--eval-strategy=no"}));
  wait_until([] { return fs::exists(root_ / "killed/checkpoint-50/model.safetensors"); });
  ::kill(child, SIGKILL);
  ASSERT_TRUE(wait_for(child).was_killed());
  const json before = record_of("killed");
  ASSERT_TRUE(before["plan"].contains("tried"));
  SetUp();  // the profile knows nothing again
  const Outcome outcome = ferry({"train", "--resume=killed"});
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_FALSE(has_timed(outcome)) << outcome.err;
  EXPECT_EQ(record_of("killed")["identity"], before["identity"]);
  EXPECT_FALSE(profile().contains("learnt"));
}

TEST_F(SettledPlan, NothingIsTimedWhereItIsSwitchedOffOrForcedOrShort) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--measure-plans=off"},
                                               {"--max-steps=20"},
                                               {"--micro-batch-size=4", "--activations=keep"}}) {
    fs::remove_all(root_ / "plain");
    const Outcome outcome = train("plain", more);
    ASSERT_EQ(outcome.code(), 0) << outcome.err;
    EXPECT_FALSE(has_timed(outcome)) << more.front() << ": " << outcome.err;
    EXPECT_FALSE(record_of("plain")["plan"].contains("tried"));
    EXPECT_FALSE(profile().contains("learnt"));
  }
}

/** The machine's profile is changed under a lock where the file system has any. */
TEST_F(SettledPlan, IsRememberedWhereThereAreNoLocks) {
  ::setenv("LD_PRELOAD", NO_LOCKS, 1);
  const Outcome outcome = train("unlocked", {"--save-strategy=no"});
  ::unsetenv("LD_PRELOAD");
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  EXPECT_TRUE(has_timed(outcome)) << outcome.err;
  EXPECT_EQ(profile()["learnt"].size(), record_of("unlocked")["plan"]["tried"].size());
}

/** Nobody waits for a choice of plans to hear what was known before. */
TEST_F(SettledPlan, ARunThatIsRefusedTimesNothing) {
  const auto expect_refused = [](const std::string& run, int code, const std::string& why,
                                 const std::vector<std::string>& more = {}) {
    const Outcome outcome = train(run, more);
    EXPECT_EQ(outcome.code(), code) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_FALSE(has_timed(outcome)) << outcome.err;
    EXPECT_FALSE(profile().contains("learnt"));
  };
  fs::create_directories(root_ / "taken");
  std::ofstream(root_ / "taken/notes.txt") << "mine";
  expect_refused("taken", 2, "is not empty");
  expect_refused("train.tsv/run", 5, "could not be created");
  EXPECT_EQ(fs::file_size(root_ / "taken/notes.txt"), 4u);

  // Another process has just made the directory.
  fs::create_directories(root_ / "held");
  const int held = ::open((root_ / "held").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  expect_refused("held", 2, "another process is training");
  ::close(held);

  const Outcome plan = ferry(words("plan", {"--max-steps=200", "--json"}));
  ASSERT_EQ(plan.code(), 0) << plan.err;
  const json disk = json::parse(text_of(root_ / "out"))["disk"];
  // Other programs may free some of the disk meanwhile.
  const int64_t each = disk["checkpoint_bytes"], free = disk["free_bytes"],
                too_many = 2 * (free / (each + (4 << 20)) + 2);
  if (too_many > 1'000'000) GTEST_SKIP() << "a disk for a million checkpoints";
  expect_refused("too_much", 3, "save_total_limit",
                 {"--save-total-limit=" + std::to_string(too_many)});
  EXPECT_FALSE(fs::exists(root_ / "too_much"));
}

/** The name is the first run's from before its plans are timed. */
TEST_F(SettledPlan, TheSecondRunOfANameTimesNothing) {
  const auto arguments = words("train", {"--output-dir=same", "--max-steps=100000"});
  const pid_t first = start(arguments, "first_");
  wait_until([] {
    return text_of(root_ / "first_err").find("timing a step of plans") != std::string::npos;
  });
  ::kill(first, SIGSTOP);  // it times for as long as the test wants
  const Outcome second = ferry(arguments);
  ::kill(first, SIGINT);
  ::kill(first, SIGCONT);
  const Outcome outcome = await_end(first, "first_");
  EXPECT_EQ(outcome.code(), 130) << outcome.err;
  EXPECT_EQ(second.code(), 2) << second.err;
  EXPECT_NE(second.err.find("another process"), std::string::npos) << second.err;
  EXPECT_FALSE(has_timed(second)) << second.err;
  EXPECT_FALSE(fs::exists(root_ / "same"));
}

/** It comes before anything is written to the run's directory. */
TEST_F(SettledPlan, AnInterruptLeavesNothingBehind) {
  const pid_t child = start(words("train", {"--output-dir=left", "--max-steps=100000"}));
  wait_until(
      [] { return text_of(root_ / "err").find("timing a step of plans") != std::string::npos; });
  ::kill(child, SIGINT);
  const Outcome outcome = await_end(child);
  EXPECT_EQ(outcome.code(), 130) << outcome.err;
  EXPECT_NE(outcome.err.find("nothing was trained or changed"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(root_ / "left"));
  EXPECT_FALSE(profile().contains("learnt"));
}

}  // namespace
}  // namespace ferry::test
