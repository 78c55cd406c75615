#include "src/base/print.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>

#include "src/base/utf8.h"

namespace ferry {
namespace {

// A listener may speak itself (its file is full): once more into the same lock, but not into
// itself.
std::recursive_mutex mutex;
Listening::Listener listener;
bool is_listening = false;
int failure = 0;

/** Writing where nobody reads any more is then an error like any other. */
class IgnoredPipeSignal {
 public:
  ~IgnoredPipeSignal() { std::signal(SIGPIPE, before_); }

 private:
  void (*before_)(int) = std::signal(SIGPIPE, SIG_IGN);
};

}  // namespace

void log_only(std::string_view line) {
  std::lock_guard lock(mutex);
  if (!listener || is_listening) return;
  is_listening = true;
  try {
    listener(line);
  } catch (const std::exception&) {  // it has no one to tell but us
  }
  is_listening = false;
}

void print_unlogged(std::string_view line) {
  std::lock_guard lock(mutex);
  const IgnoredPipeSignal ignored;
  std::fputs((escaped_lines(line) + '\n').c_str(), stderr);
  std::fflush(stderr);
}

void log_line(std::string_view line) {
  print_unlogged(line);
  log_only(line);
}

Listening::Listening(Listener hears) {
  std::lock_guard lock(mutex);
  listener = std::move(hears);
}

Listening::~Listening() {
  std::lock_guard lock(mutex);
  listener = nullptr;
}

void print(std::string_view text) {
  print_drawn(escaped_lines(text));
}

void print_drawn(std::string_view text) {
  std::lock_guard lock(mutex);
  errno = 0;
  // Where a whole line is flushed and that fails, fwrite() of glibc gives its size all the same,
  // and drops it: only the stream knows.
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
                          std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!is_written && failure == 0) failure = errno ? errno : EIO;
}

int print_failure() {
  std::lock_guard lock(mutex);
  return failure;
}

}  // namespace ferry
