#include "src/runs/store/store_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "offload/nvme/drive.h"
#include "offload/nvme/open_disk.h"
#include "src/base/error.h"
#include "src/base/unique_fd.h"
#include "src/files/write/owned_file.h"
#include "src/runs/directory/run_directory.h"

namespace ferry::runs {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse_to_read(const fs::path& file, int code) {
  throw Error(
      Fault::machine, "nvme.find",
      fmt::format("'{}' cannot be read: {}", file.string(), std::generic_category().message(code)),
      "see `dmesg` for the drive and its file system");
}

/** False where the file has no such bytes. */
bool read_at(int fd, const fs::path& file, int64_t offset_bytes, std::span<std::byte> into) {
  while (offset_bytes >= 0 && !into.empty()) {
    const ssize_t count = ::pread(fd, into.data(), into.size(), offset_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_to_read(file, errno);
    if (count == 0) return false;
    into = into.subspan(static_cast<size_t>(count));
    offset_bytes += count;
  }
  return into.empty();
}

/** Nothing where the bytes are damaged, or of something else. */
std::optional<StripeIdentity> decoded(auto&& decode) {
  try {
    return decode();
  } catch (const StoreFormatError&) {
    return std::nullopt;
  }
}

/** The directory of each file: its own on its drive, another one there, its own on another drive,
 * or the next that is left. */
std::vector<fs::path> in_order_of(const StorePlace& place, std::vector<fs::path> directories) {
  const auto fit = [](const StorePlace::File& file, const fs::path& directory) {
    std::error_code error;
    const bool is_own = fs::equivalent(file.path.parent_path(), directory, error);
    return (is_on_drive(directory, file.drive) ? 2 : 0) + (is_own ? 1 : 0);
  };
  std::vector<fs::path> ordered(place.files.size());
  for (const int best : {3, 2, 1, 0})
    for (size_t i = 0; i < ordered.size(); ++i) {
      const auto found = std::ranges::find_if(directories, [&](const fs::path& directory) {
        return ordered[i].empty() && fit(place.files[i], directory) == best;
      });
      if (found == directories.end()) continue;
      ordered[i] = *found;
      directories.erase(found);
    }
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
  refuse_link(file);
  const auto found = stripe_in(file);
  if (found && found->store.uuid == place.uuid && found->number == i) return;
  if (!found && i > 0) return;  // an older Ferry made it
  throw Error(is_same_drive ? Fault::data : Fault::machine, "nvme.find",
              fmt::format("'{}' holds {}, not the states of this run{}", file.string(),
                          found ? fmt::format("those of '{}'", found->store.run) : "no states",
                          is_same_drive ? "" : ", and is on another drive than at the start"),
              "mount the drive on which the run began; or name where its files are now, with "
              "--nvme-path");
}

/** One of the directories has the store, or some of its files. */
bool has_any(const StorePlace& place, const std::vector<fs::path>& directories) {
  for (const fs::path& directory : directories)
    for (size_t i = 0; i < place.files.size(); ++i) {
      const fs::path file = directory / place.files[i].path.filename();
      if (i == 0 ? is_stripe_of(place.uuid, 0, file) : is_there(file)) return true;
    }
  return false;
}

}  // namespace

bool is_there(const fs::path& file) {
  std::error_code error;
  return fs::exists(fs::symlink_status(file, error));
}

std::optional<StripeIdentity> stripe_in(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd && errno == ELOOP) return std::nullopt;
  struct stat found {};
  if (!fd || ::fstat(fd.get(), &found) != 0) refuse_to_read(file, errno);
  if (!S_ISREG(found.st_mode)) return std::nullopt;
  constexpr int64_t kCopy_bytes = StoreLayout::superblock_bytes();
  std::vector<std::byte> area(kCopy_bytes);
  for (const int64_t copy : {0, 1}) {
    if (!read_at(fd.get(), file, copy * kCopy_bytes, area)) break;
    if (auto first = decoded([&] { return StripeIdentity{decode_superblock(area).identity}; }))
      return first;
  }
  StorePage page;
  if (!read_at(fd.get(), file, found.st_size - kMark_bytes, page.bytes)) return std::nullopt;
  return decoded([&] { return decode_mark(page); });
}

bool is_stripe_of(const std::string& uuid, size_t number, const fs::path& file) {
  if (!is_there(file)) return false;
  const auto found = stripe_in(file);
  return found && found->store.uuid == uuid && found->number == number;
}

bool is_where_it_was(const StorePlace& place) {
  return is_stripe_of(place.uuid, 0, place.files.front().path) &&
         std::ranges::all_of(place.files,
                             [](const StorePlace::File& file) { return is_there(file.path); });
}

std::vector<fs::path> files_proved_of(const StorePlace& place) {
  std::vector<fs::path> proved;
  for (size_t i = 0; i < place.files.size(); ++i)
    try {
      if (is_stripe_of(place.uuid, i, place.files[i].path)) proved.push_back(place.files[i].path);
    } catch (const Error&) {  // what cannot be read proves nothing
    }
  return proved;
}

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
  return {{"run", place.run},
          {"uuid", place.uuid},
          {"bytes", place.n_bytes},
          {"files", std::move(files)}};
}

StorePlace parse_store_place(const JsonReader& json) {
  StorePlace place{.run = json.text("run"),
                   .uuid = json.text("uuid"),
                   .n_bytes = json.integer("bytes", 1, INT64_MAX)};
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

StorePlace find_store(const StorePlace& place, const std::vector<fs::path>& directories) {
  std::vector<fs::path> ordered;
  if (directories.empty())
    for (const StorePlace::File& file : place.files)
      ordered.push_back(file.path.parent_path());
  else if (is_where_it_was(place) && !has_any(place, directories))
    return place;
  else if (directories.size() == place.files.size())
    ordered = in_order_of(place, directories);
  else
    throw Error(
        Fault::usage, "nvme.find",
        fmt::format("the states of the run lie in {} files ('{}'), and nvme_path names {} "
                    "directories",
                    place.files.size(), place.files.front().path.string(), directories.size()),
        "name a directory for each of them");
  StorePlace here = place;
  for (size_t i = 0; i < ordered.size(); ++i) {
    const fs::path file =
        fs::absolute(ordered[i]).lexically_normal() / place.files[i].path.filename();
    check_file(place, i, file);
    here.files[i] = {file, drive_id_of(ordered[i])};
  }
  return here;
}

std::optional<StorePlace> store_place_of(const fs::path& run) {
  std::error_code error;  // a run that was killed at its start has no run.json yet
  if (!fs::exists(run / "run.json", error) && !error) return std::nullopt;
  const auto record = JsonReader::of(
      read_record(run),
      {(run / "run.json").string(), "runs.store", "the run's checkpoints are not touched by that"});
  const auto found = record.find(kStoreKey);
  return found ? std::optional(parse_store_place(*found)) : std::nullopt;
}

}  // namespace ferry::runs
