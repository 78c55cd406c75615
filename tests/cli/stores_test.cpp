// ferry runs stores and delete: what runs have on drives, and what goes when somebody says so.

#include "offload/store/store.h"
#include "src/runs/directory/run_place.h"
#include "src/runs/store/store_files.h"
#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using config::contains;

class Stores : public FerryTest {
 protected:
  void SetUp() override {
    FerryTest::SetUp();
    fs::create_directory(drive_);
  }
  /** As a run makes it. */
  runs::StorePlace make_store(const std::string& id) const {
    const std::vector<StoredSegment> segments = {{.name = "adam_m", .n_bytes = kMiB}};
    runs::StoreFiles files = runs::StoreFiles::make(
        {.directories = {drive_}}, id,
        {.state_bytes = kMiB, .n_kept = 0, .n_bytes = store_bytes(segments, 0)});
    files.keep(ExtentStore::create(files.disk(), segments, 0, id));
    return files.place();
  }
  fs::path make_run(const std::string& id) const {
    const nlohmann::ordered_json record = {{"phase", "finished"},
                                           {runs::kStoreKey, to_json(make_store(id))}};
    return directory_.write("runs/" + id + "/run.json", record.dump()).parent_path();
  }

  const fs::path drive_ = directory_.path() / "drive";
};

TEST_F(Stores, AreListedWithTheirRuns) {
  EXPECT_CONTAINS(run("runs stores").out, "no run has states on a drive there");
  make_run("kept");
  make_store("lost");
  // The directory is that of a known run.
  const auto all = nlohmann::json::parse(run("runs stores --json").out);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["file"], (drive_ / "kept.states").string());
  EXPECT_EQ(all[0]["state"], "kept for its run");
  EXPECT_EQ(fs::path(all[0]["directory"].get<std::string>()).filename(), "kept");
  EXPECT_GT(all[0]["bytes"], 2 * kMiB);
  EXPECT_EQ(all[1]["state"], "left over");
  EXPECT_EQ(all[1]["run"], "lost");
  const Outcome text = succeed("runs stores drive");
  EXPECT_CONTAINS(text.out, "lost.states");
  EXPECT_CONTAINS(text.out, "ferry runs delete FILE");
  expect_refused("runs stores no-such", 2, "'no-such' is no directory");
}

TEST_F(Stores, GoWithTheirRun) {
  const fs::path kept = make_run("kept");
  directory_.write("runs/kept/final/model.safetensors", std::string(1 << 20, 'x'));
  const Outcome asked = succeed("runs delete kept");
  EXPECT_CONTAINS(asked.out, "nothing was removed: say --yes");
  EXPECT_CONTAINS(asked.out, (drive_ / "kept.states").string());
  EXPECT_TRUE(fs::exists(kept));
  expect_refused("runs delete drive/kept.states --yes", 2, "has the states of the run");
  {
    runs::RunPlace training(kept);
    training.lock();
    expect_refused("runs delete kept --yes", 2, "a process trains in");
  }
  EXPECT_TRUE(fs::exists(drive_ / "kept.states"));
  const Outcome done = succeed("runs delete kept --yes");
  EXPECT_FALSE(fs::exists(kept));
  EXPECT_TRUE(fs::is_empty(drive_));
}

TEST_F(Stores, OfNobodyAndLinksToRunsStay) {
  const fs::path kept = make_run("kept");
  directory_.write("drive/notes.states", "not a store at all");
  EXPECT_CONTAINS(run("runs stores").out, "does not say whose it is");
  expect_refused("runs delete drive/notes.states --yes", 2, "does not say that it is a run's");
  EXPECT_TRUE(fs::exists(path("drive/notes.states")));
  fs::create_directory_symlink(kept, path("link"));
  expect_refused("runs delete link --yes", 2, "'link' is a link to a run");
  EXPECT_TRUE(fs::exists(kept / "run.json") && fs::exists(drive_ / "kept.states"));
}

TEST_F(Stores, ThatAreLeftOverGoByTheirFile) {
  const runs::StorePlace place = make_store("lost");
  const std::string line = "runs delete drive/lost.states";
  EXPECT_CONTAINS(run(line).out, "say --yes");
  {
    const auto open = runs::StoreFiles::open(place, {.directories = {drive_}});
    expect_refused(line + " --yes", 2, "is in use by a run");
  }
  EXPECT_EQ(run(line + " --yes").exit_code, 0);
  EXPECT_TRUE(fs::is_empty(drive_));
  EXPECT_EQ(run(line + " --yes").exit_code, 4) << "no run has that name";
  EXPECT_EQ(run("runs ls --yes").exit_code, 2);
}

}  // namespace
}  // namespace ferry::cli
