#pragma once
// A question to a run through its control socket, at the asker's end. ControlCall never waits: the
// app watches its descriptor. ask_run() waits: `ferry runs` has nothing else to do.

#include <chrono>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "src/base/error.h"
#include "src/base/unique_fd.h"

namespace ferry::runs {

struct ControlAnswer {
  bool is_done = false;
  std::string text;
};

/** A question on its way and its answer. Whoever destroys it before the answer hears none; the run
 * may do all the same what was asked. */
class ControlCall {
 public:
  /** Begins to ask the run that listens at `socket`. */
  ControlCall(std::filesystem::path socket, const nlohmann::json& question);

  /** Goes on as far as can be without waiting. It is due where fd() is ready for events(), and at
   * the latest after patience(). */
  void advance();

  bool is_over() const { return answer_ || trouble_; }
  const std::optional<ControlAnswer>& answer() const { return answer_; }
  /** Error(machine) where nobody listens, or another user's process does; where the run ended
   * before it answered, or its process is stopped (SIGSTOP, a debugger, a terminal's Ctrl-Z). */
  const std::optional<Error>& trouble() const { return trouble_; }

  /** -1: there is nothing to watch. */
  int fd() const { return is_connected_ && !is_over() ? fd_.get() : -1; }
  /** For poll() and epoll alike: POLLIN or POLLOUT. */
  short events() const;
  std::chrono::milliseconds patience() const;

 private:
  using Clock = std::chrono::steady_clock;
  void connect();
  void write();
  void read();
  void look_at_listener();
  bool check_peer();
  void fail(std::string_view what, std::string_view hint);

  std::filesystem::path socket_;
  std::string unsent_, received_;
  UniqueFd fd_;
  bool is_connected_ = false;
  Clock::time_point begun_ = Clock::now(), looked_ = begun_;
  int n_seen_stopped_ = 0;
  std::optional<ControlAnswer> answer_;
  std::optional<Error> trouble_;
};

/** The name of a run's socket, in the directory that its process chose. */
std::string control_socket_name(const std::filesystem::path& run);
/** Throws Error(machine) where `socket`, which the run's run.json names, is not the run's: of
 * another name, or in a directory that others may enter. A run.json may come from somebody else. */
void check_control_socket(const std::filesystem::path& run, const std::filesystem::path& socket);

/** Asks the run that listens at `socket` and waits for its answer; throws the trouble. */
ControlAnswer ask_run(const std::filesystem::path& socket, const nlohmann::json& question);

}  // namespace ferry::runs
