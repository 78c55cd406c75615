#include "src/data/read/formats/class_labels.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "src/base/error.h"
#include "src/base/json_reader.h"
#include "src/data/read/raw_rows.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;
namespace stdfs = std::filesystem;

const ordered_json* field(const ordered_json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/** The names of a feature: {"names": [...], "_type": "ClassLabel"}, or a list of such, which
 * versions of the library have written in three ways. */
std::vector<std::string> names_of_feature(const ordered_json& feature, std::string_view origin) {
  if (feature.is_array() && feature.size() == 1) return names_of_feature(feature.front(), origin);
  if (const auto* inner = field(feature, "feature")) return names_of_feature(*inner, origin);
  const auto* type = field(feature, "_type");
  const auto* names = field(feature, "names");
  if (!type || *type != "ClassLabel" || !names || !names->is_array()) return {};
  std::vector<std::string> all;
  for (const ordered_json& name : *names) {
    if (!name.is_string()) return {};
    all.push_back(name.get<std::string>());
    check_name(origin, all.back());
    if (trim(all.back()).empty()) refuse_row(origin, "a label's name is empty");
  }
  if (std::set<std::string>(all.begin(), all.end()).size() != all.size())
    refuse_row(origin, "two labels have one name", "name them with label_names");
  return all;
}

std::vector<std::string> names_in(const ordered_json& info,
                                  const std::string& column,
                                  std::string_view origin) {
  const auto* features = field(info, "features");
  const auto* feature = features ? field(*features, column) : nullptr;
  return feature ? names_of_feature(*feature, origin) : std::vector<std::string>();
}

/** A file of another program's: what cannot be read of it says nothing. */
ordered_json read_info(const stdfs::path& file) {
  constexpr uintmax_t kMost_bytes = 64 << 20;
  std::error_code code;
  ordered_json info;
  if (!stdfs::is_regular_file(file, code) || stdfs::file_size(file, code) > kMost_bytes || code)
    return info;
  if (parse_json(read_text_file(file), info)) return {};
  return info;
}

}  // namespace

std::vector<std::string> class_label_names(const stdfs::path& file,
                                           std::string_view metadata,
                                           const std::string& column) {
  ordered_json whole;
  if (!metadata.empty() && !parse_json(std::string(metadata), whole))
    if (const auto* info = field(whole, "info"))
      if (auto names = names_in(*info, column, file.string()); !names.empty()) return names;
  std::vector<stdfs::path> folders = {file.parent_path()};
  if (folders.front().filename() == "data") folders.push_back(folders.front().parent_path());
  for (const stdfs::path& folder : folders) {
    const stdfs::path one = folder / "dataset_info.json", all = folder / "dataset_infos.json";
    if (auto names = names_in(read_info(one), column, one.string()); !names.empty()) return names;
    // One object for each configuration: they count where there is no second.
    const ordered_json configurations = read_info(all);
    if (configurations.is_object() && configurations.size() == 1)
      if (auto names = names_in(configurations.front(), column, all.string()); !names.empty())
        return names;
  }
  return {};
}

}  // namespace ferry
