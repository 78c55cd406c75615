#include "src/runs/store/store_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "offload/nvme/drive.h"
#include "src/base/error.h"
#include "src/files/unique_fd.h"

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

/** The directory of each file: its own on its drive, another one there, its own on another drive,
 * or the next that is left. */
Directories in_order_of(const StorePlace& place, Directories directories) {
  const size_t n_files = place.files.size();
  Directories ordered(n_files);
  const auto take = [&](auto&& fits) {
    for (size_t i = 0; i < n_files; ++i) {
      if (!ordered[i].empty()) continue;
      const auto found = std::ranges::find_if(
          directories, [&](const fs::path& directory) { return fits(place.files[i], directory); });
      if (found == directories.end()) continue;
      ordered[i] = *found;
      directories.erase(found);
    }
  };
  const auto is_own = [](const auto& file, const fs::path& directory) {
    std::error_code error;
    return fs::equivalent(file.path.parent_path(), directory, error);
  };
  const auto is_on_its_drive = [](const auto& file, const fs::path& directory) {
    return is_on_drive(directory, file.drive);
  };
  take([&](const auto& file, const fs::path& directory) {
    return is_own(file, directory) && is_on_its_drive(file, directory);
  });
  take(is_on_its_drive);
  take(is_own);
  take([](const auto&, const fs::path&) { return true; });
  return ordered;
}

[[noreturn]] void refuse_drive(const fs::path& file) {
  throw Error(
      Fault::machine, "nvme.find",
      fmt::format("'{}' is not there, and the drive at its directory is not the one on which "
                  "the run began",
                  file.string()),
      "mount that drive again; or name where its files are now, with --nvme-path");
}

/** Throws unless the file is what the run left there, as far as its beginning tells. */
void check_file(const StorePlace& place, size_t i, const fs::path& file) {
  const bool is_same_drive = is_on_drive(file.parent_path(), place.files[i].drive);
  if (!is_there(file)) {
    if (!is_same_drive) refuse_drive(file);
    throw Error(Fault::data, "nvme.find",
                fmt::format("'{}' is gone: the states of the run were there", file.string()),
                "put it back; or name where it is now, with --nvme-path");
  }
  if (i > 0) return;  // stripes of what begins in the first
  const auto store = store_in(file);
  if (store && store->uuid == place.uuid) return;
  throw Error(is_same_drive ? Fault::data : Fault::machine, "nvme.find",
              fmt::format("'{}' holds {}, not the states of this run{}", file.string(),
                          store ? fmt::format("those of '{}'", store->run) : "no states",
                          is_same_drive ? "" : ", and is on another drive than at the start"),
              "mount the drive on which the run began; or name where its files are now, with "
              "--nvme-path");
}

std::optional<StoreIdentity> identity_in(std::span<const std::byte> area) {
  try {
    return decode_superblock(area).identity;
  } catch (const StoreFormatError&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<StoreIdentity> store_in(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  constexpr int64_t kCopies = 2, kCopy_bytes = StoreLayout::superblock_bytes();
  std::vector<std::byte> bytes(kCopies * kCopy_bytes);
  const ssize_t count = fd ? ::pread(fd.get(), bytes.data(), bytes.size(), 0) : -1;
  if (count < 0)
    throw Error(Fault::machine, "nvme.find",
                fmt::format("'{}' cannot be read: {}", file.string(),
                            std::generic_category().message(errno)),
                "see `dmesg` for the drive and its file system");
  for (int64_t copy = 0; copy < kCopies && (copy + 1) * kCopy_bytes <= count; ++copy)
    if (auto found = identity_in(std::span(bytes).subspan(static_cast<size_t>(copy * kCopy_bytes),
                                                          static_cast<size_t>(kCopy_bytes))))
      return found;
  return std::nullopt;
}

StoreFiles StoreFiles::make(const NvmeSettings& settings,
                            const std::string& run_id,
                            const StoreNeed& need,
                            const DiskOptions& options) {
  FERRY_CHECK(!settings.directories.empty(), "a store without a directory");
  check_store_directories(settings.directories);
  DirectoryLocks locks = lock_store_directories(settings.directories);
  check_store_room(settings, need);
  return {{.files = new_files(settings.directories, run_id), .n_bytes = need.n_bytes},
          std::move(locks),
          options,
          /*is_new=*/true};
}

StoreFiles StoreFiles::open(const StorePlace& place,
                            const Directories& directories,
                            const DiskOptions& options) {
  if (directories.size() != place.files.size())
    throw Error(
        Fault::usage, "nvme.find",
        fmt::format("the states of the run lie in {} files ('{}'), and nvme_path names {} "
                    "directories",
                    place.files.size(), place.files.front().path.string(), directories.size()),
        "name a directory for each of them");
  check_store_directories(directories);
  DirectoryLocks locks = lock_store_directories(directories);
  StorePlace here = place;
  const Directories ordered = in_order_of(place, directories);
  for (size_t i = 0; i < ordered.size(); ++i) {
    const fs::path file =
        fs::absolute(ordered[i]).lexically_normal() / place.files[i].path.filename();
    check_file(place, i, file);
    here.files[i] = {file, drive_id_of(ordered[i])};
  }
  return {std::move(here), std::move(locks), options, /*is_new=*/false};
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

void StoreFiles::keep(std::string uuid) {
  place_.uuid = std::move(uuid);
  is_new_ = false;
}

}  // namespace ferry::runs
