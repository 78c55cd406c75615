#include "src/comm/pulse.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "src/comm/names.h"

namespace ferry {
namespace {

using std::chrono::milliseconds;

enum class Beat : uint8_t { goes_on, ends };

/** A stopped rank is noticed by whoever counts the beats, not by a deadline, which would end the
 * ranks that were stopped with it, too. */
constexpr std::chrono::hours kDeadline{24};

void send(Comm& comm, int to, Beat beat) {
  comm.send(std::as_bytes(std::span(&beat, 1)), to);
}
Beat receive(Comm& comm, int from) {
  Beat beat{};
  comm.receive(std::as_writable_bytes(std::span(&beat, 1)), from);
  return beat;
}

}  // namespace

Pulse::Pulse(Comm& all, PulseOptions options)
    : options_(std::move(options)),
      interval_(std::clamp(options_.patience / 10, milliseconds(1), milliseconds(1000))) {
  // A rank that has no part in a pair is alone in its group, which costs no connection.
  for (int other = 1; other < all.world(); ++other) {
    const bool is_of_pair = all.rank() == 0 || all.rank() == other;
    auto pair = all.split(is_of_pair ? 0 : all.rank());
    if (!is_of_pair) continue;
    pair->set_deadline(kDeadline);
    auto peer = std::make_unique<Peer>();
    peer->rank = all.rank() == 0 ? other : 0;
    peer->comm = std::move(pair);
    peers_.push_back(std::move(peer));
  }
  for (const std::unique_ptr<Peer>& peer : peers_)
    peer->thread =
        std::thread([this, &its = *peer, work = all.rank() == 0 ? &Pulse::beat : &Pulse::answer] {
          keep(its, work);
        });
  if (!peers_.empty()) watch_ = std::thread([this] { watch(); });
}

Pulse::~Pulse() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (const std::unique_ptr<Peer>& peer : peers_)
    peer->thread.join();
  {
    std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
  if (watch_.joinable()) watch_.join();
}

void Pulse::keep(Peer& peer, void (Pulse::*work)(Peer&)) {
  try {
    (this->*work)(peer);
  } catch (const std::exception& error) {
    peer.cause = error.what();
  }
  peer.has_ended = true;
}

void Pulse::beat(Peer& peer) {
  constexpr int kOther = 1;
  for (bool goes_on = true; goes_on; ++peer.n_beats) {
    goes_on = goes_on_for(interval_);
    send(*peer.comm, kOther, goes_on ? Beat::goes_on : Beat::ends);
    if (goes_on && receive(*peer.comm, kOther) == Beat::ends) {
      peer.cause = "it has left the run";
      return;
    }
  }
}

void Pulse::answer(Peer& peer) {
  constexpr int kFirst = 0;
  for (bool goes_on = true; goes_on; ++peer.n_beats) {
    if (receive(*peer.comm, kFirst) == Beat::ends) return;
    goes_on = goes_on_for(milliseconds(0));
    send(*peer.comm, kFirst, goes_on ? Beat::goes_on : Beat::ends);
  }
}

bool Pulse::goes_on_for(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return ends_; });
}

void Pulse::watch() {
  struct Seen {
    uint64_t n_beats = 0;
    milliseconds still{0};
    bool is_lost = false;
  };
  std::vector<Seen> seen(peers_.size());
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval_, [this] { return has_ended_; })) {
    for (size_t i = 0; i < peers_.size(); ++i) {
      const Peer& peer = *peers_[i];
      const bool has_ended = peer.has_ended;
      const uint64_t n_beats = peer.n_beats;
      Seen& its = seen[i];
      its.still = n_beats == its.n_beats ? its.still + interval_ : milliseconds(0);
      its.n_beats = n_beats;
      if (its.still < (has_ended ? options_.grace : options_.patience)) continue;
      if (has_ended && (ends_ || peer.cause.empty())) continue;  // this rank ends, too
      if (std::exchange(its.is_lost, true)) continue;
      lock.unlock();
      options_.lost(peer.rank,
                    has_ended ? fmt::format("{} is gone: {}", name_ranks({peer.rank}), peer.cause)
                              : fmt::format("{} has not answered for {}", name_ranks({peer.rank}),
                                            name_time(options_.patience)));
      lock.lock();
    }
  }
}

}  // namespace ferry
