#pragma once
// Runs as others see them: the directories under runs/ and elsewhere, what run.json and
// metrics.jsonl say. Of runs it only reads; `ferry runs` and the app call it.

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "src/base/json/json_value.h"

namespace ferry::runs {

/** A run in a few words. Numbers that are not known are null. */
struct RunSummary {
  std::filesystem::path path;
  JsonValue record;     ///< run.json; its phase is `lost` where the process is gone
  JsonValue last_step;  ///< the last line of metrics.jsonl with a loss, or null
  JsonValue last_evaluation;
  /** The mean loss since the last line that has one, as the run shows it; before the first such
   * line the last step's. NaN: none. */
  double mean_loss = std::numeric_limits<double>::quiet_NaN();
  double training_seconds = 0;  ///< of all steps, as their process measured them

  std::string name() const { return path.filename().string(); }
  std::string phase() const;
};

/** Throws Error(data) where there is no run. */
RunSummary summarise(const std::filesystem::path& run);

/** The most runs that a list has: the newest. How many are left out is logged. */
inline constexpr size_t kListed_max = 1000;

/** The runs right under `directory`, the newest last; what cannot be read is left out. */
std::vector<RunSummary> list_runs(const std::filesystem::path& directory);

/** Directories of the runs under runs/ (as paths from here) and of those that the index knows.
 * Reads none of them: hundreds take some milliseconds. The index knows them all from then on. */
std::vector<std::filesystem::path> known_runs();

/** Those under runs/ and those that the index knows, the newest last; the index knows them all from
 * then on. */
std::vector<RunSummary> list_known_runs();

/** The directory that a user means: a path, a name under runs/, a name that the index knows, or the
 * beginning of just one of these names. Throws Error(data) that names what it might be. */
std::filesystem::path find_run(const std::string& given);

}  // namespace ferry::runs
