#pragma once
// Where the store of a run's states lies on its drives. run.json keeps it from the moment when the
// store is made, so that a resumed run finds its states again, and `ferry runs` what is left over.
// It may come from somebody else: a file is written or removed only where it says itself whose it
// is, by the superblock at its beginning or the mark at its end.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "offload/store/store_format.h"
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

/** True where the name is taken, also by a link that leads nowhere. */
bool is_there(const std::filesystem::path& file);

/** What the file says, which may be in use; nothing where it is no store's, where its head or mark
 * is damaged, or where an older Ferry made it as a further file of a store. A link says nothing,
 * wherever it leads. Throws Error(machine) where the file cannot be read. */
std::optional<StripeIdentity> stripe_in(const std::filesystem::path& file);

/** True for the file of that number of the store. */
bool is_stripe_of(const std::string& uuid, size_t number, const std::filesystem::path& file);

/** Its files as they lie in these directories now, one in each, in any order; where they were, if
 * these have none of them. A further file that an older Ferry made has no mark: it may be read, and
 * StoreFiles::open() decides whether it may be written. Throws Error(machine) where a directory is
 * on another drive than at the start and the store is not there; Error(data) where a file is gone,
 * a link, or of another store; Error(usage) for more or fewer directories than files. */
StorePlace find_store(const StorePlace& place,
                      const std::vector<std::filesystem::path>& directories);

/** False where its files were moved or removed: who opens the store now does not find it. Throws as
 * stripe_in(). */
bool is_where_it_was(const StorePlace& place);

/** Those of its files that are there and prove to be the store's: the only ones that may be
 * removed.
 */
std::vector<std::filesystem::path> files_proved_of(const StorePlace& place);

/** The store of a run; nothing where all its states lie in memory. Throws Error(data). */
std::optional<StorePlace> store_place_of(const std::filesystem::path& run);

}  // namespace ferry::runs
