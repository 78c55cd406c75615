#pragma once
// The files of a run's store, one in each directory of nvme_path: made for a new run, found again
// for one that is resumed. Everything that can be wrong with a drive is an Error before a byte is
// written.
//
//   StoreFiles files = StoreFiles::make(settings, run_id, need);
//   const std::string uuid = ExtentStore::create(files.disk(), segments, need.n_kept, run_id);
//   files.keep(uuid);                                    // from here on they stay
//   run.set(kStoreKey, to_json(files.place()));
//
//   StoreFiles files = StoreFiles::open(*store_place_of(run), settings.directories);
//   ExtentStore store(files.disk(), {.uuid = files.place().uuid});

#include <memory>

#include "offload/nvme/open_disk.h"
#include "src/runs/store/store_place.h"
#include "src/runs/store/store_room.h"

namespace ferry::runs {

class StoreFiles {
 public:
  /** <directory>/<run_id>.states in each directory, or <run_id>-2.states and so on where another
   * run's is there. All space is reserved. Throws Error(machine) where a run uses one of the
   * directories now, and as check_store_directories(), check_store_room() and open_disk(). No file
   * stays then. `locks` is false where another process of the run has the directories for this one,
   * too. */
  static StoreFiles make(const NvmeSettings& settings,
                         const std::string& run_id,
                         const StoreNeed& need,
                         const DiskOptions& options = {},
                         bool locks = true);

  /** The files of a store that was made, in the directories where they are now: those of its place,
   * or others that they were moved to. A further file without a mark (an older Ferry made none)
   * gets one where the user has named the directories, and is refused else: nothing says whose it
   * is. Throws Error(machine) where a directory is on another drive than at the start and the store
   * is not there, or a run uses the directory now; Error(data) where a file is gone, of another
   * store, or of nobody known; Error(usage) for more or fewer directories than files. */
  static StoreFiles open(const StorePlace& place,
                         const NvmeSettings& settings,
                         const DiskOptions& options = {});

  StoreFiles(StoreFiles&&) = default;
  StoreFiles& operator=(StoreFiles&&) = delete;
  /** Removes files that were made and not kept. */
  ~StoreFiles();

  FileDisk& disk() { return *disk_; }
  /** Where they are now, with the drives of now. */
  const StorePlace& place() const { return place_; }
  /** The store that was made in them has this uuid: each file says so from now on, and stays.
   * Throws Error(machine), DiskFull where a drive is full. */
  void keep(std::string uuid);
  /** Takes the names of new files away: they end with the process, however that ends. */
  void drop_names();

 private:
  StoreFiles(StorePlace place, DirectoryLocks locks, const DiskOptions& options);

  DirectoryLocks locks_;  ///< of the directories
  StorePlace place_;
  std::unique_ptr<FileDisk> disk_;
  std::vector<std::filesystem::path> unkept_;  ///< new files, until keep()
};

}  // namespace ferry::runs
