#pragma once
// Numbers among the words of `ferry-trainer bench`. Private to src/measure.

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>

#include "src/base/error.h"

namespace ferry::measure {

/** Throws Error(usage) where the text is no number from `least` to `most`. */
template <class Number>
Number number_of(const std::string& flag,
                 const std::string& text,
                 Number least,
                 Number most,
                 std::string_view usage) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || !(value >= least && value <= most))
    throw Error(Fault::usage, "bench",
                fmt::format("{} {}, expected a number from {} to {}", flag, text, least, most),
                usage);
  return value;
}

}  // namespace ferry::measure
