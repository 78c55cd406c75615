#pragma once
// Durations of work that varies from run to run: medians, after a warm-up, bounded by time and not
// by counts, so that a slow machine waits no longer than a fast one. Private to src/measure.

#include <chrono>
#include <exception>
#include <functional>
#include <string>

namespace ferry::measure {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/** The time that one figure may take: about `seconds`, the warm-up among them, in up to `n_samples`
 * samples, at least one. */
struct Bound {
  double seconds = 0.1;
  int n_samples = 5;
  /** Other work for about so long, before each sample. It takes kBefore_share of the figure's time,
   * and does not count. */
  std::function<void(double seconds)> before = {};
};
inline constexpr double kBefore_share = 2.0 / 3;

/** Median seconds of one piece of work. `run(n)` does it n times and gives the seconds that took;
 * the first call is a warm-up and does not count. */
double sample(const Bound& bound, const std::function<double(int n)>& run);

/** The time of a part: figures whose turn comes after it are left out, and counted. */
class Allotted {
 public:
  explicit Allotted(double seconds) : end_(Clock::now() + std::chrono::duration<double>(seconds)) {}
  /** Asked before each figure, the first excepted: one is always measured. */
  bool is_over() {
    ++n_asked_;
    if (n_asked_ == 1 || Clock::now() < end_) return false;
    ++n_left_out_;
    return true;
  }
  int n_asked() const { return n_asked_; }
  int n_left_out() const { return n_left_out_; }

 private:
  std::chrono::time_point<Clock, std::chrono::duration<double>> end_;
  int n_asked_ = 0, n_left_out_ = 0;
};

/** The error's message, without the stack that LibTorch adds in lines of its own. */
std::string first_line_of(const std::exception& error);

/** To four digits: more are not known, and files stay readable. */
double rounded(double value);

}  // namespace ferry::measure
