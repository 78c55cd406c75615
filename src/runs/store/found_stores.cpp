#include "src/runs/store/found_stores.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <set>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/unique_fd.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/pin_record.h"
#include "src/runs/store/store_place.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

bool is_named(const std::vector<StorePlace>& places, const std::string& uuid) {
  return std::ranges::find(places, uuid, &StorePlace::uuid) != places.end();
}

/** The stores of a run: the one that it uses, and those of older checkpoints. A run that cannot be
 * read owns nothing that anybody could tell. */
std::vector<StorePlace> places_of(const fs::path& run) {
  std::vector<StorePlace> places = stores_named_in(run);
  try {
    const auto own = store_place_of(run);
    if (own && !is_named(places, own->uuid)) places.push_back(*own);
  } catch (const Error&) {
  }
  return places;
}

std::set<fs::path> named_files_of(const fs::path& run) {
  std::set<fs::path> files;
  for (const StorePlace& place : places_of(run))
    for (const StorePlace::File& file : place.files)
      files.insert(file.path);
  return files;
}

bool is_in_use(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FoundStore found_in(const fs::path& file, const fs::path& owner) {
  FoundStore found = {
      .file = file, .n_bytes = bytes_on_disk(file), .owner = owner, .is_in_use = is_in_use(file)};
  try {
    if (const auto stripe = stripe_in(file)) found.run = stripe->store.run;
  } catch (const Error&) {  // as a damaged one
  }
  return found;
}

}  // namespace

int64_t bytes_on_disk(const fs::path& file) {
  constexpr int64_t kBlock_bytes = 512;
  struct stat found {};
  return ::lstat(file.c_str(), &found) == 0 ? found.st_blocks * kBlock_bytes : 0;
}

std::vector<FoundStore> find_stores(const Directories& directories,
                                    const std::vector<fs::path>& runs) {
  std::map<fs::path, fs::path> owners;
  for (const fs::path& run : runs)
    for (const fs::path& file : named_files_of(run))
      owners[fs::weakly_canonical(file)] = run;
  std::set<fs::path> files;
  for (const fs::path& directory : directories) {
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
      if (it->path().extension() == kStoreExtension && it->is_regular_file(error))
        files.insert(fs::weakly_canonical(it->path()));
  }
  std::vector<FoundStore> stores;
  for (const fs::path& file : files)
    stores.push_back(found_in(file, owners[file]));  // empty where it has none
  return stores;
}

Directories store_directories_of(const std::vector<fs::path>& runs) {
  std::set<fs::path> all;
  for (const fs::path& run : runs)
    for (const fs::path& file : named_files_of(run))
      all.insert(file.parent_path());
  return {all.begin(), all.end()};
}

RunStoreFiles store_files_of(const fs::path& run) {
  RunStoreFiles files;
  for (const StorePlace& place : places_of(run))
    std::ranges::copy(files_proved_of(place), std::back_inserter(files.own));
  for (const fs::path& file : named_files_of(run))
    if (is_there(file) && std::ranges::find(files.own, file) == files.own.end())
      files.unproved.push_back(file);
  return files;
}

std::vector<StorePlace> stores_named_in(const fs::path& run) {
  std::vector<StorePlace> places;
  std::vector<fs::path> directories = checkpoint_directories(run);
  directories.push_back(run);
  for (const fs::path& directory : directories)
    try {
      const auto record = pin_record_of(directory);
      if (record && !is_named(places, record->store.uuid)) places.push_back(record->store);
    } catch (const Error&) {  // whoever goes on from it hears of that
    }
  return places;
}

void remove_left_stores(const fs::path& run,
                        const std::vector<StorePlace>& before,
                        const std::string& own) {
  std::error_code error;
  const auto is_other = [&](const StorePlace& place) { return place.uuid != own; };
  if (std::ranges::none_of(before, is_other)) return;
  const auto last = pin_record_of(run);
  if (last && is_other(last->store)) fs::remove(run / kPinRecordName, error);
  const std::vector<StorePlace> now = stores_named_in(run);
  for (const StorePlace& place : before) {
    if (!is_other(place) || is_named(now, place.uuid)) continue;
    for (const fs::path& file : files_proved_of(place)) {
      fs::remove(file, error);
      log_line(fmt::format("'{}' is removed: no checkpoint of the run is there any more",
                           file.string()));
    }
  }
}

void remove_store_files(const std::vector<fs::path>& files) {
  for (const fs::path& file : files)
    if (is_in_use(file))
      throw Error(Fault::usage, "runs.store", fmt::format("'{}' is in use by a run", file.string()),
                  "`ferry runs ls` shows what runs; stop it first");
  for (const fs::path& file : files) {
    std::error_code error;
    fs::remove(file, error);
    if (error)
      throw Error(Fault::machine, "runs.store",
                  fmt::format("'{}' could not be removed: {}", file.string(), error.message()),
                  "remove it yourself");
  }
}

}  // namespace ferry::runs
