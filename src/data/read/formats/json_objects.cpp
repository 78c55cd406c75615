#include "src/data/read/formats/json_objects.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/data/read/raw_rows.h"

namespace ferry {

nlohmann::ordered_json object_of(const JsonRow& row, std::string_view file) {
  nlohmann::ordered_json object;
  const auto fault = parse_json(row.text, object);
  if (fault || !object.is_object())
    refuse_row(fmt::format("{}:{}", file, fault ? row.line + fault->line - 1 : row.line),
               fault ? "is not valid JSON: " + fault->what : "is not a JSON object",
               "expected an object a line, or one list of objects");
  constexpr size_t kKeys_max = 16'384;
  if (object.size() > kKeys_max)
    refuse_row(fmt::format("{}:{}", file, row.line), fmt::format("has {} keys", object.size()),
               fmt::format("expected at most {}: is it one object of all rows?", kKeys_max));
  return object;
}

std::string choose_key(const nlohmann::ordered_json& object,
                       std::string_view file,
                       std::string_view option,
                       std::string_view asked,
                       std::initializer_list<std::string_view> usual) {
  if (asked.empty()) {
    for (std::string_view name : usual)
      if (object.contains(name)) return std::string(name);
    return {};
  }
  if (object.contains(asked)) return std::string(asked);
  size_t place = 0;
  const auto [end, code] = std::from_chars(asked.data(), asked.data() + asked.size(), place);
  if (code == std::errc{} && end == asked.data() + asked.size() && place < object.size())
    return std::next(object.begin(), static_cast<std::ptrdiff_t>(place)).key();
  throw Error(
      Fault::usage, "data.columns",
      fmt::format("{} = {}: '{}' has the keys {}", option, asked, file, list_of_keys(object)),
      "use one of these names");
}

std::string list_of_keys(const nlohmann::ordered_json& object) {
  constexpr size_t kNames = 12, kBytes = 60;
  std::string list;
  size_t n = 0;
  for (const auto& [key, value] : object.items()) {
    if (n++ == kNames) return fmt::format("{}, ... ({} in all)", list, object.size());
    list += (n > 1 ? ", " : "") + (key.size() > kBytes ? key.substr(0, kBytes) + "..." : key);
  }
  return list;
}

std::string text_or_integer(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_integer() ? value.dump() : std::string();
}

}  // namespace ferry
