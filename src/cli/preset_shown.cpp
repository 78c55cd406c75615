#include "src/cli/preset_shown.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/cli/settings.h"
#include "src/config/models/models.h"
#include "src/request/run_plan.h"

namespace ferry::cli {
namespace {

using nlohmann::ordered_json;
using service::PresetFacts;
using service::PresetPlan;

/** The plan, or why there is none. */
struct Planned {
  std::optional<PresetPlan> plan;
  std::string problem;
};

Planned plan_of(const PresetFacts& facts) {
  if (facts.head.is_empty())
    return {std::nullopt, fmt::format("it names no card; for this machine: ferry plan --preset {}",
                                      facts.preset.name)};
  try {
    return {service::plan_preset(facts, profile_of_this_machine("")), ""};
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

/** The name of the resource that a step waits for, as people say it. */
std::string_view name_of_binding(std::string_view binding, bool has_gpu) {
  if (binding == "h2d" || binding == "d2h") return "copies between host and GPU bind";
  if (binding == "host") return "CPU updates bind";
  if (binding == "collective") return "exchanges between GPUs bind";
  return has_gpu ? "the GPU binds" : "the CPU binds";
}

/** Three digits or more, and no power of ten. */
std::string rate_text(double rate) {
  return rate < 10    ? fmt::format("{:.2f}", rate)
         : rate < 100 ? fmt::format("{:.1f}", rate)
                      : fmt::format("{:.0f}", rate);
}

std::string time_text(const PresetPlan& plan) {
  if (!plan.time)
    return fmt::format("How long a step of {} x {} tokens takes is not known: run `ferry doctor`.",
                       plan.train_batch_size, plan.max_length);
  const PresetPlan::Time& time = *plan.time;
  const std::string least =
      time.least_samples_per_s ? rate_text(*time.least_samples_per_s) + " to " : "";
  return fmt::format("A step of {} x {} tokens takes {} s: {}{} samples/s, {} tokens/s; {}.",
                     plan.train_batch_size, plan.max_length, rate_text(time.step_s), least,
                     rate_text(time.samples_per_s), rate_text(time.tokens_per_s),
                     name_of_binding(time.binding, plan.has_gpu));
}

/** The machine that a preset was made for: "2080ti-11g with 32.00 GiB of host memory". */
std::string machine_text(const config::PresetHead& head) {
  const auto memory = service::host_memory_bytes(head);
  return fmt::format("{}{}", head.card.empty() ? "a CPU" : head.card,
                     memory ? fmt::format(" with {} of host memory", format_bytes(*memory)) : "");
}

/** The directory of the preset's model; empty where it is not on this machine. */
std::string directory_of(const PresetFacts& facts) {
  try {
    return config::find_model(facts.model).string();
  } catch (const Error&) {
    return {};
  }
}

std::string where_text(const PresetFacts& facts) {
  if (facts.is_new)
    return fmt::format("is a new one of the shape {}: it needs --tokenizer", facts.model);
  if (facts.model.empty()) return "is not named: give --model";
  if (const std::string directory = directory_of(facts); !directory.empty())
    return "is in " + directory;
  return fmt::format(
      "is {}not on this machine",
      facts.hub_id.empty() ? "" : fmt::format("{} of the Hugging Face hub, and ", facts.hub_id));
}

/** The command that prints the whole plan. */
std::string plan_command(const PresetFacts& facts, const PresetPlan& plan) {
  const config::PresetHead& head = facts.head;
  return fmt::format("ferry plan --preset {} {} --host-memory {:g}GiB", facts.preset.name,
                     head.card.empty() ? "--device cpu" : "--machine " + head.card,
                     static_cast<double>(plan.host_limit_bytes) / static_cast<double>(kGiB));
}

std::string plan_text(const PresetFacts& facts, const PresetPlan& plan) {
  const std::string gpu =
      plan.has_gpu ? fmt::format("{} of {} of GPU memory, ", format_bytes(plan.gpu_bytes),
                                 format_bytes(plan.gpu_budget_bytes))
                   : "";
  return fmt::format(
      "# Planned, not measured, for {}:\n"
      "#   {}: {}{} of {} of host memory{}, {} of disk.\n"
      "#   {}\n"
      "#   More: {}\n",
      machine_text(facts.head), plan.refusal.empty() ? "It fits" : "It does not fit", gpu,
      format_bytes(plan.host_bytes), format_bytes(plan.host_budget_bytes),
      plan.n_gpus > 1 ? fmt::format(" for each of {} GPUs", plan.n_gpus) : "",
      format_bytes(plan.disk_bytes), plan.refusal.empty() ? time_text(plan) : plan.refusal,
      plan_command(facts, plan));
}

ordered_json optional_json(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json plan_json(const PresetPlan& plan) {
  ordered_json json = {{"is_measured", false},
                       {"fits", plan.refusal.empty()},
                       {"refusal", optional_json(plan.refusal)},
                       {"why", plan.why},
                       {"train_batch_size", plan.train_batch_size},
                       {"max_length", plan.max_length},
                       {"has_gpu", plan.has_gpu},
                       {"gpu_bytes", plan.gpu_bytes},
                       {"gpu_budget_bytes", plan.gpu_budget_bytes},
                       {"host_bytes", plan.host_bytes},
                       {"host_budget_bytes", plan.host_budget_bytes},
                       {"disk_bytes", plan.disk_bytes},
                       {"time", nullptr}};
  if (plan.time) {
    const PresetPlan::Time& time = *plan.time;
    json["time"] = {{"step_s", time.step_s},
                    {"samples_per_second", time.samples_per_s},
                    {"tokens_per_second", time.tokens_per_s},
                    {"binding", time.binding}};
    if (time.least_samples_per_s)
      json["time"]["samples_per_second_at_least"] = *time.least_samples_per_s;
  }
  return json;
}

/** The settings that the preset gives. */
ordered_json settings_json(const config::Config& settings) {
  ordered_json json = ordered_json::object();
  for (const config::Option& option : config::option_table())
    if (settings.is_set(option.key))
      json[std::string(option.key)] = json_of(settings.value(option.key));
  return json;
}

}  // namespace

ordered_json facts_json(const PresetFacts& facts) {
  const auto memory = facts.head.host_memory_bytes;
  return {{"name", facts.preset.name},
          {"file", facts.preset.file.string()},
          {"is_users", facts.preset.is_users},
          {"title", facts.head.title},
          {"purpose", facts.head.purpose},
          {"model", facts.model},
          {"is_new", facts.is_new},
          {"hub_id", optional_json(facts.hub_id)},
          {"task", facts.task},
          {"card", optional_json(facts.head.card)},
          {"host_memory_bytes", memory ? ordered_json(*memory) : nullptr}};
}

ordered_json shown_json(const PresetFacts& facts) {
  ordered_json json = facts_json(facts);
  json["model_directory"] = optional_json(facts.is_new ? "" : directory_of(facts));
  json["settings"] = settings_json(facts.settings);
  const auto [plan, problem] = plan_of(facts);
  json["plan"] = plan ? plan_json(*plan) : ordered_json(nullptr);
  json["problem"] = optional_json(problem);
  return json;
}

std::string shown_text(const PresetFacts& facts) {
  const auto [plan, problem] = plan_of(facts);
  return fmt::format("# The model {}.\n{}", where_text(facts),
                     plan ? plan_text(facts, *plan) : fmt::format("# No plan: {}\n", problem));
}

}  // namespace ferry::cli
