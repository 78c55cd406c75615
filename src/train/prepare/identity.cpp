#include "src/train/prepare/identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/config/models/models.h"
#include "src/config/options/option.h"
#include "src/config/options/tuning.h"
#include "src/config/options/value.h"
#include "src/engine/torch_setup.h"
#include "src/request/run_plan.h"
#include "src/train/kernel_set.h"
#include "src/train/prepare/job.h"

namespace ferry {

namespace {

constexpr const char* kEvalData = "eval_dataset";
constexpr const char* kBaseWeights = "base_weights";

/** LibTorch's libraries choose by it, too, where two have the same instructions. */
std::string cpu_vendor() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);)
    for (const char* key : {"vendor_id", "CPU implementer"})
      if (const size_t colon = line.find(": "); line.starts_with(key) && colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

nlohmann::ordered_json training_settings_of(const config::Config& config) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (const config::Option& option : config::option_table())
    if (option.effect == config::Effect::changes_training)
      settings[std::string(option.key)] = config::to_toml(option, config.value(option.key));
  return settings;
}

}  // namespace

Identity identity_of(const Job& job) {
  const auto& config = job.config;
  const Data& data = job.data;
  const ModelTable& model = job.model.table;
  nlohmann::ordered_json identity;
  identity["task"] = config.text("task");
  identity["problem_type"] = hf_name_of(data.task->scheme().problem);
  // Before what follows from it, for the first that differs is named.
  if (data.task->may_be_packed()) identity["packing"] = config.flag("packing");
  identity["train_batch_size"] = data.split.train_batch_size;
  identity["per_device_train_batch_size"] = data.split.micro_batch_size;
  identity["reduction"] = name_of(job.plan.shape.reduction);
  identity["max_length"] = data.max_length;
  identity["token_sizes"] = data.token_sizes;
  identity["seed"] = config.integer("seed");
  identity["data_seed"] = data.shuffle_seed;
  identity["eval_fraction"] = config.number("eval_fraction");
  if (data.task->loss() == LossKind::preference)
    identity["preference_loss"] = config.text("preference_loss");
  if (data.task->shares_tokens()) identity["doc_stride"] = config.integer("doc_stride");
  identity["dataset"] = fmt::format("{:016x}", data.train.fingerprint());
  identity[kEvalData] = fmt::format("{:016x}", data.eval.fingerprint());
  const std::string written = config_of_result(job.model, *data.task).json().dump();
  identity["config"] = fmt::format("{:08x}", crc32c(std::as_bytes(std::span(written))));
  // Where it began, however the hub's revision has moved since.
  if (const auto commit = config::commit_of_snapshot(job.model.directory.base()))
    identity["model_commit"] = *commit;
  // A checkpoint has the adapter alone.
  if (model.has_deltas)
    identity[kBaseWeights] = fmt::format("{:08x}", job.model.directory.weights().sample_crc());
  // Before the number of parameters, which follows from it.
  identity["tuning"] = config.text("tuning");
  for (const config::Option& option : config::option_table())
    if (config::is_of_adapters(option) && option.effect == config::Effect::fixes_bits &&
        option.key != "quantization" && option.key != "double_quantization" &&
        config::suits_tuning(option, config.text("tuning")))
      identity[std::string(option.key)] = config::to_toml(option, config.value(option.key));
  identity["quantization"] = config.text("quantization");
  identity["double_quantization"] = config.flag("double_quantization");
  identity["n_params"] = model.n_params();
  identity["dtype"] = name_of(model.compute);
  identity["attention"] = name_of(model.attention);
  // Libraries choose their kernels by the GPU's model, and by the CPU's instructions.
  identity["device"] =
      job.machine.plan.has_gpu ? job.machine.device_name : "cpu " + torch_cpu_capability();
  if (!job.machine.plan.has_gpu) identity["cpu_vendor"] = cpu_vendor();
  // On a GPU the CPU's threads add up nothing that reaches the result.
  if (!job.machine.plan.has_gpu)
    identity["intra_op_threads"] =
        config.maybe_integer("intra_op_threads").value_or(job.machine.n_cores);
  identity["optim"] = simd::spec_of(choose_optim(config)).name;
  identity["master"] = config.text("master");
  identity["freeze"] = config.text("freeze");
  identity["deterministic"] = config.flag("deterministic");
  identity["kernels"] = kKernelSet;
  if (job.machine.plan.has_gpu) identity["gpu_kernels"] = kGpuKernelSet;
  identity["libtorch"] = torch_version();
  identity["ferry"] = FERRY_VERSION;
  return {.bits = identity, .settings = training_settings_of(config)};
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

/** The hint for a key whose value has changed. */
std::string hint_of(const std::string& key, const nlohmann::ordered_json& then) {
  constexpr std::string_view kGoOn =
      "continue with --new-identity: the result is then not that of the unchanged run";
  if (key == "dataset")
    return fmt::format("give the data as it was (--dataset, if it was moved), or {}", kGoOn);
  if (key == kEvalData)
    return fmt::format("give them as they were (--eval-dataset, if they were moved), or {}", kGoOn);
  if (key == kBaseWeights)
    return fmt::format("give the model as it was (--model, if it was moved), or {}", kGoOn);
  if (key == "device" || key == "cpu_vendor")
    return fmt::format("resume on a machine of that kind, or {}", kGoOn);
  if (config::find_option(key).option == nullptr)
    return fmt::format("resume with the build that it began with, or {}", kGoOn);
  std::string flag = key;
  std::ranges::replace(flag, '_', '-');
  const auto value = then.find(key);
  const bool is_plain = value != then.end() && !value->is_structured() && *value != "";
  return fmt::format(
      "set it back{}, or {}",
      is_plain ? fmt::format(" (--{} {})", flag,
                             value->is_string() ? value->get<std::string>() : value->dump())
               : "",
      kGoOn);
}

std::string words_of(const std::string& key,
                     const nlohmann::ordered_json& then,
                     const nlohmann::ordered_json& now,
                     const config::Config& config) {
  if (key == "dataset")
    return fmt::format("the texts or labels of '{}' have changed since the run began",
                       config.text("dataset"));
  if (key == kEvalData)
    return fmt::format("the evaluation data of '{}' have changed since the run began",
                       config.text(config.text("eval_dataset").empty() ? "dataset" : kEvalData));
  if (key == kBaseWeights)
    return fmt::format(
        "the weights of '{}', beside which the adapter is trained, have changed "
        "since the run began",
        config.text("model_name_or_path"));
  const auto found = then.find(key);
  const std::string was = found == then.end() ? "unset" : found->dump();
  if (key == "kernels" || key == "gpu_kernels")
    return fmt::format(
        "this build computes with other code than the run began with ({} was {}, "
        "and is {} now)",
        key, was, now.at(key).dump());
  return fmt::format("{} was {} when the run began, and is {} now", key, was, now.at(key).dump());
}

/** True where the user gives the option anew, and not the run's own settings. */
bool is_given(const config::Config& config, const std::string& key) {
  if (config::find_option(key).option == nullptr) return false;
  const config::Source source = config.origin(key).source;
  return source == config::Source::command_line || source == config::Source::environment;
}

/** True where evaluations decide which model the run ends with. */
bool evaluations_decide(const config::Config& config) {
  return config.flag("load_best_model_at_end") || config.integer("early_stopping_patience") > 0;
}

/** The key to name where `key` differs. Lengths and the kind of labels are read from the data:
 * where these are others, they are the reason. */
std::string reason_of(const std::string& key,
                      const nlohmann::ordered_json& then,
                      const nlohmann::ordered_json& now,
                      const config::Config& config) {
  constexpr std::array<std::string_view, 3> kOfData = {"problem_type", "max_length", "token_sizes"};
  if (std::ranges::find(kOfData, key) == kOfData.end() || is_given(config, key)) return key;
  for (const char* data : {"dataset", kEvalData})
    if (const auto found = then.find(data);
        found != then.end() && now.contains(data) && *found != now.at(data))
      return data;
  return key;
}

}  // namespace

