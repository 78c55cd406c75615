#pragma once
// Where the store of a run's states lies on its drives. run.json keeps it from the moment when the
// store is made, so that a resumed run finds its states again, and `ferry runs` what is left over.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json/json_reader.h"

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
  std::string run;          ///< the run's id in the store: its directory may have another name now
  std::string uuid;         ///< of the store
  int64_t n_bytes = 0;      ///< of all files together, as open_disk() counts

  std::vector<std::filesystem::path> paths() const;
};

nlohmann::ordered_json to_json(const StorePlace& place);
/** Throws Error(data). */
StorePlace parse_store_place(const JsonReader& json);

/** Its files as they lie in these directories now, one in each, in any order; where they were, if
 * these have none of them. A further file that an older Ferry made has no mark (stripe_mark.h): it
 * may be read, and StoreFiles::open() decides whether it may be written. Throws Error(machine)
 * where a directory is on another drive than at the start and the store is not there; Error(data)
 * where a file is gone, a link, or of another store; Error(usage) for more or fewer directories
 * than files. */
StorePlace find_store(const StorePlace& place,
                      const std::vector<std::filesystem::path>& directories);

/** False where its files were moved or removed: who opens the store now does not find it. Throws as
 * stripe_in(). */
bool is_where_it_was(const StorePlace& place);

/** Those of its files that are there and prove to be the store's (stripe_mark.h): the only ones
 * that may be removed. */
std::vector<std::filesystem::path> files_proved_of(const StorePlace& place);

/** The store of a run; nothing where all its states lie in memory. Throws Error(data). */
std::optional<StorePlace> store_place_of(const std::filesystem::path& run);

}  // namespace ferry::runs
