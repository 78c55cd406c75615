// Runs whose steps several processes share: each has the bits of one process's run, whoever starts
// the processes, however many there are, and whichever dies.

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class SharedSteps : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    ASSERT_EQ(ferry(new_run("one")).code(), 0) << text_of(root_ / "err");
  }
  static std::vector<std::string> shared_run(const std::string& run, int n) {
    return new_run(run, {gpus(n)});
  }
  /** The run "ones": one process, and micro-batches of one text. */
  static void take_run_of_ones() {
    if (fs::exists(root_ / "ones")) return;
    ASSERT_EQ(ferry(new_run("ones", {"--micro-batch-size=1"})).code(), 0) << text_of(root_ / "err");
  }
  /** The option for n ranks; on real GPUs for no more than there are. */
  static std::string gpus(int n) { return "--gpus=" + std::to_string(here(n)); }
  static int here(int n) {
    if (device() != "cuda") return n;
    int n_gpus = 0;
    while (fs::exists("/dev/nvidia" + std::to_string(n_gpus)))
      ++n_gpus;
    return std::min(n, n_gpus);
  }
};

TEST_F(SharedSteps, HaveTheBitsOfOneProcess) {
  for (int n : std::set{2, here(3)}) {
    const std::string run = "shared_" + std::to_string(n);
    ASSERT_EQ(ferry(shared_run(run, n)).code(), 0) << text_of(root_ / "err");
    const std::string who = device() == "cuda" ? " GPUs share" : " processes share";
    EXPECT_NE(text_of(root_ / "err").find(std::to_string(n) + who), std::string::npos)
        << text_of(root_ / "err");
    expect_same_run("one", run);
  }
}

TEST_F(SharedSteps, HaveTheBitsOfOneWhereEachPassGathersWeights) {
  ASSERT_EQ(ferry(new_run("gathered", {gpus(3), "--zero-level=3"})).code(), 0)
      << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "gathered" / "run.json").find("gathered for each pass"),
            std::string::npos);
  expect_same_run("one", "gathered");
}

TEST_F(SharedSteps, HaveTheBitsOfOneWithTheBlocksInTurn) {
  for (int n : std::set{2, here(3)}) {
    const std::string run = "in_turn_" + std::to_string(n);
    ASSERT_EQ(ferry(new_run(run, {gpus(n), "--gpu-split=blocks"})).code(), 0)
        << text_of(root_ / "err");
    EXPECT_NE(text_of(root_ / "err").find("they have its blocks"), std::string::npos)
        << text_of(root_ / "err");
    expect_same_run("one", run);
  }
  ASSERT_EQ(ferry(new_run("in_turn_unlike", {"--gpus=2", "--gpu-split=blocks", "--gpu-shares=2,1"}))
                .code(),
            0)
      << text_of(root_ / "err");
  expect_same_run("one", "in_turn_unlike");
  // Others go on, in either way.
  pid_t leader = start(new_run("in_turn", {"--gpus=2", "--gpu-split=blocks"}));
  for (const auto& [split, step] : {std::pair("samples", 20), std::pair("blocks", 40)}) {
    wait_for_line("in_turn", step);
    ::kill(leader, SIGKILL);
    EXPECT_TRUE(wait_for(leader).was_killed());
    leader = start(go_on("in_turn", {gpus(3), std::string("--gpu-split=") + split}));
  }
  EXPECT_EQ(wait_for(leader).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "in_turn");
}

