#pragma once
// The mean of some steps' losses, as a run prints and logs it: a step whose loss is not finite
// (fp16 skips such steps) would hide all others, so it is left out.

#include <cmath>
#include <cstdint>

namespace ferry::runs {

class MeanLoss {
 public:
  void add(double loss) {
    if (!std::isfinite(loss)) return;
    sum_ += loss;
    ++n_;
  }
  /** NaN where no loss was finite. */
  double value() const { return n_ > 0 ? sum_ / static_cast<double>(n_) : std::nan(""); }

 private:
  double sum_ = 0;
  int64_t n_ = 0;
};

/** The loss as a run shows it: the mean since the last line with one, before the first such line
 * the last step's. NaN: none. */
class ShownLoss {
 public:
  /** The loss of the next step, NaN where it is not finite; `ends_mean`: its line has loss_mean. */
  void add(double loss, bool ends_mean) {
    has_mean_ = has_mean_ || ends_mean;
    mean_.add(loss);
    value_ = has_mean_ ? mean_.value() : loss;
    if (ends_mean) mean_ = {};
  }
  double value() const { return value_; }

 private:
  MeanLoss mean_;
  bool has_mean_ = false;
  double value_ = std::nan("");
};

}  // namespace ferry::runs
