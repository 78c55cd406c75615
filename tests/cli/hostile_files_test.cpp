// Files that are no files in every place where ferry takes one: refused at once, by name.

#include "tests/files/hostile_files.h"

#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

class HostileFiles : public FerryTest {
 protected:
  /** It refuses the file and names it: with 4, or 2 where that holds settings. */
  void expect_named(const std::string& line,
                    const std::string& name,
                    const std::string& what,
                    bool is_setting = false) const {
    SCOPED_TRACE(what);
    expect_refused(line, is_setting ? 2 : 4, name);
    std::filesystem::remove_all(path(name));
  }
  /** A directory or a file that is too long is no file of settings: exit 2, as for one that is not
   * there. */
  static bool is_wrong_setting(const std::string& what) {
    return what == "is a directory" || what == "4096.00 GiB";
  }
};

TEST_F(HostileFiles, Settings) {
  for (const auto& [what, make] : test::hostile_files()) {
    make(path("x.toml"));
    expect_named("train --config x.toml --dry-run", "x.toml", what, is_wrong_setting(what));
    make(path("y.toml"));
    expect_named("train --preset ./y.toml --dry-run", "y.toml", what, is_wrong_setting(what));
    make(path("z.toml"));
    expect_named("presets show ./z.toml", "z.toml", what, is_wrong_setting(what));
  }
}

TEST_F(HostileFiles, MachineModelAndData) {
  directory_.write("model/config.json", kTinyBert);
  for (const auto& [what, make] : test::hostile_files()) {
    make(path("m.json"));
    expect_named("plan --model model --machine m.json", "m.json", what);
    std::filesystem::create_directories(path("broken"));
    make(path("broken/config.json"));
    expect_named("plan --model broken", "broken/config.json", what);
    if (what == "is a directory") continue;  // may hold a dataset
    make(path("x.csv"));
    expect_named("plan --model model --dataset x.csv", "x.csv", what);
  }
}

/** The kept profile is no part of what the user asked for: the plan does without, the doctor says
 * what is wrong. */
TEST_F(HostileFiles, KeptMachineProfile) {
  directory_.write("model/config.json", kTinyBert);
  for (const auto& [what, make] : test::hostile_files()) {
    std::filesystem::create_directories(path("data/ferry"));
    make(path("data/ferry/machine.json"));
    EXPECT_EQ(run("plan --model model").exit_code, 0) << what;
    const std::string said = run("doctor --no-measure").out;
    EXPECT_NE(said.find("ferry/machine.json' "), std::string::npos) << what << ": " << said;
    std::filesystem::remove_all(path("data/ferry"));
  }
}

/** A run in whose place somebody made pipes: listed and reported, never waited for. */
TEST_F(HostileFiles, FilesOfARun) {
  for (const auto& [what, make] : test::hostile_files()) {
    if (what == "4096.00 GiB") continue;
    for (const char* name : {"run.json", "metrics.jsonl", "train.log", "config.toml"}) {
      directory_.write("runs/one/run.json", R"({"phase": "finished", "n_steps": 4})");
      std::filesystem::remove(path("runs/one/") + name);
      make(path("runs/one/") + name);
      for (const char* line : {"runs ls", "runs report runs/one"}) {
        const Outcome outcome = run(line);
        EXPECT_LT(outcome.exit_code, 128) << name << " " << what << ": " << outcome.err;
      }
      std::filesystem::remove_all(path("runs"));
    }
  }
}

}  // namespace
}  // namespace ferry::cli
