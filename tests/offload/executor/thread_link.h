#pragma once
// Ranks that are threads of one process, for tests.

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "offload/executor/rank_link.h"
#include "src/base/error.h"

namespace ferry::test {

/** The ranks' meeting: a call returns when all ranks have made it. */
class ThreadRanks {
 public:
  explicit ThreadRanks(int world) : world_(static_cast<size_t>(world)), links_(world_) {
    for (size_t r = 0; r < world_; ++r)
      links_[r].init(*this, r);
  }
  RankLink* link(int rank) { return &links_[static_cast<size_t>(rank)]; }

 private:
  /** One kind of call, in which all ranks meet again and again. */
  struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    size_t n_arrived = 0, n_done = 0;
    uint64_t turn = 0;
    std::vector<const void*> given;
  };
  /** Calls `take` with what each rank gave, when all have come. */
  template <class Given, class Take>
  void meet(Meeting& at, size_t rank, const Given& mine, const Take& take) {
    std::unique_lock lock(at.mutex);
    at.changed.wait(lock, [&] { return at.n_done == 0; });  // the meeting before has ended
    at.given.resize(world_);
    at.given[rank] = &mine;
    const uint64_t turn = at.turn;
    if (++at.n_arrived == world_) {
      at.n_arrived = 0;
      at.n_done = world_;
      ++at.turn;
      at.changed.notify_all();
    }
    at.changed.wait(lock, [&] { return at.turn != turn; });
    lock.unlock();
    for (size_t r = 0; r < world_; ++r)
      take(r, *static_cast<const Given*>(at.given[r]));
    lock.lock();
    if (--at.n_done == 0) at.changed.notify_all();
    at.changed.wait(lock, [&] { return at.n_done == 0 || at.turn != turn + 1; });
  }

  class Link : public RankLink {
   public:
    void init(ThreadRanks& ranks, size_t rank) {
      ranks_ = &ranks;
      rank_ = rank;
    }
    void exchange(std::span<const std::span<const std::byte>> sends,
                  std::span<const std::span<std::byte>> receives,
                  void* /*stream*/) override {
      using Sends = std::span<const std::span<const std::byte>>;
      ranks_->meet(ranks_->exchanges_, rank_, sends, [&](size_t from, const Sends& theirs) {
        if (from == rank_) return;
        FERRY_CHECK(theirs[rank_].size() == receives[from].size(), "{} sends {} bytes to {}: {}",
                    from, theirs[rank_].size(), rank_, receives[from].size());
        std::ranges::copy(theirs[rank_], receives[from].begin());
      });
    }
    std::vector<std::vector<double>> gather(std::span<const double> values) override {
      std::vector<std::vector<double>> all(ranks_->world_);
      ranks_->meet(ranks_->gathers_, rank_, values,
                   [&](size_t from, const std::span<const double>& theirs) {
                     all[from].assign(theirs.begin(), theirs.end());
                   });
      return all;
    }

   private:
    ThreadRanks* ranks_ = nullptr;
    size_t rank_ = 0;
  };

  size_t world_;
  std::vector<Link> links_;
  Meeting exchanges_, gathers_;
};

}  // namespace ferry::test
