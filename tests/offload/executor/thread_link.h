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

/** Messages from rank to rank, and a meeting of all. A call that sends returns when the others have
 * received, as over a network. */
class ThreadRanks {
 public:
  explicit ThreadRanks(int world)
      : world_(static_cast<size_t>(world)), links_(world_), boxes_(world_ * world_) {
    for (size_t r = 0; r < world_; ++r)
      links_[r].init(*this, r);
  }
  RankLink* link(int rank) { return &links_[static_cast<size_t>(rank)]; }

 private:
  /** A message from one rank to another; null once it was received. */
  struct Box {
    const std::span<const std::byte>* sent = nullptr;
  };
  Box& box(size_t from, size_t to) { return boxes_[from * world_ + to]; }

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
      const auto each_other = [&](auto&& each) {
        for (size_t peer = 0; peer < sends.size(); ++peer)
          if (peer != rank_) each(peer);
      };
      std::unique_lock lock(ranks_->mutex_);
      each_other([&](size_t to) {
        if (!sends[to].empty()) ranks_->box(rank_, to).sent = &sends[to];
      });
      ranks_->changed_.notify_all();
      each_other([&](size_t from) {
        if (receives[from].empty()) return;
        Box& box = ranks_->box(from, rank_);
        ranks_->changed_.wait(lock, [&] { return box.sent != nullptr; });
        FERRY_CHECK(box.sent->size() == receives[from].size(), "{} sends {} bytes to {}: {}", from,
                    box.sent->size(), rank_, receives[from].size());
        std::ranges::copy(*box.sent, receives[from].begin());
        box.sent = nullptr;
        ranks_->changed_.notify_all();
      });
      each_other([&](size_t to) {
        ranks_->changed_.wait(lock, [&] { return ranks_->box(rank_, to).sent == nullptr; });
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
  std::mutex mutex_;  ///< of the boxes
  std::condition_variable changed_;
  std::vector<Box> boxes_;  ///< [from * world + to]
  Meeting gathers_;
};

}  // namespace ferry::test
