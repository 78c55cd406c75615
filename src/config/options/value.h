#pragma once
// One setting's value: read from text, checked against its option, written as TOML. Used by Config
// and the TOML reader; everything here is pure.

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "src/config/options/option.h"

namespace ferry::config {

/** "Ferry chooses". */
struct Auto {
  bool operator==(const Auto&) const = default;
};

/** An interval that is a time. */
struct Seconds {
  int64_t count = 0;
  bool operator==(const Seconds&) const = default;
};
/** "30min" */
std::string to_text(Seconds time);

/** text, path, choice, list and groups hold a string; integer, bytes and duration (seconds) an
 *  int64_t; number a double; steps an int64_t (steps) or a double (share of all steps),
 *  interval these or Seconds. */
using Value = std::variant<Auto, bool, int64_t, double, std::string, Seconds>;

/** The values that `option` takes, for messages: "an integer of at least 1, or auto". */
std::string expectation(const Option& option);

/** The value that `text` spells, or nullopt when it is no value of this option (wrong type or out
 * of range). */
std::optional<Value> value_from_text(const Option& option, std::string_view text);

/** A value that already has a type (from TOML) as one of this option, range checked, or nullopt. */
std::optional<Value> value_from_typed(const Option& option, const Value& typed);

/** As TOML writes it: `"auto"`, `true`, `16`, `2e-05`, `"11GiB"`, `"a\"b"`; reading it back gives
 * the same value. */
std::string to_toml(const Option& option, const Value& value);

/** A TOML basic string, quotes included. */
std::string toml_quoted(std::string_view text);

/** "true/yes/on/1" and "false/no/off/0", any case. */
std::optional<bool> parse_boolean(std::string_view text);

}  // namespace ferry::config
