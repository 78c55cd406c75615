#pragma once
// A run's small store for tests: made as a run makes it, with bytes that are known again.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "offload/store/store.h"
#include "src/runs/store/store_files.h"
#include "tests/files/test_files.h"
#include "tests/offload/nvme/disk_fixture.h"

namespace ferry::runs {

/** States of so many bytes. */
inline std::vector<StoredSegment> segments_of(int64_t state_bytes) {
  return {{.block = 0, .name = "adam_m", .n_bytes = state_bytes}};
}

inline StoreNeed need_of(int64_t state_bytes, int n_kept = 0) {
  return {.state_bytes = state_bytes,
          .n_kept = n_kept,
          .n_bytes = store_bytes(segments_of(state_bytes), n_kept)};
}

inline constexpr int64_t kStates_bytes = 4 * kMiB;

class StoreTest : public test::DiskTest {
 protected:
  StoreTest() { std::filesystem::create_directory(drive_); }
  /** Makes a store and commits a generation; its files stay. */
  StorePlace make_store(const Directories& directories, const std::string& run_id = "run-1") {
    StoreFiles files =
        StoreFiles::make({.directories = directories}, run_id, need_of(kStates_bytes));
    files.keep(ExtentStore::create(files.disk(), segments_of(kStates_bytes), 0, run_id));
    ExtentStore store(files.disk(), {.uuid = files.place().uuid});
    const auto states = window_.part(0, kStates_bytes);
    test::fill(states, 0, 7);
    store.write_segment(0, states);
    store.commit("");
    return files.place();
  }
  /** The place where the store is opened, and its bytes are those of make_store(). */
  StorePlace open_store(const StorePlace& place, const Directories& directories) {
    StoreFiles files = StoreFiles::open(place, {.directories = directories});
    const ExtentStore store(files.disk(), {.uuid = place.uuid});
    const auto states = window_.part(0, kStates_bytes);
    std::ranges::fill(states, std::byte{0});
    store.read_segment(store.committed(), 0, states);
    EXPECT_EQ(test::first_wrong(states, 0, 7), -1);
    return files.place();
  }
  std::filesystem::path make_directory(std::string_view name) const {
    std::filesystem::create_directory(directory_ / name);
    return directory_ / name;
  }
  /** A run whose run.json names the store. */
  std::filesystem::path make_run(std::string_view name, const StorePlace& place) const {
    const nlohmann::ordered_json record = {{"phase", "finished"}, {kStoreKey, to_json(place)}};
    return directory_.write(fmt::format("{}/run.json", name), record.dump()).parent_path();
  }

  const std::filesystem::path drive_ = directory_ / "drive";
};

}  // namespace ferry::runs
