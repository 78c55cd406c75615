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

}  // namespace ferry::runs
