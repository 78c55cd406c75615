// A run needs nothing but its own directory and its data: it goes on from anywhere, when the model
// it began with is gone, and after it was moved; and it says what it goes on from.

#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

class StandsAlone : public RunTest {
 protected:
  /** Started in a folder of its own with a model of its own, and killed after its 8th step, when
   * the checkpoint of step 7 is complete. */
  static fs::path killed_run(const std::string& name) {
    const fs::path home = root_ / name;
    fs::create_directories(home);
    fs::copy(root_ / "model", home / "model");
    for (const char* file : {"train.tsv", "dev.tsv"})
      fs::copy(root_ / file, home / file);
    const pid_t child = start_ferry(home, new_run("run"), "");
    wait_until([&] { return fs::exists(home / "run/checkpoint-7/COMPLETE"); });
    ::kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    return home;
  }
  static Outcome ferry_in(const fs::path& directory, const std::vector<std::string>& arguments) {
    Outcome outcome;
    waitpid(start_ferry(directory, arguments, ""), &outcome.status, 0);
    outcome.err = text_of(directory / "err");
    return outcome;
  }
  static void expect_says(const Outcome& outcome, int code, const std::string& part) {
    EXPECT_EQ(outcome.code(), code) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\nin: " << outcome.err;
  }
};

TEST_F(StandsAlone, ResumesElsewhereWithoutItsModelTheSameBits) {
  ASSERT_EQ(ferry(new_run("whole")).code(), 0) << text_of(root_ / "err");
  const fs::path home = killed_run("home"), elsewhere = root_ / "elsewhere";
  fs::remove_all(home / "model");
  fs::create_directories(elsewhere);
  fs::rename(home / "run", root_ / "moved");
  const Outcome outcome = ferry_in(elsewhere, {"train", "--resume=../moved"});
  ASSERT_EQ(outcome.code(), 0) << outcome.err;
  const std::string out = text_of(elsewhere / "out");
  EXPECT_NE(out.find("resumed at step "), std::string::npos) << out;
  EXPECT_NE(out.find(" from checkpoint-"), std::string::npos) << out;
  EXPECT_EQ((out + outcome.err).find("newly initialised"), std::string::npos)
      << "the trained head goes on";
  expect_same_run("whole", "moved");
  for (const char* file : {"config.json", "vocab.txt", "tokenizer_config.json"})
    EXPECT_EQ(text_of(root_ / "whole/final" / file), text_of(root_ / "moved/final" / file));
  EXPECT_EQ(fs::status(root_ / "moved").permissions(), fs::perms::owner_all);
}

TEST_F(StandsAlone, TakesMovedDataButNoOther) {
  const fs::path home = killed_run("with_data");
  fs::rename(home / "train.tsv", home / "texts.tsv");
  expect_says(ferry_in(root_, {"train", "--resume=with_data/run"}), 4, "--dataset PATH");
  fs::copy(root_ / "dev.tsv", home / "other.tsv");
  const Outcome other =
      ferry_in(root_, {"train", "--resume=with_data/run", "--dataset=with_data/other.tsv"});
  expect_says(other, 2, "other.tsv' have changed since the run began");
  expect_says(other, 2, "the texts or labels of '");
  EXPECT_EQ(
      ferry_in(root_, {"train", "--resume=with_data/run", "--dataset=with_data/texts.tsv"}).code(),
      0)
      << text_of(root_ / "err");
  // From now on the run knows the new place.
  EXPECT_NE(text_of(home / "run/config.toml").find((home / "texts.tsv").string()),
            std::string::npos);
}

TEST_F(StandsAlone, SaysFromWhereItGoesOn) {
  // Stopped without a checkpoint: nothing is kept, and nobody says that it is.
  const pid_t child = start(new_run("unsaved", {"--save-strategy=no"}));
  wait_for_line("unsaved", 5);
  EXPECT_EQ(ferry({"runs", "stop", "unsaved", "--no-save"}, "ask_").code(), 0);
  expect_says(wait_for(child), 130, "has no checkpoint, and begins at step 0");
  const Outcome again = ferry({"train", "--resume=unsaved"});
  expect_says(again, 0, "it begins at step 0");
}

TEST_F(StandsAlone, RefusesAnotherOutputDirectory) {
  killed_run("own");
  const Outcome outcome = ferry({"train", "--resume=own/run", "--output-dir=copy"});
  expect_says(outcome, 2, "goes on in its own directory");
  expect_says(outcome, 2, "cp -r");
  EXPECT_FALSE(fs::exists(root_ / "copy"));
  EXPECT_EQ(ferry({"train", "--resume=own/run", "--output-dir=./own/run/"}).code(), 0)
      << "it is its own: " << text_of(root_ / "err");
}

