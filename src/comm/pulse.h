#pragma once
// Ranks that end close their connections, and all that wait for them see it. A rank that is
// stopped, or whose machine or network is gone, closes nothing. So the first rank sends each other
// one a beat every second, and gets an answer, in threads of their own. No torch.

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

struct PulseOptions {
  /** The time after which a rank that does not answer counts as lost. Waits are counted, not the
   * clock read: where all ranks were stopped and continued, none is lost. */
  std::chrono::milliseconds patience = std::chrono::seconds(30);
  /** The time that whoever works with a rank has to notice its end, before it counts as lost. */
  std::chrono::milliseconds grace = std::chrono::seconds(10);
  /** Called once for a rank, with what is known of it, in a thread of the pulse. It may end the
   * process: whoever waits for the rank may wait for ever. */
  std::function<void(int rank, const std::string& what)> lost;
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
    std::string cause;  ///< of its end; empty: as it should. Read where has_ended
    std::atomic<bool> has_ended = false;
    std::thread thread;
  };

  void beat(Peer& peer);
  void answer(Peer& peer);
  void keep(Peer& peer, void (Pulse::*work)(Peer&));
  /** Until the pulse ends. */
  void watch();
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
