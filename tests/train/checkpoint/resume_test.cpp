// Promise 2 of the design under kill -9: a run that is killed at random moments and resumed, at
// other places and thread counts, ends with the bits of one that never stopped. A seeded sample
// here; FERRY_LONG=1: all.

#include <algorithm>
#include <random>
#include <set>

#include "src/runs/directory/checkpoints.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using Resume = RunTest;

/** Where bytes live, in how much memory, and who updates them, none of which may show. */
std::vector<std::string> random_placement(std::mt19937& random) {
  const char* placements[] = {"resident", "host"};
  const char* activations[] = {"keep", "recompute", "host"};
  const char* layer_inputs[] = {"device", "host"};
  const char* orders[] = {"horizontal", "vertical"};
  return {std::string("--placement=") + placements[random() % 2],
          std::string("--activations=") + activations[random() % 3],
          std::string("--layer_inputs=") + layer_inputs[random() % 2],
          std::string("--accumulation-order=") + orders[random() % 2],
          "--worker-threads=" + std::to_string(1 + random() % 3),
          std::string("--optimizer-overlap=") + (random() % 2 ? "true" : "false"),
          "--host-memory=" + std::to_string(800 + random() % 2000) + "MiB",
          "--gpu-memory=" + std::to_string(1500 + random() % 6000) + "MiB"};
}

TEST_F(Resume, KilledAtRandomMomentsTheSameBits) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(ferry(new_run("whole")).code(), 0) << text_of(root_ / "err");
  const auto whole_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::steady_clock::now() - start)
                            .count();
  const int n_kills_wanted = device() == "cuda" ? 40 : is_long() ? 200 : 20;
  std::mt19937 random(7);
  int n_kills = 0;
  for (int round = 0; n_kills < n_kills_wanted; ++round) {
    const std::string run = "killed" + std::to_string(round);
    Outcome outcome;
    int n_kills_of_run = 0;
    do {
      const auto delay = std::chrono::milliseconds(random() % static_cast<unsigned>(whole_ms));
      outcome = n_kills_of_run < 12
                    ? ferry_killed_after(go_on(run, random_placement(random)), delay)
                    : ferry(go_on(run, random_placement(random)));
      n_kills += outcome.was_killed();
      n_kills_of_run += outcome.was_killed();
      ASSERT_TRUE(outcome.was_killed() || outcome.code() == 0) << outcome.err;
    } while (outcome.code() != 0);
    expect_same_run("whole", run);
    fs::remove_all(root_ / run);
  }
}

