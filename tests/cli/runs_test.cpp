// ferry runs ls, show and report from outside: what stands on 80 columns, what is found from
// elsewhere, what a report tells and what not.

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using config::contains;

class RunsVerb : public FerryTest {
 protected:
  fs::path make_run(const std::string& path, int n_done, const std::string& phase = "finished") {
    const nlohmann::json record = {{"phase", phase},
                                   {"created", "2026-11-21T10:15:00Z"},
                                   {"model", "/models/bert-base-uncased/"},
                                   {"dataset", "data/sst2.tsv"},
                                   {"n_steps", 40}};
    std::string lines;
    for (int step = 1; step <= n_done; ++step)
      lines +=
          nlohmann::json({{"step", step}, {"loss", 1.0 / step}, {"step_ms", 1500}}).dump() + "\n";
    directory_.write(path + "/metrics.jsonl", lines);
    return directory_.write(path + "/run.json", record.dump()).parent_path();
  }
  static std::vector<std::string> names_in(const nlohmann::json& runs) {
    std::vector<std::string> names;
    for (const auto& run : runs)
      names.push_back(fs::path(run["path"].get<std::string>()).filename().string());
    std::ranges::sort(names);
    return names;
  }
  /** What `ferry runs ls` lists in a directory below. */
  std::vector<std::string> listed_in(const std::string& below) const {
    return names_in(nlohmann::json::parse(
        run_ferry({{"runs", "ls", "--json"}, {{"XDG_DATA_HOME", path("data")}}, path(below)}).out));
  }
};

TEST_F(RunsVerb, ListsOnEightyColumns) {
  make_run("runs/2026-11-21_101500_bert-base-uncased_sst2", 10, "training");
  make_run("runs/2026-11-22_101500_bert-base-uncased_sst2", 40);
  // On a terminal: a pipe gets names in full.
  const Outcome outcome = run_ferry(
      {.arguments = {"-qec", "stty cols 80; '" + ferry_binary() + "' runs ls", "/dev/null"},
       .environment =
           {{"XDG_DATA_HOME", path("data")}, {"LC_ALL", "C"}, {"NO_COLOR", "1"}, {"TERM", "xterm"}},
       .directory = directory_.path().string(),
       .program = "script"});
  if (outcome.exit_code == 98) GTEST_SKIP() << "no script here to make a terminal";
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  std::istringstream lines(outcome.out);
  size_t n_lines = 0;
  for (std::string line; std::getline(lines, line); ++n_lines)
    EXPECT_LE(line.substr(0, line.find('\r')).size(), 80u) << line;
  EXPECT_EQ(n_lines, 3u) << outcome.out;
  EXPECT_TRUE(contains(run("runs ls").out, "2026-11-22_101500_bert-base-uncased_sst2\n"));
  for (const char* part : {"lost", "finished", "25 %", "100 %", "0.1000", "15 s", "1 min",
                           "bert-base", "sst2", "2026-11-21_1015", "2026-11-22_1015"})
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in:\n" << outcome.out;
}

TEST_F(RunsVerb, ChecksReportsAndDeletesForPrograms) {
  const fs::path made = make_run("runs/gamma", 3);
  directory_.write("runs/gamma/config.toml", "seed = 1\n");
  const auto checked = json_of("runs check runs/gamma");
  EXPECT_EQ(checked["settings"], "without a checksum");
  EXPECT_TRUE(checked["checkpoints"].empty());
  const auto reported = json_of("runs report runs/gamma --output r.zip");
  EXPECT_TRUE(fs::exists(directory_.path() / reported["report"].get<std::string>()));
  const auto asked = json_of("runs delete runs/gamma");
  EXPECT_EQ(asked["removed"], false);
  EXPECT_TRUE(fs::exists(made));
  const auto deleted = json_of("runs delete runs/gamma --yes");
  EXPECT_EQ(deleted["removed"], true);
  EXPECT_GT(deleted["paths"][0]["bytes"], 0);
  EXPECT_FALSE(fs::exists(made));
}

