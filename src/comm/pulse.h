#pragma once
// Ranks that end close their connections, and all that wait for them see it. A rank that is
// stopped, or whose machine or network is gone, closes nothing. So the first rank sends each other
// one a beat every second, and gets an answer, in threads of their own. An answer also says how far
// the rank is, so that the first rank sees a step in which no rank moves, and names the rank that
// all others wait for. No torch.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/comm/comm.h"

namespace ferry {

/** A rank's word on its work. */
struct RankProgress {
  uint64_t n_movements = 0;   ///< another number after each piece of work
  std::string awaited;        ///< by a step whose wait is long; empty: none waits for long
  bool awaits_ranks = false;  ///< the oldest piece that is awaited needs other ranks
};

struct PulseOptions {
  /** The time after which a rank that does not answer counts as lost. Waits are counted, not the
   * clock read: where all ranks were stopped and continued, none is lost. */
  std::chrono::milliseconds patience = std::chrono::seconds(30);
  /** The time that whoever works with a rank has to notice its end, before it counts as lost. */
  std::chrono::milliseconds grace = std::chrono::seconds(10);
  /** The time in which some rank has to move while a step waits. Counted as patience is. */
  std::chrono::milliseconds standstill = std::chrono::seconds(60);
  /** How far this rank is. Called in threads of the pulse. */
  std::function<RankProgress()> progress = [] { return RankProgress{}; };
  /** Called once for a rank, with what is known of it, in a thread of the pulse. It may end the
   * process: whoever waits for the rank may wait for ever. */
  std::function<void(int rank, const std::string& what)> lost;
  /** Called once, in a thread of the pulse of the first rank, where no rank moves, with a
   * sentence of the facts. It ends the process. */
  std::function<void(const std::string& what)> stands = [](const std::string&) {};
};

class Pulse {
 public:
  /** All ranks make one at the same time. */
  Pulse(Comm& all, PulseOptions options);
  /** On the first rank: the others' pulses end, too, and are waited for. On the others: waits for
   * the next beat. A rank that does not answer now is lost, as before. */
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

 private:
  struct Peer {
    int rank = 0;
    std::unique_ptr<Comm> comm;  ///< of this rank and the first
    std::atomic<uint64_t> n_beats = 0;
    RankProgress progress;  ///< as it last answered; mutex_ guards it
    std::string cause;      ///< of its end; empty: as it should. Read where has_ended
    std::atomic<bool> has_ended = false;
    std::thread thread;
  };

  void beat(Peer& peer);
  void answer(Peer& peer);
  void keep(Peer& peer, void (Pulse::*work)(Peer&));
  /** Until the pulse ends. */
  void watch();
  /** By rank; this rank is the first. Under mutex_. */
  std::vector<RankProgress> progress_of_all() const;
  /** False where the pulse ends in this time. */
  bool goes_on_for(std::chrono::milliseconds time);

  const PulseOptions options_;
  const std::chrono::milliseconds interval_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;       ///< no further beats
  bool has_ended_ = false;  ///< nobody is left to watch
  std::thread watch_;
};

}  // namespace ferry
