// Stores on a drive and the runs that they belong to: what is left over is known, and only that is
// removed which nobody uses.

#include "src/runs/store/found_stores.h"

#include <gmock/gmock.h>

#include "tests/runs/store/store_fixture.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FoundStores : public StoreTest {};

TEST_F(FoundStores, AreOfARunOrLeftOver) {
  const StorePlace kept = make_store({drive_}, "kept"), lost = make_store({drive_}, "lost");
  directory_.write("drive/damaged.states", "no store");
  directory_.write("drive/notes.txt", "nobody's");
  directory_.write("broken/run.json", "{");
  const std::vector<fs::path> runs = {make_run("run", kept), directory_ / "broken",
                                      directory_ / "gone"};
  const auto stores = find_stores({drive_, drive_, directory_ / "no-such"}, runs);
  ASSERT_EQ(stores.size(), 3u);
  EXPECT_EQ(stores[0].file, drive_ / "damaged.states");
  EXPECT_EQ(stores[0].run, "");
  EXPECT_EQ(stores[1].file, drive_ / "kept.states");
  EXPECT_EQ(stores[1].run, "kept");
  EXPECT_EQ(stores[1].owner, directory_ / "run");
  EXPECT_GE(stores[1].n_bytes, kept.n_bytes);
  EXPECT_EQ(stores[2].run, "lost");
  EXPECT_EQ(stores[2].owner, "");
  EXPECT_FALSE(stores[2].is_in_use);
  EXPECT_THAT(store_directories_of(runs), ElementsAre(drive_));
  EXPECT_THAT(store_files_of(runs[0]).own, ElementsAre(drive_ / "kept.states"));
  EXPECT_THAT(store_files_of(runs[1]).own, IsEmpty());
}

TEST_F(FoundStores, AreNotRemovedUnderARun) {
  const StorePlace idle = make_store({drive_}, "idle"), busy = make_store({drive_}, "busy");
  const std::vector<fs::path> both = {idle.files[0].path, busy.files[0].path};
  {
    const StoreFiles open = StoreFiles::open(busy, {.directories = {drive_}});
    EXPECT_TRUE(find_stores({drive_}, {})[0].is_in_use);
    EXPECT_FALSE(find_stores({drive_}, {})[1].is_in_use);
    EXPECT_THAT(error_of([&] { remove_store_files(both); }, Fault::usage),
                HasSubstr("/busy.states' is in use by a run"));
    EXPECT_TRUE(fs::exists(both[0])) << "none is removed then";
  }
  remove_store_files(both);
  EXPECT_TRUE(fs::is_empty(drive_));
  remove_store_files(both);  // somebody was quicker
}

/** A run of somebody else may name any file as its store's. */
TEST_F(FoundStores, OnlyThoseGoThatProveToBeTheRuns) {
  const fs::path a = make_directory("a"), b = make_directory("b"), mine = make_directory("mine");
  StorePlace gift = make_store({a, b}, "gift");
  const StorePlace other = make_store({mine}, "other");
  const fs::path notes = directory_.write("mine/notes.states", "not a store at all");
  const std::vector<fs::path> own = gift.paths();
  for (const fs::path& file : {other.files[0].path, notes})
    gift.files.push_back({file, gift.files[0].drive});
  const fs::path run = make_run("gift", gift);
  EXPECT_THAT(store_files_of(run).own, testing::ElementsAreArray(own));
  EXPECT_THAT(store_files_of(run).unproved, ElementsAre(notes, other.files[0].path));
  // What a run leaves when it has no more checkpoints in the store.
  remove_left_stores(run, {gift}, /*own=*/"");
  EXPECT_FALSE(fs::exists(own[0]) || fs::exists(own[1]));
  EXPECT_TRUE(fs::exists(notes));
  open_store(other, {mine});
}

/** Its name may have been taken by a run that began later. */
TEST_F(FoundStores, OfAnotherRunAreNotThoseOfARun) {
  const fs::path run = make_run("run", make_store({drive_}, "run"));
  fs::remove(drive_ / "run.states");
  EXPECT_THAT(store_files_of(run).own, IsEmpty());
  make_store({drive_}, "run");
  EXPECT_THAT(store_files_of(run).own, IsEmpty());
}

}  // namespace
}  // namespace ferry::runs