TEST_F(RunsVerb, KnowsRunsElsewhereAndTakesTheBeginningOfAName) {
  make_run("other/place/alpha-one", 3);
  make_run("runs/beta", 3);
  EXPECT_EQ(listed_in(""), std::vector<std::string>{"beta"});
  EXPECT_EQ(run("runs ls other/place").exit_code, 0);
  fs::create_directories(directory_.path() / "home/deep");
  EXPECT_EQ(listed_in("home/deep"), (std::vector<std::string>{"alpha-one", "beta"}));
  const Outcome shown =
      run_ferry({{"runs", "show", "alpha"}, {{"XDG_DATA_HOME", path("data")}}, path("home/deep")});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* part : {"alpha-one", "finished", "3 of 40 steps (8 %)", "bert-base-uncased",
                           "sst2.tsv", "0.333333"})
    EXPECT_TRUE(contains(shown.out, part)) << part << " in:\n" << shown.out;
  make_run("runs/alpha-two", 3);
  const Outcome either = run("runs show alpha");
  EXPECT_EQ(either.exit_code, 4);
  EXPECT_TRUE(contains(either.err, "any of 2 runs")) << either.err;
  EXPECT_EQ(run("runs show gamma").exit_code, 4);
  fs::remove_all(directory_.path() / "other/place/alpha-one");
  EXPECT_EQ(listed_in(""), (std::vector<std::string>{"alpha-two", "beta"}));
}

TEST_F(RunsVerb, SaysHowAVerbIsCalled) {
  for (const auto& [words, message] : {std::pair{"", "needs a verb"},
                                       {"show", "ferry runs show needs a RUN"},
                                       {"list", "did you mean 'ls'?"},
                                       {"sohw x", "did you mean 'show'?"},
                                       {"rm x", "did you mean 'delete'?"},
                                       {"logs x", "train.log"},
                                       {"compare a", "usage: ferry runs compare RUN RUN"}})
    expect_refused(std::string("runs ") + words, 2, message);
}

TEST_F(RunsVerb, ComparesInNumbersThatPeopleRead) {
  for (const auto& [name, rate, accuracy] :
       {std::tuple{"first", "2e-5", 0.75}, {"second", "5e-5", 0.8125}}) {
    const std::string run = std::string("both/") + name;
    directory_.write(run + "/run.json", R"({"phase": "finished", "n_steps": 60})");
    directory_.write(run + "/config.toml",
                     std::string("learning_rate = ") + rate + "\noutput_dir = \"" + run + "\"\n");
    directory_.write(
        run + "/metrics.jsonl",
        R"({"step": 60, "loss": 0.66312345, "learning_rate": 0.0, "step_ms": 1000.0, )"
        R"("host_bytes": 573755000, "time": 1795560000.5})"
        "\n" +
            fmt::format(
                R"({{"step": 60, "eval_loss": 0.5, "eval_accuracy": {}, "time": 1795560001.5}})",
                accuracy) +
            "\n");
  }
  const Outcome text = succeed("runs compare both/first both/second");
  for (const char* part : {"547.2 MiB", "0.6631", "0.8125", "5e-05"})
    EXPECT_CONTAINS(text.out, part);
  EXPECT_EQ(text.out.find("learning_rate"), text.out.rfind("learning_rate")) << text.out;
  for (const char* absent : {"e+0", "output_dir", "\ntime "})
    EXPECT_EQ(text.out.find(absent), std::string::npos) << text.out;
  const auto json = json_of("runs compare both/first both/second");
  EXPECT_EQ(json["results"]["eval_accuracy"], nlohmann::json({0.75, 0.8125}));
  EXPECT_EQ(json["results"]["host_bytes"][0], 573755000);
  EXPECT_TRUE(json["settings"].contains("learning_rate"));
}

TEST_F(RunsVerb, ABrokenIndexFailsNoCommand) {
  make_run("runs/alpha", 3);
  const fs::path file = directory_.write("data/ferry/runs.db", std::string(9000, 'z'));
  const auto is_listed = [&] {
    const Outcome outcome = succeed("runs ls --json");
    EXPECT_EQ(names_in(nlohmann::json::parse(outcome.out)), std::vector<std::string>{"alpha"});
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  };
  is_listed();
  fs::remove(file);
  fs::create_directory(file);  // no file at all
  is_listed();
}