/** The freedom to place frozen blocks, and rates and decays of their own, survive kills too. */
TEST_F(Resume, FrozenAndGroupedTheSameBits) {
  const std::vector<std::string> options = {
      "--freeze=bert.embeddings.*,bert.encoder.layer.0.*",
      "--param-groups=classifier.*:lr=1e-2,decay=0.1;*.LayerNorm.*:factor=0.5",
      "--layerwise-lr-decay=0.9", "--weight-decay=0.01"};
  ASSERT_EQ(ferry(new_run("frozen", options)).code(), 0) << text_of(root_ / "err");
  const std::string states = text_of(last_checkpoint("frozen") / "state/adam_m.safetensors");
  EXPECT_EQ(states.find("embeddings"), std::string::npos) << "no states of what is frozen";
  EXPECT_NE(states.find("layer.1"), std::string::npos);
  std::mt19937 random(5);
  for (int step : {3, 20, 40}) {
    auto arguments = go_on("frozen_killed", random_placement(random));
    if (step == 3) arguments.insert(arguments.end(), options.begin(), options.end());
    const pid_t child = start(arguments);
    wait_for_line("frozen_killed", step);
    ::kill(child, SIGKILL);
    wait_for(child);
  }
  ASSERT_EQ(ferry(go_on("frozen_killed", random_placement(random))).code(), 0)
      << text_of(root_ / "err");
  expect_same_run("frozen", "frozen_killed");

  // Thawed in the middle its Adam states would be of another step than the run's.
  fs::remove_all(root_ / "frozen_killed/final");
  for (auto [more, says] :
       {std::pair{"--new-identity=false", "freeze"}, std::pair{"--new-identity=true", "frozen"}}) {
    EXPECT_EQ(ferry({"train", "--resume=frozen_killed/checkpoint-70", "--freeze=", more}).code(),
              std::string(more).ends_with("false") ? 2 : 3);
    EXPECT_NE(text_of(root_ / "err").find(says), std::string::npos) << text_of(root_ / "err");
  }
  // Gone back with another rate: what it leaves does not come again.
  ASSERT_EQ(ferry({"train", "--resume=frozen_killed/checkpoint-70", "--lr=1e-4"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_TRUE(fs::exists(root_ / "frozen_killed/checkpoint-75.left"));
  EXPECT_NE(curve_of("frozen_killed"), curve_of("frozen"));
  EXPECT_EQ(ferry({"train", "--resume=frozen_killed", "--lr=1e-5"}).code(), 2) << "it is finished";
}

/** Killed ten times over, wherever the bytes live. */
TEST_F(Resume, ReducedStatesTheSameBits) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--optim=adamw_8bit", "--master=split", "--dtype=bf16",
                                 "--freeze=bert.embeddings.*"},
        {"--optim=adamw_bf16"}}) {
    const std::string run = "reduced" + std::to_string(options.size()), killed = run + "_killed";
    ASSERT_EQ(ferry(new_run(run, options)).code(), 0) << text_of(root_ / "err");
    std::mt19937 random(5);
    for (int step = 2; step <= 65; step += 7) {
      auto arguments = go_on(killed, random_placement(random));
      if (step == 2) arguments.insert(arguments.end(), options.begin(), options.end());
      const pid_t child = start(arguments);
      wait_for_line(killed, step);
      ::kill(child, SIGKILL);
      wait_for(child);
    }
    ASSERT_EQ(ferry(go_on(killed, random_placement(random))).code(), 0) << text_of(root_ / "err");
    expect_same_run(run, killed);
  }
  // A master in two halves can be gone on with in one.
  fs::remove_all(root_ / "reduced4/final");
  const auto in_one = [](const char* identity) {
    return ferry({"train", "--resume=reduced4/checkpoint-70", "--master=fp32", identity});
  };
  const Outcome refused = in_one("--new-identity=false");
  EXPECT_EQ(refused.code(), 2) << refused.err;
  EXPECT_NE(refused.err.find("master was \"split\""), std::string::npos) << refused.err;
  ASSERT_EQ(in_one("--new-identity=true").code(), 0) << text_of(root_ / "err");
  const std::string halves = curve_of("reduced4_killed"), one = curve_of("reduced4");
  EXPECT_TRUE(one.starts_with(halves.substr(0, halves.find("step71 "))));
  EXPECT_NE(one.find("step75 "), std::string::npos);
  EXPECT_TRUE(fs::exists(root_ / "reduced4/final"));

  // The states of one kind are not those of another.
  fs::remove_all(root_ / "reduced1/final");
  const auto resumed_as = [](const char* optim, const char* identity) {
    return ferry({"train", "--resume=reduced1", std::string("--optim=") + optim, identity});
  };
  for (const char* identity : {"--new-identity=false", "--new-identity=true"})
    for (const char* optim : {"adamw", "adamw_8bit"}) {
      const Outcome other = resumed_as(optim, identity);
      EXPECT_EQ(other.code(), 2) << other.err;
      EXPECT_NE(other.err.find("those of optim = adamw_bf16"), std::string::npos) << other.err;
      EXPECT_NE(other.err.find("--model"), std::string::npos) << other.err;
      EXPECT_EQ(other.err.find("new-identity"), std::string::npos) << "it does not help";
      EXPECT_EQ(other.err.find("runs report"), std::string::npos) << "all is said";
      const auto about = nlohmann::json::parse(text_of(root_ / "reduced1/run.json"));
      EXPECT_EQ(about.at("phase"), "finished") << "the run is as it was";
    }
}

TEST_F(Resume, OtherOptimizersTheSameBits) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--optim=lion", "--lr=1e-4"},
        {"--optim=sgd", "--momentum=0.9", "--nesterov"}}) {
    const std::string run = options[0].substr(8), killed = run + "_killed";
    ASSERT_EQ(ferry(new_run(run, options)).code(), 0) << text_of(root_ / "err");
    const std::string state = run == "lion" ? "lion_m" : "momentum";
    EXPECT_TRUE(fs::exists(last_checkpoint(run) / "state" / (state + ".safetensors")));
    EXPECT_FALSE(fs::exists(last_checkpoint(run) / "state/adam_m.safetensors"));
    std::mt19937 random(7);
    for (int step : {3, 40}) {
      auto arguments = go_on(killed, random_placement(random));
      if (step == 3) arguments.insert(arguments.end(), options.begin(), options.end());
      const pid_t child = start(arguments);
      wait_for_line(killed, step);
      ::kill(child, SIGKILL);
      wait_for(child);
    }
    ASSERT_EQ(ferry(go_on(killed, random_placement(random))).code(), 0) << text_of(root_ / "err");
    expect_same_run(run, killed);
  }
  // Without momentum there are other states.
  fs::remove_all(root_ / "sgd/final");
  const Outcome other =
      ferry({"train", "--resume=sgd", "--momentum=0", "--nesterov=false", "--new-identity=true"});
  EXPECT_EQ(other.code(), 2) << other.err;
  EXPECT_NE(other.err.find("those of optim = sgd_momentum, not of sgd"), std::string::npos)
      << other.err;
}

