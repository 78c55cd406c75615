#pragma once
// The last step of a run whose store has all that it trains: every step commits a generation, and
// the run can go on from that where no checkpoint is as late.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "src/base/json/json_reader.h"
#include "src/runs/store/pin_record.h"

namespace ferry::runs {

struct LastStep {
  int64_t step = 0;  ///< steps taken
  PinRecord record;
  JsonReader state;  ///< the generation's text: as a checkpoint's run_state.json
};

/** The last step that the run's store has committed; nothing where it holds none, or not all of the
 * run. The store's files lie as find_store() says. Where they cannot be read, says so in the log,
 * and gives nothing. */
std::optional<LastStep> last_step_of(const std::filesystem::path& run,
                                     const std::vector<std::filesystem::path>& directories);

}  // namespace ferry::runs
