#include "src/runs/store/store_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "offload/nvme/drive.h"
#include "offload/nvme/stripes.h"
#include "src/base/error.h"
#include "src/files/write/owned_file.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

/** File systems take names of 255 bytes. */
constexpr size_t kIdLength_max = 200;

std::string file_name(const std::string& run_id, int n) {
  const std::string id = run_id.substr(0, kIdLength_max);
  return n == 1 ? fmt::format("{}{}", id, kStoreExtension)
                : fmt::format("{}-{}{}", id, n, kStoreExtension);
}

/** Under a name that none of the directories has yet. */
std::vector<StorePlace::File> new_files(const Directories& directories, const std::string& run_id) {
  for (int n = 1;; ++n) {
    std::vector<StorePlace::File> files;
    for (const fs::path& directory : directories)
      files.push_back({fs::absolute(directory).lexically_normal() / file_name(run_id, n),
                       drive_id_of(directory)});
    if (std::ranges::none_of(files, is_there, &StorePlace::File::path)) return files;
  }
}

/** Files that do not say whose they are, as find_store() lets through. */
std::vector<size_t> unmarked_files_of(const StorePlace& place) {
  std::vector<size_t> unmarked;
  for (size_t i = 1; i < place.files.size(); ++i)
    if (!is_stripe_of(place.uuid, i, place.files[i].path)) unmarked.push_back(i);
  return unmarked;
}

[[noreturn]] void refuse_unmarked(const StorePlace& place, size_t i) {
  std::vector<std::string> directories;
  for (const fs::path& path : place.paths())
    directories.push_back(path.parent_path().string());
  throw Error(Fault::data, "nvme.find",
              fmt::format("'{}' does not say that it is of this run's states, and would be "
                          "written to: an older Ferry made it, or it is another file",
                          place.files[i].path.string()),
              fmt::format("if the run is yours, name the directories yourself: --nvme-path '{}'",
                          fmt::join(directories, ",")));
}

/** From here on the file says whose it is. */
void mark(const StorePlace& place, size_t i) {
  const int64_t stripe_bytes =
      Stripes{static_cast<int>(place.files.size())}.file_bytes(place.n_bytes);
  StorePage page;
  encode_mark({.store = {place.run.substr(0, kRunName_max), place.uuid}, .number = i}, page);
  write_owned_at(place.files[i].path, stripe_bytes, page.bytes);
}

}  // namespace

StoreFiles StoreFiles::make(const NvmeSettings& settings,
                            const std::string& run_id,
                            const StoreNeed& need,
                            const DiskOptions& options,
                            bool locks) {
  FERRY_CHECK(!settings.directories.empty(), "a store without a directory");
  check_store_directories(settings.directories);
  DirectoryLocks taken;
  if (locks) taken = lock_store_directories(settings.directories);
  check_store_room(settings, need);
  StoreFiles files(
      {.files = new_files(settings.directories, run_id), .run = run_id, .n_bytes = need.n_bytes},
      std::move(taken), options);
  files.unkept_ = files.place_.paths();
  return files;
}

StoreFiles StoreFiles::open(const StorePlace& place,
                            const NvmeSettings& settings,
                            const DiskOptions& options) {
  check_store_directories(settings.directories);
  DirectoryLocks locks = lock_store_directories(settings.directories);
  const StorePlace here = find_store(place, settings.directories);
  const std::vector<size_t> unmarked = unmarked_files_of(here);
  if (!unmarked.empty() && !settings.are_named) refuse_unmarked(here, unmarked.front());
  DiskOptions own = options;
  own.must_exist = true;
  StoreFiles files(here, std::move(locks), own);
  for (const size_t i : unmarked)
    mark(here, i);
  return files;
}

StoreFiles::StoreFiles(StorePlace place, DirectoryLocks locks, const DiskOptions& options)
    : locks_(std::move(locks)),
      place_(std::move(place)),
      disk_(open_disk(place_.paths(), place_.n_bytes, options)) {}

StoreFiles::~StoreFiles() {
  drop_names();
}

void StoreFiles::drop_names() {
  for (const fs::path& file : unkept_)
    ::unlink(file.c_str());
  unkept_.clear();
}

void StoreFiles::keep(std::string uuid) {
  place_.uuid = std::move(uuid);
  for (size_t i = 1; i < unkept_.size(); ++i)
    mark(place_, i);
  unkept_.clear();
}

}  // namespace ferry::runs
