// The pulse of ranks that are threads: who ends well is lost to nobody, who does not is named.

#include "src/comm/pulse.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>

#include "src/comm/thread_comm.h"

namespace ferry {
namespace {

using namespace std::chrono_literals;

/** The ranks that each rank has lost, and what was said of them. */
class Losses {
 public:
  void add(int who, int rank, const std::string& what) {
    std::lock_guard lock(mutex_);
    its_[who].push_back(what);
    ranks_[who].push_back(rank);
    changed_.notify_all();
  }
  /** Waits until `who` has lost a rank. */
  std::string await(int who) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, 60s, [&] { return !its_[who].empty(); });
    return came ? its_[who].front() : "";
  }
  std::vector<int> of(int who) {
    std::lock_guard lock(mutex_);
    return ranks_[who];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::vector<std::string>> its_;
  std::map<int, std::vector<int>> ranks_;
};

class PulseTest : public testing::Test {
 protected:
  /** Runs `work` in a thread for each rank, with its pulse. */
  void run(int world, const std::function<void(int rank, std::unique_ptr<Pulse>&)>& work) {
    auto comms = make_thread_comms(world, 60s);
    std::vector<std::future<void>> ranks;
    for (int rank = 0; rank < world; ++rank)
      ranks.push_back(std::async(std::launch::async, [&, rank] {
        auto pulse = std::make_unique<Pulse>(
            *comms[static_cast<size_t>(rank)],
            PulseOptions{
                .patience = 500ms,
                .grace = 100ms,
                .standstill = 400ms,
                .progress = [&, rank] { return progress_(rank); },
                .lost = [&, rank](int other,
                                  const std::string& what) { losses_.add(rank, other, what); },
                .stands = [&, rank](const std::string& what) { losses_.add(rank, -1, what); }});
        work(rank, pulse);
      }));
    for (std::future<void>& rank : ranks)
      rank.get();
  }
  Losses losses_;
  std::function<RankProgress(int rank)> progress_ = [](int) { return RankProgress{}; };
};

TEST_F(PulseTest, EndsWithTheRun) {
  run(4, [](int, std::unique_ptr<Pulse>& pulse) {
    std::this_thread::sleep_for(700ms);
    pulse.reset();
  });
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_TRUE(losses_.of(rank).empty()) << "of rank " << rank;
}

TEST_F(PulseTest, NamesARankThatLeavesBeforeTheFirst) {
  run(3, [&](int rank, std::unique_ptr<Pulse>& pulse) {
    if (rank == 2) return pulse.reset();
    if (rank == 0) {
      EXPECT_NE(losses_.await(0).find("rank 2 is gone"), std::string::npos) << losses_.await(0);
    } else {
      losses_.await(0);
    }
    pulse.reset();
  });
  EXPECT_EQ(losses_.of(0), std::vector{2});
  EXPECT_TRUE(losses_.of(1).empty());
}

TEST_F(PulseTest, NamesTheRankThatAllOthersWaitForInAStep) {
  progress_ = [](int rank) {
    return rank == 1 ? RankProgress{7, " forward of layer.3", false}
                     : RankProgress{8, " gather_weights of layer.4", true};
  };
  run(3, [&](int, std::unique_ptr<Pulse>& pulse) {
    losses_.await(0);
    pulse.reset();
  });
  EXPECT_EQ(losses_.await(0),
            "nothing has moved on any rank for 0.4 s: rank 1 cannot go on, and the others wait; "
            "rank 0 waits for gather_weights of layer.4; rank 1 waits for forward of layer.3; rank "
            "2 waits for gather_weights of layer.4");
  EXPECT_EQ(losses_.of(0), std::vector{-1});
  EXPECT_TRUE(losses_.of(1).empty());
}

TEST_F(PulseTest, SaysWhereAllWaitForEachOther) {
  progress_ = [](int) { return RankProgress{8, std::string(2000, 'x'), true}; };
  run(2, [&](int, std::unique_ptr<Pulse>& pulse) {
    losses_.await(0);
    pulse.reset();
  });
  EXPECT_NE(losses_.await(0).find("all wait for each other"), std::string::npos);
}

TEST_F(PulseTest, WaitsForAStepInWhichOneRankMoves) {
  std::atomic<uint64_t> n = 0;
  progress_ = [&](int rank) {
    return rank == 1 ? RankProgress{++n, "", false} : RankProgress{8, " a gather", true};
  };
  run(3, [&](int, std::unique_ptr<Pulse>& pulse) {
    std::this_thread::sleep_for(1s);
    pulse.reset();
  });
  EXPECT_TRUE(losses_.of(0).empty());
}

/** Outside a step the others wait for the first rank as long as its work takes. */
TEST_F(PulseTest, WaitsWhereNoStepDoes) {
  run(3, [&](int, std::unique_ptr<Pulse>& pulse) {
    std::this_thread::sleep_for(1s);
    pulse.reset();
  });
  EXPECT_TRUE(losses_.of(0).empty());
}

TEST_F(PulseTest, NamesAFirstRankThatLeavesUnderAStep) {
  run(2, [&](int rank, std::unique_ptr<Pulse>& pulse) {
    if (rank == 1) {
      EXPECT_EQ(losses_.await(1), "rank 0 has ended the run");
    }
    pulse.reset();
  });
  EXPECT_EQ(losses_.of(1), std::vector{0});
  EXPECT_TRUE(losses_.of(0).empty());
}

TEST_F(PulseTest, OfOneRankIsNone) {
  run(1, [](int, std::unique_ptr<Pulse>& pulse) { pulse.reset(); });
  EXPECT_TRUE(losses_.of(0).empty());
}

}  // namespace
}  // namespace ferry