TEST_F(SharedSteps, HaveTheBitsOfOneInStagesOfAPipeline) {
  const int n = here(4) / 2 * 2;
  const auto in_stages = [&](const std::string& run, std::vector<std::string> more) {
    for (const std::string& word :
         {gpus(n), std::string("--pipe-size=2"), std::string("--micro-batch-size=1")})
      more.push_back(word);
    return new_run(run, more);
  };
  take_run_of_ones();
  for (const std::string order : {"horizontal", "vertical"}) {
    ASSERT_EQ(ferry(in_stages(order, {"--accumulation-order=" + order})).code(), 0)
        << text_of(root_ / "err");
    const std::string plan = text_of(root_ / order / "run.json");
    EXPECT_NE(plan.find(n == 4 ? "the 2 stages" : "the GPUs have"), std::string::npos);
    EXPECT_NE(plan.find(order == "horizontal" ? "as a pipeline" : "in turn"), std::string::npos);
    expect_same_run("ones", order);
  }
  ASSERT_EQ(ferry(in_stages("chunks", {"--pipe-chunks=2"})).code(), 0) << text_of(root_ / "err");
  expect_same_run("ones", "chunks");
  // A run that is killed goes on with another number of stages, or with GPUs that are none.
  pid_t leader = start(in_stages("stages", {}));
  int step = 15;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{gpus(3)}, {"--gpus=2", "--gpu-split=samples"}, {"--gpus=1"}}) {
    wait_for_line("stages", step);
    ::kill(leader, SIGKILL);
    EXPECT_TRUE(wait_for(leader).was_killed());
    leader = start(go_on("stages", words));
    step += 15;
  }
  EXPECT_EQ(await_end(leader).code(), 0) << text_of(root_ / "err");
  expect_same_run("ones", "stages");
}

TEST_F(SharedSteps, KeepTheirBlocksOnADrive) {
  const fs::path drive = root_ / "drive_of_blocks";
  fs::create_directories(drive);
  const std::vector<std::string> in_turn = {"--gpus=2", "--gpu-split=blocks", "--placement=nvme",
                                            "--nvme-path=" + drive.string()};
  pid_t leader = start(new_run("blocks_on_drive", in_turn));
  wait_for_line("blocks_on_drive", 30);
  EXPECT_NE(text_of(root_ / "blocks_on_drive" / "run.json").find("states of"), std::string::npos);
  ::kill(leader, SIGKILL);
  EXPECT_TRUE(wait_for(leader).was_killed());
  ASSERT_EQ(ferry(go_on("blocks_on_drive", in_turn)).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "blocks_on_drive");
}

/** GPUs of different speed; a run that goes on with others leaves the shares behind. */
TEST_F(SharedSteps, HaveTheBitsOfOneInWhateverSharesTheyRun) {
  const auto shared = [](const std::string& run, int n, const std::string& shares) {
    return new_run(run, {gpus(n), "--micro-batch-size=1", "--gpu-shares=" + shares});
  };
  take_run_of_ones();
  ASSERT_EQ(ferry(shared("shares", 2, "4,2")).code(), 0) << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "err").find("in shares of 2, 1"), std::string::npos)
      << text_of(root_ / "err");
  expect_same_run("ones", "shares");

  const pid_t leader = start(shared("shares_killed", 3, here(3) == 3 ? "1,3,2" : "1,3"));
  wait_for_line("shares_killed", 20);
  ::kill(leader, SIGKILL);
  EXPECT_TRUE(wait_for(leader).was_killed());
  const Outcome refused = ferry(go_on("shares_killed", {"--gpus=1", "--gpu-shares=1,3"}));
  EXPECT_EQ(refused.code(), 2) << refused.err;
  EXPECT_NE(refused.err.find("gpu_shares names 2 GPUs, and the run has 1"), std::string::npos)
      << refused.err;
  ASSERT_EQ(ferry(go_on("shares_killed", {"--gpus=2"})).code(), 0) << text_of(root_ / "err");
  expect_same_run("ones", "shares_killed");
}

