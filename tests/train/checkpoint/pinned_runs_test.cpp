// Runs whose states lie on a drive: a checkpoint pins a generation there, and the run goes on from
// it, or from its last step, with the bits of one that never stopped; elsewhere, too.

#include <fcntl.h>

#include <random>

#include "offload/nvme/open_disk.h"
#include "offload/store/store.h"
#include "src/runs/store/pin_record.h"
#include "src/runs/store/store_place.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class PinnedRuns : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    for (const char* drive : {"drive", "other"})
      fs::create_directories(root_ / drive);
  }
  void SetUp() override {
    if (fs::exists(root_ / "whole/final")) return;
    ASSERT_EQ(ferry(new_run("whole")).code(), 0) << text_of(root_ / "err");
  }

  static std::vector<std::string> on_drive(std::vector<std::string> more = {},
                                           const std::string& drive = "drive") {
    more.insert(more.begin(), {"--placement=nvme", "--nvme-path=" + (root_ / drive).string()});
    return more;
  }
  static std::vector<std::string> in_memory() { return {"--placement=host", "--nvme-path="}; }

  static void expect_as_whole(const std::string& run) {
    EXPECT_EQ(curve_of("whole"), curve_of(run));
    for (const char* file : {"final/model.safetensors", "predictions.jsonl"})
      EXPECT_TRUE(text_of(root_ / "whole" / file) == text_of(root_ / run / file))
          << run << "/" << file;
  }
  /** The run until it has a checkpoint of the step, killed after so many steps. */
  static void kill_after(const std::string& run, int step, const std::vector<std::string>& more) {
    const pid_t child = start(go_on(run, more));
    wait_for_line(run, step);
    ::kill(child, SIGKILL);
    wait_for(child);
  }
  static std::vector<std::string> pins_of(const std::string& run) {
    const auto place = runs::store_place_of(root_ / run).value();
    const auto disk = open_disk(place.paths(), place.n_bytes, {.reads_only = true});
    return ExtentStore(*disk, {}, ExtentStore::Access::read_only).pins();
  }
  static fs::path store_of(const std::string& run) {
    return runs::store_place_of(root_ / run).value().files.front().path;
  }
  static void forget(const std::string& run) {
    const fs::path store = store_of(run);
    fs::remove_all(root_ / run);
    fs::remove(store);
  }
};

TEST_F(PinnedRuns, ACheckpointHasNoStates) {
  ASSERT_EQ(ferry(new_run("small", on_drive())).code(), 0) << text_of(root_ / "err");
  expect_as_whole("small");
  const fs::path checkpoint = last_checkpoint("small");
  EXPECT_TRUE(fs::exists(checkpoint / "COMPLETE"));
  EXPECT_TRUE(fs::exists(checkpoint / "state/drive_states.json"));
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(checkpoint))
    EXPECT_NE(entry.path().extension(), ".safetensors") << entry.path();
  EXPECT_EQ(pins_of("small"), (std::vector<std::string>{"checkpoint-70", "checkpoint-75"}));
  const Outcome checked = ferry({"runs", "check", "small"});
  EXPECT_EQ(checked.code(), 0) << checked.err;

  // Self-contained ones are those of a run in memory.
  ASSERT_EQ(ferry(new_run("copied", on_drive({"--save-weights=true"}))).code(), 0)
      << text_of(root_ / "err");
  expect_same_run("whole", "copied");

  // A model is made of one.
  const Outcome refused = ferry({"eval", "--model=small/checkpoint-75", "--dataset=dev.tsv"});
  EXPECT_EQ(refused.code(), 4);
  EXPECT_NE(refused.err.find("ferry export"), std::string::npos) << refused.err;
  ASSERT_EQ(ferry({"export", "--model=small/checkpoint-75", "--output-dir=exported"}).code(), 0)
      << text_of(root_ / "err");
  EXPECT_TRUE(text_of(root_ / "exported/model.safetensors") ==
              text_of(last_checkpoint("whole") / "model.safetensors"));
  forget("small");
  forget("copied");
}

