#pragma once
// Several runs beside each other: the settings in which they differ, and what came of them.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "src/config/options/option.h"
#include "src/runs/index/run_list.h"

namespace ferry::service {

struct SettingDifference {
  const config::Option* option;
  std::vector<std::string> values;  ///< as config.toml has them, one a run
};

struct RunComparison {
  std::vector<runs::RunSummary> runs;
  std::vector<SettingDifference> settings;  ///< in the order of the option table
  std::vector<std::string> metrics;         ///< "eval_accuracy": what any of them measured, sorted
};

/** Throws Error(data) where a run cannot be read, Error(usage) where its config.toml cannot. */
RunComparison compare_runs(std::span<const std::filesystem::path> runs);

}  // namespace ferry::service
