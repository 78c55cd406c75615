#include "src/train/ranks/host_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stop_token>
#include <string_view>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/argument_pointers.h"
#include "src/runs/logs/train_log.h"

extern char** environ;

namespace ferry {
namespace {

/** The command that another host gets: what it needs of this one, and no more. It reads neither the
 * run's settings nor its data. */
std::string command_for(int host,
                        const std::string& program,
                        const config::Config& config,
                        const RunRanks& ranks,
                        int port) {
  std::vector<std::string> words = {"exec", "env"};
  // NCCL wants the same of these on all hosts.
  for (char** variable = environ; *variable; ++variable)
    if (std::string_view(*variable).starts_with("NCCL_")) words.emplace_back(*variable);
  const auto add = [&](std::string_view flag, const auto& value) {
    words.push_back(fmt::format("--{}={}", flag, value));
  };
  words.insert(words.end(), {program, "train"});
  add("nnodes", ranks.n_hosts);
  add("node-rank", host);
  add("master-addr", ranks.place->master_address);
  add("master-port", port);
  add("rank-timeout", fmt::format("{}s", config.integer("rank_timeout")));
  const std::vector<std::string> gpus = config.list("gpus");
  if (!gpus.empty()) add("gpus", fmt::format("{}", fmt::join(gpus, ",")));
  return runs::shell_line(words);
}

/** Becomes a program; tells `failure` why where that does not work. */
[[noreturn]] void become(std::vector<char*>& words, int output, int failure) {
  ::prctl(PR_SET_PDEATHSIG, SIGHUP);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  // Ctrl-C is for the leader, which ends the other hosts.
  ::setpgid(0, 0);
  ::execvp(words.front(), words.data());
  const int code = errno;
  [[maybe_unused]] const ssize_t n = ::write(failure, &code, sizeof code);
  ::_exit(127);
}

std::array<UniqueFd, 2> open_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Fault::machine, "ranks.hosts",
                fmt::format("cannot open a pipe: {}", std::strerror(errno)));
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/** Says each line of `fd` until its end. A process that a host leaves behind may hold it open. */
void say_lines(const std::stop_token& stop, const std::string& name, const UniqueFd& fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  const auto say = [&](std::string line) {
    std::erase(line, '\r');  // of the terminal that ssh opens there
    if (!line.empty()) log_line(fmt::format("[{}] {}", name, line));
  };
  for (;;) {
    pollfd waiting = {fd.get(), POLLIN, 0};
    const int n_ready = ::poll(&waiting, 1, 100);
    if (n_ready == 0 && stop.stop_requested()) break;
    if (n_ready <= 0) continue;
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(n));
    for (size_t end = 0; (end = text.find('\n')) != text.npos; text.erase(0, end + 1))
      say(text.substr(0, end));
  }
  say(text);
}

}  // namespace

void HostProcesses::start(const config::Config& config, const RunRanks& ranks, int port) {
  const char* const here = std::getenv("FERRY");
  program_ = config.text("hosts_program");
  if (program_.empty()) program_ = here && *here ? here : "ferry";
  for (int host = 1; host < ranks.n_hosts; ++host) {
    const std::string& name = ranks.hosts[static_cast<size_t>(host)];
    // A terminal there ends the command where the connection ends.
    std::vector<std::string> words = {"ssh", "-tt",
                                      "-o",  "BatchMode=yes",
                                      "-o",  "ConnectTimeout=20",
                                      "-o",  "ServerAliveInterval=15",
                                      name,  command_for(host, program_, config, ranks, port)};
    std::vector<char*> pointers = argument_pointers(words);
    auto [said, saying] = open_pipe();
    auto [failed, failing] = open_pipe();
    const pid_t child = ::fork();
    if (child == 0) become(pointers, saying.get(), failing.get());
    if (child < 0)
      throw Error(Fault::machine, "ranks.hosts",
                  fmt::format("ssh cannot be started: {}", std::strerror(errno)));
    saying.close();
    failing.close();
    hosts_.push_back(
        {name, child, std::jthread([name, fd = std::move(said)](const std::stop_token& stop) {
           say_lines(stop, name, fd);
         })});
    int code = 0;
    if (::read(failed.get(), &code, sizeof code) == sizeof code)
      throw Error(Fault::machine, "ranks.hosts",
                  fmt::format("ssh cannot be started for host '{}': {}", name, std::strerror(code)),
                  "install OpenSSH's client, or start the run on each host yourself: --nnodes");
  }
}

void HostProcesses::check() {
  for (Host& host : hosts_) {
    int status = 0;
    if (::waitpid(host.pid, &status, WNOHANG) != host.pid) continue;
    const std::string name = host.name;
    host.listener = {};  // all that it has said is said first
    std::erase_if(hosts_, [&](const Host& other) { return other.pid == host.pid; });
    constexpr int kSshFailed = 255, kNotFound = 127, kNotExecutable = 126;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kSshFailed;
    if (code == kSshFailed)
      throw Error(
          Fault::machine, "ranks.hosts",
          fmt::format("ssh does not reach host '{}', or lost it", name),
          fmt::format("its lines above say why; `ssh {} true` must work without a password", name));
    if (code == kNotFound || code == kNotExecutable)
      throw Error(Fault::usage, "ranks.hosts",
                  fmt::format("host '{}' has no program '{}'", name, program_),
                  "install Ferry there at the same path, or name it: --hosts-program PATH");
    throw Error(Fault::machine, "ranks.hosts",
                fmt::format("the ranks of host '{}' ended with exit code {} before all ranks had "
                            "come",
                            name, code),
                "its lines above say why");
  }
}

void HostProcesses::await_until(std::chrono::steady_clock::time_point end) {
  using namespace std::chrono_literals;
  for (;; std::this_thread::sleep_for(5ms)) {
    std::erase_if(hosts_,
                  [](const Host& host) { return ::waitpid(host.pid, nullptr, WNOHANG) != 0; });
    if (hosts_.empty() || std::chrono::steady_clock::now() > end) return;
  }
}

HostProcesses::~HostProcesses() {
  using namespace std::chrono_literals;
  const auto signal_all = [&](int signal) {
    for (const Host& host : hosts_)
      ::kill(host.pid, signal);
  };
  const auto now = [] { return std::chrono::steady_clock::now(); };
  await_until(now() + (have_met_ ? 20s : 1s));
  signal_all(SIGHUP);  // ssh ends the command there, too
  await_until(now() + 5s);
  signal_all(SIGKILL);
  await_until(std::chrono::steady_clock::time_point::max());
}

}  // namespace ferry
