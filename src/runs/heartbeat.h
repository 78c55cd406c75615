#pragma once
// Whose run it is where a file system has no locks (some of NFS): `heartbeat` in run.json names the
// trainer's process and counts up while it lives. Who is on the same machine looks for the process;
// who is not watches the count.

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <thread>

namespace ferry::runs {

inline constexpr const char* kHeartbeat = "heartbeat";
inline constexpr std::chrono::seconds kBeat_period{10};
/** One beat may be late: a network that hangs, a disk that is busy. */
inline constexpr std::chrono::milliseconds kPatience = 3 * kBeat_period;

/** This process, told from every other on any machine, before and after a restart. */
nlohmann::ordered_json this_process();

/** True if this process lives, as run.json's heartbeat names it; nothing where it is of another
 * machine or container, whose processes cannot be seen. */
std::optional<bool> is_process_alive(const nlohmann::ordered_json& heartbeat);

/** True if the trainer that run.json names lives. False where it names none. Takes up to `patience`
 * where the trainer was on another machine, or in another container. */
bool is_trainer_alive(const std::filesystem::path& run,
                      std::chrono::milliseconds patience = kPatience);

/** Calls `beat` every period on a thread of its own. */
class Heartbeat {
 public:
  Heartbeat(std::function<void()> beat, std::chrono::milliseconds period = kBeat_period);
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat();

 private:
  std::mutex mutex_;
  std::condition_variable ends_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace ferry::runs
