#pragma once
// One status line: bar, count, rate, time left, a few numbers. On a terminal the line is rewritten;
// elsewhere, and in the program's log (src/base/print.h), a plain line appears now and then. Called
// from one thread; rewriting costs nothing when called too often.
//
//   Progress progress(stderr, detect_terminal(2), "training", n_steps);
//   for (...) progress.update(step, fmt::format("loss {:.3f}", loss));
//   progress.finish();

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "src/term/terminal.h"

namespace ferry::term {

struct ProgressState {
  std::string_view what;  // "training"
  std::string_view unit;  // "step", for the rate
  int64_t done = 0;
  int64_t total = 0;        // 0: not known
  int64_t first_done = 0;   // done when this session began: the rate counts from there
  double elapsed_s = 0;     // of this session
  std::string_view detail;  // "loss 0.412  lr 3.2e-05": numbers with two spaces between them
};

/** The line, at most terminal.width - 1 columns: where that is too little, the bar goes, then
 * numbers from the last on, the rate and the time left; the first number stays. Says "estimating"
 * until 3 units and 1 second have passed. */
std::string progress_text(const ProgressState& state, const Terminal& terminal);

class Progress {
 public:
  /** Nothing is written before the first update. first_done: where a resumed run starts. */
  Progress(std::FILE* out,
           Terminal terminal,
           std::string what,
           int64_t total,
           std::string unit = "step",
           int64_t first_done = 0);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // ends an open line

  /** `is_told`: the caller says the same in a line of its own, so that none is due here. */
  void update(int64_t done, std::string_view detail = {}, bool is_told = false);
  /** The last line stays. */
  void finish();
  /** The last line goes: what it told of is over and of no more interest. */
  void vanish();
  /** A line of its own that scrolls away above the status line. */
  void log_line(std::string_view line);
  /** The same for lines that no log gets. */
  void show(std::string_view lines);

 private:
  using Clock = std::chrono::steady_clock;
  std::string text(Clock::time_point now, const Terminal& terminal) const;
  void draw(Clock::time_point now);
  void note_progress(Clock::time_point now);
  void clear();

  std::FILE* out_;
  Terminal terminal_;
  std::string what_, unit_, detail_;
  int64_t total_, first_done_, done_ = 0;
  Clock::time_point start_ = Clock::now(), last_draw_, last_note_;
  int64_t last_drawn_ = -1, last_noted_ = -1;  // -1: never
  bool is_open_ = false;                       // a rewritable line stands at the cursor
};

}  // namespace ferry::term
