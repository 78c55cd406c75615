#pragma once
// The control socket of a run, at the run's end: a client writes one JSON object as a line, the run
// answers with one and closes. The trainer serves between steps; control_client.h asks. The socket
// lies in $XDG_RUNTIME_DIR/ferry (else /tmp/ferry-UID), which only its owner may enter; run.json
// names it.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "src/base/unique_fd.h"

namespace ferry::runs {

/** The request of a client: {"command": "set", "key": "learning_rate", "value": "1e-5"}. Its client
 * hears nothing until answer(), or that the run is gone when the request is destroyed. */
class ControlRequest {
 public:
  ControlRequest(std::map<std::string, std::string> asked, UniqueFd client)
      : asked_(std::move(asked)), client_(std::move(client)) {}
  std::string command() const { return argument("command"); }
  /** A text argument; empty where there is none. */
  std::string argument(const char* name) const {
    const auto found = asked_.find(name);
    return found == asked_.end() ? "" : found->second;
  }
  /** Says whether it was done, and what was done or why not. Once. */
  void answer(bool is_done, const std::string& text);

 private:
  std::map<std::string, std::string> asked_;
  UniqueFd client_;
};

class ControlServer {
 public:
  /** Listens for the run in `run`; takes over a socket that a dead process left. Throws
   * Error(machine). */
  explicit ControlServer(const std::filesystem::path& run);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /** The oldest request that nobody took, waiting for one at most so long. */
  std::optional<ControlRequest> take(std::chrono::milliseconds patience = {});

 private:
  void serve(std::stop_token stop);
  void receive(UniqueFd client);

  std::filesystem::path path_;
  UniqueFd listening_, wake_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<ControlRequest> requests_;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace ferry::runs
