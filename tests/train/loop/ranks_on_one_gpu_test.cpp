// Ranks that meet by NCCL on one GPU: NCCL is told that they are on different hosts, so it sends
// over sockets. Runs have the bits of one process's run, and lost ranks are named.

#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RanksOnOneGpu : public RunTest {
 protected:
  void SetUp() override {
    if (device() != "cuda") GTEST_SKIP() << "needs a GPU: FERRY_TEST_DEVICE=cuda";
  }

  /** Each rank is another host. `change` is done in each process before it starts. */
  static std::vector<pid_t> start_ranks(
      int n,
      const std::vector<std::string>& words,
      const std::function<void(int rank)>& change = [](int) {}) {
    const std::string at = port();
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < n; ++rank) {
      std::vector<std::string> its = words;
      for (const char* const word :
           {"--gpus=1", "--gpu-memory=60GiB", "--master-addr=127.0.0.1", "--rank-timeout=1min"})
        its.push_back(word);
      its.push_back("--nnodes=" + std::to_string(n));
      its.push_back("--node-rank=" + std::to_string(rank));
      its.push_back("--master-port=" + at);
      ranks.push_back(start_ferry(root_, its, prefix(rank), [&] {
        ::setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1);
        ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
        change(rank);
      }));
    }
    return ranks;
  }
  static std::string prefix(int rank) { return "rank" + std::to_string(rank); }
  static std::string said_by(int rank) { return text_of(root_ / (prefix(rank) + "err")); }
  static void expect_to_end_well(const std::vector<pid_t>& ranks) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const Outcome outcome = await_end(ranks[rank], prefix(static_cast<int>(rank)));
      EXPECT_EQ(outcome.code(), 0) << "rank " << rank << ": " << outcome.err;
    }
  }
  static std::vector<std::string> run_of(const std::string& name,
                                         std::vector<std::string> more,
                                         const std::string& type) {
    more.push_back("--dtype=" + type);
    return new_run(name, more);
  }
};

TEST_F(RanksOnOneGpu, HaveTheBitsOfOneProcess) {
  for (const char* const type : {"fp32", "bf16", "fp16"}) {
    const std::string one = std::string("one_") + type;
    ASSERT_EQ(ferry(run_of(one, {"--gpu-memory=60GiB"}, type)).code(), 0) << text_of(root_ / "err");
    for (const char* const place : {"host", "resident"})
      for (int n : {2, 3}) {
        const std::string name = std::string(type) + "_" + place + std::to_string(n);
        SCOPED_TRACE(name);
        expect_to_end_well(
            start_ranks(n, run_of(name, {std::string("--placement=") + place}, type)));
        expect_same_run(one, name);
      }
    const std::string unlike = std::string(type) + "_unlike";
    expect_to_end_well(start_ranks(2, run_of(unlike, {"--gpu-shares=1,2"}, type)));
    expect_same_run(one, unlike);
    for (int n : {2, 3}) {
      const std::string in_turn = std::string(type) + "_in_turn" + std::to_string(n);
      expect_to_end_well(start_ranks(n, run_of(in_turn, {"--gpu-split=blocks"}, type)));
      expect_same_run(one, in_turn);
    }
    const std::string gathered = std::string(type) + "_gathered";
    expect_to_end_well(
        start_ranks(2, run_of(gathered, {"--placement=resident", "--zero-level=3"}, type)));
    expect_same_run(one, gathered);
  }
}

TEST_F(RanksOnOneGpu, ExchangeSumsWhereTheyAreAskedTo) {
  for (const char* const name : {"fast", "again"})
    expect_to_end_well(start_ranks(
        2,
        run_of(name, {"--reduction=fast", "--accumulation-order=vertical", "--micro-batch-size=2"},
               "bf16")));
  expect_same_run("fast", "again");
}

