#include "src/inputs/preference_rule.h"

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/request/run_plan.h"

namespace ferry {

PreferenceRule preference_rule_of(const config::Config& config) {
  using enum PreferenceKind;
  PreferenceRule rule;
  rule.kind = config.text("task") == "kto"
                  ? kto
                  : parse_preference_kind(config.text("preference_loss")).value();
  rule.good_weight = static_cast<float>(config.number("kto_good_weight"));
  rule.bad_weight = static_cast<float>(config.number("kto_bad_weight"));
  const double usual_beta = rule.kind == simpo ? 2.0 : 0.1,
               usual_sft = rule.kind == orpo || rule.kind == cpo ? 1.0 : 0.0;
  const auto number = [&](std::string_view key, double usual) {
    return static_cast<float>(config.maybe_number(key).value_or(usual));
  };
  rule.beta = number("preference_beta", usual_beta);
  rule.margin = number("preference_margin", rule.margin);
  rule.likelihood_weight = number("preference_sft", usual_sft);
  rule.label_smoothing = static_cast<float>(config.number("label_smoothing_factor"));
  const bool takes_smoothing = rule.kind == sigmoid || rule.kind == sigmoid_norm ||
                               rule.kind == robust || rule.kind == simpo || rule.kind == cpo;
  constexpr float kMost = 0.5f;  // half of the pairs the wrong way round say nothing
  if (learns_preferences(config) && rule.label_smoothing > 0 &&
      (!takes_smoothing || rule.label_smoothing >= kMost))
    throw Error(Fault::usage, "config.label_smoothing_factor",
                fmt::format("label_smoothing_factor = {} with preference_loss = {}",
                            rule.label_smoothing, config.text("preference_loss")),
                takes_smoothing ? "expected a share of wrong pairs below 0.5"
                                : "sigmoid, sigmoid_norm, robust, simpo and cpo take one");
  return rule;
}

}  // namespace ferry
