#pragma once
// The settings that fix a run's bits (design 2): chosen once at the start, kept in every
// checkpoint, compared on resume. Budgets, places, orders and worker counts are not among them.

#include <nlohmann/json_fwd.hpp>

#include "src/train/prepare/job.h"

namespace ferry {

/** The settings by name: "train_batch_size": 32, ... */
nlohmann::ordered_json identity_of(const Job& job);

/** Values of the options that change training, by name, as config.toml has them. */
nlohmann::ordered_json training_settings_of(const config::Config& config);

/** What is another in `now`: by name, "was" and "is". Keys that `then` lacks are left out. */
nlohmann::ordered_json differences(const nlohmann::ordered_json& then,
                                   const nlohmann::ordered_json& now);

/** Throws Error(usage) that names the first difference and both values; `data` is where the texts
 * come from. */
void check_identity(const nlohmann::ordered_json& then,
                    const nlohmann::ordered_json& now,
                    const std::string& data);

}  // namespace ferry