/** The zip as Python reads it: {"name": "text"}. */
nlohmann::json unzipped(const fs::path& zip) {
  const Outcome outcome =
      run_ferry({.arguments = {"-c",
                               "import json, sys, zipfile\n"
                               "z = zipfile.ZipFile(sys.argv[1])\n"
                               "assert z.testzip() is None\n"
                               "print(json.dumps({n: z.read(n).decode() for n in z.namelist()}))",
                               zip.string()},
                 .program = "python3"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

TEST_F(RunsVerb, AReportTellsTheRunAndKeepsSecretsTextsAndPlaces) {
  if (run_ferry({.arguments = {"-c", "import zipfile"}, .program = "python3"}).exit_code != 0)
    GTEST_SKIP() << "no python3 here to read the zip";
  const fs::path made = make_run("home/work/runs/alpha", 5000, "failed");
  const std::string home = (directory_.path() / "home").string(), text = "PRIVATE-SENTENCE";
  const std::string token = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345";
  auto record = nlohmann::json::parse(std::ifstream(made / "run.json"));
  record["host"] = "PRIVATE-HOST";
  record["exit_reason"] = "[x] '" + home + "/work/deep/data.tsv' with " + token + " failed";
  record["host_budget_bytes"] = 3LL << 30;
  record["plan"] = {{"why", "all resident"},
                    {"rows", {{{"tag", "weights"}, {"place", "gpu"}, {"bytes", 4096}}}}};
  record["promised"] = {{"training_seconds", 60.0}, {"host_bytes_peak", 1 << 20}};
  record["actual"] = {{"training_seconds", 75.0}, {"host_bytes_peak", 1 << 21}};
  const std::string below = "home/work/runs/alpha/";
  directory_.write(below + "run.json", record.dump());
  directory_.write(below + "config.toml",
                   "dataset = \"" + home + "/PRIVATE-FOLDER/train.tsv\"\nhub_token = \"S3CRET\"\n");
  std::string log =
      "2026-11-21T10:15:00Z ferry train --hub-token S3CRET --dataset /PRIVATE-DISK/a.tsv\n";
  for (int line = 0; line < 3000; ++line)
    log += "2026-11-21T10:15:00Z line " + std::to_string(line) + "\n";
  directory_.write(below + "train.log", log + "2026-11-21T10:16:00Z refused " + token + "\n");
  directory_.write(below + "predictions.jsonl", "{\"text\": \"" + text + "\"}\n");
  std::ofstream(made / "metrics.jsonl", std::ios::app)
      << R"({"step":5001,"loss":0.25,"text":")" + text + "\"}\n";
  directory_.write(below + "checkpoint-5/COMPLETE", "5\n");

  const std::string report = "runs report home/work/runs/alpha ";
  const Outcome outcome = succeed(report + "--output out.zip");
  EXPECT_EQ(outcome.out, "out.zip\n");
  const auto files = unzipped(directory_.path() / "out.zip");
  ASSERT_EQ(files.size(), 6u) << files.dump();
  for (const auto& [name, content] : files.items())
    for (const std::string& secret : {token, std::string("S3CRET"), std::string("PRIVATE"), home})
      EXPECT_FALSE(contains(content.get<std::string>(), secret)) << secret << " in " << name;
  const auto holds = [&](const char* name, const char* part) {
    EXPECT_TRUE(contains(files[name].get<std::string>(), part)) << part << "\n" << files[name];
  };
  holds("config.toml", "dataset = \"~/.../train.tsv\"");
  holds("run.json", "'~/.../data.tsv' with *** failed");
  holds("train.log", "line 2999\n");
  EXPECT_FALSE(contains(files["train.log"].get<std::string>(), "line 500\n")) << "the end only";
  holds("metrics.jsonl", R"({"step":5001,"loss":0.25})");
  holds("plan.txt", "all resident");
  holds("plan.txt", "host memory that it could have: 3.00 GiB");
  holds("plan.txt", "1 min 00 s  1 min 15 s");
  holds("plan.txt", "checkpoint-5 is complete");
  EXPECT_TRUE(nlohmann::json::parse(files["doctor.json"].get<std::string>()).contains("memory"));

  // Nothing is overwritten; the name it chooses itself is a new one each time.
  EXPECT_EQ(run(report + "--output=out.zip").exit_code, 2);
  EXPECT_EQ(run(report).out, "ferry-report-alpha.zip\n");
  EXPECT_EQ(run(report).out, "ferry-report-alpha-2.zip\n");
  EXPECT_EQ(run(report + "--output=no/where.zip").exit_code, 5);
}

TEST_F(RunsVerb, AReportOfABrokenRunIsMadeAllTheSame) {
  const fs::path broken = directory_.write("runs/broken/run.json", "{ half").parent_path();
  const Outcome outcome = succeed("runs report broken");
  EXPECT_TRUE(fs::exists(directory_.path() / "ferry-report-broken.zip"));
  EXPECT_EQ(run("runs ls").exit_code, 0);
}

}  // namespace
}  // namespace ferry::cli
