#pragma once
// The tokens that end a text, as config.json and generation_config.json name them. Torch-free.

#include <cstdint>
#include <vector>

#include "src/base/json/json_reader.h"

namespace ferry {

/** eos_token_id: one id, or a list of them; -1 stands for none. Empty where the file has no such
 * key. Throws Error(data) for another value. */
std::vector<int32_t> end_ids_in(const JsonReader& config);

}  // namespace ferry
