#include "src/service/machine/child_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "src/base/unique_fd.h"

extern char** environ;

namespace ferry::service {
namespace {

using Clock = std::chrono::steady_clock;

/** Starts it, found as a shell would, with `out` as its standard output and nothing to read; its
 * errno on failure. */
int start(const std::vector<std::string>& words, int out, pid_t& child) {
  std::vector<char*> pointers;
  for (const std::string& word : words)
    pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  const int code = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
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

std::string end_in_words(const std::string& name, int status) {
  if (WIFSIGNALED(status))
    return fmt::format("{} was ended by signal {} ({})", name, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("{} ended with exit code {}", name, WEXITSTATUS(status));
}

}  // namespace

ChildOutput run_child(const std::string& name,
                      const std::vector<std::string>& words,
                      double patience_s,
                      const std::stop_token& stop) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {.trouble = std::strerror(errno)};
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  pid_t child = 0;
  if (const int code = start(words, in.get(), child); code != 0)
    return {.trouble = fmt::format("cannot start '{}': {}", words.front(), std::strerror(code)),
            .is_missing = code == ENOENT};
  in.close();
  ChildOutput output;
  const auto end = Clock::now() + std::chrono::duration<double>(patience_s);
  int status = 0;
  if (!read_all(out.get(), end, stop, output.text) || !has_ended(child, end, stop, status)) {
    // Not waited for: one that hangs in a driver does not end of a signal either.
    kill(child, SIGKILL);
    if (stop.stop_requested()) {
      constexpr auto kEnd = std::chrono::seconds(2);
      has_ended(child, Clock::now() + kEnd, {}, status);
      output.trouble = "the measurement was cancelled";
    } else {
      output.trouble = fmt::format("{} did not end in {:.0f} s", name, patience_s);
    }
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    output.trouble = end_in_words(name, status);
  }
  return output;
}

}  // namespace ferry::service
