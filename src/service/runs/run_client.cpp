#include "src/service/runs/run_client.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "src/base/error.h"
#include "src/runs/directory/run_directory.h"

namespace ferry::service {

namespace fs = std::filesystem;
using runs::Phase;

namespace {

[[noreturn]] void fail(int code) {
  throw Error(Fault::machine, "runs.control",
              fmt::format("no run can be watched: {}", std::generic_category().message(code)),
              "close other windows; `ulimit -n` says how many files may be open");
}

}  // namespace

fs::path control_socket_of(const fs::path& run, const nlohmann::ordered_json& record) {
  const std::string phase = record.value("phase", "");
  for (const Phase over :
       {Phase::lost, Phase::unstarted, Phase::finished, Phase::stopped, Phase::failed})
    if (phase == name_of(over))
      throw Error(Fault::usage, "runs.control",
                  fmt::format("'{}' does not run: it is {}", run.string(), phase),
                  over == Phase::finished
                      ? "its model is in final/"
                      : fmt::format("continue with: ferry train --resume '{}'", run.string()));
  const auto socket = record.find("control_socket");
  if (socket == record.end() || !socket->is_string())
    throw Error(Fault::machine, "runs.control",
                fmt::format("'{}' has no control socket yet", run.string()),
                "try again once it trains; it obeys SIGINT (save and leave) meanwhile");
  runs::check_control_socket(run, socket->get<std::string>());
  return socket->get<std::string>();
}

RunClient::RunClient(fs::path run)
    : run_(std::move(run)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!events_ || !timer_) fail(errno);
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, timer_.get(), &event) != 0) fail(errno);
}

int64_t RunClient::stop(bool saves) {
  return ask({{"command", "stop"}, {"save", saves ? "yes" : "no"}}, kSave_patience);
}

int64_t RunClient::set(std::string_view key, std::string_view value) {
  return ask({{"command", "set"}, {"key", key}, {"value", value}}, kPatience);
}

int64_t RunClient::command(std::string_view name, std::chrono::milliseconds patience) {
  return ask({{"command", name}}, patience);
}

int64_t RunClient::ask(const nlohmann::json& question, std::chrono::milliseconds patience) {
  const auto now = Clock::now();
  Asked asked = {.id = ++n_asked_, .asked = now, .gives_up = now + patience};
  try {
    asked.call = std::make_unique<runs::ControlCall>(
        control_socket_of(run_, runs::read_record(run_)), question);
    watch(asked);
  } catch (const Error& error) {
    asked.call.reset();
    asked.trouble = error.what();
  }
  asked_.push_back(std::move(asked));
  set_timer();
  return n_asked_;
}

/** A descriptor that a call closed has left epoll by itself. Where the system watches no more of
 * them the timer does. */
void RunClient::watch(Asked& asked) {
  const int fd = asked.call->fd();
  if (fd < 0) return;
  epoll_event event{.events = static_cast<uint32_t>(asked.call->events()), .data = {}};
  const int how = fd == asked.watched_fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(events_.get(), how, fd, &event) == 0) asked.watched_fd = fd;
}

bool RunClient::is_over(Asked& asked, Clock::time_point now, RunReply& reply) {
  using Outcome = RunReply::Outcome;
  reply = {.id = asked.id, .outcome = Outcome::unheard, .text = asked.trouble};
  if (!asked.call) return true;
  asked.call->advance();
  if (const auto& answer = asked.call->answer()) {
    reply.outcome = answer->is_done ? Outcome::done : Outcome::refused;
    reply.text = answer->text;
    return true;
  }
  if (const auto& trouble = asked.call->trouble()) {
    reply.text = trouble->what();
    return true;
  }
  if (now < asked.gives_up) return false;
  reply.outcome = Outcome::timed_out;
  reply.text =
      fmt::format("the run has not answered for {} s; it may still do what was asked",
                  std::chrono::duration_cast<std::chrono::seconds>(now - asked.asked).count());
  return true;
}

std::vector<RunReply> RunClient::take() {
  uint64_t n_expired = 0;
  [[maybe_unused]] const ssize_t n = ::read(timer_.get(), &n_expired, sizeof n_expired);
  const auto now = Clock::now();
  std::vector<RunReply> replies;
  std::erase_if(asked_, [&](Asked& asked) {
    RunReply reply;
    if (!is_over(asked, now, reply)) {
      watch(asked);
      return false;
    }
    replies.push_back(std::move(reply));
    return true;
  });
  set_timer();
  return replies;
}

/** The next time that a request is due without anything having come for it. */
void RunClient::set_timer() {
  constexpr std::chrono::nanoseconds kNow{1}, kSecond = std::chrono::seconds(1);
  const auto now = Clock::now();
  std::chrono::nanoseconds left = std::chrono::nanoseconds::max();
  for (const Asked& asked : asked_) {
    const bool is_over = !asked.call || asked.call->is_over();
    const std::chrono::nanoseconds patience = is_over ? kNow : asked.call->patience();
    left = std::min({left, patience, std::chrono::nanoseconds(asked.gives_up - now)});
  }
  left = asked_.empty() ? std::chrono::nanoseconds(0) : std::max(left, kNow);
  const itimerspec timer = {
      .it_interval = {},
      .it_value = {.tv_sec = left / kSecond, .tv_nsec = (left % kSecond).count()}};
  ::timerfd_settime(timer_.get(), 0, &timer, nullptr);
}

}  // namespace ferry::service
