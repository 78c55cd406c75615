#include "src/comm/rank_processes.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "src/base/error.h"
#include "src/base/process/argument_pointers.h"

extern char** environ;

namespace ferry {
namespace {

/** The environment of this process, with these values of variables. */
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('='));
    if (std::ranges::find(values, name, &std::pair<std::string, std::string>::first) ==
        values.end())
      variables.push_back(text);
  }
  for (const auto& [name, value] : values)
    variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

void RankProcesses::start(const RankEnvironment& first, const Words& words_of) {
  for (int local_rank = 1; local_rank < first.local_world; ++local_rank) {
    const int rank = first.rank + local_rank;
    std::vector<std::string> variables =
        environment_with({{"RANK", fmt::format("{}", rank)},
                          {"WORLD_SIZE", fmt::format("{}", first.world)},
                          {"LOCAL_RANK", fmt::format("{}", local_rank)},
                          {"LOCAL_WORLD_SIZE", fmt::format("{}", first.local_world)},
                          {"MASTER_ADDR", first.master_address},
                          {"MASTER_PORT", fmt::format("{}", first.master_port)},
                          {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                          {"TORCHELASTIC_RUN_ID", first.run_id},
                          {"TORCHELASTIC_RESTART_COUNT", "0"}});
    std::vector<std::string> words = words_of(local_rank);
    words.insert(words.begin(), "/proc/self/exe");
    pid_t child = 0;
    if (const int code =
            posix_spawn(&child, words.front().c_str(), nullptr, nullptr,
                        argument_pointers(words).data(), argument_pointers(variables).data());
        code != 0)
      throw Error(Fault::machine, "ranks.start",
                  fmt::format("rank {} cannot be started: {}", rank, std::strerror(code)),
                  "is there memory and room for another process?");
    processes_.push_back({rank, child});
  }
}

void RankProcesses::check() {
  for (auto process = processes_.begin(); process != processes_.end(); ++process) {
    int status = 0;
    if (::waitpid(process->pid, &status, WNOHANG) != process->pid) continue;
    const int rank = process->rank;
    processes_.erase(process);
    ends_.push_back(status);
    throw Error(Fault::machine, "ranks.start",
                fmt::format("rank {} {} before the run began", rank, describe_end(status)),
                "its output says why");
  }
}

void RankProcesses::await_until(std::chrono::steady_clock::time_point end) {
  using namespace std::chrono_literals;
  for (;; std::this_thread::sleep_for(5ms)) {
    std::erase_if(processes_, [&](const Process& process) {
      int status = 0;
      if (::waitpid(process.pid, &status, WNOHANG) == 0) return false;
      ends_.push_back(status);
      return true;
    });
    if (processes_.empty() || std::chrono::steady_clock::now() > end) return;
  }
}

bool RankProcesses::have_failed_by_themselves() {
  using namespace std::chrono_literals;
  await_until(std::chrono::steady_clock::now() + 5s);
  return std::ranges::any_of(ends_, [](int status) {
    const auto is = [&](Fault fault) { return WEXITSTATUS(status) == static_cast<int>(fault); };
    return WIFEXITED(status) && (is(Fault::usage) || is(Fault::does_not_fit) || is(Fault::data));
  });
}

RankProcesses::~RankProcesses() {
  using namespace std::chrono_literals;
  await_until(std::chrono::steady_clock::now() + (have_met_ ? 20s : 1s));
  for (const Process& process : processes_)
    ::kill(process.pid, SIGKILL);
  await_until(std::chrono::steady_clock::time_point::max());
}

void end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    throw Error(Fault::machine, "ranks.start", "the process that started this rank has ended");
}

}  // namespace ferry
