#pragma once
// The settings that fix a run's bits: chosen once at the start, kept in every
// checkpoint, compared on resume. Budgets, places, orders and worker counts are not among them.

#include <nlohmann/json_fwd.hpp>
#include "src/base/json/json_value.h"
#include "src/config/config.h"

namespace ferry {

struct Job;

struct Identity {
  JsonValue bits;      ///< the settings that fix the bits, by name: "train_batch_size": 32, ...
  JsonValue settings;  ///< options that change training, as config.toml has them at the start
};

/** The identity of a training whose plan is made. */
Identity identity_of(const Job& job);

/** The keys that differ in `now`: by name, "was" and "is". Keys that `then` lacks are left out. */
nlohmann::ordered_json differences(const nlohmann::ordered_json& then,
                                   const nlohmann::ordered_json& now);

/** Throws Error(usage) that names the first difference and both values, or what it comes from:
 * lengths are read from the data. Other evaluation data are a difference where evaluations decide
 * which model the run ends with. `config`: the settings of now. */
void check_identity(const nlohmann::ordered_json& then,
                    const nlohmann::ordered_json& now,
                    const config::Config& config);

}  // namespace ferry
