#include "src/train/checkpoint/export_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/engine/torch_setup.h"
#include "src/files/hf/hf_directory.h"
#include "src/tasks/task.h"
#include "src/train/generate/generation.h"
#include "src/train/prepare/run_store.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

/** A mean difference of this size is no rounding to 16 bits. */
constexpr double kOtherModel = 0.5;
/** Rarer tokens have log-probabilities that rounding moves at will. */
constexpr double kLeastLogP = -9.2;

Job job_of(const fs::path& model, int64_t n_tokens) {
  config::Config config;
  const auto set = [&](std::string_view key, const std::string& value) {
    config.set(key, value, {config::Source::chosen, "ferry export", true});
  };
  set("model_name_or_path", model.string());
  set("max_new_tokens", fmt::format("{}", n_tokens));
  return prepare_generation(std::move(config), {"The"});
}

/** As many as a CPU reads the weights for in half a minute. */
int64_t affordable(const Job& job, int64_t n_tokens) {
  if (job.machine.plan.has_gpu) return n_tokens;
  constexpr double kSeconds = 30, kBytes_per_s = 1e10;
  constexpr int64_t kLeast = 8;
  const double bytes = static_cast<double>(job.model.table.n_params()) *
                       static_cast<double>(size_of(job.model.table.compute));
  const auto n = static_cast<int64_t>(kSeconds * kBytes_per_s / (2 * bytes));
  return std::clamp(n, std::min(kLeast, n_tokens), n_tokens);
}

AlongText along(const Job& job, std::span<const int32_t> given, int64_t n) {
  RunStore store("export");
  const auto session = open_session(job, store);
  return go_along(*session, job, given, n);
}

std::vector<double> log_probabilities(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(static_cast<double>(logit) - most);
  std::vector<double> all;
  all.reserve(logits.size());
  for (const float logit : logits)
    all.push_back(static_cast<double>(logit) - most - std::log(sum));
  return all;
}

Likeness likeness_of(const AlongText& first, const AlongText& second) {
  Likeness found;
  for (size_t i = 0; i < first.logits.size(); ++i) {
    const auto a = log_probabilities(first.logits[i]), b = log_probabilities(second.logits[i]);
    const size_t n = std::min(a.size(), b.size());
    const auto likeliest = [&](const std::vector<double>& all) {
      return std::max_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)) -
             all.begin();
    };
    const auto best = static_cast<size_t>(likeliest(a));
    found.n_same += likeliest(b) == static_cast<std::ptrdiff_t>(best);
    found.mean += std::abs(a[best] - b[best]);
    for (size_t token = 0; token < n; ++token)
      if (a[token] > kLeastLogP) found.most = std::max(found.most, std::abs(a[token] - b[token]));
    ++found.n_tokens;
  }
  found.mean /= static_cast<double>(std::max<int64_t>(1, found.n_tokens));
  return found;
}

}  // namespace

std::string Likeness::text() const {
  if (!skipped.empty()) return "not compared with what it was made from: " + skipped;
  return fmt::format(
      "compared with what it was made from on {} token{}: log-probabilities differ by {:.2g} on "
      "average and {:.2g} at most, {} likeliest token{} the same",
      n_tokens, n_tokens == 1 ? "" : "s", mean, most,
      n_same == n_tokens ? "all" : fmt::format("{} of {}", n_same, n_tokens),
      n_same == n_tokens && n_tokens != 1 ? "s are"
      : n_same == 1                       ? " is"
                                          : "s are");
}

JsonValue Likeness::json() const {
  if (!skipped.empty()) return nlohmann::ordered_json{{"skipped", skipped}};
  return nlohmann::ordered_json{{"tokens", n_tokens},
                                {"same_likeliest", n_same},
                                {"mean_difference", mean},
                                {"largest_difference", most}};
}

std::optional<Likeness> compare_models(const fs::path& made_from,
                                       const fs::path& written,
                                       int64_t n_tokens) {
  const HfDirectory model = open_directory(made_from);
  if (!kind_of_model(model.config()).generates()) return std::nullopt;
  AlongText first, second;
  try {
    const Job job = job_of(made_from, n_tokens);
    // The last token is not read.
    const int64_t room =
        shape_of(job.generation).cache_tokens - job.generation.longest_prompt() + 1;
    const int64_t n = affordable(job, std::min(n_tokens, room));
    set_up_torch({.deterministic = true});
    first = along(job, {}, n);
    second = along(job_of(written, n_tokens), first.ids, n);
  } catch (const Error& error) {
    // A machine that exports a model need not have room to run it.
    if (error.fault() != Fault::does_not_fit) throw;
    return Likeness{.skipped = error.what()};
  }
  Likeness found = likeness_of(first, second);
  if (!(found.mean <= kOtherModel) || 2 * found.n_same < found.n_tokens)
    throw Error(Fault::machine, "export.compare",
                fmt::format("what was written answers otherwise than what it was made from: {}",
                            found.text()),
                "this is a fault of Ferry: please report it");
  return found;
}

}  // namespace ferry
