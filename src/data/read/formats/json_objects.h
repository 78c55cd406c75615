#pragma once
// The rows of JSONL as objects, and which of their keys holds what. Private to src/data.

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "src/data/read/formats/json_rows.h"

namespace ferry {

/** A row as an object. Error(data) with file:line where it is none. */
nlohmann::ordered_json object_of(const JsonRow& row, std::string_view file);

/** The key that the option `option` asks for by its name, or by its place from 0; where it asks for
 * none, the first of `usual` that the object has; empty: none. Error(usage) where the object lacks
 * what is asked for. */
std::string choose_key(const nlohmann::ordered_json& object,
                       std::string_view file,
                       std::string_view option,
                       std::string_view asked,
                       std::initializer_list<std::string_view> usual);

/** "a, b, c"; at most twelve, each at most 60 bytes long. */
std::string list_of_keys(const nlohmann::ordered_json& object);

/** The text or whole number as a text; empty for anything else. */
std::string text_or_integer(const nlohmann::ordered_json& value);

}  // namespace ferry
