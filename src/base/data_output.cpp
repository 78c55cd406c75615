#include "src/base/data_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace ferry {
namespace {

std::mutex data_mutex;
int data_fd = -1;

}  // namespace

void keep_output_for_data() {
  std::lock_guard lock(data_mutex);
  std::fflush(stdout);
  data_fd = dup(STDOUT_FILENO);
  if (data_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw Error(Fault::machine, "cli.output",
                fmt::format("standard output cannot be kept for JSON: {}", std::strerror(errno)));
}

bool is_output_for_data() {
  std::lock_guard lock(data_mutex);
  return data_fd >= 0;
}

void print_data(std::string_view line) {
  std::lock_guard lock(data_mutex);
  if (data_fd < 0) return;
  const std::string text = std::string(line) + "\n";
  void (*before)(int) = std::signal(SIGPIPE, SIG_IGN);
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(data_fd, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) break;
    if (n > 0) done += static_cast<size_t>(n);
  }
  std::signal(SIGPIPE, before);
}

std::string json_of_error(std::string_view message, int exit_code) {
  nlohmann::ordered_json error = {
      {"where", nullptr}, {"message", message}, {"exit_code", exit_code}};
  const size_t end = message.find("] ");
  if (message.starts_with('[') && end != std::string_view::npos) {
    error["where"] = message.substr(1, end - 1);
    error["message"] = message.substr(end + 2);
  }
  return nlohmann::ordered_json{{"error", error}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace ferry