TEST_F(PinnedRuns, KilledAtRandomMomentsTheSameBits) {
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(ferry(new_run("timed", on_drive())).code(), 0) << text_of(root_ / "err");
  const auto whole_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::steady_clock::now() - start)
                            .count();
  forget("timed");
  const int n_kills_wanted = is_long() ? 200 : 4;
  std::mt19937 random(3);
  int n_kills = 0;
  for (int round = 0; n_kills < n_kills_wanted; ++round) {
    const std::string run = "killed" + std::to_string(round);
    Outcome outcome;
    int n_kills_of_run = 0;
    do {
      const auto delay = std::chrono::milliseconds(random() % static_cast<unsigned>(whole_ms));
      // Now and then it goes on in memory, and back.
      const auto place = random() % 6 == 0 ? in_memory() : on_drive();
      outcome = n_kills_of_run < 12 ? ferry_killed_after(go_on(run, place), delay)
                                    : ferry(go_on(run, place));
      n_kills += outcome.was_killed();
      n_kills_of_run += outcome.was_killed();
      ASSERT_TRUE(outcome.was_killed() || outcome.code() == 0) << outcome.err;
    } while (outcome.code() != 0);
    expect_as_whole(run);
    fs::remove_all(root_ / run);
    for (const fs::directory_entry& file : fs::directory_iterator(root_ / "drive"))
      fs::remove(file.path());
  }
}

/** The commits that may be missing when a step's line is there. A step's update reads what the one
 * before wrote, and that was written after the commit before it; on a drive that takes longer for a
 * flush than the run for a step, more is not waited for. */
constexpr int kBehind_max = 3;

/** Every step is safe; no checkpoint is made. */
TEST_F(PinnedRuns, GoesOnFromItsLastStep) {
  const auto step_in = [](const std::string& text) {
    const std::string before = "resumed at step ", behind = " from the last step on the drive";
    const size_t begin = text.find(before), end = text.find(behind);
    return end == std::string::npos ? -1 : std::stoi(text.substr(begin + before.size()));
  };
  const auto options = on_drive({"--save-strategy=no"});
  for (int step : {5, 20, 30, 50, 74})
    kill_after("last", step, options);
  std::istringstream log(text_of(root_ / "last/train.log"));
  std::vector<int> steps;
  for (std::string line; std::getline(log, line);)
    if (const int step = step_in(line); step > 0) steps.push_back(step);
  ASSERT_EQ(steps.size(), 4u) << text_of(root_ / "last/train.log");
  for (size_t i = 0; i < steps.size(); ++i)
    EXPECT_GE(steps[i], (std::vector{5, 20, 30, 50})[i] - kBehind_max);
  EXPECT_EQ(ferry(go_on("last")).code(), 0) << text_of(root_ / "err");
  expect_as_whole("last");
  forget("last");

  // In memory, too, and on another drive.
  for (const auto& elsewhere : {in_memory(), on_drive({}, "other")}) {
    kill_after("leaves", 30, options);
    const int step = [&] {
      EXPECT_EQ(ferry(go_on("leaves", elsewhere)).code(), 0) << text_of(root_ / "err");
      return step_in(text_of(root_ / "out"));
    }();
    EXPECT_GE(step, 30 - kBehind_max);
    expect_as_whole("leaves");
    fs::remove_all(root_ / "leaves");
    for (const char* drive : {"drive", "other"})
      fs::remove(root_ / drive / "leaves.states");
  }
}

/** A run that went back does not come to the steps that it left. */
TEST_F(PinnedRuns, GoesBackForGood) {
  kill_after("back", 40, on_drive());
  const pid_t child = start({"train", "--resume=back/checkpoint-28", "--lr=1e-4"});
  wait_until([] {
    return text_of(root_ / "back/metrics.jsonl").find("\"step\":30,") == std::string::npos ||
           text_of(root_ / "back/metrics.jsonl").find("\"step\":40,") == std::string::npos;
  });
  ::kill(child, SIGKILL);
  wait_for(child);
  EXPECT_EQ(ferry(go_on("back")).code(), 0) << text_of(root_ / "err");
  const std::string out = text_of(root_ / "out");
  EXPECT_EQ(out.find("resumed at step 4"), std::string::npos) << out;
  EXPECT_NE(curve_of("whole"), curve_of("back"));
  EXPECT_EQ(ferry({"runs", "check", "back"}).code(), 0);
  EXPECT_LE(pins_of("back").size(), 3u);
  forget("back");
}

