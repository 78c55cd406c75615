#include "src/train/checkpoint/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/engine/torch_setup.h"

namespace ferry {

nlohmann::ordered_json identity_of(const Job& job) {
  const auto& config = job.config;
  nlohmann::ordered_json identity;
  identity["train_batch_size"] = job.split.train_batch_size;
  identity["per_device_train_batch_size"] = job.split.micro_batch_size;
  identity["max_length"] = job.max_length;
  identity["token_sizes"] = job.token_sizes;
  identity["seed"] = config.integer("seed");
  identity["data_seed"] = data_seed_of(config);
  identity["dataset"] = fmt::format("{:016x}", job.train.fingerprint());
  identity["n_params"] = job.model.n_params();
  identity["dtype"] = name_of(job.model.compute);
  identity["attention"] = name_of(job.model.attention);
  // Libraries choose their kernels by the GPU's model, and by the CPU's instructions.
  identity["device"] =
      job.machine.plan.has_gpu ? job.machine.device_name : "cpu " + torch_cpu_capability();
  // On a GPU the CPU's threads add up nothing that reaches the result.
  if (!job.machine.plan.has_gpu)
    identity["intra_op_threads"] =
        config.maybe_integer("intra_op_threads").value_or(job.machine.n_cores);
  identity["optim"] = config.text("optim");
  identity["master"] = config.text("master");
  identity["freeze"] = config.text("freeze");
  identity["deterministic"] = config.flag("deterministic");
  identity["libtorch"] = torch_version();
  identity["ferry"] = FERRY_VERSION;
  return identity;
}

namespace {

/** A run that is made longer may need a larger size besides those that it began with, which its
 * micro-batches of before would not have been rounded up to. */
bool is_same(const std::string& key,
             const nlohmann::ordered_json& then,
             const nlohmann::ordered_json& now) {
  if (key != "token_sizes") return then == now;
  return then.size() <= now.size() && std::equal(then.begin(), then.end(), now.begin());
}

}  // namespace

void check_identity(const nlohmann::ordered_json& then, const nlohmann::ordered_json& now) {
  // Settings that older runs do not name had only this value then.
  const nlohmann::ordered_json of_before = {{"optim", "adamw"}, {"master", "fp32"}};
  for (const auto& [key, value] : now.items()) {
    const auto found = then.find(key);
    if (found != then.end() ? is_same(key, *found, value) : of_before.value(key, "") == value)
      continue;
    throw Error(Fault::does_not_fit, "resume.identity",
                fmt::format("{} was {} when the run began, and is {} now", key,
                            found == then.end() ? "unset" : found->dump(), value.dump()),
                "set it back, or go on with --new-identity: the bits will differ from here on");
  }
}

}  // namespace ferry
