#include "src/runs/store/store_place.h"

#include <nlohmann/json.hpp>

#include "offload/nvme/open_disk.h"
#include "offload/store/store_format.h"
#include "src/runs/directory/run_directory.h"

namespace ferry::runs {

namespace fs = std::filesystem;

std::vector<fs::path> StorePlace::paths() const {
  std::vector<fs::path> all;
  for (const File& file : files)
    all.push_back(file.path);
  return all;
}

nlohmann::ordered_json to_json(const StorePlace& place) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const StorePlace::File& file : place.files)
    files.push_back({{"path", file.path.string()}, {"drive", file.drive}});
  return {{"uuid", place.uuid}, {"bytes", place.n_bytes}, {"files", std::move(files)}};
}

StorePlace parse_store_place(const JsonReader& json) {
  StorePlace place{.uuid = json.text("uuid"), .n_bytes = json.integer("bytes", 1, INT64_MAX)};
  if (place.uuid.size() != kUuid_length) json.at("uuid").refuse("32 hexadecimal digits");
  const JsonReader files = json.at("files");
  if (files.size() < 1 || files.size() > kDiskFiles_max) files.refuse("a file on each drive");
  for (size_t i = 0; i < files.size(); ++i) {
    const fs::path path = files.at(i).text("path");
    if (!path.is_absolute() || path.extension() != kStoreExtension)
      files.at(i).at("path").refuse("the whole path of a file *.states");
    place.files.push_back({path, files.at(i).text("drive")});
  }
  return place;
}

std::optional<StorePlace> store_place_of(const fs::path& run) {
  const auto record = JsonReader::of(
      read_record(run),
      {(run / "run.json").string(), "runs.store", "the run's checkpoints are not touched by that"});
  const auto found = record.find(kStoreKey);
  return found ? std::optional(parse_store_place(*found)) : std::nullopt;
}

}  // namespace ferry::runs
