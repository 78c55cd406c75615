// Runs of every task with drawn options, each killed at drawn moments and resumed with its bytes at
// other places: in memory, on a drive, on another one. Each ends with what one has that never
// stopped: final model, predictions, samples, metrics but for times.
//
// A seeded sample here. FERRY_LONG=1: 300 runs, and as many more as 800 kills take. More of it, on
// a GPU for example, from the tests of any build there:
//
//   FERRY_TEST_DEVICE=cuda FERRY_KILL_RUNS=100 FERRY_KILL_SEED=5 tests/train/kill_loop_test
//
// FERRY_KILL_ONLY=N repeats the Nth run of a seed alone.

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <set>

#include "src/runs/directory/checkpoints.h"
#include "tests/train/run_test.h"

namespace ferry::test {
namespace {

unsigned number_told(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text ? static_cast<unsigned>(std::stoul(text)) : otherwise;
}

/** Choices of one run; those of a seed are the same everywhere. */
class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}

  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  bool one_in(unsigned n) { return below(n) == 0; }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + below(static_cast<unsigned>(values.size())));
  }

 private:
  std::mt19937 random_;
};

struct TaskOfRun {
  const char* name;
  std::vector<std::string> words;
  bool has_one_label = false, is_language = false, is_decoder = false;
};

const std::vector<TaskOfRun> kTasks = {
    {"classification", {}, /*has_one_label=*/true},
    {"regression", {"--dataset=scores.tsv", "--eval-dataset=scores_dev.tsv"}},
    {"multi-label", {"--dataset=lists.jsonl", "--eval-dataset=lists_dev.jsonl"}},
    {"token-classification",
     {"--task=ner", "--dataset=tags.jsonl", "--eval-dataset=tags_dev.jsonl"},
     true},
    {"question-answering",
     {"--task=qa", "--dataset=qa.jsonl", "--eval-dataset=qa_dev.jsonl", "--max-length=24",
      "--doc-stride=4"}},
    {"mlm",
     {"--task=mlm", "--dataset=docs.jsonl", "--eval-dataset=docs_dev.jsonl", "--max-length=16"},
     true,
     /*is_language=*/true},
    {"causal-lm",
     {"--model=decoder", "--task=causal-lm", "--dataset=docs.jsonl",
      "--eval-dataset=docs_dev.jsonl", "--max-length=16"},
     true,
     true,
     /*is_decoder=*/true}};

