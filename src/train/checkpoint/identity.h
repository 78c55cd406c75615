#pragma once
// The settings that fix a run's bits (design 2): chosen once at the start, kept in every
// checkpoint, compared on resume. Budgets, places, orders and worker counts are not among them.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/base/json_value.h"

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

/** Throws Error(usage) that names the first difference and both values; `data` is where the texts
 * come from. */
void check_identity(const nlohmann::ordered_json& then,
                    const nlohmann::ordered_json& now,
                    const std::string& data);

}  // namespace ferry
