#include "src/comm/comm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "src/base/error.h"
#include "src/comm/names.h"
#include "src/comm/rank_lost.h"

namespace ferry {

Comm::Comm(int rank, std::vector<int> ranks_of_run, std::chrono::milliseconds deadline)
    : rank_(rank), ranks_of_run_(std::move(ranks_of_run)) {
  FERRY_CHECK(rank >= 0 && rank < world(), "rank {} of {}", rank, world());
  set_deadline(deadline);
}

void Comm::set_deadline(std::chrono::milliseconds deadline) {
  FERRY_CHECK(deadline.count() > 0, "a deadline of {} ms", deadline.count());
  deadline_ = deadline;
}

void Comm::call(std::string_view name, const std::function<void(Clock::time_point until)>& work) {
  const std::string where = fmt::format("comm.{}", name);
  if (failure_)
    throw RankLost(where, fmt::format("the ranks were lost before: {}", *failure_),
                   "this run has ended; start it again from its last checkpoint");
  try {
    work(Clock::now() + deadline_);
  } catch (const Failure& failure) {
    failure_ = failure.what;
    leave(failure.cause);
    throw RankLost(where, failure.what, failure.hint);
  } catch (const std::exception& e) {
    failure_ = e.what();
    leave(e.what());
    throw;
  }
}

void Comm::send(SentBytes bytes, int to) {
  FERRY_CHECK(to >= 0 && to < world() && to != rank_, "rank {} of {} sends to {}", rank_, world(),
              to);
  call("send", [&](auto until) {
    std::vector<SentBytes> sends(ranks_of_run_.size());
    sends[to] = bytes;
    transfer(sends, std::vector<ReceivedBytes>(sends.size()), until);
  });
}

void Comm::receive(ReceivedBytes bytes, int from) {
  FERRY_CHECK(from >= 0 && from < world() && from != rank_, "rank {} of {} receives from {}", rank_,
              world(), from);
  call("receive", [&](auto until) {
    std::vector<ReceivedBytes> receives(ranks_of_run_.size());
    receives[from] = bytes;
    transfer(std::vector<SentBytes>(receives.size()), receives, until);
  });
}

void Comm::exchange(std::span<const SentBytes> sends, std::span<const ReceivedBytes> receives) {
  const size_t n = ranks_of_run_.size();
  FERRY_CHECK(sends.size() == n && receives.size() == n, "{} and {} messages of {} ranks",
              sends.size(), receives.size(), n);
  call("exchange", [&](auto until) { move_all(sends, receives, until); });
}

void Comm::move_all(std::span<const SentBytes> sends,
                    std::span<const ReceivedBytes> receives,
                    Clock::time_point until) {
  const SentBytes kept = sends[rank_];
  FERRY_CHECK(kept.size() == receives[rank_].size(), "{} bytes for {} of rank {} itself",
              kept.size(), receives[rank_].size(), rank_);
  if (!kept.empty()) std::memmove(receives[rank_].data(), kept.data(), kept.size());
  std::vector<SentBytes> sends_of_others(sends.begin(), sends.end());
  std::vector<ReceivedBytes> receives_of_others(receives.begin(), receives.end());
  sends_of_others[rank_] = {};
  receives_of_others[rank_] = {};
  transfer(sends_of_others, receives_of_others, until);
}

void Comm::all_gather(SentBytes mine, ReceivedBytes all) {
  call("all_gather", [&](auto until) { gather(mine, all, until); });
}

void Comm::gather(SentBytes mine, ReceivedBytes all, Clock::time_point until) {
  const size_t n = ranks_of_run_.size();
  FERRY_CHECK(all.size() == mine.size() * n, "{} bytes for {} of {} ranks", all.size(), mine.size(),
              n);
  std::vector<ReceivedBytes> parts;
  for (size_t i = 0; i < n; ++i)
    parts.push_back(all.subspan(i * mine.size(), mine.size()));
  move_all(std::vector<SentBytes>(n, mine), parts, until);
}

std::vector<std::vector<std::byte>> Comm::all_gather_varying(SentBytes mine) {
  const size_t n = ranks_of_run_.size();
  std::vector<std::vector<std::byte>> all(n);
  call("all_gather_varying", [&](auto until) {
    const uint64_t n_mine = mine.size();
    std::vector<uint64_t> sizes(n);
    gather(std::as_bytes(std::span(&n_mine, 1)), std::as_writable_bytes(std::span(sizes)), until);
    for (size_t i = 0; i < n; ++i)
      all[i].resize(sizes[i]);
    move_all(std::vector<SentBytes>(n, mine), std::vector<ReceivedBytes>(all.begin(), all.end()),
             until);
  });
  return all;
}

void Comm::broadcast(ReceivedBytes bytes, int root) {
  FERRY_CHECK(root >= 0 && root < world(), "root {} of {}", root, world());
  call("broadcast", [&](auto until) {
    std::vector<SentBytes> sends(ranks_of_run_.size());
    std::vector<ReceivedBytes> receives(sends.size());
    if (rank_ == root) {
      std::ranges::fill(sends, bytes);
      sends[rank_] = {};
    } else {
      receives[root] = bytes;
    }
    transfer(sends, receives, until);
  });
}

void Comm::barrier() {
  call("barrier", [&](auto until) { meet(until); });
}

void Comm::meet(Clock::time_point until) {
  std::vector<std::byte> all(ranks_of_run_.size());
  gather(std::vector<std::byte>(1), all, until);
}

void Comm::sum(std::span<double> values) {
  call("sum", [&](auto until) {
    const size_t n = values.size();
    std::vector<double> all(ranks_of_run_.size() * n);
    gather(std::as_bytes(values), std::as_writable_bytes(std::span(all)), until);
    for (size_t i = 0; i < n; ++i) {
      double sum = all[i];
      for (size_t place = n + i; place < all.size(); place += n)
        sum += all[place];
      values[i] = sum;
    }
  });
}

std::vector<int> Comm::ranks_that_differ(uint64_t value) {
  const std::vector<uint64_t> values = gather_values(value);
  std::vector<int> different;
  for (int i = 1; i < world(); ++i)
    if (values[i] != values[0]) different.push_back(i);
  return different;
}

std::unique_ptr<Comm> Comm::split(int colour) {
  std::unique_ptr<Comm> group;
  call("split", [&](auto until) {
    std::vector<int> colours(ranks_of_run_.size());
    gather(std::as_bytes(std::span(&colour, 1)), std::as_writable_bytes(std::span(colours)), until);
    std::vector<int> members;
    for (int i = 0; i < world(); ++i)
      if (colours[i] == colour) members.push_back(i);
    group = make_group(members, n_splits_++, until);
    // The other groups may still be connecting through what this rank serves.
    meet(until);
  });
  return group;
}

std::vector<int> Comm::in_run(const std::vector<int>& peers) const {
  std::vector<int> ranks;
  for (int peer : peers)
    ranks.push_back(ranks_of_run_[peer]);
  return ranks;
}

Comm::Failure Comm::gone(const std::vector<int>& ranks, std::string_view reason) {
  const std::string names = name_ranks(ranks);
  const std::string what = fmt::format("{} {} gone{}{}", names, ranks.size() == 1 ? "is" : "are",
                                       reason.empty() ? "" : ": ", reason);
  return {what, fmt::format("the output of {} says why", names), what};
}

Comm::Failure Comm::late(const std::vector<int>& ranks) const {
  const std::string names = name_ranks(ranks);
  const std::string what = fmt::format("{} did not come within {}", names, name_time(deadline_));
  return {what,
          fmt::format("the output of {} shows what holds it up; if nothing does, look at the "
                      "network between the ranks",
                      names),
          what};
}

Comm::Failure Comm::stopped(int rank, std::string_view cause) {
  const std::string name = name_ranks({rank});
  return {fmt::format("{} stopped: {}", name, cause),
          fmt::format("the output of {} says more", name), std::string(cause)};
}

}  // namespace ferry
