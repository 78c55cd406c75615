#pragma once
// The settings of the optimizer steps that these comparisons take.

#include <nlohmann/json.hpp>

#include "src/engine/session.h"

namespace ferry::test {

/** `steps` is the JSON that the Python program wrote. */
inline SessionOptions options_of(const nlohmann::json& steps, LossKind loss, bool on_gpu) {
  SessionOptions options;
  options.loss = loss;
  options.n_workers = 2;
  if (on_gpu) options.device = DeviceKind::cuda;
  options.optimizer.hyper.weight_decay = steps["weight_decay"];
  options.optimizer.schedule = {.kind = ScheduleKind::linear,
                                .learning_rate = steps["learning_rate"],
                                .n_warmup_steps = steps["n_warmup_steps"],
                                .n_steps = static_cast<int64_t>(steps["steps"].size())};
  options.optimizer.max_grad_norm = steps["max_grad_norm"];
  return options;
}

}  // namespace ferry::test
