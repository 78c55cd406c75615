#pragma once
// The settings that fix a run's bits (design 2): chosen once at the start, kept in every
// checkpoint, compared on resume. Budgets, places, orders and worker counts are not among them.

#include <nlohmann/json_fwd.hpp>

#include "src/train/prepare/job.h"

namespace ferry {

/** The settings by name: "train_batch_size": 32, ... */
nlohmann::ordered_json identity_of(const Job& job);

/** Throws Error(does_not_fit) that names the first difference and both values. */
void check_identity(const nlohmann::ordered_json& then, const nlohmann::ordered_json& now);

}  // namespace ferry