TEST_F(Resume, InTenPiecesElsewhereEachTimeTheSameBits) {
  ASSERT_EQ(ferry(new_run("one_piece")).code(), 0) << text_of(root_ / "err");
  std::mt19937 random(11);
  constexpr int kPieces = 10, kSteps_per_piece = 6, kLast_step = 75;
  int n_pieces = 1;
  // On a busy machine the signal comes some steps late. A step that the log had before the process
  // would let the signal come before the process can take it.
  for (int next = kSteps_per_piece; n_pieces < kPieces && next < kLast_step - kSteps_per_piece;
       next = last_step("pieces") + kSteps_per_piece, ++n_pieces) {
    auto arguments = go_on("pieces", random_placement(random));
    arguments.push_back("--save-strategy=no");  // only on leaving
    const pid_t child = start(arguments);
    wait_for_line("pieces", next);
    ::kill(child, SIGTERM);
    const Outcome outcome = wait_for(child);
    ASSERT_EQ(outcome.code(), 130) << outcome.err;
  }
  EXPECT_GE(n_pieces, 3);
  ASSERT_EQ(ferry(go_on("pieces", {"--save-strategy=steps"})).code(), 0) << text_of(root_ / "err");
  expect_same_run("one_piece", "pieces");
}

TEST_F(Resume, ASocketOfADeadProcess) {
  const pid_t child = start(new_run("dead"));
  wait_for_line("dead", 3);
  ::kill(child, SIGKILL);
  wait_for(child);
  const Outcome outcome = ferry({"runs", "pause", "dead"});
  EXPECT_EQ(outcome.code(), 2) << outcome.err;
  EXPECT_NE(outcome.err.find("lost"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--resume"), std::string::npos) << outcome.err;
  EXPECT_EQ(ferry(go_on("dead")).code(), 0) << text_of(root_ / "err");
}

TEST_F(Resume, TwoProcessesOnOneRun) {
  const pid_t child = start(new_run("shared", {"--epochs=100000"}));
  wait_for_line("shared", 10);
  const Outcome outcome = ferry({"train", "--resume=shared"}, "ask_");
  EXPECT_EQ(outcome.code(), 2) << outcome.err;
  EXPECT_NE(outcome.err.find(std::to_string(child)), std::string::npos) << outcome.err;
  // The process may remove the checkpoint that another one was about to read.
  while (runs::complete_checkpoints(root_ / "shared").empty())
    std::this_thread::sleep_for(1ms);
  ::kill(child, SIGSTOP);
  const fs::path states = runs::complete_checkpoints(root_ / "shared").back().path / "state";
  fs::rename(states, root_ / "states");
  const Outcome gone = ferry({"train", "--resume=shared"}, "gone_");
  EXPECT_EQ(gone.code(), 2) << gone.err;
  EXPECT_NE(gone.err.find(std::to_string(child)), std::string::npos) << gone.err;
  fs::rename(root_ / "states", states);
  ::kill(child, SIGCONT);
  // It ends while another that was to go on with it prepares: that one finds it as it is then.
  const pid_t late = start({"train", "--resume=shared"}, "late_");
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child).code(), 130);
  // From where it speaks of its data on it takes signals.
  const auto says = [](const char* part) {
    return text_of(root_ / "late_err").find(part) != std::string::npos;
  };
  while (!says("label is column") && !says("ferry: ["))
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(1s);
  ::kill(late, SIGTERM);
  const Outcome later = wait_for(late, "late_");
  EXPECT_TRUE(later.code() == 130 || later.code() == 2) << later.code() << ": " << later.err;
}

TEST_F(Resume, DamagedCheckpointsAndOtherIdentities) {
  ASSERT_EQ(ferry(new_run("damaged")).code(), 0) << text_of(root_ / "err");
  fs::remove_all(root_ / "damaged/final");
  const auto expect_fault = [&](const std::vector<std::string>& arguments, int code,
                                const std::string& holds) {
    const Outcome outcome = ferry(arguments);
    EXPECT_EQ(outcome.code(), code) << outcome.err;
    EXPECT_NE(outcome.err.find(holds), std::string::npos) << holds << " in: " << outcome.err;
  };
  expect_fault(go_on("damaged", {"--seed=43"}), 2, "seed");
  expect_fault(go_on("damaged", {"--micro-batch-size=8"}), 2, "per_device_train_batch_size");
  expect_fault(new_run("damaged"), 2, "--resume");
  // The number of threads inside an operation fixes the bits of a CPU.
  if (device() == "cpu")
    expect_fault(go_on("damaged", {"--intra-op-threads=2"}), 2, "intra_op_threads");

  for (const char* file : {"model.safetensors", "state/adam_m.safetensors"}) {
    const fs::path path = last_checkpoint("damaged") / file;
    const std::string good = text_of(path);
    std::string bad = good;
    bad[bad.size() - 100] = static_cast<char>(bad[bad.size() - 100] ^ 1);
    std::ofstream(path, std::ios::binary) << bad;
    expect_fault(go_on("damaged"), 4, "CRC-32C");
    fs::remove(path);
    expect_fault(go_on("damaged"), 4, "checkpoint-75");
    std::ofstream(path, std::ios::binary) << good;
  }
  // The one before it is whole.
  EXPECT_EQ(ferry({"train", "--resume=damaged/checkpoint-70"}).code(), 0) << text_of(root_ / "err");
}

}  // namespace
}  // namespace ferry::test
