#include "src/comm/rank_processes.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "src/base/error.h"
#include "src/comm/addresses.h"

extern char** environ;

namespace ferry {
namespace {

/** Begins the name of a run whose ranks this program has started. */
constexpr const char* kRunPrefix = "ferry-";
constexpr const char* kHost = "127.0.0.1";

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t start_rank(int rank, const RankEnvironment& first, std::vector<std::string> words) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : {std::pair("RANK", fmt::format("{}", rank)),
                                    std::pair("WORLD_SIZE", fmt::format("{}", first.world)),
                                    std::pair("LOCAL_RANK", fmt::format("{}", rank)),
                                    std::pair("LOCAL_WORLD_SIZE", fmt::format("{}", first.world)),
                                    std::pair("MASTER_ADDR", first.master_address),
                                    std::pair("MASTER_PORT", fmt::format("{}", first.master_port)),
                                    std::pair("TORCHELASTIC_RUN_ID", first.run_id)})
    variables.push_back(fmt::format("{}={}", name, value));
  // Of a name that is there twice the first one counts.
  for (char** variable = environ; *variable; ++variable)
    variables.emplace_back(*variable);
  constexpr const char* kProgram = "/proc/self/exe";
  words.insert(words.begin(), kProgram);
  pid_t child = 0;
  const std::vector<char*> arguments = pointers_to(words), environment = pointers_to(variables);
  if (const int code =
          posix_spawn(&child, kProgram, nullptr, nullptr, arguments.data(), environment.data());
      code != 0)
    throw Error(Fault::machine, "ranks.start",
                fmt::format("rank {} cannot be started: {}", rank, std::strerror(code)),
                "is there memory and room for another process?");
  return child;
}

}  // namespace

RankProcesses::RankProcesses(int world, const std::vector<std::string>& words) {
  StoreSocket store = listen_for_ranks(kHost, 0);
  environment_ = {.world = world,
                  .local_world = world,
                  .master_address = kHost,
                  .master_port = store.port,
                  .run_id = fmt::format("{}{}", kRunPrefix, ::getpid())};
  listener_ = std::move(store.fd);
  try {
    for (int rank = 1; rank < world; ++rank)
      started_.push_back(start_rank(rank, environment_, words));
  } catch (...) {
    for (const pid_t child : started_)
      ::kill(child, SIGKILL);
    end();
    throw;
  }
}

RankProcesses::~RankProcesses() {
  end();
}

RankProcesses::RankProcesses(RankProcesses&& other) noexcept {
  *this = std::move(other);
}

RankProcesses& RankProcesses::operator=(RankProcesses&& other) noexcept {
  if (this == &other) return *this;
  end();
  environment_ = std::move(other.environment_);
  listener_ = std::move(other.listener_);
  started_ = std::exchange(other.started_, {});
  return *this;
}

void RankProcesses::end() noexcept {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + 20s;
  for (const pid_t child : started_)
    while (::waitpid(child, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) ::kill(child, SIGKILL);
      std::this_thread::sleep_for(5ms);
    }
  started_.clear();
}

void end_with_first_rank(const RankEnvironment& environment) {
  if (environment.run_id.starts_with(kRunPrefix)) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

}  // namespace ferry
