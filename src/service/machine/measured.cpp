#include "src/service/machine/measured.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/error.h"
#include "src/base/json_reader.h"
#include "src/base/threads.h"
#include "src/files/unique_fd.h"

extern char** environ;

namespace ferry::service {
namespace {

using Clock = std::chrono::steady_clock;

/** Starts it with `out` as its standard output and nothing to read; its errno on failure. */
int start(const std::vector<std::string>& words, int out, pid_t& child) {
  std::vector<char*> pointers;
  for (const std::string& word : words)
    pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  limit_spinning_of_children();  // as trainings have it
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  const int code = posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

using End = std::chrono::time_point<Clock, std::chrono::duration<double>>;

/** Waits for the process; false when the time is up, or `stop` asks for it. */
bool has_ended(pid_t child, End end, const std::stop_token& stop, int& status) {
  using namespace std::chrono_literals;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return true;
    if ((ended < 0 && errno != EINTR) || Clock::now() >= end || stop.stop_requested()) return false;
    std::this_thread::sleep_for(5ms);
  }
}

/** Everything until the other end closes; false when the time is up, or `stop` asks for it. */
bool read_all(int descriptor, End end, const std::stop_token& stop, std::string& text) {
  constexpr size_t kText_bytes_max = 64 << 20;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0 || stop.stop_requested()) return false;
    pollfd polled = {descriptor, POLLIN, 0};
    constexpr int64_t kLook_ms = 100;
    const int64_t patience_ms =
        stop.stop_possible() ? std::min<int64_t>(left.count(), kLook_ms) : left.count();
    const int n_ready = poll(&polled, 1, static_cast<int>(patience_ms));
    if (n_ready < 0 && errno != EINTR) return false;
    if (n_ready <= 0) continue;
    char buffer[16384];
    const ssize_t n = read(descriptor, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kText_bytes_max) return false;
  }
}

std::string end_in_words(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("ferry-trainer was ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("ferry-trainer ended with exit code {}", WEXITSTATUS(status));
}

Measured failed(std::string trouble) {
  Measured measured;
  measured.trouble = std::move(trouble);
  return measured;
}

/** The card that was measured, as the driver's library knows it. */
const Gpu* find_gpu(const Nvidia& nvidia, const std::string& name) {
  for (const Gpu& gpu : nvidia.gpus)
    if (gpu.name == name) return &gpu;
  return nullptr;
}

}  // namespace

std::string checked_seconds(const std::string& text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, seconds);
  if (code != std::errc() || stop != end || !(seconds >= 0.01 && seconds <= 600))
    throw Error(Fault::usage, "cli.argument",
                fmt::format("--seconds {}, expected a number from 0.01 to 600", text));
  return text;
}

Measured parse_measured(std::string_view json) {
  try {
    const auto out = JsonReader::parse(
        std::string(json), {"ferry-trainer's figures", "doctor.measure", "install Ferry anew"});
    Measured measured;
    measured.profile = parse_machine_profile(out.at("profile").value().dump(), "ferry-trainer");
    measured.skipped = out.at("skipped").texts();
    measured.gpu_trouble = out.text("gpu_trouble");
    measured.gpu_free_bytes = out.integer("gpu_free_bytes", 0, INT64_MAX);
    measured.seconds = out.number("seconds", 0, 1e9);
    const JsonReader steps = out.at("steps");
    for (size_t i = 0; i < steps.size(); ++i)
      measured.steps.push_back({steps.at(i).text("model"), steps.at(i).text("placement"),
                                steps.at(i).number("ms", 0, 1e9)});
    return measured;
  } catch (const Error& error) {
    return failed(error.what());
  }
}

Measured run_trainer_bench(const std::filesystem::path& trainer,
                           const std::vector<std::string>& words,
                           double patience_s,
                           const std::stop_token& stop) {
  if (const auto at = std::ranges::find(words, "--seconds"); words.end() - at > 1)
    patience_s += 3 * std::strtod((at + 1)->c_str(), nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed(std::strerror(errno));
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  std::vector<std::string> all = {trainer.string(), "bench"};
  all.insert(all.end(), words.begin(), words.end());
  pid_t child = 0;
  if (const int code = start(all, in.get(), child); code != 0)
    return failed(fmt::format("cannot start '{}': {}", trainer.string(), std::strerror(code)));
  in.close();
  std::string text;
  const auto end = Clock::now() + std::chrono::duration<double>(patience_s);
  int status = 0;
  if (!read_all(out.get(), end, stop, text) || !has_ended(child, end, stop, status)) {
    // Not waited for: one that hangs in a driver does not end of a signal either.
    kill(child, SIGKILL);
    if (stop.stop_requested()) {
      constexpr auto kEnd = std::chrono::seconds(2);
      has_ended(child, Clock::now() + kEnd, {}, status);
      return failed("the measurement was cancelled");
    }
    return failed(fmt::format("ferry-trainer did not end in {:.0f} s", patience_s));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return failed(end_in_words(status));
  return parse_measured(text);
}

void add_facts(Measured& measured, const Host& host, const Nvidia& nvidia) {
  if (!measured.profile) return;
  MachineProfile& profile = *measured.profile;
  profile.host.cpu = host.cpu;
  if (profile.gpu) {
    profile.gpu->driver = nvidia.driver_version;
    if (const Gpu* gpu = find_gpu(nvidia, profile.gpu->name)) {
      profile.gpu->drives_display = gpu->drives_display;
      profile.gpu->pcie_generation = gpu->pcie_generation;
      profile.gpu->pcie_width = gpu->pcie_width;
      profile.gpu->power_w = gpu->power_limit_w;
      const int64_t taken_bytes = gpu->memory_free_bytes - measured.gpu_free_bytes;
      if (gpu->memory_free_bytes > 0 && taken_bytes > 0) profile.gpu->context_bytes = taken_bytes;
    }
  }
  const std::string cpu = host.cpu.empty() ? "an unknown processor" : host.cpu;
  profile.name = profile.gpu ? fmt::format("{}, {}", profile.gpu->name, cpu) : cpu;
}

}  // namespace ferry::service
