#include "src/train/control/best_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr std::string_view kEval = "eval_";

/** "accuracy" and "eval_accuracy" are one. */
std::string metric_of(const config::Config& config) {
  const std::string& name = config.text("metric_for_best_model");
  return name.starts_with(kEval) ? name : std::string(kEval) + name;
}

/** Losses, errors and perplexities are better when they are small. */
bool is_greater_better(const config::Config& config, const std::string& metric) {
  const std::string& asked = config.text("greater_is_better");
  if (asked != "auto") return asked == "true";
  return std::ranges::none_of(std::array<std::string_view, 3>{"loss", "error", "perplexity"},
                              [&](std::string_view small) { return metric.ends_with(small); });
}

}  // namespace

void check_best_model(const config::Config& config, const Data& data) {
  const bool loads = config.flag("load_best_model_at_end");
  if (!loads && config.integer("early_stopping_patience") == 0) return;
  const std::string key = loads ? "load_best_model_at_end" : "early_stopping_patience";
  if (data.eval.size() == 0)
    throw Error(Fault::usage, "config." + key,
                fmt::format("{} needs evaluations, and there is no data for them", key),
                "give eval_dataset, or eval_fraction");
  if (config.text("eval_strategy") == "no")
    throw Error(Fault::usage, "config." + key,
                fmt::format("{} needs evaluations, and eval_strategy is no", key),
                "use eval_strategy = epoch or steps");
  const std::string name = metric_of(config).substr(kEval.size());
  const std::vector<std::string> known = data.task->metric_names();
  if (std::ranges::find(known, name) == known.end())
    throw Error(Fault::usage, "config.metric_for_best_model",
                fmt::format("this run's evaluations have no '{}'", name),
                fmt::format("they have {}", fmt::join(known, ", ")));
}

BestModel::BestModel(const config::Config& config,
                     const std::vector<runs::EvaluationLine>& evaluations)
    : evaluations_(evaluations),
      metric_(metric_of(config)),
      is_greater_better_(is_greater_better(config, metric_)),
      is_loaded_at_end_(config.flag("load_best_model_at_end")),
      patience_(config.integer("early_stopping_patience")),
      threshold_(config.number("early_stopping_threshold")) {}

double BestModel::score(const runs::EvaluationLine& line) const {
  const auto found = line.values.find(metric_);
  if (found == line.values.end()) return std::nan("");
  return is_greater_better_ ? found->second : -found->second;
}

std::vector<int64_t> BestModel::ranking() const {
  const auto& lines = evaluations_;
  std::vector<size_t> order(lines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const double of_a = score(lines[a]), of_b = score(lines[b]);
    return std::isnan(of_b) ? !std::isnan(of_a) : of_a > of_b;
  });
  std::vector<int64_t> steps;
  for (size_t i : order)
    steps.push_back(lines[i].step);
  return steps;
}

bool BestModel::is_out_of_patience() const {
  if (patience_ == 0) return false;
  double best = -INFINITY;
  int64_t n_without = 0;
  for (const runs::EvaluationLine& line : evaluations_) {
    const double now = score(line);
    // The first evaluation counts as better than nothing, as in transformers'
    // EarlyStoppingCallback.
    const bool is_better = now > best && (std::isinf(best) || now - best > threshold_);
    n_without = is_better ? 0 : n_without + 1;
    best = std::fmax(best, now);
  }
  return n_without >= patience_;
}

}  // namespace ferry
