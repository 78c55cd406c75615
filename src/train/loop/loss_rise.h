#pragma once
// A training can go wrong without one number that is not finite: its loss jumps up and stays there.
// This tells it from the losses of all steps.

#include <optional>
#include <span>

#include "models/loss_kind.h"

namespace ferry {

struct LossRise {
  double first = 0;  ///< the loss of the first step, which no update had touched
  double last = 0;   ///< the mean of the last steps
};

/** Nothing where the last losses are not far above the first one, or a classifier's are those of
 * one that guesses among its labels, or better. */
std::optional<LossRise> rise_of_loss(std::span<const double> losses,
                                     LossKind kind,
                                     int64_t n_labels);

}  // namespace ferry