void add(std::vector<std::string>& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

/** What fixes a run's result. */
std::vector<std::string> draw_run(const TaskOfRun& task, Dice& dice) {
  std::vector<std::string> words = task.words;
  add(words, {"--lr=" + dice.one_of<std::string>({"1e-3", "3e-3", "1e-2", "3e-2"}),
              "--lr-scheduler-type=" + dice.one_of<std::string>({"linear", "cosine", "constant"}),
              "--micro-batch-size=" + dice.one_of<std::string>({"2", "4", "8"}),
              "--max-grad-norm=" + dice.one_of<std::string>({"0", "1", "1"}),
              "--save-total-limit=" + dice.one_of<std::string>({"1", "1", "2", "3"}),
              "--seed=" + std::to_string(dice.below(1000))});
  if (dice.one_in(2))
    add(words, {"--epochs=" + dice.one_of<std::string>({"1", "2", "2.5"})});
  else
    add(words, {"--max-steps=" + std::to_string(12 + dice.below(50))});
  switch (dice.below(5)) {
    case 0:
      add(words, {"--save-strategy=epoch"});
      break;
    case 1:
      add(words, {"--save-strategy=no"});
      break;
    default:
      add(words, {"--save-steps=" + dice.one_of<std::string>({"3", "7", "10", "100"})});
  }
  const bool evaluates = !dice.one_in(5);
  if (!evaluates)
    add(words, {"--eval-strategy=no"});
  else if (!dice.one_in(3))
    add(words,
        {"--eval-strategy=steps", "--eval-steps=" + dice.one_of<std::string>({"3", "5", "8"})});
  if (evaluates && !dice.one_in(3))
    add(words, {"--load-best-model-at-end=true",
                "--greater-is-better=" + dice.one_of<std::string>({"auto", "auto", "true"})});
  if (evaluates && dice.one_in(3))
    add(words, {"--early-stopping-patience=" + dice.one_of<std::string>({"1", "2", "3"})});
  switch (dice.below(6)) {
    case 0:
      add(words, {"--optim=adamw_8bit"});
      break;
    case 1:
      add(words, {"--optim=adamw_bf16"});
      break;
    case 2:
      add(words, {"--dtype=bf16", "--master=split"});
      break;
    case 3:
      add(words, {"--dtype=bf16"});
      break;
    default:
      break;
  }
  if (task.has_one_label && dice.one_in(3)) add(words, {"--label-smoothing=0.1"});
  if (task.is_language && dice.one_in(2)) add(words, {"--packing=true"});
  const std::string layers = task.is_decoder ? "model.layers." : "bert.encoder.layer.";
  if (dice.one_in(3)) add(words, {"--freeze=" + layers + "0.*"});
  if (dice.one_in(3))
    add(words, {"--param-groups=" + layers + "1.*:lr=1e-3,decay=0.1", "--weight-decay=0.01"});
  if (dice.one_in(4)) add(words, {"--layerwise-lr-decay=0.9"});
  if (task.is_decoder && !dice.one_in(4))
    add(words, {"--sample-prompts=the old", "--max-new-tokens=4", "--temperature=1",
                "--sample-steps=" + dice.one_of<std::string>({"4", "10", "0.3"})});
  return words;
}

class KillLoop : public RunTest {
 protected:
  static void SetUpTestSuite() {
    RunTest::SetUpTestSuite();
    write_tiny_language_model(root_ / "decoder");
    for (const auto& [name, n, seed] :
         {std::tuple{std::string(), 200, 1u}, {std::string("_dev"), 40, 2u}}) {
      write_tiny_scores(root_ / ("scores" + name + ".tsv"), n, seed);
      write_tiny_label_lists(root_ / ("lists" + name + ".jsonl"), n, seed);
      write_tiny_tags(root_ / ("tags" + name + ".jsonl"), n, seed);
      write_tiny_questions(root_ / ("qa" + name + ".jsonl"), n, seed);
      write_tiny_documents(root_ / ("docs" + name + ".jsonl"), n, seed);
    }
    for (const char* drive : {"drive", "other"})
      fs::create_directories(root_ / drive);
  }

  /** Where its bytes live this time, none of which may show. */
  static std::vector<std::string> draw_place(Dice& dice) {
    std::vector<std::string> words = {
        "--activations=" + dice.one_of<std::string>({"keep", "recompute", "host"}),
        "--accumulation-order=" + dice.one_of<std::string>({"horizontal", "vertical"}),
        "--worker-threads=" + std::to_string(1 + dice.below(3)),
        "--optimizer-overlap=" + dice.one_of<std::string>({"true", "false"}),
        "--save-weights=" + dice.one_of<std::string>({"true", "false", "false"})};
    if (dice.one_in(3))
      add(words, {"--placement=" + dice.one_of<std::string>({"resident", "host"}), "--nvme-path="});
    else
      add(words, {"--placement=nvme",
                  "--nvme-path=" +
                      (root_ / dice.one_of<std::string>({"drive", "drive", "other"})).string()});
    return words;
  }

  /** The lines of a step, an evaluation each, but for what is measured. */
  static std::vector<std::string> metrics_of(const std::string& run) {
    std::vector<std::string> rows;
    std::istringstream lines(text_of(root_ / run / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      auto json = nlohmann::json::parse(line);
      if (json.contains("save_seconds")) continue;  // written when the disk was done
      for (const char* key :
           {"time", "step_ms", "train_tokens_per_second", "host_bytes", "host_bytes_pinned"})
        json.erase(key);
      rows.push_back(json.dump());
    }
    return rows;
  }
  static std::map<std::string, std::string> files_of(const fs::path& directory) {
    std::map<std::string, std::string> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error))
      files[entry.path().filename().string()] = text_of(entry.path());
    return files;
  }
  static std::set<std::string> names_of(const std::map<std::string, std::string>& files) {
    std::set<std::string> names;
    for (const auto& [name, text] : files)
      names.insert(name);
    return names;
  }
  static void expect_same_files(const std::string& whole,
                                const std::string& run,
                                const std::string& directory) {
    const auto all = files_of(root_ / whole / directory), got = files_of(root_ / run / directory);
    EXPECT_EQ(names_of(all), names_of(got)) << directory;
    for (const auto& [name, text] : all)
      EXPECT_TRUE(got.contains(name) && got.at(name) == text) << directory << "/" << name;
  }
  /** The sentence on the best model; empty where the process ended before it said so. */
  static std::string best_told_by(const std::string& run) {
    std::string told;
    std::istringstream lines(text_of(root_ / run / "train.log"));
    for (std::string line; std::getline(lines, line);)
      if (line.find("the best evaluation was") != line.npos) told = line.substr(line.find(' '));
    return told;
  }
  static std::string warning_of(const std::string& run) {
    return nlohmann::json::parse(text_of(root_ / run / "run.json")).value("warning", "");
  }
  static void expect_same(const std::string& whole, const std::string& run) {
    EXPECT_EQ(metrics_of(whole), metrics_of(run));
    expect_same_files(whole, run, "final");
    expect_same_files(whole, run, "samples");
    EXPECT_TRUE(text_of(root_ / whole / "predictions.jsonl") ==
                text_of(root_ / run / "predictions.jsonl"));
    EXPECT_EQ(warning_of(whole), warning_of(run));
    if (const std::string told = best_told_by(run); !told.empty()) {
      EXPECT_EQ(best_told_by(whole), told);
    }
    EXPECT_EQ(nlohmann::json::parse(text_of(root_ / run / "run.json")).at("phase"), "finished");
    for (const auto& entry : fs::recursive_directory_iterator(root_ / run))
      for (const char* part : {".tmp", ".partial", ".old", ".left"})
        EXPECT_EQ(entry.path().filename().string().find(part), std::string::npos) << entry.path();
    EXPECT_EQ(ferry({"runs", "check", run}).code(), 0) << text_of(root_ / "err");
  }
  static void forget(const std::string& run) {
    fs::remove_all(root_ / run);
    for (const char* drive : {"drive", "other"})
      fs::remove(root_ / drive / (run + ".states"));
  }
  static std::string line_of(const std::vector<std::string>& words) {
    std::string line = "ferry";
    for (const std::string& word : words)
      line += " '" + word + "'";
    return line;
  }

  /** Left before its end: killed, or asked to save and leave. */
  static bool is_left(const Outcome& outcome) {
    return WIFSIGNALED(outcome.status) || outcome.code() == 130;
  }
  /** Started or resumed, and killed at a drawn moment: by the clock, or just before a drawn call
   * that changes a file. Now and then it is asked to leave. */
  static Outcome kill_at_any_moment(const std::vector<std::string>& words,
                                    Dice& dice,
                                    int64_t whole_ms,
                                    unsigned n_calls,
                                    std::string& told) {
    if (dice.one_in(2)) {
      const auto delay = std::chrono::milliseconds(dice.below(static_cast<unsigned>(whole_ms)));
      const int signal = dice.one_in(5) ? SIGTERM : SIGKILL;
      told += line_of(words) + "  # signal " + std::to_string(signal) + " after " +
              std::to_string(delay.count()) + " ms\n";
      const pid_t child = start(words);
      std::this_thread::sleep_for(delay);
      ::kill(child, signal);
      return wait_for(child);
    }
    const std::string call = std::to_string(1 + dice.below(n_calls));
    told += "MOMENT_KILL=" + call + " " + line_of(words) + "\n";
    return wait_for(start_ferry(root_, words, "", [&] {
      ::setenv("LD_PRELOAD", FILE_MOMENTS, 1);
      ::setenv("MOMENT_KILL", call.c_str(), 1);
    }));
  }
};

