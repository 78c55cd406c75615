// The JSON reader against nlohmann's own parser: what both take is the same value, and the reader
// takes nothing that nlohmann refuses. Then each value is asked for as what it is not.

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"

namespace {

using nlohmann::ordered_json;

void require(bool holds) {
  if (!holds) std::abort();
}

size_t n_refused = 0;

void refuse_all(const ferry::JsonReader& value) {
  try {
    value.is_text() ? static_cast<void>(value.flag()) : static_cast<void>(value.text());
    std::abort();
  } catch (const ferry::Error& error) {
    require(std::string_view(error.what()).find("'f': line ") != std::string_view::npos);
    ++n_refused;
  }
  try {
    value.integer(-5, INT64_MAX);
    value.number(-1e300, 1e300);
  } catch (const ferry::Error&) {
  }
  if (n_refused > 64) return;  // each finds its line anew
  if (value.is_object())
    for (const auto& [key, inner] : value.fields())
      refuse_all(inner);
  for (size_t i = 0; value.is_list() && i < value.size(); ++i)
    refuse_all(value.at(i));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ordered_json value;
  if (const auto fault = ferry::parse_json(text, value)) {
    require(fault->byte <= size && fault->line >= 1 && !fault->what.empty());
    return 0;
  }
  const auto theirs = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  require(!theirs.is_discarded() && theirs == value && theirs.dump() == value.dump());
  n_refused = 0;
  refuse_all(ferry::JsonReader::parse(text, {"f", "fuzz.read", ""}));
  return 0;
}
