#include "src/runs/control.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "src/base/json/json_reader.h"
#include "src/runs/control_client.h"
#include "src/runs/control_socket.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/** A directory that nobody else may enter; what a stranger put there first is not used. */
fs::path private_directory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const fs::path path = runtime && *runtime
                            ? fs::path(runtime) / "ferry"
                            : fs::path("/tmp") / fmt::format("ferry-{}", ::geteuid());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_at_socket(path, "made", errno);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) fail_at_socket(path, "read", errno);
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0)
    fail_at_socket(path, "used, because others may write there", EACCES);
  return path;
}

/** Short, since a socket's path may have 107 bytes, and different for runs of one name. */
fs::path socket_path(const fs::path& run) {
  return private_directory() / control_socket_name(run);
}

/** Up to the end of the line, or nothing where it is not there in time. */
std::optional<std::string> read_line(int fd, Clock::time_point end) {
  std::string line;
  char piece[4096];
  while (line.size() < kMessage_bytes_max) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left <= 0ms) return {};
    pollfd watched = {fd, POLLIN, 0};
    if (::poll(&watched, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t n = ::recv(fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return {};
    line.append(piece, static_cast<size_t>(n));
    if (const size_t line_end = line.find('\n'); line_end != line.npos)
      return line.substr(0, line_end);
  }
  return {};
}

using Texts = std::map<std::string, std::string>;

/** The object of texts that a line is, or nothing. */
std::optional<Texts> texts_in(std::string_view line) {
  nlohmann::ordered_json object;
  if (parse_json(line, object) || !object.is_object()) return {};
  Texts texts;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) return {};
    texts.emplace(key, value.get<std::string>());
  }
  return texts;
}

bool write_line(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::send(fd, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

void ControlRequest::answer(bool is_done, const std::string& text) {
  using Json = nlohmann::json;
  // A client that is gone has no use for it.
  write_line(client_.get(), Json({{"done", is_done}, {"text", text}})
                                    .dump(-1, ' ', false, Json::error_handler_t::replace) +
                                "\n");
  client_ = UniqueFd();
}

ControlServer::ControlServer(const fs::path& run)
    : path_(socket_path(run)), listening_(make_socket(path_)), wake_(::eventfd(0, EFD_CLOEXEC)) {
  if (!wake_) fail_at_socket(path_, "opened", errno);
  // Whoever holds the run's lock is its only trainer: a socket that is there is a dead one's.
  ::unlink(path_.c_str());
  const sockaddr_un address = address_of(path_);
  if (::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening_.get(), 8) != 0)
    fail_at_socket(path_, "opened", errno);
  thread_ = std::jthread([this](std::stop_token stop) { serve(stop); });
}

ControlServer::~ControlServer() {
  thread_.request_stop();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
  ::unlink(path_.c_str());
}

void ControlServer::serve(std::stop_token stop) {
  while (!stop.stop_requested()) {
    pollfd watched[] = {{listening_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) return;
    if (!(watched[0].revents & POLLIN)) continue;
    UniqueFd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client) receive(std::move(client));
  }
}

void ControlServer::receive(UniqueFd client) {
  // One client that is slow, or sends a byte now and then, must not keep others out.
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto line = read_line(client.get(), Clock::now() + 2s);
  if (!line) return;
  const auto asked = texts_in(*line);
  ControlRequest request(asked.value_or(Texts()), std::move(client));
  if (!asked) return request.answer(false, "a JSON object of texts was expected");
  std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
  arrived_.notify_all();
}

std::optional<ControlRequest> ControlServer::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_for(lock, patience, [this] { return !requests_.empty(); })) return {};
  ControlRequest request = std::move(requests_.front());
  requests_.pop_front();
  return request;
}

}  // namespace ferry::runs
