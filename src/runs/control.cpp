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
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>

#include "src/base/error.h"
#include "src/base/json_reader.h"
#include "src/files/crc32c.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr size_t kMessage_bytes_max = 1 << 16;

[[noreturn]] void fail(const fs::path& path, std::string_view doing, int code) {
  throw Error(Fault::machine, "runs.control",
              fmt::format("'{}' could not be {}: {}", path.string(), doing,
                          std::generic_category().message(code)),
              "set XDG_RUNTIME_DIR to a directory of your own");
}

/** A directory that nobody else may enter; what a stranger put there first is not used. */
fs::path private_directory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const fs::path path = runtime && *runtime
                            ? fs::path(runtime) / "ferry"
                            : fs::path("/tmp") / fmt::format("ferry-{}", ::geteuid());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail(path, "made", errno);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) fail(path, "read", errno);
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0)
    fail(path, "used, because others may write there", EACCES);
  return path;
}

/** Short, since a socket's path may have 107 bytes, and different for runs of one name. */
fs::path socket_path(const fs::path& run) {
  std::error_code error;
  const std::string whole = fs::weakly_canonical(run, error).string();
  const std::string name = fs::path(whole).filename().string().substr(0, 40);
  return private_directory() /
         fmt::format("{}-{:08x}", name, crc32c(std::as_bytes(std::span(whole))));
}

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) fail(path, "used", ENAMETOOLONG);
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  return address;
}

UniqueFd make_socket(const fs::path& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) fail(path, "opened", errno);
  return fd;
}

/** Up to the end of the line, or nothing; also when the line is not there in time. `wait`: waits
 * for bytes, and says whether to go on. */
std::optional<std::string> read_line(int fd, const std::function<bool()>& wait) {
  std::string line;
  char piece[4096];
  while (line.size() < kMessage_bytes_max) {
    if (!wait()) return {};
    const ssize_t n = ::recv(fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return {};
    line.append(piece, static_cast<size_t>(n));
    if (const size_t end = line.find('\n'); end != line.npos) return line.substr(0, end);
  }
  return {};
}

/** True if there is something to read, or the end, within so many milliseconds. */
bool has_bytes(int fd, std::chrono::milliseconds patience) {
  pollfd watched = {fd, POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(patience.count())) > 0;
}

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
  if (!wake_) fail(path_, "opened", errno);
  // Whoever holds the run's lock is its only trainer: a socket that is there is a dead one's.
  ::unlink(path_.c_str());
  const sockaddr_un address = address_of(path_);
  if (::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening_.get(), 8) != 0)
    fail(path_, "opened", errno);
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
  constexpr std::chrono::nanoseconds kPatience = 2s;
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto end = Clock::now() + kPatience;
  const auto line = read_line(client.get(), [&] {
    for (std::chrono::nanoseconds left; (left = end - Clock::now()) > 0ms;)
      if (has_bytes(client.get(), std::chrono::ceil<std::chrono::milliseconds>(left))) return true;
    return false;
  });
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

ControlAnswer ask_run(const fs::path& socket, const nlohmann::json& question) {
  const UniqueFd fd = make_socket(socket);
  const sockaddr_un address = address_of(socket);
  // Where nobody takes what waits, the socket is full at some time.
  const timeval patience{.tv_sec = 5, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const int code = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (code != 0 && errno == EAGAIN)
    throw Error(Fault::machine, "runs.control",
                fmt::format("the run at '{}' takes no more questions", socket.string()),
                "is its process stopped (Ctrl-Z, SIGSTOP)? `kill -CONT PID` lets it go on");
  if (code != 0)
    throw Error(Fault::machine, "runs.control",
                fmt::format("nobody listens at '{}': {}", socket.string(),
                            std::generic_category().message(errno)),
                "the run's process is gone; `ferry train --resume RUN` goes on with it");
  // It may take a step, or a checkpoint, as long as its process runs.
  int n_seen_stopped = 0;
  const auto wait = [&] {
    while (!has_bytes(fd.get(), 500ms)) {
      const Listener listener = listener_of(fd.get());
      n_seen_stopped = listener.is_stopped ? n_seen_stopped + 1 : 0;
      if (n_seen_stopped < 3) continue;  // a debugger stops it for a moment
      throw Error(
          Fault::machine, "runs.control",
          fmt::format("the run does not answer: its process {} is stopped (Ctrl-Z, SIGSTOP)",
                      listener.pid),
          fmt::format("`kill -CONT {}` lets it go on; it then does what was asked", listener.pid));
    }
    return true;
  };
  const auto line =
      write_line(fd.get(), question.dump() + "\n") ? read_line(fd.get(), wait) : std::nullopt;
  if (!line)
    throw Error(Fault::machine, "runs.control", "the run ended before it answered",
                "`ferry runs show RUN` says how");
  const auto answer = JsonReader::parse(
      *line, {"the run's answer", "runs.control", "does another program listen at its socket?"});
  return {answer.flag("done"), answer.text("text")};
}

}  // namespace ferry::runs
