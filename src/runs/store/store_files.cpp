#include "src/runs/store/store_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "offload/nvme/drive.h"
#include "offload/nvme/stripes.h"
#include "src/base/error.h"
#include "src/runs/store/stripe_mark.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

/** File systems take names of 255 bytes. */
constexpr size_t kIdLength_max = 200;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

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
    if (std::ranges::none_of(files, [](const auto& file) { return is_there(file.path); }))
      return files;
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
  std::string directories;
  for (const StorePlace::File& file : place.files)
    directories += (directories.empty() ? "" : ",") + file.path.parent_path().string();
  throw Error(Fault::data, "nvme.find",
              fmt::format("'{}' does not say that it is of this run's states, and would be "
                          "written to: an older Ferry made it, or it is another file",
                          place.files[i].path.string()),
              fmt::format("if the run is yours, name the directories yourself: --nvme-path '{}'",
                          directories));
}

}  // namespace

StoreFiles StoreFiles::make(const NvmeSettings& settings,
                            const std::string& run_id,
                            const StoreNeed& need,
                            const DiskOptions& options) {
  FERRY_CHECK(!settings.directories.empty(), "a store without a directory");
  check_store_directories(settings.directories);
  DirectoryLocks locks = lock_store_directories(settings.directories);
  check_store_room(settings, need);
  return {
      {.files = new_files(settings.directories, run_id), .run = run_id, .n_bytes = need.n_bytes},
      std::move(locks),
      options,
      /*is_new=*/true};
}

StoreFiles StoreFiles::open(const StorePlace& place,
                            const NvmeSettings& settings,
                            const DiskOptions& options) {
  check_store_directories(settings.directories);
  DirectoryLocks locks = lock_store_directories(settings.directories);
  const StorePlace here = find_store(place, settings.directories);
  const std::vector<size_t> unmarked = unmarked_files_of(here);
  if (!unmarked.empty() && !settings.are_named) refuse_unmarked(here, unmarked.front());
  StoreFiles files(here, std::move(locks), options, /*is_new=*/false);
  for (const size_t i : unmarked)
    files.mark(i);
  return files;
}

StoreFiles::StoreFiles(StorePlace place,
                       DirectoryLocks locks,
                       const DiskOptions& options,
                       bool is_new)
    : locks_(std::move(locks)), place_(std::move(place)) {
  DiskOptions own = options;
  own.must_exist = !is_new;
  disk_ = open_disk(place_.paths(), place_.n_bytes, own);
  is_new_ = is_new;
}

StoreFiles::StoreFiles(StoreFiles&& other) noexcept
    : locks_(std::move(other.locks_)),
      place_(std::move(other.place_)),
      disk_(std::move(other.disk_)),
      is_new_(std::exchange(other.is_new_, false)) {}

StoreFiles::~StoreFiles() {
  if (!is_new_) return;
  for (const fs::path& file : place_.paths())
    ::unlink(file.c_str());
}

void StoreFiles::mark(size_t i) const {
  const int64_t stripe_bytes =
      Stripes{static_cast<int>(place_.files.size())}.file_bytes(place_.n_bytes);
  write_mark(place_.files[i].path, stripe_bytes,
             {.store = {place_.run.substr(0, kRunName_max), place_.uuid}, .number = i});
}

void StoreFiles::keep(std::string uuid) {
  place_.uuid = std::move(uuid);
  for (size_t i = 1; is_new_ && i < place_.files.size(); ++i)
    mark(i);
  is_new_ = false;
}

}  // namespace ferry::runs
