#include "src/runs/store/found_stores.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include "src/base/error.h"
#include "src/base/unique_fd.h"
#include "src/runs/store/pins.h"
#include "src/runs/store/store_place.h"
#include "src/runs/store/stripe_mark.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

/** The stores of a run: the one that it uses, and those of older checkpoints. A run that cannot be
 * read owns nothing that anybody could tell. */
std::vector<StorePlace> places_of(const fs::path& run) {
  std::vector<StorePlace> places = stores_named_in(run);
  try {
    const auto own = store_place_of(run);
    if (own && std::ranges::find(places, own->uuid, &StorePlace::uuid) == places.end())
      places.push_back(*own);
  } catch (const Error&) {
  }
  return places;
}

bool is_in_use(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string run_in(const fs::path& file) {
  try {
    const auto found = stripe_in(file);
    return found ? found->store.run : "";
  } catch (const Error&) {
    return {};
  }
}

FoundStore found_in(const fs::path& file, const fs::path& owner) {
  struct stat found {};
  ::stat(file.c_str(), &found);
  constexpr int64_t kBlock_bytes = 512;
  return {.file = file,
          .run = run_in(file),
          .n_bytes = found.st_blocks * kBlock_bytes,
          .owner = owner,
          .is_in_use = is_in_use(file)};
}

}  // namespace

std::vector<FoundStore> find_stores(const Directories& directories,
                                    const std::vector<fs::path>& runs) {
  std::map<fs::path, fs::path> owners;
  for (const fs::path& run : runs)
    for (const StorePlace& place : places_of(run))
      for (const fs::path& file : place.paths())
        owners[fs::weakly_canonical(file)] = run;
  std::set<fs::path> files;
  for (const fs::path& directory : directories) {
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
      if (it->path().extension() == kStoreExtension && it->is_regular_file(error))
        files.insert(fs::weakly_canonical(it->path()));
  }
  std::vector<FoundStore> stores;
  for (const fs::path& file : files) {
    const auto owner = owners.find(file);
    stores.push_back(found_in(file, owner == owners.end() ? fs::path() : owner->second));
  }
  return stores;
}

Directories store_directories_of(const std::vector<fs::path>& runs) {
  std::set<fs::path> all;
  for (const fs::path& run : runs)
    for (const StorePlace& place : places_of(run))
      for (const fs::path& file : place.paths())
        all.insert(file.parent_path());
  return {all.begin(), all.end()};
}

std::vector<fs::path> store_files_of(const fs::path& run) {
  std::vector<fs::path> files;
  for (const StorePlace& place : places_of(run)) {
    const std::vector<fs::path> its = files_proved_of(place);
    files.insert(files.end(), its.begin(), its.end());
  }
  return files;
}

std::vector<fs::path> unproved_files_of(const fs::path& run) {
  std::set<fs::path> others;
  const std::vector<fs::path> proved = store_files_of(run);
  for (const StorePlace& place : places_of(run))
    for (const fs::path& file : place.paths())
      if (std::error_code error; fs::exists(fs::symlink_status(file, error)) &&
                                 std::ranges::find(proved, file) == proved.end())
        others.insert(file);
  return {others.begin(), others.end()};
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