nlohmann::ordered_json differences(const nlohmann::ordered_json& then,
                                   const nlohmann::ordered_json& now) {
  nlohmann::ordered_json changed = nlohmann::ordered_json::object();
  for (const auto& [key, value] : now.items())
    if (const auto found = then.find(key); found != then.end() && !is_same(key, *found, value))
      changed[key] = {{"was", *found}, {"is", value}};
  return changed;
}

void check_identity(const nlohmann::ordered_json& then,
                    const nlohmann::ordered_json& now,
                    const config::Config& config) {
  // A value that older runs do not name was the only one then, or shows in their data.
  const nlohmann::ordered_json of_before = {
      {"optim", "adamw"},   {"master", "fp32"},       {"packing", false},
      {"tuning", "full"},   {"quantization", "none"}, {"double_quantization", false},
      {"use_dora", "false"}};
  // A checkpoint has its own, under a checksum.
  constexpr std::array<std::string_view, 6> kNew = {"task",   "problem_type", "eval_fraction",
                                                    "config", kEvalData,      kBaseWeights};
  for (const auto& [key, value] : now.items()) {
    if (key == kEvalData && !evaluations_decide(config)) continue;
    const auto found = then.find(key);
    if (found == then.end() && std::ranges::find(kNew, key) != kNew.end()) continue;
    if (found != then.end() ? is_same(key, *found, value)
                            : of_before.value(key, nlohmann::ordered_json()) == value)
      continue;
    const std::string reason = reason_of(key, then, now, config);
    throw Error(Fault::usage, "resume.identity", words_of(reason, then, now, config),
                hint_of(reason, then));
  }
}

}  // namespace ferry
