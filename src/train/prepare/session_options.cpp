#include "src/train/prepare/session_options.h"

#include <algorithm>
#include <cstdlib>

#include "src/base/bytes.h"
#include "src/inputs/preference_rule.h"
#include "src/request/run_plan.h"

namespace ferry {
namespace {

/** The bytes that the system of a simulated device lets a run pin. */
int64_t simulated_pinnable_bytes() {
  const char* const text = std::getenv("FERRY_SIMULATED_PINS");
  return text ? parse_bytes(text).value_or(INT64_MAX) : INT64_MAX;
}

}  // namespace

bool pins_memory(const config::Config& config, const Machine& machine) {
  return machine.plan.has_gpu || config.text("device") == "simulated";
}

SessionOptions make_session_options(const config::Config& config,
                                    const Machine& machine,
                                    const SessionFacts& facts,
                                    int n_sharing) {
  SessionOptions options;
  options.device = machine.plan.has_gpu ? DeviceKind::cuda : DeviceKind::cpu;
  if (config.text("device") == "simulated")
    options.simulated = {.mode = SimulatedMode::threads,
                         .poison = true,
                         .pinnable_bytes = simulated_pinnable_bytes()};
  if (pins_memory(config, machine))
    options.pinned_bytes_max = config.maybe_integer("pinned_memory").value_or(INT64_MAX);
  options.n_workers = static_cast<int>(
      config.maybe_integer("worker_threads").value_or(std::max(1, machine.n_cores / n_sharing)));
  options.loss = facts.loss;
  if (facts.loss == LossKind::preference) options.preference = preference_rule_of(config);
  options.seed = facts.seed;
  options.generation = facts.generation;
  if (!facts.trains) return options;
  options.overlap = config.flag("optimizer_overlap");
  options.label_smoothing = static_cast<float>(config.number("label_smoothing_factor"));
  options.class_weights = facts.class_weights;
  options.optimizer.optim = facts.optim;
  options.optimizer.hyper = {.beta1 = config.number("adam_beta1"),
                             .beta2 = config.number("adam_beta2"),
                             .eps = config.number("adam_epsilon"),
                             .weight_decay = config.number("weight_decay"),
                             .momentum = config.number("momentum"),
                             .nesterov = config.flag("nesterov")};
  options.optimizer.schedule = {.kind = parse_schedule(config.text("lr_scheduler_type")).value(),
                                .learning_rate = config.number("learning_rate"),
                                .n_warmup_steps = config.steps("warmup_steps", facts.n_steps),
                                .n_steps = facts.n_steps,
                                .min_lr_rate = config.number("min_lr_rate"),
                                .num_cycles = config.number("lr_num_cycles"),
                                .power = config.number("lr_power"),
                                .gamma = config.number("lr_gamma"),
                                .n_decay_steps = config.steps("lr_decay_steps", facts.n_steps)};
  options.optimizer.seed = options.seed;
  options.optimizer.max_grad_norm = config.number("max_grad_norm");
  options.optimizer.loss_scaling = facts.compute == DType::f16;
  return options;
}

}  // namespace ferry
