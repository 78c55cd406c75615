#include "src/runs/store/pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/pin_record.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

/** The pin of a directory in this store; empty where it has none. */
std::string pin_in(const fs::path& checkpoint, const ExtentStore& store) {
  const auto record = pin_record_of(checkpoint);
  return record && record->store.uuid == store.identity().uuid ? record->pin : std::string();
}

bool is_named(const std::vector<StorePlace>& places, const std::string& uuid) {
  return std::ranges::find(places, uuid, &StorePlace::uuid) != places.end();
}

}  // namespace

void unpin_unused(const fs::path& run, ExtentStore& store) {
  std::vector<std::string> used;
  try {
    for (const fs::path& checkpoint : checkpoint_directories(run))
      used.push_back(pin_in(checkpoint, store));
  } catch (const Error& error) {
    // Its pin may be any of them.
    return log_line(fmt::format("no room on the drive is given back: {}", error.what()));
  }
  for (const std::string& pin : store.pins())
    if (std::ranges::find(used, pin) == used.end()) store.unpin(pin);
}

void make_room_for_pin(const fs::path& run, ExtentStore& store) {
  for (const Checkpoint& aside : checkpoints_put_aside(run)) {
    if (std::ssize(store.pins()) < store.layout().n_kept()) return;
    if (pin_in(aside.path, store).empty()) continue;
    log_line(fmt::format("{} is removed: the drive has room for {} checkpoints",
                         aside.path.filename().string(), store.layout().n_kept()));
    remove_checkpoint(aside.path);
    unpin_unused(run, store);
  }
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

std::string name_of_pin(int64_t step, const ExtentStore& store) {
  const std::vector<std::string> pins = store.pins();
  const std::string first = fmt::format("checkpoint-{}", step);
  std::string name = first;
  for (int n = 2; std::ranges::find(pins, name) != pins.end(); ++n)
    name = fmt::format("{}.{}", first, n);
  return name;
}

}  // namespace ferry::runs
