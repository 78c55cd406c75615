#pragma once
// Steers a run through its control socket without ever waiting: for an event loop, which watches
// one descriptor. Several clients may steer one run, and a client may have several requests on
// their way; each gets its own reply.
//
//   RunClient client(run);
//   const int64_t id = client.pause();
//   ...                                      // client.descriptor() becomes readable
//   for (const RunReply& reply : client.take()) show(reply.text);

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/runs/control_client.h"

namespace ferry::service {

/** The socket where the run of this record takes requests. Throws Error(usage) where the run does
 * not run, Error(machine) where it takes none yet. */
std::filesystem::path control_socket_of(const std::filesystem::path& run,
                                        const nlohmann::ordered_json& record);

struct RunReply {
  enum class Outcome : uint8_t {
    done,
    refused,    ///< the run answered that it does not
    unheard,    ///< nobody listens, the run ended, its process is stopped, ...
    timed_out,  ///< no answer in time; the run may do it all the same
  };
  int64_t id = 0;
  Outcome outcome = Outcome::unheard;
  std::string text;  ///< for the user
};

/** For one thread. Its end waits for nothing; what was asked may still be done. */
class RunClient {
 public:
  /** Throws Error(machine) where the system has no descriptors left. */
  explicit RunClient(std::filesystem::path run);

  /** Each gives the id of its reply. A checkpoint takes as long as the disk needs, samples as long
   * as the model needs for all prompts; the other requests are answered after a step at most. */
  int64_t pause() { return command("pause"); }
  int64_t resume() { return command("resume"); }
  int64_t save() { return command("save", kSave_patience); }
  int64_t sample() { return command("sample", kSave_patience); }
  int64_t stop(bool saves);
  int64_t set(std::string_view key, std::string_view value);
  /** A question of one's own, as src/runs/control.h says. */
  int64_t ask(const nlohmann::json& question, std::chrono::milliseconds patience);

  /** Readable (POLLIN) where take() has something to do, a timeout too. */
  int descriptor() const { return events_.get(); }
  /** Goes on with all requests as far as can be without waiting, and gives the replies that came.
   */
  std::vector<RunReply> take();
  /** Requests that have no reply yet. */
  size_t n_waiting() const { return asked_.size(); }

  static constexpr std::chrono::minutes kPatience{5}, kSave_patience{60};

 private:
  using Clock = std::chrono::steady_clock;
  struct Asked {
    int64_t id;
    Clock::time_point asked, gives_up;
    /** At an address of its own; null where the question could not be asked at all. */
    std::unique_ptr<runs::ControlCall> call;
    std::string trouble;
    int watched_fd = -1;
  };
  int64_t command(std::string_view name, std::chrono::milliseconds patience = kPatience);
  bool is_over(Asked& asked, Clock::time_point now, RunReply& reply);
  void watch(Asked& asked);
  void set_timer();

  std::filesystem::path run_;
  UniqueFd events_, timer_;  // epoll; timerfd
  std::vector<Asked> asked_;
  int64_t n_asked_ = 0;
};

}  // namespace ferry::service
