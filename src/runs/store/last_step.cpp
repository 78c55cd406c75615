#include "src/runs/store/last_step.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/error.h"
#include "src/base/print.h"

namespace ferry::runs {

namespace fs = std::filesystem;

std::optional<LastStep> last_step_of(const fs::path& run,
                                     const std::vector<fs::path>& directories) {
  auto record = pin_record_of(run);
  if (!record) return std::nullopt;
  try {
    const PinnedStates states(*record, find_store(record->store, directories));
    const Generation& generation = states.generation();
    if (generation.number == 0 || generation.metadata.empty()) return std::nullopt;
    if (!generation.damage.empty()) throw Error(Fault::data, "store.read", generation.damage);
    JsonReader state =
        JsonReader::parse(generation.metadata,
                          {fmt::format("generation {} of {}", generation.number,
                                       record->store.files.front().path.string()),
                           "store.read", "resume from a checkpoint of the run: RUN/checkpoint-N"});
    const int64_t step = state.integer("n_steps", 0, INT64_MAX);
    if (step == 0) return std::nullopt;
    record->generation = generation.number;
    return LastStep{step, std::move(*record), std::move(state)};
  } catch (const Error& error) {
    log_line(fmt::format("the last step on the drive is not looked at: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace ferry::runs
