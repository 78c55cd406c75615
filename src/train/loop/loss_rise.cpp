#include "src/train/loop/loss_rise.h"

#include <algorithm>
#include <cmath>

#include "src/runs/logs/mean_loss.h"

namespace ferry {
namespace {

/** So many times the first loss is no chance of one batch. */
double worrying_factor(LossKind kind) {
  // The squares of a regression differ much from batch to batch.
  return kind == LossKind::regression ? 10 : 2;
}

/** The loss of a model that knows nothing but the number of its labels; 0: no telling. */
double guessing_loss(LossKind kind, int64_t n_labels) {
  if (kind == LossKind::cross_entropy) return std::log(static_cast<double>(n_labels));
  return kind == LossKind::multi_label ? std::log(2.0) : 0;
}

}  // namespace

std::optional<LossRise> rise_of_loss(std::span<const double> losses,
                                     LossKind kind,
                                     int64_t n_labels) {
  constexpr size_t kLast_max = 50;
  if (losses.size() < 2) return std::nullopt;
  const size_t n_last = std::clamp<size_t>(losses.size() / 10, 1, kLast_max);
  runs::MeanLoss last;
  for (double loss : losses.last(n_last))
    last.add(loss);
  const LossRise rise = {.first = losses.front(), .last = last.value()};
  const bool has_risen =
      rise.last > worrying_factor(kind) * rise.first && rise.last > guessing_loss(kind, n_labels);
  return has_risen ? std::optional(rise) : std::nullopt;
}

}  // namespace ferry
