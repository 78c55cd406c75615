#include "src/cli/restarts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/argument_pointers.h"
#include "src/base/process/supervision.h"
#include "src/base/process/threads.h"
#include "src/base/unique_fd.h"
#include "src/cli/settings.h"
#include "src/config/options/option.h"

extern char** environ;

namespace ferry::cli {
namespace {

volatile std::sig_atomic_t n_asked = 0;
volatile pid_t watched = 0;

/** Ctrl-C reaches the trainer by itself; a signal that a process sends is for the run, too. */
void pass_on(int signal, siginfo_t* info, void*) {
  n_asked = n_asked + 1;
  if (watched > 0 && info->si_code <= 0) ::kill(watched, signal);
}

void pass_on_signals() {
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    ::sigaction(signal, &action, nullptr);
  }
}

/** The known facts of a trainer that has ended. */
struct Ended {
  int status = 0;  ///< of waitpid
  std::string run;
  std::optional<std::string> loss;

  /** Why a restart may help; nothing: it would not. */
  std::optional<std::string> reason() const {
    constexpr std::array kDeaths = {SIGKILL, SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    if (!WIFSIGNALED(status)) return loss;
    if (std::ranges::find(kDeaths, WTERMSIG(status)) == kDeaths.end()) return std::nullopt;
    return fmt::format("the leading process was ended by signal {}", WTERMSIG(status));
  }
  int exit_code() const {
    constexpr int kOfSignals = 128;  // as shells say it
    return WIFSIGNALED(status) ? kOfSignals + WTERMSIG(status) : WEXITSTATUS(status);
  }
};

pid_t start(std::vector<std::string> words, int told_fd, const std::string& restart) {
  ::setenv(kSupervisorVariable, std::to_string(told_fd).c_str(), 1);
  restart.empty() ? ::unsetenv(kRestartVariable) : ::setenv(kRestartVariable, restart.c_str(), 1);
  std::vector<char*> pointers = argument_pointers(words);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, told_fd, told_fd);  // stays open in the trainer
  pid_t child = 0;
  const int code =
      posix_spawn(&child, pointers.front(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0)
    throw Error(Fault::machine, "cli.trainer",
                fmt::format("cannot start '{}': {}", words.front(), std::strerror(code)));
  return child;
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
}

/** The other ranks of a trainer that died are killed; their memory has to be free again. */
void await_orphans() {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (::waitpid(-1, nullptr, WNOHANG) >= 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(5ms);
}

Ended run_once(std::vector<std::string> words, const std::string& restart) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(Fault::machine, "cli.trainer",
                fmt::format("cannot open a pipe: {}", std::strerror(errno)));
  const UniqueFd told(ends[0]);
  UniqueFd telling(ends[1]);
  std::fflush(nullptr);
  const pid_t child = start(std::move(words), telling.get(), restart);
  watched = child;
  telling.close();
  Ended ended;
  const std::string text = read_all(told.get());
  while (::waitpid(child, &ended.status, 0) < 0 && errno == EINTR) {
  }
  watched = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.starts_with(kToldRun)) ended.run = line.substr(kToldRun.size());
    if (line.starts_with(kToldLoss)) ended.loss = line.substr(kToldLoss.size());
    at = end + 1;
  }
  await_orphans();
  return ended;
}

/** The arguments without those that set an option. */
std::vector<std::string> without(std::string_view key, Arguments arguments) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t dashes = argument.starts_with("--") ? 2 : 0, equals = argument.find('=');
    const auto match = argument.size() > dashes
                           ? config::find_option(std::string_view(argument).substr(
                                 dashes, equals == argument.npos ? equals : equals - dashes))
                           : config::NameMatch();
    if (!match.option || match.option->key != key || (dashes == 0 && equals == argument.npos))
      rest.push_back(argument);
    else if (equals == argument.npos)
      ++i;  // its value
  }
  return rest;
}

}  // namespace

int train_with_restarts(std::string_view verb, Arguments arguments, int n_max) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  limit_spinning_of_children();
  pass_on_signals();
  std::vector<std::string> words = {trainer_path(), std::string(verb)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::string restart;
  for (int n = 1;; ++n) {
    const Ended ended = run_once(words, restart);
    const auto reason = ended.reason();
    if (!reason || n > n_max || n_asked > 0) return ended.exit_code();
    restart = fmt::format("{} of {}: {}", n, n_max, *reason);
    log_line(fmt::format("ferry: the run starts anew, restart {}", restart));
    if (ended.run.empty()) continue;
    // Its directory, and no longer a checkpoint that was named: the last one is later. The run has
    // kept the shares that it measured.
    std::vector<std::string> rest =
        without("gpu_shares", without("resume_from_checkpoint", arguments));
    words.resize(2);
    words.push_back("--resume=" + ended.run);
    words.insert(words.end(), rest.begin(), rest.end());
  }
}

}  // namespace ferry::cli