/** Stops the other ranks of a run for most of the time, until `is_enough()`. */
template <typename IsEnough>
void slow_down(const std::function<std::vector<pid_t>()>& others, const IsEnough& is_enough) {
  const auto end = std::chrono::steady_clock::now() + 120s;
  while (!is_enough() && std::chrono::steady_clock::now() < end) {
    const std::vector<pid_t> stopped = others();
    for (pid_t pid : stopped)
      ::kill(pid, SIGSTOP);
    std::this_thread::sleep_for(30ms);
    for (pid_t pid : stopped)
      ::kill(pid, SIGCONT);
    std::this_thread::sleep_for(10ms);
  }
}

/** How much slower a rank is found to be changes no bit, and a run keeps it. */
TEST_F(SharedSteps, HaveTheBitsOfOneInSharesThatAreMeasured) {
  const auto says = [](const std::string& words) {
    return text_of(root_ / "err").find(words) != std::string::npos;
  };
  const auto kept = [] {
    const std::string settings = text_of(root_ / "measured" / "config.toml");
    const size_t at = settings.find("gpu_shares = ");
    return settings.substr(at, settings.find('\n', at) - at);
  };
  take_run_of_ones();
  const pid_t leader =
      start(new_run("measured", {gpus(3), "--micro-batch-size=1", "--gpu-shares=auto"}));
  slow_down([&] { return children_of(leader); },
            [&] { return fs::exists(root_ / "measured" / "run.json"); });
  wait_for_line("measured", 20);
  EXPECT_TRUE(says("timing each ")) << text_of(root_ / "err");
  EXPECT_TRUE(says("their shares of a step are ")) << text_of(root_ / "err");
  EXPECT_NE(text_of(root_ / "measured" / "train.log").find("their shares of a step are "),
            std::string::npos);
  const auto record = nlohmann::json::parse(text_of(root_ / "measured" / "run.json"));
  EXPECT_EQ(record["plan"]["gpu_pass_ms"].size(), static_cast<size_t>(here(3))) << record["plan"];
  const std::string first = kept();
  EXPECT_NE(first.find("auto"), std::string::npos) << first;
  ::kill(leader, SIGKILL);
  EXPECT_TRUE(wait_for(leader).was_killed());

  const pid_t again = start(go_on("measured", {gpus(3)}));
  wait_for_line("measured", 40);
  EXPECT_FALSE(says("timing each ")) << "it keeps the shares that it has measured";
  EXPECT_EQ(kept(), first);
  ::kill(again, SIGKILL);
  EXPECT_TRUE(wait_for(again).was_killed());
  ASSERT_EQ(ferry(go_on("measured", {"--gpus=2"})).code(), 0) << text_of(root_ / "err");
  if (here(3) == 3) {
    EXPECT_TRUE(says("timing each ")) << "other GPUs are measured anew";
    EXPECT_NE(kept(), first);
  }
  expect_same_run("ones", "measured");
}

/** A step of one micro-batch goes to the faster rank, and blocks are dealt by speed. */
TEST_F(SharedSteps, MeasureSharesOfStepsOfOneAndOfBlocks) {
  ASSERT_EQ(ferry(new_run("eights", {"--micro-batch-size=8"})).code(), 0);
  for (const std::string shares : {"auto", "1,3"}) {
    const std::string run = "of_one_" + shares;
    ASSERT_EQ(
        ferry(new_run(run, {"--gpus=2", "--micro-batch-size=8", "--gpu-shares=" + shares})).code(),
        0)
        << text_of(root_ / "err");
    expect_same_run("eights", run);
  }
  ASSERT_EQ(
      ferry(new_run("blocks", {"--gpus=2", "--gpu-split=blocks", "--gpu-shares=auto"})).code(), 0)
      << text_of(root_ / "err");
  expect_same_run("one", "blocks");
}

