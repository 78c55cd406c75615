#pragma once
// Runs as others see them: the directories under runs/, what run.json and metrics.jsonl say. Reads
// only; `ferry runs` and the app call it.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ferry::runs {

/** A run in a few words. Numbers that are not known are null. */
struct RunSummary {
  std::filesystem::path path;
  nlohmann::ordered_json record;     ///< run.json; its phase is `lost` where the process is gone
  nlohmann::ordered_json last_step;  ///< the last line of metrics.jsonl with a loss, or null
  nlohmann::ordered_json last_evaluation;

  std::string name() const { return path.filename().string(); }
  std::string phase() const { return record.value("phase", "unreadable"); }
};

/** Throws Error(data) where there is no run. */
RunSummary summarise(const std::filesystem::path& run);

/** The runs right under `directory`, the newest last; what cannot be read is left out. */
std::vector<RunSummary> list_runs(const std::filesystem::path& directory);

/** The directory that a user means: a path, or a name under runs/. Throws Error(data) with the
 * nearest name. */
std::filesystem::path find_run(const std::string& given);

}  // namespace ferry::runs