TEST_F(PinnedRuns, GoesOnElsewhereWithTheSameBits) {
  const auto goes_on = [](const std::string& run, const std::vector<std::string>& more) {
    EXPECT_EQ(ferry(go_on(run, more)).code(), 0) << text_of(root_ / "err");
    expect_as_whole(run);
    fs::remove_all(root_ / run);
  };
  kill_after("to_memory", 30, on_drive());
  goes_on("to_memory", in_memory());
  kill_after("to_other", 30, on_drive());
  goes_on("to_other", on_drive({}, "other"));
  kill_after("moved", 30, on_drive());
  const fs::path store = store_of("moved");
  fs::rename(store, root_ / "other" / store.filename());
  EXPECT_EQ(ferry({"export", "--model=moved/checkpoint-21", "--output-dir=from_moved",
                   "--nvme-path=" + (root_ / "other").string()})
                .code(),
            0)
      << text_of(root_ / "err");
  goes_on("moved", on_drive({}, "other"));
  if (!is_long()) return;
  kill_after("to_drive", 30, in_memory());
  goes_on("to_drive", on_drive());
  kill_after("back", 30, on_drive());
  EXPECT_EQ(ferry({"train", "--resume=back/checkpoint-21"}).code(), 0) << text_of(root_ / "err");
  expect_as_whole("back");
  forget("back");
}

/** The store that a run leaves goes with the last checkpoint that is there. */
TEST_F(PinnedRuns, LeavesNoStoreBehind) {
  kill_after("leaver", 20, on_drive());
  const fs::path store = store_of("leaver");
  EXPECT_EQ(ferry(go_on("leaver", in_memory())).code(), 0) << text_of(root_ / "err");
  EXPECT_FALSE(fs::exists(store));
  EXPECT_FALSE(fs::exists(root_ / "leaver/state/drive_states.json"));
  fs::remove_all(root_ / "leaver");
  kill_after("leaver", 20, on_drive());
  EXPECT_EQ(ferry(go_on("leaver", on_drive({}, "other"))).code(), 0) << text_of(root_ / "err");
  EXPECT_FALSE(fs::exists(store));
  EXPECT_EQ(pins_of("leaver"), (std::vector<std::string>{"checkpoint-70", "checkpoint-75"}));
  forget("leaver");
}

TEST_F(PinnedRuns, AStoreThatIsNotThereIsNamed) {
  kill_after("lost", 30, on_drive());
  const fs::path store = store_of("lost"), aside = root_ / "aside.states";
  fs::rename(store, aside);
  const Outcome gone = ferry(go_on("lost"));
  EXPECT_EQ(gone.code(), 4) << gone.err;
  EXPECT_NE(gone.err.find(store.string()), std::string::npos) << gone.err;
  EXPECT_NE(gone.err.find("--nvme-path"), std::string::npos) << gone.err;
  EXPECT_EQ(ferry({"runs", "check", "lost"}).code(), 4);

  kill_after("another", 10, on_drive());
  fs::copy_file(store_of("another"), store);
  const Outcome other = ferry(go_on("lost"));
  EXPECT_EQ(other.code(), 4) << other.err;
  EXPECT_NE(other.err.find("another"), std::string::npos) << other.err;
  fs::rename(aside, store);
  EXPECT_EQ(ferry(go_on("lost")).code(), 0) << text_of(root_ / "err");
  expect_as_whole("lost");
  forget("lost");
  forget("another");
}

/** config.toml of a run may be somebody else's: nothing is made where the user has named nothing.
 */
