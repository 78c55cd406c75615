// Tables of all presets as Markdown: a part of presets/presets.md, `ferry presets ls --markdown`.

#include <fmt/format.h>

#include <cmath>

#include "src/base/bytes.h"
#include "src/request/run_plan.h"
#include "src/service/presets.h"
#include "src/tasks/task.h"

namespace ferry::service {
namespace {

/** Two digits: a plan is no better known, and small changes of the planner leave the page alone. */
std::string two_digits(double value) {
  if (value <= 0) return "0";
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return fmt::format("{:g}", std::round(value / unit) * unit);
}

std::string gib(int64_t bytes) {
  return two_digits(static_cast<double>(bytes) / static_cast<double>(kGiB));
}

std::string states_of(const config::Config& settings) {
  constexpr std::string_view kTypes[] = {"fp32", "bf16", "8 bits"};
  const simd::OptimSpec& optim = simd::spec_of(choose_optim(settings));
  const std::string states(kTypes[static_cast<size_t>(optim.type)]);
  return settings.text("master") == "split" ? states + ", split master" : states;
}

/** In tokens for language models, in samples for other tasks. */
std::string rate_of(const PresetPlan::Time& time, bool in_tokens) {
  const double per_sample = in_tokens ? time.tokens_per_s / time.samples_per_s : 1;
  const std::string most = two_digits(time.samples_per_s * per_sample);
  const std::string least =
      two_digits(time.least_samples_per_s.value_or(time.samples_per_s) * per_sample);
  return least == most ? most : fmt::format("{} to {}", least, most);
}

std::string row(const PresetFacts& facts, const PresetPlan& plan, bool in_tokens) {
  const config::PresetHead& head = facts.head;
  const double memory_gib =
      static_cast<double>(host_memory_bytes(head).value_or(0)) / static_cast<double>(kGiB);
  return fmt::format(
      "| `{}` | {} | {}, {:g} GiB | {} x {} | {} | {} | {} | {} | {} | {} |\n", facts.preset.name,
      facts.is_new ? fmt::format("new: {}", facts.model) : facts.hub_id,
      head.card.empty() ? "a CPU" : head.card, memory_gib, plan.train_batch_size, plan.max_length,
      states_of(facts.settings), plan.has_gpu ? gib(plan.gpu_bytes) : "", gib(plan.host_bytes),
      gib(plan.disk_bytes), plan.time ? two_digits(plan.time->step_s) : "",
      plan.time ? rate_of(*plan.time, in_tokens) : "");
}

}  // namespace

std::string presets_markdown(std::span<const PresetFacts> presets,
                             std::span<const PresetPlan> plans) {
  std::string page;
  for (const TaskKind& task : task_kinds()) {
    const bool in_tokens = is_language_model(task.head);
    std::string rows;
    for (size_t i = 0; i < presets.size(); ++i)
      if (presets[i].task == task.name) rows += row(presets[i], plans[i], in_tokens);
    if (rows.empty()) continue;
    page += fmt::format(
        "{}### {}\n\n"
        "| preset | model | card, host memory | samples x tokens of a step | states | GPU, GiB | "
        "host, GiB | disk, GiB | a step, s | {}/s |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n{}",
        page.empty() ? "" : "\n", task.name, in_tokens ? "tokens" : "samples", rows);
  }
  return page;
}

}  // namespace ferry::service
