#include "src/train/loop/loss_rise.h"

#include <algorithm>

#include "src/runs/logs/mean_loss.h"

namespace ferry {
std::optional<LossRise> rise_of_loss(std::span<const double> losses,
                                     double worrying_rise,
                                     double guessing_loss) {
  constexpr size_t kLast_max = 50;
  if (losses.size() < 2) return std::nullopt;
  const size_t n_last = std::clamp<size_t>(losses.size() / 10, 1, kLast_max);
  runs::MeanLoss last;
  for (double loss : losses.last(n_last))
    last.add(loss);
  const LossRise rise = {.first = losses.front(), .last = last.value()};
  const bool has_risen = rise.last > worrying_rise * rise.first && rise.last > guessing_loss;
  return has_risen ? std::optional(rise) : std::nullopt;
}

}  // namespace ferry
