#pragma once
// The log-probabilities that the weights of a run's beginning give the answers of its data: what a
// loss of pairs compares with. They are found before step 1, without a second model, and kept with
// the run. A new adapter changes nothing yet, so that they are those of its base.

#include <filesystem>

#include "src/train/prepare/job.h"

namespace ferry {

/** Gives the data of a job the references of its run, where the loss has any: those that the run's
 * directory has, or where it begins those of the session's weights, which are then written there.
 * Throws Error(data) where a run that goes on has none, and Error(machine) where they cannot be
 * written. */
void take_references(Session& session, Job& job, const std::filesystem::path& run, bool run_begins);

/** Gives the data of an evaluation the references of its run's first model, which is opened for
 * them, and closed; nothing where the loss has none. Throws Error(data) where there is no such
 * model any more, or its tokens are others. */
void take_references_of(const std::string& first_model, config::Config config, Job& job);

}  // namespace ferry