/** The sums that ranks exchange have bits of their own, which a resumed run keeps. */
TEST_F(SharedSteps, ExchangeSumsWhereTheyAreAskedTo) {
  const auto fast = [](const std::string& run) {
    return new_run(run, {"--gpus=2", "--reduction=fast", "--accumulation-order=vertical",
                         "--micro-batch-size=2"});
  };
  ASSERT_EQ(ferry(fast("fast")).code(), 0) << text_of(root_ / "err");
  const pid_t leader = start(fast("fast_killed"));
  wait_for_line("fast_killed", 30);
  ::kill(leader, SIGKILL);
  EXPECT_TRUE(wait_for(leader).was_killed());
  const Outcome refused = ferry(go_on("fast_killed", {"--reduction=ordered"}));
  EXPECT_EQ(refused.code(), 2) << refused.err;
  EXPECT_NE(refused.err.find("reduction"), std::string::npos) << refused.err;
  ASSERT_EQ(ferry(go_on("fast_killed")).code(), 0) << text_of(root_ / "err");
  expect_same_run("fast", "fast_killed");
  ASSERT_EQ(ferry(new_run("whole", {"--micro-batch-size=2"})).code(), 0) << text_of(root_ / "err");
  EXPECT_FALSE(curve_of("whole") == curve_of("fast"));
}

TEST_F(SharedSteps, GoOnWithOtherNumbersAfterKills) {
  const std::vector<std::pair<int, int>> kills = {{3, 12}, {2, 30}, {1, 50}};  // of a step
  for (const auto& [n, step] : kills) {
    const pid_t leader = start(go_on("killed", {gpus(n)}));
    wait_for_line("killed", step);
    const std::vector<pid_t> followers = children_of(leader);
    EXPECT_EQ(std::ssize(followers), here(n) - 1);
    ::kill(leader, SIGKILL);
    EXPECT_TRUE(wait_for(leader).was_killed());
    wait_until([&] { return std::ranges::none_of(followers, is_there); });
  }
  ASSERT_EQ(ferry(go_on("killed", {gpus(4)})).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "killed");
}

TEST_F(SharedSteps, NameAProcessThatDies) {
  const pid_t leader = start(shared_run("lost", 3));
  wait_for_line("lost", 10);
  const std::vector<pid_t> followers = children_of(leader);
  ASSERT_EQ(std::ssize(followers), here(3) - 1);
  ::kill(followers.front(), SIGKILL);
  const Outcome outcome = await_end(leader);
  EXPECT_EQ(outcome.code(), 5) << outcome.err;
  EXPECT_NE(outcome.err.find("rank 1 is gone"), std::string::npos) << outcome.err;
  wait_until([&] { return !is_there(followers.back()); });
  ASSERT_EQ(ferry(go_on("lost", {"--gpus=2"})).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "lost");
}

/** FERRY_WATCHDOG_S = 100: a rank is waited for 5 s. */
TEST_F(SharedSteps, NameAProcessThatStandsStill) {
  const auto patient = [] { ::setenv("FERRY_WATCHDOG_S", "100", 1); };
  // All of them at once, as Ctrl-Z does it: they go on as if nothing had been.
  pid_t leader = start_ferry(root_, shared_run("still", 3), "", patient);
  wait_for_line("still", 5);
  std::vector<pid_t> all = children_of(leader);
  ASSERT_EQ(std::ssize(all), here(3) - 1);
  all.push_back(leader);
  for (pid_t process : all)
    ::kill(process, SIGSTOP);
  std::this_thread::sleep_for(7s);
  for (pid_t process : all)
    ::kill(process, SIGCONT);
  wait_for_line("still", 15);
  all.pop_back();
  ::kill(all.back(), SIGSTOP);
  Outcome outcome = await_end(leader);
  EXPECT_EQ(outcome.code(), 5) << outcome.err;
  EXPECT_NE(outcome.err.find("rank " + std::to_string(all.size()) + " has not answered for 5 s"),
            std::string::npos)
      << outcome.err;
  wait_until([&] { return std::ranges::none_of(all, is_there); });

  leader = start_ferry(root_, go_on("still", {"--gpus=2"}), "", patient);
  wait_for_line("still", 40);
  const std::vector<pid_t> followers = children_of(leader);
  ASSERT_EQ(followers.size(), 1u);
  ::kill(leader, SIGSTOP);
  wait_until([&] { return text_of(root_ / "err").find("rank 0 has not") != std::string::npos; });
  ::kill(leader, SIGCONT);
  outcome = await_end(leader);
  EXPECT_EQ(outcome.code(), 5) << outcome.err;
  EXPECT_NE(outcome.err.find("rank 1 is gone"), std::string::npos) << outcome.err;
  ASSERT_EQ(ferry(go_on("still")).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "still");
}

