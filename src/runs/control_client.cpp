#include "src/runs/control_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "src/base/crc32c.h"
#include "src/base/json/json_reader.h"
#include "src/runs/control_socket.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/** Where nobody takes what waits, the socket is full at some time; then it is tried again. */
constexpr std::chrono::milliseconds kConnects = 5s, kTriesAgain = 50ms;
/** A debugger stops a process for a moment. */
constexpr std::chrono::milliseconds kLooksAtListener = 500ms;
constexpr int kSeenStopped = 3;

/** The process that listens at the other end, and whether it is stopped: by SIGSTOP, a debugger or
 * a terminal's Ctrl-Z. */
struct Listener {
  pid_t pid = 0;
  bool is_stopped = false;
};
Listener listener_of(int fd) {
  ucred peer{};
  socklen_t n_bytes = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_bytes) != 0) return {};
  std::ifstream status(fmt::format("/proc/{}/stat", peer.pid));
  std::string text;
  std::getline(status, text);
  const size_t end = text.rfind(") ");  // of its name, which may hold anything
  const char state = end != text.npos && end + 2 < text.size() ? text[end + 2] : '?';
  return {peer.pid, state == 'T' || state == 't'};
}

}  // namespace

ControlCall::ControlCall(fs::path socket, const nlohmann::json& question)
    : socket_(std::move(socket)),
      unsent_(question.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n") {
  try {
    fd_ = make_socket(socket_, SOCK_NONBLOCK);
    connect();
  } catch (const Error& error) {
    trouble_ = error;
  }
}

void ControlCall::fail(std::string_view what, std::string_view hint) {
  trouble_ = Error(Fault::machine, "runs.control", what, hint);
  fd_ = UniqueFd();
}

short ControlCall::events() const {
  return unsent_.empty() ? POLLIN : POLLOUT;
}

std::chrono::milliseconds ControlCall::patience() const {
  return is_connected_ ? kLooksAtListener : kTriesAgain;
}

void ControlCall::advance() {
  if (!is_over() && !is_connected_) connect();
  if (!is_over() && is_connected_ && !unsent_.empty()) write();
  if (!is_over() && is_connected_ && unsent_.empty()) read();
  if (!is_over() && is_connected_) look_at_listener();
}

void ControlCall::connect() {
  const sockaddr_un address = address_of(socket_);
  if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    is_connected_ = true;
    return check_peer() ? write() : void();
  }
  if (errno == EINTR) return;
  if (errno != EAGAIN)
    return fail(fmt::format("nobody listens at '{}': {}", socket_.string(),
                            std::generic_category().message(errno)),
                "the run's process is gone; `ferry train --resume RUN` goes on with it");
  if (Clock::now() - begun_ >= kConnects)
    fail(fmt::format("the run at '{}' takes no more questions", socket_.string()),
         "is its process stopped (Ctrl-Z, SIGSTOP)? `kill -CONT PID` lets it go on");
}

/** The run trains under the name of who started it. */
bool ControlCall::check_peer() {
  ucred peer{};
  socklen_t n_bytes = sizeof peer;
  const bool is_known = ::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &n_bytes) == 0;
  if (is_known && (peer.uid == ::geteuid() || ::geteuid() == 0)) return true;
  fail(
      fmt::format("a process of another user listens at '{}': it is not the run", socket_.string()),
      "does run.json come from somebody else?");
  return false;
}

void ControlCall::write() {
  while (!unsent_.empty()) {
    const ssize_t n = ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return fail("the run ended before it answered", "`ferry runs show RUN` says how");
    unsent_.erase(0, static_cast<size_t>(n));
  }
}

void ControlCall::read() {
  char piece[4096];
  size_t end = received_.npos;
  while ((end = received_.find('\n')) == received_.npos) {
    const ssize_t n = ::recv(fd_.get(), piece, sizeof piece, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0 || received_.size() >= kMessage_bytes_max)
      return fail("the run ended before it answered", "`ferry runs show RUN` says how");
    received_.append(piece, static_cast<size_t>(n));
  }
  try {
    const auto answer = JsonReader::parse(
        received_.substr(0, end),
        {"the run's answer", "runs.control", "does another program listen at its socket?"});
    answer_ = {answer.flag("done"), answer.text("text")};
  } catch (const Error& error) {
    trouble_ = error;
  }
  fd_ = UniqueFd();
}

/** It may take a step, or a checkpoint, as long as its process runs. */
void ControlCall::look_at_listener() {
  const auto now = Clock::now();
  if (now - looked_ < kLooksAtListener) return;
  looked_ = now;
  const Listener listener = listener_of(fd_.get());
  n_seen_stopped_ = listener.is_stopped ? n_seen_stopped_ + 1 : 0;
  if (n_seen_stopped_ == kSeenStopped)
    fail(fmt::format("the run does not answer: its process {} is stopped (Ctrl-Z, SIGSTOP)",
                     listener.pid),
         fmt::format("`kill -CONT {}` lets it go on; it then does what was asked", listener.pid));
}

std::string control_socket_name(const fs::path& run) {
  std::error_code error;
  const std::string whole = fs::weakly_canonical(run, error).string();
  constexpr size_t kName_bytes_max = 40;
  return fmt::format("{}-{:08x}", fs::path(whole).filename().string().substr(0, kName_bytes_max),
                     crc32c(std::as_bytes(std::span(whole))));
}

void check_control_socket(const fs::path& run, const fs::path& socket) {
  struct stat found {};
  const bool is_private = ::lstat(socket.parent_path().c_str(), &found) == 0 &&
                          S_ISDIR(found.st_mode) && (found.st_mode & 077) == 0 &&
                          (found.st_uid == ::geteuid() || ::geteuid() == 0);
  if (socket.is_absolute() && socket.filename() == control_socket_name(run) && is_private) return;
  throw Error(Fault::machine, "runs.control",
              fmt::format("'{}', which run.json of '{}' names, is not the socket of this run",
                          socket.string(), run.string()),
              "was the run's directory moved or copied, or does it come from somebody else? "
              "`kill -INT PID` asks its process to save and leave");
}

ControlAnswer ask_run(const fs::path& socket, const nlohmann::json& question) {
  ControlCall call(socket, question);
  while (!call.is_over()) {
    pollfd watched = {call.fd(), call.events(), 0};  // poll() passes over -1
    ::poll(&watched, 1, static_cast<int>(call.patience().count()));
    call.advance();
  }
  if (call.trouble()) throw Error(*call.trouble());
  return *call.answer();
}

}  // namespace ferry::runs
