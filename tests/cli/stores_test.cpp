// ferry runs stores and delete: what runs have on drives, and what goes when somebody says so.

#include <nlohmann/json.hpp>

#include "offload/store/store.h"
#include "src/runs/directory/run_place.h"
#include "src/runs/store/store_files.h"
#include "tests/cli/run_ferry.h"
#include "tests/config/config_fixture.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using config::contains;

class Stores : public testing::Test {
 protected:
  void SetUp() override {
    if (ferry_binary().empty())
      GTEST_SKIP() << "FERRY_BINARY names no ferry; run through meson test";
    fs::create_directory(drive_);
  }
  Outcome run(std::vector<std::string> words) const {
    words.insert(words.begin(), "runs");
    return run_ferry({.arguments = std::move(words),
                      .environment = {{"XDG_DATA_HOME", (home_.path() / "data").string()},
                                      {"HOME", home_.path().string()},
                                      {"LC_ALL", "C"}},
                      .directory = home_.path().string()});
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
    return home_.write("runs/" + id + "/run.json", record.dump()).parent_path();
  }

  config::TemporaryDirectory home_;
  const fs::path drive_ = home_.path() / "drive";
};

TEST_F(Stores, AreListedWithTheirRuns) {
  EXPECT_CONTAINS(run({"stores"}).out, "no run has states on a drive there");
  make_run("kept");
  make_store("lost");
  // The directory is that of a known run.
  const auto all = nlohmann::json::parse(run({"stores", "--json"}).out);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["file"], (drive_ / "kept.states").string());
  EXPECT_EQ(all[0]["state"], "kept for its run");
  EXPECT_EQ(fs::path(all[0]["directory"].get<std::string>()).filename(), "kept");
  EXPECT_GT(all[0]["bytes"], 2 * kMiB);
  EXPECT_EQ(all[1]["state"], "left over");
  EXPECT_EQ(all[1]["run"], "lost");
  const Outcome text = run({"stores", drive_.string()});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_CONTAINS(text.out, "lost.states");
  EXPECT_CONTAINS(text.out, "ferry runs delete FILE");
  const Outcome missing = run({"stores", "no-such"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_CONTAINS(missing.err, "'no-such' is no directory");
}

TEST_F(Stores, GoWithTheirRun) {
  const fs::path kept = make_run("kept");
  home_.write("runs/kept/final/model.safetensors", std::string(1 << 20, 'x'));
  const Outcome asked = run({"delete", "kept"});
  EXPECT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_CONTAINS(asked.out, "nothing was removed: say --yes");
  EXPECT_CONTAINS(asked.out, (drive_ / "kept.states").string());
  EXPECT_TRUE(fs::exists(kept));
  const Outcome owned = run({"delete", (drive_ / "kept.states").string(), "--yes"});
  EXPECT_EQ(owned.exit_code, 2);
  EXPECT_CONTAINS(owned.err, "has the states of the run");
  {
    runs::RunPlace training(kept);
    training.lock();
    const Outcome busy = run({"delete", "kept", "--yes"});
    EXPECT_EQ(busy.exit_code, 2);
    EXPECT_CONTAINS(busy.err, "a process trains in");
  }
  EXPECT_TRUE(fs::exists(drive_ / "kept.states"));
  const Outcome done = run({"delete", "kept", "--yes"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_FALSE(fs::exists(kept));
  EXPECT_TRUE(fs::is_empty(drive_));
}

TEST_F(Stores, OfNobodyAndLinksToRunsStay) {
  const fs::path kept = make_run("kept");
  const std::string notes = home_.write("drive/notes.states", "not a store at all").string();
  EXPECT_CONTAINS(run({"stores"}).out, "does not say whose it is");
  const Outcome refused = run({"delete", notes, "--yes"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_CONTAINS(refused.err, "does not say that it is a run's");
  EXPECT_TRUE(fs::exists(notes));
  fs::create_directory_symlink(kept, home_.path() / "link");
  const Outcome link = run({"delete", "link", "--yes"});
  EXPECT_EQ(link.exit_code, 2);
  EXPECT_CONTAINS(link.err, "'link' is a link to a run");
  EXPECT_TRUE(fs::exists(kept / "run.json") && fs::exists(drive_ / "kept.states"));
}

TEST_F(Stores, ThatAreLeftOverGoByTheirFile) {
  const runs::StorePlace place = make_store("lost");
  const std::string file = place.files[0].path.string();
  EXPECT_CONTAINS(run({"delete", file}).out, "say --yes");
  {
    const auto open = runs::StoreFiles::open(place, {.directories = {drive_}});
    const Outcome busy = run({"delete", file, "--yes"});
    EXPECT_EQ(busy.exit_code, 2);
    EXPECT_CONTAINS(busy.err, "is in use by a run");
  }
  EXPECT_EQ(run({"delete", file, "--yes"}).exit_code, 0);
  EXPECT_TRUE(fs::is_empty(drive_));
  EXPECT_EQ(run({"delete", file, "--yes"}).exit_code, 4) << "no run has that name";
  EXPECT_EQ(run({"ls", "--yes"}).exit_code, 2);
}

}  // namespace
}  // namespace ferry::cli