/** A seeded sample; FERRY_LONG=1: 24 kills. Once there were so many, the last run goes on to its
 * end. A GPU's processes need seconds to start. */
TEST_F(SharedSteps, AreKilledAtAnyMoment) {
  const int most_ms = device() == "cuda" ? 12000 : 4000;
  std::mt19937 random(7);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  const int n_kills = is_long() ? 24 : 4;
  for (int kill = 0, run = 0; kill < n_kills; ++run) {
    const std::string name = "any_" + std::to_string(run);
    for (bool has_ended = false; !has_ended;) {
      const int world = 2 + below(3);
      const pid_t leader = start(go_on(name, {gpus(world)}));
      if (kill == n_kills) {
        const Outcome outcome = await_end(leader);
        ASSERT_EQ(outcome.code(), 0) << outcome.err;
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200 + below(most_ms)));
      std::vector<pid_t> all = children_of(leader);
      all.push_back(leader);
      const pid_t victim = all[static_cast<size_t>(below(static_cast<int>(all.size())))];
      const bool was_there = !has_ended_within(leader, 0ms);
      if (was_there) ::kill(victim, SIGKILL);
      const auto start_of_end = std::chrono::steady_clock::now();
      const Outcome outcome = await_end(leader);
      wait_until([&] { return std::ranges::none_of(all, is_there); });
      EXPECT_LT(std::chrono::steady_clock::now() - start_of_end, 60s);
      has_ended = outcome.code() == 0;
      if (has_ended) continue;  // before the kill, or at the same time
      ++kill;
      if (victim == leader) {
        EXPECT_TRUE(outcome.was_killed());
      } else {
        EXPECT_EQ(outcome.code(), 5) << outcome.err;
        EXPECT_TRUE(outcome.err.find(" is gone") != std::string::npos ||
                    outcome.err.find("was ended by signal 9") != std::string::npos)
            << outcome.err;
      }
    }
    expect_same_run("one", name);
  }
}

TEST_F(SharedSteps, StopAndGoOn) {
  const pid_t leader = start(shared_run("stopped", 2));
  wait_for_line("stopped", 10);
  ::kill(leader, SIGINT);
  const Outcome outcome = await_end(leader);
  EXPECT_EQ(outcome.code(), 130) << outcome.err;
  ASSERT_EQ(ferry(go_on("stopped")).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "stopped");
}

/** The states of each process's part lie in files of that process, and checkpoints hold all. */
TEST_F(SharedSteps, KeepTheirPartsOnADrive) {
  const fs::path drive = root_ / "drive";
  fs::create_directories(drive);
  const std::vector<std::string> on_drive = {"--placement=nvme", "--nvme-path=" + drive.string()};
  const auto with_gpus = [&](int n) {
    std::vector<std::string> words = on_drive;
    words.push_back(gpus(n));
    return words;
  };
  ASSERT_EQ(ferry(new_run("two_drives", with_gpus(2))).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "two_drives");
  EXPECT_FALSE(fs::exists(last_checkpoint("two_drives") / "state" / "drive_states.json"));

  // One process's checkpoints keep the states where they are; more processes go on from these.
  pid_t leader = start(new_run("drives", on_drive));
  wait_for_line("drives", 12);
  ::kill(leader, SIGKILL);
  EXPECT_TRUE(wait_for(leader).was_killed());
  for (const auto& [n, step] : {std::pair(3, 30), std::pair(1, 50)}) {
    leader = start(go_on("drives", with_gpus(n)));
    wait_for_line("drives", step);
    ::kill(leader, SIGKILL);
    EXPECT_TRUE(wait_for(leader).was_killed());
  }
  ASSERT_EQ(ferry(go_on("drives", with_gpus(2))).code(), 0) << text_of(root_ / "err");
  expect_same_run("one", "drives");
  const auto is_part = [](const fs::directory_entry& file) {
    return file.path().filename().string().find("-part-") != std::string::npos;
  };
  EXPECT_TRUE(std::none_of(fs::directory_iterator(drive), {}, is_part)) << "a part has a name left";
}

