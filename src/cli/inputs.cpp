#include "src/cli/inputs.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <optional>

#include "src/base/print.h"
#include "src/term/byte_progress.h"

namespace ferry::cli {
namespace {

std::atomic<int> asked_to_end{0};
std::atomic<int64_t> last_looked_ns{0};  // when somebody looked at it

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr int64_t kSecond_ns = 1'000'000'000;
  return now.tv_sec * kSecond_ns + now.tv_nsec;
}

/** Files are closed well where something is on its way; while a run is planned nobody looks. */
void on_signal(int signal) {
  constexpr int64_t kPatience_ns = 3'000'000'000;
  if (asked_to_end.exchange(signal) == 0 && now_ns() - last_looked_ns < kPatience_ns) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/** While it lives Ctrl-C and SIGTERM are heard. */
class Interrupts {
 public:
  Interrupts() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, &before_[0]);
    sigaction(SIGTERM, &action, &before_[1]);
  }
  ~Interrupts() {
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  struct sigaction before_[2]{};
};

void end_by_signal() {
  log_line("ferry: stopped; the same command goes on where this one was");
  std::fflush(nullptr);
  std::signal(asked_to_end, SIG_DFL);
  std::raise(asked_to_end);
}

}  // namespace

void with_progress(const std::function<void(const hub::Talk&)>& work) {
  std::optional<term::ByteProgress> line;
  int64_t shown_bytes = -1;
  const hub::Talk talk = {.tell = [](const std::string& text) { log_line("ferry: " + text); },
                          .progress =
                              [&](int64_t done, int64_t total) {
                                if (total != shown_bytes) line.emplace("fetching", total);
                                shown_bytes = total;
                                line->update(done);
                                if (done == total) line.reset(), shown_bytes = -1;
                              },
                          .is_cancelled =
                              [] {
                                last_looked_ns = now_ns();
                                return asked_to_end != 0;
                              }};
  try {
    const Interrupts interrupts;
    work(talk);
    return;
  } catch (const hub::Cancelled&) {
    line.reset();
  }
  end_by_signal();
}

void provide_inputs(const config::Config& config, service::ModelNeed need, bool must_fit) {
  with_progress(
      [&](const hub::Talk& talk) { service::provide_inputs(config, need, must_fit, talk); });
}

}  // namespace ferry::cli
