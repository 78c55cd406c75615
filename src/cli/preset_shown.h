#pragma once
// `ferry presets show`: a preset's facts and its plan, as lines below the settings and as JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/service/presets.h"

namespace ferry::cli {

/** Facts without a plan: an entry of `ferry presets ls --json`. */
nlohmann::ordered_json facts_json(const service::PresetFacts& facts);

/** The same with the preset's settings and the plan on its card. */
nlohmann::ordered_json shown_json(const service::PresetFacts& facts);

/** Where the model comes from, and the plan, in lines that are comments of TOML. */
std::string shown_text(const service::PresetFacts& facts);

}  // namespace ferry::cli