/** torchrun starts the same command for each rank, and says which one it is. */
TEST_F(SharedSteps, TakeTheRanksOfALauncher) {
  const int port = 20000 + ::getpid() % 20000;
  std::vector<pid_t> ranks;
  for (int rank : {0, 1})
    ranks.push_back(start_ferry(root_, new_run("launched"), "rank" + std::to_string(rank), [&] {
      const auto set = [](const char* name, int value) {
        ::setenv(name, std::to_string(value).c_str(), 1);
      };
      set("RANK", rank), set("LOCAL_RANK", rank), set("WORLD_SIZE", 2), set("LOCAL_WORLD_SIZE", 2);
      set("MASTER_PORT", port);
      ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    }));
  for (int rank : {0, 1}) {
    const Outcome outcome =
        await_end(ranks[static_cast<size_t>(rank)], "rank" + std::to_string(rank));
    EXPECT_EQ(outcome.code(), 0) << outcome.err;
  }
  expect_same_run("one", "launched");
}

TEST_F(SharedSteps, RefuseWhatTheyCannotDo) {
  const auto refusal = [](std::vector<std::string> more) {
    more.emplace_back("--device=cpu");  // a host may have fewer GPUs than are named
    const Outcome outcome = ferry(new_run("refused", more));
    EXPECT_EQ(outcome.code(), 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_NE(refusal({"--gpus=0"}).find("at least one GPU"), std::string::npos);
  EXPECT_NE(refusal({"--gpus=1,1"}).find("named twice"), std::string::npos);
  EXPECT_NE(refusal({"--gpus=4", "--pipe-size=3"}).find("a divisor of the number of GPUs"),
            std::string::npos);
  EXPECT_NE(
      refusal({"--gpus=4", "--pipe-size=2", "--gpu-split=blocks"}).find("leave gpu_split out"),
      std::string::npos);
  EXPECT_NE(
      refusal({"--gpus=4", "--pipe-size=2", "--gpu-shares=1,1,2,2"}).find("leave gpu_shares out"),
      std::string::npos);
  EXPECT_NE(
      refusal({"--gpus=4", "--pipe-size=2", "--gpu-shares=auto"}).find("leave gpu_shares out"),
      std::string::npos);
  EXPECT_NE(refusal({"--gpus=2", "--gpu-shares=fast"}).find("--gpu-shares auto"),
            std::string::npos);
  EXPECT_NE(refusal({"--gpus=2", "--pipe-chunks=2"}).find("give pipe_size or gpu_split = blocks"),
            std::string::npos);
  EXPECT_NE(refusal({"--gpus=2", "--pipe-size=2", "--reduction=fast"}).find("leave reduction out"),
            std::string::npos);
  EXPECT_NE(refusal({"--gpus=two"}).find("'two' is no number"), std::string::npos);
  EXPECT_NE(
      refusal({"--gpus=2", "--gpu-split=blocks", "--reduction=fast"}).find("leave reduction out"),
      std::string::npos);
  EXPECT_FALSE(fs::exists(root_ / "refused"));
}

}  // namespace
}  // namespace ferry::test
