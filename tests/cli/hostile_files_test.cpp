// Files that are no files in every place where ferry takes one: refused at once, by name.

#include "tests/files/hostile_files.h"

#include <gtest/gtest.h>

#include "tests/cli/run_ferry.h"
#include "tests/files/test_files.h"

namespace ferry::cli {
namespace {

constexpr const char* kTinyBert =
    R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 100,
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 64, "type_vocab_size": 2, "hidden_act": "gelu"})";

class HostileFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (ferry_binary().empty())
      GTEST_SKIP() << "FERRY_BINARY names no ferry; run through meson test";
  }

  /** ferry with these arguments in the directory; {4, or 2 where `is_setting`}, and a message that
   * names the file. */
  void expect_refused(std::vector<std::string> arguments,
                      const std::string& name,
                      const std::string& what,
                      bool is_setting = false) {
    const Outcome outcome = run_ferry({.arguments = std::move(arguments),
                                       .environment = {{"XDG_DATA_HOME", dir_.path().string()}},
                                       .directory = dir_.path().string()});
    EXPECT_EQ(outcome.exit_code, is_setting ? 2 : 4) << what << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(name), std::string::npos) << what << ": " << outcome.err;
    std::filesystem::remove_all(dir_ / name);
  }
  /** A directory or a file that is too long is no file of settings: exit 2, as for one that is not
   * there. */
  static bool is_wrong_setting(const std::string& what) {
    return what == "is a directory" || what == "4096.00 GiB";
  }

  test::TempDir dir_;
};

TEST_F(HostileFiles, Settings) {
  for (const auto& [what, make] : test::hostile_files()) {
    make(dir_ / "x.toml");
    expect_refused({"train", "--config", "x.toml", "--dry-run"}, "x.toml", what,
                   is_wrong_setting(what));
    make(dir_ / "y.toml");
    expect_refused({"train", "--preset", "./y.toml", "--dry-run"}, "y.toml", what,
                   is_wrong_setting(what));
    make(dir_ / "z.toml");
    expect_refused({"presets", "show", "./z.toml"}, "z.toml", what, is_wrong_setting(what));
  }
}

TEST_F(HostileFiles, MachineModelAndData) {
  dir_.write("model/config.json", kTinyBert);
  for (const auto& [what, make] : test::hostile_files()) {
    make(dir_ / "m.json");
    expect_refused({"plan", "--model", "model", "--machine", "m.json"}, "m.json", what);
    std::filesystem::create_directories(dir_ / "broken");
    make(dir_ / "broken/config.json");
    expect_refused({"plan", "--model", "broken"}, "broken/config.json", what);
    if (what == "is a directory") continue;  // may hold a dataset
    make(dir_ / "x.csv");
    expect_refused({"plan", "--model", "model", "--dataset", "x.csv"}, "x.csv", what);
  }
}

/** The kept profile is no part of what the user asked for: the plan does without, the doctor says
 * what is wrong. */
TEST_F(HostileFiles, KeptMachineProfile) {
  dir_.write("model/config.json", kTinyBert);
  const auto run = [&](std::vector<std::string> arguments) {
    return run_ferry({.arguments = std::move(arguments),
                      .environment = {{"XDG_DATA_HOME", dir_.path().string()}},
                      .directory = dir_.path().string()});
  };
  for (const auto& [what, make] : test::hostile_files()) {
    std::filesystem::create_directories(dir_ / "ferry");
    make(dir_ / "ferry/machine.json");
    EXPECT_EQ(run({"plan", "--model", "model"}).exit_code, 0) << what;
    const std::string said = run({"doctor", "--no-measure"}).out;
    EXPECT_NE(said.find("ferry/machine.json' "), std::string::npos) << what << ": " << said;
    std::filesystem::remove_all(dir_ / "ferry");
  }
}

/** A run in whose place somebody made pipes: listed and reported, never waited for. */
TEST_F(HostileFiles, FilesOfARun) {
  const auto run = [&](std::vector<std::string> arguments) {
    return run_ferry({.arguments = std::move(arguments),
                      .environment = {{"XDG_DATA_HOME", (dir_ / "data").string()}},
                      .directory = dir_.path().string()});
  };
  for (const auto& [what, make] : test::hostile_files()) {
    if (what == "4096.00 GiB") continue;
    for (const char* name : {"run.json", "metrics.jsonl", "train.log", "config.toml"}) {
      dir_.write("runs/one/run.json", R"({"phase": "finished", "n_steps": 4})");
      std::filesystem::remove(dir_ / "runs/one" / name);
      make(dir_ / "runs/one" / name);
      for (std::vector<std::string> verb :
           {std::vector<std::string>{"runs", "ls"}, {"runs", "report", "runs/one"}}) {
        const Outcome outcome = run(verb);
        EXPECT_LT(outcome.exit_code, 128) << name << " " << what << ": " << outcome.err;
      }
      std::filesystem::remove_all(dir_ / "runs");
    }
  }
}

}  // namespace
}  // namespace ferry::cli
