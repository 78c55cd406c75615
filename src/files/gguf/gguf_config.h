#pragma once
// config.json of a model that a GGUF file holds: its metadata in Hugging Face's words.

#include <nlohmann/json_fwd.hpp>

#include "src/files/gguf/gguf.h"

namespace ferry {

/** Throws Error(data) that names a key which is missing, or says what Ferry has no family for. */
nlohmann::ordered_json gguf_config(const GgufFile& file);

}  // namespace ferry
