#include "src/request/param_groups.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/adapters/lora.h"
#include "models/core/compile.h"
#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/config/param_groups.h"
#include "src/request/adapters.h"

namespace ferry {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

bool matches(const std::string& pattern, const HfEntry& entry) {
  return matches(pattern, entry.hf_name) ||
         std::ranges::any_of(entry.also_named,
                             [&](const std::string& name) { return matches(pattern, name); });
}

/** The name, or the part of one with ".*" behind it, that is nearest to a pattern. */
std::string nearest_pattern(const std::string& pattern, const ModelTable& model) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    names.push_back(name);
    for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
      names.push_back(name.substr(0, dot) + ".*");
  };
  for (const HfEntry& entry : model.hf_names) {
    add(entry.hf_name);
    std::ranges::for_each(entry.also_named, add);
  }
  return nearest_name(pattern, {names.begin(), names.end()});
}

/** One option's patterns over the names of a model. */
class Patterns {
 public:
  Patterns(const config::Config& config,
           std::string_view key,
           std::vector<std::string> patterns,
           const ModelTable& model)
      : where_(fmt::format("{} ({})", key, config.origin(key).where)),
        patterns_(std::move(patterns)),
        model_(model) {
    for (const HfEntry& entry : model.hf_names)
      for (size_t i = 0; i < patterns_.size() && !first_.contains(&entry); ++i)
        if (matches(patterns_[i], entry)) first_[&entry] = static_cast<int>(i);
    for (const std::string& pattern : patterns_)
      check(pattern);
  }

  /** The index of the first pattern that names the entry; -1 where none does. */
  int index_of(const HfEntry& entry) const {
    const auto found = first_.find(&entry);
    return found == first_.end() ? -1 : found->second;
  }

  /** True where the pattern names something that no pattern before it names. */
  bool is_first_somewhere(int index) const {
    return std::ranges::any_of(first_, [&](const auto& found) { return found.second == index; });
  }

  /** An option can only say the same of all names that are one parameter. */
  [[noreturn]] void refuse_part(const HfEntry& one, const HfEntry& other) const {
    const std::string stem = one.hf_name.substr(0, one.hf_name.find_last_of('.'));
    throw Error(
        Fault::usage, "config.patterns",
        fmt::format("{} takes '{}' apart from '{}': the two are stored as one parameter", where_,
                    one.hf_name, other.hf_name),
        fmt::format("name both alike, for example '{}.*'", stem.substr(0, stem.find_last_of('.'))));
  }

 private:
  void check(const std::string& pattern) const {
    const bool names_any = std::ranges::any_of(
        model_.hf_names, [&](const HfEntry& entry) { return matches(pattern, entry); });
    if (!names_any) {
      const std::string nearest = nearest_pattern(pattern, model_);
      throw Error(Fault::usage, "config.patterns",
                  fmt::format("'{}' of {} names no parameter of this model", pattern, where_),
                  nearest.empty() ? fmt::format("names are like '{}'; * stands for any text",
                                                model_.hf_names.front().hf_name)
                                  : fmt::format("did you mean '{}'?", nearest));
    }
  }

  std::string where_;
  std::vector<std::string> patterns_;
  const ModelTable& model_;
  std::map<const HfEntry*, int> first_;
};

/** The entries of each parameter: one, or those that are fused. */
std::map<std::pair<int, int>, std::vector<const HfEntry*>> entries_by_param(
    const ModelTable& model) {
  std::map<std::pair<int, int>, std::vector<const HfEntry*>> entries;
  for (const HfEntry& entry : model.hf_names)
    entries[{entry.block, entry.param}].push_back(&entry);
  return entries;
}

ParamSpec& param_at(ModelTable& model, std::pair<int, int> at) {
  return model.blocks[at.first].params[at.second];
}

