#pragma once
// The stores that lie in directories of drives, and the runs that they belong to: what `ferry runs
// stores` shows, `ferry runs delete` removes, and a run leaves when its checkpoints go.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/request/nvme.h"
#include "src/runs/store/store_place.h"

namespace ferry::runs {

/** A file of a store. */
struct FoundStore {
  std::filesystem::path file;
  /** The run's id, as the file says; empty: its head is damaged, or an older Ferry made it as a
   * further file of a store. */
  std::string run;
  int64_t n_bytes = 0;          ///< of the drive
  std::filesystem::path owner;  ///< the known run that names the file; empty: none does
  bool is_in_use = false;       ///< by a process now
};

/** The room that a file takes on its drive, not its length; 0 where there is none. A link counts
 * itself. */
int64_t bytes_on_disk(const std::filesystem::path& file);

/** All *.states files in the directories, by path. `runs` are directories of runs; those that
 * cannot be read own nothing. A directory that is not there has none. */
std::vector<FoundStore> find_stores(const Directories& directories,
                                    const std::vector<std::filesystem::path>& runs);

/** The stores that checkpoints of the run name, and its last step: it may have used several.
 * Records that cannot be read name none. */
std::vector<StorePlace> stores_named_in(const std::filesystem::path& run);

/** Removes the files of those stores of `before` that the run names no more and does not use;
 * `own`: the uuid of the one that it uses, or empty. The last step of another store than that is
 * void: a checkpoint is later. */
void remove_left_stores(const std::filesystem::path& run,
                        const std::vector<StorePlace>& before,
                        const std::string& own);

/** The directories in which stores of these runs lie. */
Directories store_directories_of(const std::vector<std::filesystem::path>& runs);

/** The files that the records of a run name as its stores', and that are there. */
struct RunStoreFiles {
  std::vector<std::filesystem::path> own;  ///< they prove to be of those stores
  /** Made by an older Ferry, damaged, or somebody else's. They stay. */
  std::vector<std::filesystem::path> unproved;
};
RunStoreFiles store_files_of(const std::filesystem::path& run);

/** Throws Error(usage), and removes none, where a process uses one of them; Error(machine) where
 * the system refuses. */
void remove_store_files(const std::vector<std::filesystem::path>& files);

}  // namespace ferry::runs
