#pragma once
// A training can go wrong without one number that is not finite: its loss jumps up and stays there.
// This tells it from the losses of all steps.

#include <optional>
#include <span>

namespace ferry {

struct LossRise {
  double first = 0;  ///< the loss of the first step, which no update had touched
  double last = 0;   ///< the mean of the last steps
};

/** Nothing where the last losses are below the first one times `worrying_rise`, or below those of a
 * model that guesses (Task). */
std::optional<LossRise> rise_of_loss(std::span<const double> losses,
                                     double worrying_rise,
                                     double guessing_loss);

}  // namespace ferry
