#include "src/service/runs/comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "src/config/config.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;

/** Settings as their run resolved them. */
config::Config settings_of(const fs::path& run) {
  config::Config config;
  config::read_toml_file(config, run / "config.toml", config::Source::file);
  return config;
}

std::vector<SettingDifference> differences(const std::vector<config::Config>& all) {
  std::vector<SettingDifference> found;
  for (const config::Option& option : config::option_table()) {
    if (option.key == "output_dir") continue;  // the names of the runs say it
    const auto is_first = [&](const config::Config& config) {
      return config.value(option.key) == all.front().value(option.key);
    };
    if (std::ranges::all_of(all, is_first)) continue;
    SettingDifference difference = {.option = &option, .values = {}};
    for (const config::Config& config : all)
      difference.values.push_back(config::to_toml(option, config.value(option.key)));
    found.push_back(std::move(difference));
  }
  return found;
}

std::vector<std::string> metrics_of(const std::vector<runs::RunSummary>& runs) {
  std::set<std::string> names;
  for (const runs::RunSummary& run : runs)
    if (run.last_evaluation->is_object())
      for (const auto& [key, value] : run.last_evaluation->items())
        if (value.is_number() && key.starts_with("eval_")) names.insert(key);
  return {names.begin(), names.end()};
}

}  // namespace

RunComparison compare_runs(std::span<const fs::path> runs) {
  RunComparison compared;
  std::vector<config::Config> settings;
  for (const fs::path& run : runs)
    settings.push_back(settings_of(run));
  for (const fs::path& run : runs)
    compared.runs.push_back(runs::summarise(run));
  compared.settings = differences(settings);
  compared.metrics = metrics_of(compared.runs);
  return compared;
}

}  // namespace ferry::service