TEST_F(KillLoop, EndsAsARunThatNeverStopped) {
  const unsigned n_runs = number_told("FERRY_KILL_RUNS", is_long() ? 300 : 4),
                 n_kills_wanted = is_long() && !std::getenv("FERRY_KILL_RUNS") ? 800 : 0,
                 seed = number_told("FERRY_KILL_SEED", 40),
                 only = number_told("FERRY_KILL_ONLY", UINT_MAX);
  constexpr unsigned kKills_max = 5;
  unsigned n_compared = 0, n_kills = 0, n_stops = 0, n_diverged = 0, n_resumes = 0;
  for (unsigned i = 0; i < n_runs || n_kills < n_kills_wanted; ++i) {
    if (only != UINT_MAX && i != only) {
      if (i > only) break;
      continue;
    }
    Dice dice(seed * 100'003 + i);
    const TaskOfRun& task = kTasks[i % kTasks.size()];
    const auto options = draw_run(task, dice);
    const auto begin = [&](const std::string& run, const std::vector<std::string>& place) {
      auto words = new_run(run, options);
      words.insert(words.end(), place.begin(), place.end());
      return words;
    };
    std::string told = task.name + std::string("\n");
    const auto whole = begin("whole", {"--placement=host"});
    told += line_of(whole) + "\n";
    const auto start = std::chrono::steady_clock::now();
    const fs::path counted = root_ / "counted";
    const Outcome of_whole = wait_for(start_ferry(root_, whole, "", [&] {
      ::setenv("LD_PRELOAD", FILE_MOMENTS, 1);
      ::setenv("MOMENT_COUNT", counted.c_str(), 1);
    }));
    const int64_t whole_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                 std::chrono::steady_clock::now() - start)
                                 .count();
    if (of_whole.code() == 6) {  // diverged
      ++n_diverged;
      forget("whole");
      continue;
    }
    ASSERT_EQ(of_whole.code(), 0) << told << of_whole.err;
    const auto n_calls = static_cast<unsigned>(std::stoul(text_of(counted)));
    const unsigned n_kills_of_run = 2 + dice.below(kKills_max - 1);
    Outcome outcome;
    for (unsigned tried = 0;; ++tried) {
      const auto place = draw_place(dice);
      std::vector<std::string> words = begin("killed", place);
      if (fs::exists(root_ / "killed/config.toml")) {
        words = {"train", "--resume=killed"};
        words.insert(words.end(), place.begin(), place.end());
        ++n_resumes;
      }
      if (tried < n_kills_of_run) {
        outcome = kill_at_any_moment(words, dice, whole_ms, n_calls, told);
      } else {
        told += line_of(words) + "\n";
        outcome = ferry(words);
      }
      n_kills += outcome.was_killed();
      n_stops += is_left(outcome) && !outcome.was_killed();
      if (!is_left(outcome)) break;
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ", run " + std::to_string(i) + ", " + told);
    EXPECT_EQ(outcome.code(), 0) << outcome.err;
    if (outcome.code() == 0) expect_same("whole", "killed");
    ++n_compared;
    forget("whole");
    forget("killed");
  }
  std::printf(
      "%u runs compared, %u kills, %u stops, %u resumes; %u runs diverged and were left out\n",
      n_compared, n_kills, n_stops, n_resumes, n_diverged);
  EXPECT_GT(n_compared, 0u);
}

}  // namespace
}  // namespace ferry::test
