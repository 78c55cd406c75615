#include "src/comm/pulse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

#include "src/comm/names.h"

namespace ferry {
namespace {

using std::chrono::milliseconds;

enum class Beat : uint8_t { goes_on, ends };

/** A rank's answer to a beat, as its bytes are sent. */
struct Answer {
  Beat beat{};
  bool awaits_ranks = false;
  std::array<char, 510> awaited{};  ///< ends with a zero
  uint64_t n_movements = 0;
};
static_assert(std::has_unique_object_representations_v<Answer>);

/** A stopped rank is noticed by whoever counts the beats, not by a deadline, which would end the
 * ranks that were stopped with it, too. */
constexpr std::chrono::hours kDeadline{24};

template <typename Message>
void send(Comm& comm, int to, const Message& message) {
  comm.send(std::as_bytes(std::span(&message, 1)), to);
}
template <typename Message>
Message receive(Comm& comm, int from) {
  Message message{};
  comm.receive(std::as_writable_bytes(std::span(&message, 1)), from);
  return message;
}

Answer answer_of(Beat beat, const RankProgress& progress) {
  Answer answer{
      .beat = beat, .awaits_ranks = progress.awaits_ranks, .n_movements = progress.n_movements};
  std::ranges::copy_n(
      progress.awaited.begin(),
      static_cast<std::ptrdiff_t>(std::min(progress.awaited.size(), answer.awaited.size() - 1)),
      answer.awaited.begin());
  return answer;
}
RankProgress progress_in(const Answer& answer) {
  return {answer.n_movements, answer.awaited.data(), answer.awaits_ranks};
}

/** Ranks that wait for others are no cause, unless all do. */
std::string describe_standstill(const std::vector<RankProgress>& of_ranks, milliseconds time) {
  std::vector<int> causes;
  std::string each;
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const auto number = static_cast<int>(rank);
    const RankProgress& its = of_ranks[rank];
    if (!its.awaits_ranks) causes.push_back(number);
    each += fmt::format(
        "; {} {}", name_ranks({number}),
        its.awaited.empty() ? "is in a call that does not return" : "waits for" + its.awaited);
  }
  return fmt::format("nothing has moved on any rank for {}: {}{}", name_time(time),
                     causes.empty() ? "all wait for each other"
                                    : name_ranks(causes) + " cannot go on, and the others wait",
                     each);
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
    if (!goes_on) continue;
    const auto answer = receive<Answer>(*peer.comm, kOther);
    if (answer.beat == Beat::ends) {
      peer.cause = "it has left the run";
      return;
    }
    std::lock_guard lock(mutex_);
    peer.progress = progress_in(answer);
  }
}

void Pulse::answer(Peer& peer) {
  constexpr int kFirst = 0;
  for (bool goes_on = true; goes_on; ++peer.n_beats) {
    if (receive<Beat>(*peer.comm, kFirst) == Beat::ends) return;
    goes_on = goes_on_for(milliseconds(0));
    send(*peer.comm, kFirst, answer_of(goes_on ? Beat::goes_on : Beat::ends, options_.progress()));
  }
}

bool Pulse::goes_on_for(milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return ends_; });
}

std::vector<RankProgress> Pulse::progress_of_all() const {
  std::vector<RankProgress> all = {options_.progress()};
  for (const std::unique_ptr<Peer>& peer : peers_)
    all.push_back(peer->progress);
  return all;
}

void Pulse::watch() {
  const auto n_moved = [](const std::vector<RankProgress>& all) {
    return std::accumulate(all.begin(), all.end(), uint64_t{0},
                           [](uint64_t n, const RankProgress& its) { return n + its.n_movements; });
  };
  struct Seen {
    uint64_t n_beats = 0;
    milliseconds still{0};
    bool is_lost = false;
  };
  std::vector<Seen> seen(peers_.size());
  const bool is_first = peers_.front()->comm->rank() == 0;
  uint64_t n_movements = 0;
  milliseconds still{0};
  bool has_stood = false;
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
      if (has_ended && ends_) continue;  // this rank ends, too
      const bool has_left = has_ended && peer.cause.empty();
      // This rank may be in a step in which it waits for ever.
      if (has_left && its.still < options_.patience) continue;
      if (std::exchange(its.is_lost, true)) continue;
      lock.unlock();
      const std::string name = name_ranks({peer.rank});
      options_.lost(peer.rank, has_left    ? name + " has ended the run"
                               : has_ended ? fmt::format("{} is gone: {}", name, peer.cause)
                                           : fmt::format("{} has not answered for {}", name,
                                                         name_time(options_.patience)));
      lock.lock();
    }
    if (!is_first) continue;
    const std::vector<RankProgress> all = progress_of_all();
    const bool is_in_step =
        std::ranges::any_of(all, [](auto& its) { return !its.awaited.empty(); });
    const uint64_t n_now = n_moved(all);
    still = n_now == n_movements && is_in_step ? still + interval_ : milliseconds(0);
    n_movements = n_now;
    if (still < options_.standstill || std::exchange(has_stood, true)) continue;
    lock.unlock();
    options_.stands(describe_standstill(all, options_.standstill));
    lock.lock();
  }
}

}  // namespace ferry
