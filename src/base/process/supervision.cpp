#include "src/base/process/supervision.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

namespace ferry {
namespace {

int supervisor_fd = -1;
std::optional<std::string> restart;

std::optional<std::string> take_variable(const char* name) {
  const char* const value = std::getenv(name);
  if (!value) return std::nullopt;
  std::string text = value;
  ::unsetenv(name);
  return text;
}

}  // namespace

void take_supervision() {
  restart = take_variable(kRestartVariable);
  const auto fd = take_variable(kSupervisorVariable);
  if (!fd) return;
  supervisor_fd = std::atoi(fd->c_str());
  ::fcntl(supervisor_fd, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

bool is_supervised() {
  return supervisor_fd >= 0;
}

const std::optional<std::string>& restart_of_this_process() {
  return restart;
}

void tell_supervisor(std::string_view told, std::string_view text) {
  if (!is_supervised()) return;
  std::string line = fmt::format("{}{}", told, text);
  std::ranges::replace(line, '\n', ' ');
  line += '\n';
  [[maybe_unused]] const ssize_t n = ::write(supervisor_fd, line.data(), line.size());
}

}  // namespace ferry
