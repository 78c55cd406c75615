#pragma once
// Where the store of a run's states lies on its drives. run.json keeps it from the moment when the
// store is made, so that a resumed run finds its states again, and `ferry runs` what is left over.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json_reader.h"

namespace ferry::runs {

/** Key of run.json. */
inline constexpr const char* kStoreKey = "nvme_store";
inline constexpr std::string_view kStoreExtension = ".states";

struct StorePlace {
  struct File {
    std::filesystem::path path;
    std::string drive;  ///< drive_id_of() the directory
  };
  std::vector<File> files;  ///< in the order of the stripes
  std::string uuid;         ///< of the store
  int64_t n_bytes = 0;      ///< of all files together, as open_disk() counts

  std::vector<std::filesystem::path> paths() const;
};

nlohmann::ordered_json to_json(const StorePlace& place);
/** Throws Error(data). */
StorePlace parse_store_place(const JsonReader& json);

/** The store of a run; nothing where all its states lie in memory. Throws Error(data). */
std::optional<StorePlace> store_place_of(const std::filesystem::path& run);

}  // namespace ferry::runs