void freeze(const config::Config& config, ModelTable& model) {
  const Patterns patterns(config, "freeze", config.list("freeze"), model);
  for (const auto& [at, entries] : entries_by_param(model)) {
    const bool is_frozen = patterns.index_of(*entries.front()) >= 0;
    for (const HfEntry* entry : entries)
      if ((patterns.index_of(*entry) >= 0) != is_frozen)
        patterns.refuse_part(*entries.front(), *entry);
    if (is_frozen) param_at(model, at).trainable = false;
  }
  plan_frozen(model);
  if (model.n_trainable_params() == 0)
    throw Error(Fault::usage, "config.patterns",
                fmt::format("freeze ({}) leaves nothing to train", config.origin("freeze").where),
                "leave the head out of it");
}

/** The factor of each block's learning rate by layerwise_lr_decay x: 1 for the head, x^(n - i) for
 * layer i of n, x^(n + 1) for the embeddings. */
std::vector<double> layer_factors(const ModelTable& model, double decay) {
  const auto n_layers = std::ranges::count(model.blocks, BlockKind::layer, &BlockTable::kind);
  std::vector<double> factors;
  int64_t layer = 0;
  for (const BlockTable& block : model.blocks) {
    const int64_t power = block.kind == BlockKind::head    ? 0
                          : block.kind == BlockKind::layer ? n_layers - layer++
                                                           : n_layers + 1;
    factors.push_back(std::pow(decay, static_cast<double>(power)));
  }
  return factors;
}

UpdateGroup update_group(const ParamSpec& param,
                         const config::ParamGroup& group,
                         double layer_factor) {
  return {.decays = param.decay || group.weight_decay.has_value(),
          .lr_factor = group.learning_rate ? 1.0 : layer_factor * group.lr_factor.value_or(1.0),
          .learning_rate = group.learning_rate,
          .weight_decay = group.weight_decay};
}

void group(const config::Config& config, ModelTable& model) {
  constexpr const char* kKey = "param_groups";
  const config::ParamGroup kNothing;
  const auto groups = config::parse_param_groups(config.text(kKey)).groups;
  std::vector<std::string> names;
  for (const config::ParamGroup& g : groups)
    names.push_back(g.pattern);
  const Patterns patterns(config, kKey, std::move(names), model);
  for (size_t i = 0; i < groups.size(); ++i)
    if (!patterns.is_first_somewhere(static_cast<int>(i)))
      throw Error(Fault::usage, "config.patterns",
                  fmt::format("'{}' of {} ({}) has no effect: the groups before it name all of it",
                              groups[i].pattern, kKey, config.origin(kKey).where),
                  "the first group that names a parameter counts: put the narrower one first");
  const auto factors = layer_factors(model, config.number("layerwise_lr_decay"));
  const double ratio = config.number("loraplus_lr_ratio");
  model.groups.clear();
  for (const auto& [at, entries] : entries_by_param(model)) {
    ParamSpec& param = param_at(model, at);
    const std::string& name = entries.front()->hf_name;
    const bool is_second = name.ends_with(kLoraB) || name.ends_with(kLoraMagnitude);
    const double factor = factors[static_cast<size_t>(at.first)] * (is_second ? ratio : 1);
    const auto wanted = [&](const HfEntry& entry) {
      const int index = patterns.index_of(entry);
      const auto& said = index < 0 ? kNothing : groups[static_cast<size_t>(index)];
      return update_group(param, said, factor);
    };
    const UpdateGroup update = wanted(*entries.front());
    for (const HfEntry* entry : entries)
      if (wanted(*entry) != update) patterns.refuse_part(*entries.front(), *entry);
    auto found = std::ranges::find(model.groups, update);
    if (found == model.groups.end()) found = model.groups.insert(found, update);
    param.group = static_cast<int>(found - model.groups.begin());
  }
}

}  // namespace

void apply_param_options(const config::Config& config, ModelTable& model) {
  add_adapters(config, model);
  freeze(config, model);
  group(config, model);
}

}  // namespace ferry