TEST_F(StandsAlone, NamesTheCheckpointBeforeADamagedOne) {
  const fs::path home = root_ / "damaged";
  fs::create_directories(home);
  ASSERT_EQ(ferry(new_run("damaged/run", {"--max-steps=14"})).code(), 0) << text_of(root_ / "err");
  fs::remove_all(home / "run/final");
  for (const char* name :
       {"config.json", "vocab.txt", "model.safetensors", "state/run_state.json"}) {
    const fs::path file = home / "run/checkpoint-14" / name;
    const std::string good = text_of(file);
    std::string bad = good;
    bad[bad.size() - 3] = static_cast<char>(bad[bad.size() - 3] ^ 1);
    std::ofstream(file, std::ios::binary) << bad;
    expect_says(ferry({"train", "--resume=damaged/run"}), 4,
                "ferry train --resume damaged/run/checkpoint-7");
    EXPECT_EQ(ferry({"runs", "check", "damaged/run"}, "ask_").code(), 4) << name;
    std::ofstream(file, std::ios::binary) << good;
  }
  const std::string settings = text_of(home / "run/config.toml");
  std::string edited = settings;
  edited.replace(edited.find("save_total_limit = 2"), 20, "save_total_limit = 3");
  std::ofstream(home / "run/config.toml") << edited;
  expect_says(ferry({"runs", "check", "damaged/run"}), 4, "config.toml' is not as Ferry wrote it");
  std::ofstream(home / "run/config.toml") << settings;
  EXPECT_EQ(ferry({"runs", "check", "damaged/run"}, "ask_").code(), 0)
      << text_of(root_ / "ask_err");
  EXPECT_EQ(ferry({"train", "--resume=damaged/run/checkpoint-7"}).code(), 0)
      << text_of(root_ / "err");
}

TEST_F(StandsAlone, AFinishedRunGoesOnForMoreSteps) {
  const auto resumed = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train", "--resume=longer"};
    words.insert(words.end(), more.begin(), more.end());
    return ferry(words);
  };
  ASSERT_EQ(ferry(new_run("longer", {"--max-steps=14"})).code(), 0) << text_of(root_ / "err");
  EXPECT_EQ(resumed({"--worker-threads=2"}).code(), 0) << "it is finished, and nothing is asked";
  expect_says(resumed({"--lr=1e-4"}), 2, "--max-steps N");
  expect_says(resumed({"--max-steps=14", "--seed=3"}), 2, "so --seed cannot be taken");
  expect_says(resumed({"--max-steps=10"}), 2, "finished after 14 steps");
  const Outcome outcome = resumed({"--max-steps=20", "--weight-decay=0.01"});
  expect_says(outcome, 0, "weight_decay was 0");
  EXPECT_TRUE(fs::exists(root_ / "longer/final.left"));
  EXPECT_NE(text_of(root_ / "longer/final/model.safetensors"),
            text_of(root_ / "longer/final.left/model.safetensors"));
  EXPECT_NE(curve_of("longer").find("step20 "), std::string::npos);
  const auto history = nlohmann::json::parse(text_of(root_ / "longer/run.json")).at("history");
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history[0].at("step"), 14);
  EXPECT_EQ(history[0].at("changes").at("max_steps"),
            (nlohmann::json{{"was", "14"}, {"is", "20"}}));
  EXPECT_TRUE(history[0].at("changes").contains("weight_decay"));
}

TEST_F(StandsAlone, ChangesOfWhatFixesTheBitsAreKept) {
  killed_run("other_bits");
  const Outcome refused = ferry({"train", "--resume=other_bits/run", "--seed=43"});
  expect_says(refused, 2, "seed was 42 when the run began, and is 43 now");
  expect_says(refused, 2, "set it back (--seed 42)");
  const Outcome outcome =
      ferry({"train", "--resume=other_bits/run", "--seed=43", "--data-seed=42", "--new-identity"});
  expect_says(outcome, 0, "seed was 42, and is 43 from step ");
  const auto about = nlohmann::json::parse(text_of(root_ / "other_bits/run/run.json"));
  EXPECT_EQ(about.at("history")[0].at("changes").at("seed").at("is"), 43);
  for (const char* key : {"kernels", "cpu_vendor", "device"})
    EXPECT_TRUE(about.at("identity").contains(key)) << key;
}

}  // namespace
}  // namespace ferry::test
