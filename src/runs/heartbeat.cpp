#include "src/runs/heartbeat.h"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/plain_file.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/** When the process started, in ticks since the machine did; 0 of none that lives. */
int64_t start_of(int64_t pid) {
  std::ostringstream text;
  text << std::ifstream("/proc/" + std::to_string(pid) + "/stat").rdbuf();
  const size_t name_end = text.str().rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.str().substr(name_end + 1));
  std::string state, field;
  fields >> state;
  if (state == "Z" || state == "X") return 0;
  constexpr int kStart = 22, kAfter_state = 4;
  for (int n = kAfter_state; n < kStart; ++n)
    fields >> field;
  int64_t start = 0;
  fields >> start;
  return start;
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

/** Where pids mean the same. */
std::string pid_namespace() {
  std::error_code error;
  return fs::read_symlink("/proc/self/ns/pid", error).string();
}

ordered_json heartbeat_of(const fs::path& run) {
  try {
    ordered_json record;
    if (parse_json(read_text_file(run / "run.json"), record) || !record.is_object()) return nullptr;
    return record.value(kHeartbeat, ordered_json());
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

ordered_json this_process() {
  return {{"boot", boot_id()},
          {"pid_namespace", pid_namespace()},
          {"pid", ::getpid()},
          {"started", start_of(::getpid())}};
}

std::optional<bool> is_process_alive(const ordered_json& heartbeat) {
  try {
    const ordered_json& process = heartbeat.at("process");
    if (process.at("boot") != boot_id() || process.at("pid_namespace") != pid_namespace())
      return std::nullopt;
    const int64_t start = start_of(process.at("pid").get<int64_t>());
    return start != 0 && start == process.at("started").get<int64_t>();
  } catch (const ordered_json::exception&) {
    return false;  // no trainer writes such a thing
  }
}

bool is_trainer_alive(const fs::path& run, std::chrono::milliseconds patience) {
  const ordered_json first = heartbeat_of(run);
  if (!first.is_object()) return false;
  if (const auto is_alive = is_process_alive(first)) return *is_alive;
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + patience; Clock::now() < end;) {
    std::this_thread::sleep_for(patience / 30);
    const ordered_json now = heartbeat_of(run);
    if (now.is_object() && now != first) return true;
  }
  return false;
}

Heartbeat::Heartbeat(std::function<void()> beat, std::chrono::milliseconds period)
    : thread_([this, beat = std::move(beat), period] {
        std::unique_lock lock(mutex_);
        while (!ends_.wait_for(lock, period, [this] { return is_ending_; })) {
          lock.unlock();
          beat();
          lock.lock();
        }
      }) {}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  ends_.notify_all();
  thread_.join();
}

}  // namespace ferry::runs