TEST_F(PinnedRuns, AStrangersRunMakesNothingElsewhere) {
  const fs::path drive = root_ / "elsewhere", tokens = root_ / "their_tokens";
  fs::create_directories(drive);
  auto few = in_memory();
  few.push_back("--max-steps=4");
  ASSERT_EQ(ferry(new_run("gift", few)).code(), 0) << text_of(root_ / "err");
  std::istringstream lines(text_of(root_ / "gift/config.toml"));
  std::ofstream changed(root_ / "gift/config.toml");
  for (std::string line; std::getline(lines, line);)
    changed << (line.starts_with("nvme_path =")     ? "nvme_path = [\"" + drive.string() + "\"]"
                : line.starts_with("placement =")   ? "placement = \"nvme\""
                : line.starts_with("token_cache =") ? "token_cache = \"" + tokens.string() + "\""
                                                    : line)
            << "\n";
  changed.close();
  const auto expect_untouched = [&] {
    EXPECT_TRUE(fs::is_empty(drive));
    EXPECT_FALSE(fs::exists(tokens));
  };
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "--resume=gift", "--max-steps=6", "--dry-run"},
        {"train", "--resume=gift", "--max-steps=6"},
        {"train", "--config=gift/config.toml", "--output-dir=again"}}) {
    const Outcome refused = ferry(words);
    EXPECT_NE(refused.err.find("'" + drive.string() + "' on this machine"), std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("'" + tokens.string() + "' on this machine"), std::string::npos);
    expect_untouched();
  }
  ASSERT_EQ(ferry({"export", "--model=gift", "--output=gift_copy"}).code(), 0);
  ASSERT_EQ(ferry({"eval", "--model=gift", "--dataset=dev.tsv"}).code(), 0);
  expect_untouched();
  ASSERT_EQ(ferry({"train", "--resume=gift", "--max-steps=6", "--placement=host"}).code(), 0)
      << text_of(root_ / "err");
  expect_untouched();

  const auto drive_words = on_drive({"--max-steps=8"}, "elsewhere");
  ASSERT_EQ(ferry(go_on("gift", drive_words)).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(store_of("gift").parent_path(), drive) << "the user has named it";
  const Outcome more = ferry(go_on("gift", {"--max-steps=10"}));
  EXPECT_EQ(more.code(), 0) << more.err;
  EXPECT_EQ(more.err.find("on this machine"), std::string::npos) << "and need not again";
}

TEST_F(PinnedRuns, AFlippedBitIsNamedAndNeverTrainedOn) {
  ASSERT_EQ(ferry(new_run("flipped", on_drive({"--save-total-limit=3"}))).code(), 0)
      << text_of(root_ / "err");
  const auto record = runs::pin_record_of(last_checkpoint("flipped")).value();
  int64_t offset = 0;
  {
    const auto disk = open_disk(record.store.paths(), record.store.n_bytes, {.reads_only = true});
    const ExtentStore store(*disk, {}, ExtentStore::Access::read_only);
    const Generation& generation = store.pinned(record.pin);
    offset = store.layout().offset_of(
        2, 0, generation.copies[static_cast<size_t>(store.layout().index_of(2, 0))]);
  }
  const int file = ::open(record.store.files.front().path.c_str(), O_RDWR);
  char byte = 0;
  ASSERT_EQ(::pread(file, &byte, 1, offset + 100), 1);
  byte ^= 4;
  ASSERT_EQ(::pwrite(file, &byte, 1, offset + 100), 1);
  ::close(file);
  const Outcome checked = ferry({"runs", "check", "flipped"});
  EXPECT_EQ(checked.code(), 4);
  // It is the last step, too.
  for (const std::string& part :
       {std::string("block"), std::string("states."),
        "generation " + std::to_string(record.generation), std::string("checkpoint-75")})
    EXPECT_NE(checked.err.find(part), std::string::npos) << part << " in " << checked.err;
  fs::remove_all(root_ / "flipped/final");
  const Outcome resumed = ferry(go_on("flipped", {"--max-steps=80"}));
  EXPECT_EQ(resumed.code(), 4) << resumed.err;
  EXPECT_NE(resumed.err.find("checksum"), std::string::npos) << resumed.err;
  EXPECT_NE(resumed.err.find("checkpoint-70"), std::string::npos) << "the one before is intact";
  ASSERT_EQ(ferry({"train", "--resume=flipped/checkpoint-70"}).code(), 0) << text_of(root_ / "err");
  expect_as_whole("flipped");
  forget("flipped");
}

}  // namespace
}  // namespace ferry::test
