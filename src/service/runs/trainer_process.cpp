#include "src/service/runs/trainer_process.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "src/base/error.h"
#include "src/runs/directory/run_directory.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;

bool has_open(int64_t pid, const fs::path& directory) {
  struct stat wanted {
  }, found{};
  if (::stat(directory.c_str(), &wanted) != 0) return false;
  std::error_code error;
  const fs::path descriptors = fmt::format("/proc/{}/fd", pid);
  for (fs::directory_iterator it(descriptors, error), end; !error && it != end; it.increment(error))
    if (::stat(it->path().c_str(), &found) == 0 && found.st_dev == wanted.st_dev &&
        found.st_ino == wanted.st_ino)
      return true;
  return false;
}

/** The process that would start the run anew; the trainer ends with it. */
void kill_watcher(const nlohmann::ordered_json& record) {
  const auto found = record.find("watcher");
  const int64_t watcher =
      found != record.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
  if (watcher <= 1) return;
  std::ifstream status(fmt::format("/proc/{}/status", record.value("pid", int64_t{0})));
  for (std::string word; status >> word;)
    if (int64_t parent = 0; word == "PPid:" && status >> parent && parent == watcher)
      ::kill(static_cast<pid_t>(watcher), SIGKILL);
}

void send(const fs::path& run, int signal) {
  const auto record = runs::read_record(run);
  const UniqueFd process = find_trainer_process(run, record);
  if (!process)
    throw Error(Fault::machine, "runs.process",
                fmt::format("'{}' has no process that signals reach from here", run.string()),
                "it has ended, or trains on another machine");
  if (signal == SIGKILL) kill_watcher(record);
  if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) != 0 && errno != ESRCH)
    throw Error(Fault::machine, "runs.process",
                fmt::format("the process of '{}' takes no signal: {}", run.string(),
                            std::generic_category().message(errno)));
}

}  // namespace

UniqueFd find_trainer_process(const fs::path& run, const nlohmann::ordered_json& record) {
  const int64_t pid = record.is_object() ? record.value("pid", int64_t{0}) : 0;
  if (pid <= 1 || pid > INT32_MAX) return {};
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
  return process && has_open(pid, run) ? std::move(process) : UniqueFd();
}

void interrupt_trainer(const fs::path& run) {
  send(run, SIGINT);
}

void kill_trainer(const fs::path& run) {
  send(run, SIGKILL);
}

}  // namespace ferry::service