/** The all-to-all and the sums within a block, beside the exchanges of weights and gradients. */
TEST_F(RanksOnOneGpu, ShareTokensOrLayers) {
  write_tiny_language_model(root_ / "decoder");
  write_tiny_documents(root_ / "docs.jsonl", 200, 1);
  write_tiny_documents(root_ / "docs_dev.jsonl", 40, 2);
  for (const auto& [type, tolerance] : {std::pair("fp32", 1e-4), std::pair("bf16", 2e-2)}) {
    // Masks of attention are drawn by the kernels of a GPU, by heads and sequences.
    const auto run_named = [type = type](const std::string& name, std::vector<std::string> more) {
      for (const char* word : {"--model=decoder", "--task=causal-lm", "--dataset=docs.jsonl",
                               "--eval-dataset=docs_dev.jsonl", "--max-length=16", "--max-steps=20",
                               "--attention-dropout=0"})
        more.emplace_back(word);
      return run_of(name, more, type);
    };
    const std::string one = std::string("alone_") + type;
    ASSERT_EQ(ferry(run_named(one, {"--gpu-memory=60GiB"})).code(), 0) << text_of(root_ / "err");
    for (const std::string how : {"sp", "ring", "tp"}) {
      const std::string first = how + "_" + type, again = first + "_again";
      SCOPED_TRACE(first);
      std::vector<std::string> options = {how == "tp" ? "--tp-size=2" : "--sp-size=2"};
      if (how == "ring") options.emplace_back("--sp-attention=ring");
      expect_to_end_well(start_ranks(2, run_named(first, options)));
      options.emplace_back("--placement=host");
      expect_to_end_well(start_ranks(2, run_named(again, options)));
      EXPECT_EQ(curve_of(first), curve_of(again));
      const std::vector<double> a = losses_of(one), b = losses_of(first);
      ASSERT_EQ(a.size(), b.size());
      ASSERT_GE(a.size(), 20U);
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_NEAR(a[i], b[i], tolerance * std::abs(a[i])) << "loss " << i;
    }
  }
}

/** A seeded sample; FERRY_LONG=1: 24 kills. */
TEST_F(RanksOnOneGpu, AreKilledAtAnyMoment) {
  ASSERT_EQ(ferry(run_of("whole", {"--gpu-memory=60GiB"}, "bf16")).code(), 0);
  std::mt19937 random(7);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  const int n_kills = is_long() ? 24 : 4;
  for (int kill = 0, run = 0; kill < n_kills; ++run) {
    const std::string name = "killed_" + std::to_string(run);
    for (bool has_ended = false; !has_ended;) {
      const int n = 2 + below(2);
      std::vector<pid_t> ranks =
          start_ranks(n, fs::exists(root_ / name) ? go_on(name) : run_of(name, {}, "bf16"));
      if (kill == n_kills) {  // the run that was killed last goes on to its end
        expect_to_end_well(ranks);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1000 + below(9000)));
      const int victim = below(n);
      ::kill(ranks[static_cast<size_t>(victim)], SIGKILL);
      const auto from = std::chrono::steady_clock::now();
      bool is_named = false;
      int n_well = 0;
      for (int rank = 0; rank < n; ++rank) {
        const Outcome outcome = await_end(ranks[static_cast<size_t>(rank)], prefix(rank));
        n_well += outcome.code() == 0;
        is_named |= outcome.err.find("rank " + std::to_string(victim)) != std::string::npos ||
                    outcome.err.find("host") != std::string::npos;
      }
      has_ended = n_well >= n - 1 && fs::exists(root_ / name / "final/model.safetensors");
      if (has_ended) break;
      ++kill;
      EXPECT_TRUE(is_named) << said_by(0) << said_by(1);
      EXPECT_LT(std::chrono::steady_clock::now() - from, 60s);
    }
    expect_same_run("whole", name);
  }
}

TEST_F(RanksOnOneGpu, NameARankWhoseGpuStands) {
  for (int stuck : {0, 1}) {
    const std::string name = "stuck_" + std::to_string(stuck);
    const std::vector<pid_t> ranks =
        start_ranks(2, run_of(name, {"--epochs=50"}, "bf16"), [stuck](int rank) {
          ::setenv("FERRY_WATCHDOG_S", "100", 1);
          if (rank != stuck) return;
          ::setenv("LD_PRELOAD", HUNG_GPU, 1);
          ::setenv("FERRY_HUNG_AFTER", "3000", 1);
        });
    for (int rank : {0, 1}) {
      const Outcome outcome = await_end(ranks[static_cast<size_t>(rank)], prefix(rank));
      EXPECT_EQ(outcome.code(), 5) << outcome.err;
    }
    EXPECT_THAT(said_by(0), AllOf(HasSubstr("nothing has moved on any rank for 10 s"),
                                  HasSubstr("rank " + std::to_string(stuck) + " cannot go on")));
  }
}

}  // namespace
}  // namespace ferry::test
