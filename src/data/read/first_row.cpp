#include "src/data/read/first_row.h"

#include <nlohmann/json.hpp>

#include "src/data/read/object_rows.h"

namespace ferry {

std::vector<std::string> fields_of_first_row(const std::filesystem::path& file) {
  DatasetOptions options;
  options.path = file;
  options.format = format_by_ending(file).value_or(DatasetFormat::automatic);
  std::vector<std::string> fields;
  if (!has_objects(options.format)) return fields;
  ObjectRows rows(options);
  JsonRow row;
  if (!rows.next(row)) return fields;
  const auto object = nlohmann::ordered_json::parse(row.text, nullptr, /*allow_exceptions=*/false);
  if (object.is_object())
    for (const auto& [name, value] : object.items())
      fields.push_back(name);
  return fields;
}

}  // namespace ferry
