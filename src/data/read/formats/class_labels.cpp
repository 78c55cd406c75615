#include "src/data/read/formats/class_labels.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/data/read/raw_rows.h"
#include "src/files/hub/dataset_choice.h"
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

/** Throws Error(data) where a name is damaged, empty or there twice. */
std::vector<std::string> checked(std::vector<std::string> names, std::string_view origin) {
  for (const std::string& name : names) {
    check_name(origin, name);
    if (trim(name).empty()) refuse_row(origin, "a label's name is empty");
  }
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size())
    refuse_row(origin, "two labels have one name", "name them with label_names");
  return names;
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
  }
  return checked(std::move(all), origin);
}

std::vector<std::string> names_in(const ordered_json& info,
                                  const std::string& column,
                                  std::string_view origin) {
  const auto* features = field(info, "features");
  const auto* feature = features ? field(*features, column) : nullptr;
  return feature ? names_of_feature(*feature, origin) : std::vector<std::string>();
}

bool is_small_file(const stdfs::path& file) {
  constexpr uintmax_t kMost_bytes = 64 << 20;
  std::error_code code;
  return stdfs::is_regular_file(file, code) && stdfs::file_size(file, code) <= kMost_bytes && !code;
}

/** A file of another program's: what cannot be read of it says nothing. */
ordered_json read_info(const stdfs::path& file) {
  ordered_json info;
  if (!is_small_file(file) || parse_json(read_text_file(file), info)) return {};
  return info;
}

/** Of a data set's page, which may be any text. */
std::vector<std::string> names_of_page(const stdfs::path& page,
                                       const std::string& column,
                                       const stdfs::path& file) {
  if (!is_small_file(page)) return {};
  std::vector<std::string> names;
  try {
    names = hub::label_names_of_readme(read_text_file(page), column,
                                       file.lexically_relative(page.parent_path()).string());
  } catch (const Error&) {
    return {};
  }
  return checked(std::move(names), page.string());
}

/** Where a data set says what its files are: beside a file, above a folder "data", and in the cache
 * of a hub at the top of its snapshot. */
std::vector<stdfs::path> folders_of(const stdfs::path& file) {
  std::vector<stdfs::path> folders = {file.parent_path()};
  if (folders.front().filename() == "data") folders.push_back(folders.front().parent_path());
  for (stdfs::path at = folders.back(); at.has_relative_path(); at = at.parent_path())
    if (at.parent_path().filename() == "snapshots" && at != folders.back()) folders.push_back(at);
  return folders;
}

}  // namespace

std::vector<std::string> class_label_names(const stdfs::path& file,
                                           std::string_view metadata,
                                           const std::string& column) {
  ordered_json whole;
  if (!metadata.empty() && !parse_json(std::string(metadata), whole))
    if (const auto* info = field(whole, "info"))
      if (auto names = names_in(*info, column, file.string()); !names.empty()) return names;
  for (const stdfs::path& folder : folders_of(file)) {
    const stdfs::path one = folder / "dataset_info.json", all = folder / "dataset_infos.json";
    if (auto names = names_in(read_info(one), column, one.string()); !names.empty()) return names;
    // One object for each configuration: they count where there is no second.
    const ordered_json configurations = read_info(all);
    if (configurations.is_object() && configurations.size() == 1)
      if (auto names = names_in(configurations.front(), column, all.string()); !names.empty())
        return names;
    if (auto names = names_of_page(folder / "README.md", column, file); !names.empty())
      return names;
  }
  return {};
}

}  // namespace ferry
