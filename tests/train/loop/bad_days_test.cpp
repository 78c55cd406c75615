// A run's behaviour when its surroundings fail it: nobody reads its output, its terminal closes,
// the clock jumps, its directory moves or may not be written to, the disk is too small, files are
// of a newer Ferry; and what it leaves to read.

#include <fcntl.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "src/base/bytes.h"
#include "src/runs/directory/checkpoints.h"
#include "tests/cli/run_ferry.h"
#include "tests/config/config_fixture.h"
#include "tests/train/start_ferry.h"
#include "tests/train/tiny_model.h"

namespace ferry::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using cli::Outcome;
using cli::run_ferry;
using config::contains;
using Words = std::vector<std::string>;

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class BadDays : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<config::TemporaryDirectory>();
    root_ = directory_->path();
    fs::permissions(root_, fs::perms::all);
    write_tiny_model(root_ / "model");
    write_tiny_data(root_ / "train.tsv", 80, 1);
    write_tiny_data(root_ / "dev.tsv", 20, 2);
    setenv("FERRY_BINARY", FERRY_BINARY, 1);
    setenv("FERRY_TRAINER", FERRY_TRAINER_BINARY, 1);
    setenv("XDG_DATA_HOME", (root_ / "data").c_str(), 1);
  }
  static void TearDownTestSuite() { directory_.reset(); }

  static Outcome ferry(const Words& words) { return run_ferry({words, {}, root_.string()}); }
  static Words new_run(const std::string& run, const Words& more = {}) {
    Words words = {
        "train",          "--model=model",        "--dataset=train.tsv",  "--eval-dataset=dev.tsv",
        "--device=cpu",   "--train-batch-size=8", "--intra-op-threads=1", "--epochs=2",
        "--save-steps=5", "--logging-steps=1",    "--output-dir=" + run};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /** A run that ends by itself only where it fails; `act` comes once it has a checkpoint. */
  static Outcome run_long(const std::string& run, const std::function<void()>& act) {
    Outcome outcome;
    std::atomic<bool> has_ended = false;
    std::thread running([&] {
      outcome = ferry(new_run(run, {"--epochs=100000"}));
      has_ended = true;
    });
    while (!has_ended && runs::complete_checkpoints(root_ / run).empty())
      std::this_thread::sleep_for(5ms);
    if (!has_ended) act();  // else the outcome says why
    running.join();
    return outcome;
  }
  /** As if the run had been killed at its end. */
  static void forget_end(const std::string& run) { fs::remove_all(root_ / run / "final"); }
  static nlohmann::json record_of(const std::string& run) {
    return nlohmann::json::parse(text_of(root_ / run / "run.json"));
  }
  static void expect_holds(const std::string& text, const Words& parts) {
    for (const std::string& part : parts)
      EXPECT_TRUE(contains(text, part)) << part << " in: " << text;
  }

  static inline std::unique_ptr<config::TemporaryDirectory> directory_;
  static inline fs::path root_;
};

TEST_F(BadDays, TheLogTellsTheRun) {
  ASSERT_EQ(ferry(new_run("told", {"--host-memory=6GiB", "--lr=3e-3"})).exit_code, 0);
  const std::string log = text_of(root_ / "told/train.log");
  const std::string first = log.substr(0, log.find('\n'));
  EXPECT_TRUE(std::regex_match(
      first,
      std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ferry train --model=model .*--lr=3e-3)")))
      << first;
  expect_holds(log, {"using learning_rate", "step 1/20: loss", "step 20/20: loss"});
  for (const char* never : {"\r", "\x1b", "predictions on", "the old"})
    EXPECT_FALSE(contains(log, never)) << never << " in: " << log;
  const auto record = record_of("told");
  EXPECT_EQ(record["n_steps"], 20);
  EXPECT_FALSE(record["plan"]["rows"].empty());
  EXPECT_EQ(record["host_budget_bytes"], 6 * kGiB);
  EXPECT_GT(record["promised"]["host_bytes_peak"], 0);
  EXPECT_GT(record["actual"]["training_seconds"], 0);
  EXPECT_TRUE(contains(run_ferry({{"runs", "ls"}, {}, "/"}).out, "told")) << "known from anywhere";

  // The lines of a resumed run stand below; a log that cannot be written is said once.
  forget_end("told");
  ASSERT_EQ(ferry({"train", "--resume=told"}).exit_code, 0);
  expect_holds(text_of(root_ / "told/train.log"),
               {first, "Z the run is resumed: ferry train --resume=told\n"});
  forget_end("told");
  fs::remove(root_ / "told/train.log");
  fs::create_directory(root_ / "told/train.log");
  const Outcome full = ferry({"train", "--resume=told/checkpoint-15"});
  EXPECT_EQ(full.exit_code, 0) << full.err;
  const size_t said = full.err.find("train.log' cannot be written");
  EXPECT_NE(said, std::string::npos) << full.err;
  EXPECT_EQ(full.err.find("train.log' cannot be written", said + 1), std::string::npos) << full.err;
}

TEST_F(BadDays, NobodyReadsItsOutput) {
  // `true` has gone before the first line; both outputs are pipes that nobody reads.
  const Outcome outcome = run_ferry(
      {.arguments = {"-c", "{ \"$@\"; echo $? >code; } 2>&1 | true", "bash", FERRY_BINARY, "train",
                     "--model=model", "--dataset=train.tsv", "--device=cpu", "--lr=1e-3",
                     "--max-steps=5", "--logging-steps=1", "--output-dir=unread"},
       .directory = root_.string(),
       .program = "bash"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(text_of(root_ / "code"), "0\n");
  EXPECT_TRUE(fs::exists(root_ / "unread/final/model.safetensors"));
  EXPECT_EQ(record_of("unread")["phase"], "finished");
  expect_holds(text_of(root_ / "unread/train.log"), {"step 5/5: loss"});
}

TEST_F(BadDays, AFailureSaysHowToReportIt) {
  ASSERT_EQ(ferry(new_run("reported")).exit_code, 0);
  forget_end("reported");
  // Settings that are refused say all that there is to say, and leave the run as it is.
  const auto before = record_of("reported");
  const Outcome refused = ferry({"train", "--resume=reported", "--seed=43"});
  EXPECT_EQ(refused.exit_code, 2);
  expect_holds(refused.err, {"seed was 42"});
  EXPECT_FALSE(contains(refused.err, "runs report")) << refused.err;
  EXPECT_EQ(record_of("reported"), before);
  for (const fs::directory_entry& entry : fs::directory_iterator(root_ / "reported"))
    if (entry.path().filename().string().starts_with("checkpoint-"))
      fs::resize_file(entry.path() / "state/adam_m.safetensors", 100);
  const Outcome failed = ferry({"train", "--resume=reported"});
  EXPECT_EQ(failed.exit_code, 4);
  expect_holds(failed.err, {"adam_m", "`ferry runs report 'reported'`"});
  EXPECT_EQ(record_of("reported")["phase"], "failed");
  fs::rename(root_ / "model", root_ / "model_away");
  const Outcome no_model = ferry({"train", "--resume=reported"});
  fs::rename(root_ / "model_away", root_ / "model");
  EXPECT_EQ(no_model.exit_code, 4);
  expect_holds(no_model.err, {"`ferry runs report 'reported'`"});
  const Outcome usage = ferry({"train", "--resume=reported", "--lr=-7"});
  EXPECT_EQ(usage.exit_code, 2);
  EXPECT_FALSE(contains(usage.err, "runs report")) << usage.err;
  const Outcome report = ferry({"runs", "report", "reported", "--output", "report.zip"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
}

/** The plan's figure for a checkpoint is the size of its files. */
TEST_F(BadDays, ThePlanKnowsACheckpointsBytes) {
  ASSERT_EQ(ferry(new_run("measured", {"--max-steps=5"})).exit_code, 0);
  int64_t n_bytes = 0;
  for (const char* file :
       {"model.safetensors", "state/adam_m.safetensors", "state/adam_v.safetensors"}) {
    const std::string bytes = text_of(root_ / "measured/checkpoint-5" / file);
    uint64_t n_header = 0;
    ASSERT_GT(bytes.size(), sizeof n_header) << file;
    std::memcpy(&n_header, bytes.data(), sizeof n_header);
    n_bytes += static_cast<int64_t>(bytes.size() - sizeof n_header - n_header);
  }
  // The plan is of the trained model, which has the head that was trained.
  const Outcome plan = ferry({"plan", "--model=measured", "--device=cpu", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(nlohmann::json::parse(plan.out)["disk"]["checkpoint_bytes"], n_bytes);
}

TEST_F(BadDays, ADiskThatIsTooSmallIsToldBeforeTheFirstStep) {
  const auto disk =
      nlohmann::json::parse(ferry({"plan", "--model=model", "--device=cpu", "--json"}).out)["disk"];
  const int64_t each = disk["checkpoint_bytes"], free = disk["free_bytes"],
                too_many = free / (each + (4 << 20)) + 2;
  if (too_many > 1'000'000) GTEST_SKIP() << "a disk for a million checkpoints";
  const std::string limit = "--save-total-limit=" + std::to_string(too_many);
  const Outcome refused = ferry(new_run("too_much", {limit}));
  EXPECT_EQ(refused.exit_code, 3);
  expect_holds(refused.err, {"save_total_limit", "save_strategy = no", "output_dir", " free"});
  EXPECT_FALSE(fs::exists(root_ / "too_much"));
  EXPECT_EQ(ferry(new_run("no_checkpoints", {limit, "--save-strategy=no"})).exit_code, 0);
}

TEST_F(BadDays, ItsDirectoryIsMovedAway) {
  const Outcome outcome = run_long("before", [] { fs::rename(root_ / "before", root_ / "after"); });
  EXPECT_EQ(outcome.exit_code, 5);
  expect_holds(outcome.err, {"was moved to '" + (root_ / "after").string() + "'",
                             "last complete checkpoint is '", "--resume"});
  EXPECT_FALSE(fs::exists(root_ / "before"));
  EXPECT_EQ(ferry({"train", "--resume=after", "--epochs=2", "--max-steps=1"}).exit_code, 0);
}

/** Between the look whether the directory is there and the write into it. */
TEST_F(BadDays, ItsDirectoryIsMovedAwayWhileAFileIsWritten) {
  struct Moment {
    const char *call, *path;
  };
  // The record of an evaluation's begin, its predictions, and a checkpoint's first file and last.
  for (const Moment& moment :
       {Moment{"rename", "/run.json"}, Moment{"open", "predictions.jsonl"},
        Moment{"open", "/checkpoint-10.tmp/"}, Moment{"open", "/checkpoint-10/"}}) {
    SCOPED_TRACE(std::string(moment.call) + " " + moment.path);
    const fs::path before = root_ / "moving", after = root_ / "moved";
    const Outcome outcome =
        run_ferry({.arguments = new_run("moving", {"--epochs=4", "--save-total-limit=9"}),
                   .environment = {{"LD_PRELOAD", MOVED_DIRECTORY},
                                   {"MOVE_RUN", before.string()},
                                   {"MOVE_TO", after.string()},
                                   {"MOVE_AT_CALL", moment.call},
                                   {"MOVE_AT_PATH", moment.path}},
                   .directory = root_.string()});
    EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
    expect_holds(outcome.err, {"was moved to '" + after.string() + "'", "--resume"});
    for (const char* never : {"training goes on", "could not be"})
      EXPECT_FALSE(contains(outcome.err, never)) << never << " in: " << outcome.err;
    EXPECT_FALSE(fs::exists(before));
    fs::remove_all(after);
  }
}

TEST_F(BadDays, ItsDirectoryIsRemoved) {
  const Outcome outcome = run_long("gone", [] {
    std::error_code error;
    do {
      fs::remove_all(root_ / "gone", error);  // again, while the run still puts files there
    } while (fs::exists(root_ / "gone"));
  });
  EXPECT_EQ(outcome.exit_code, 5);
  expect_holds(outcome.err, {"gone'", "was removed"});
  EXPECT_FALSE(fs::exists(root_ / "gone")) << "nothing comes back that is no run";
}

/** Reads what the run says until it says `word`; then the terminal's window is closed. */
int run_in_terminal_that_closes(const fs::path& root,
                                Words words,
                                bool knows_nohup,
                                const std::string& word) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    // These tests themselves may run under nohup.
    std::signal(SIGHUP, knows_nohup ? SIG_IGN : SIG_DFL);
    words.insert(words.begin(), FERRY_BINARY);
    std::vector<char*> pointers;
    for (std::string& w : words)
      pointers.push_back(w.data());
    pointers.push_back(nullptr);
    if (::chdir(root.c_str()) == 0) ::execv(FERRY_BINARY, pointers.data());
    ::_exit(127);
  }
  std::string said;
  char buffer[4096];
  for (ssize_t n; !contains(said, word) && (n = ::read(terminal, buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(n));
  EXPECT_TRUE(contains(said, word)) << said;
  ::close(terminal);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(BadDays, ItsTerminalIsClosed) {
  // Who said nohup wants it to go on: its words go nowhere.
  EXPECT_EQ(run_in_terminal_that_closes(root_, new_run("nohup", {"--epochs=20"}), true, "/200"), 0);
  EXPECT_EQ(record_of("nohup")["phase"], "finished");
  expect_holds(text_of(root_ / "nohup/train.log"), {"step 200/200: loss"});
  // Others find it saved.
  EXPECT_EQ(run_in_terminal_that_closes(root_, new_run("closed", {"--epochs=100000"}), false, "/1"),
            130);
  EXPECT_EQ(record_of("closed")["phase"], "stopped");
  EXPECT_FALSE(runs::complete_checkpoints(root_ / "closed").empty());
}

/** Another program takes the rest of the memory: what the process holds stays, what it asks for
 * from now on it does not get. The stack is no part of that limit. */
void take_memory_from(pid_t child) {
  std::ifstream status("/proc/" + std::to_string(child) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) {
      const auto bytes = static_cast<rlim_t>(std::stoll(line.substr(7))) << 10;
      const rlimit limit = {bytes, bytes};
      ::prlimit(child, RLIMIT_DATA, &limit, nullptr);
    }
}

TEST_F(BadDays, HostMemoryRunsOutAtAnyMoment) {
  const Words more = {"--epochs=5", "--eval-steps=4", "--micro-batch-size=4"};
  const auto started = [&](const Words& words) { return start_ferry(root_, words, "hungry_"); };
  const auto await_end = [](pid_t child) {
    const auto end = std::chrono::steady_clock::now() + 120s;
    for (int status = 0; std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(2ms))
      if (::waitpid(child, &status, WNOHANG) == child)
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return -1000;  // hangs
  };
  const auto is_alive = [](pid_t child) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  };
  const auto holds = [](const std::string& run, const char* file, const std::string& text) {
    std::error_code error;
    return fs::exists(root_ / run / file, error) && contains(text_of(root_ / run / file), text);
  };
  struct Moment {
    const char* name;
    std::function<bool(const std::string& run)> has_come;
  };
  const auto is_in_phase = [&](const char* phase) {
    return [&holds, phase](const std::string& run) {
      return holds(run, "run.json", std::string("\"phase\": \"") + phase + '"');
    };
  };
  const auto is_saving = [](const std::string& run) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root_ / run, error))
      if (entry.path().extension() == ".tmp") return true;
    return false;
  };
  const Moment moments[] = {{"preparing", is_in_phase("preparing")},
                            {"stepping", is_in_phase("training")},
                            {"evaluating", is_in_phase("evaluating")},
                            {"saving", is_saving}};
  using Delays = std::vector<int>;
  // Nothing is sure to be asked for once a step was rehearsed: several tries before that.
  const auto delays_of = [&](const std::string& device, const Moment& moment) {
    if (device == "cpu") return Delays{0, 15};
    return &moment == &moments[0] ? Delays{0, 0, 0} : Delays{0};
  };
  for (const char* device : {"cpu", "simulated"}) {
    const std::string whole = std::string("whole_") + device;
    Words own = more;
    own.push_back(std::string("--device=") + device);
    ASSERT_EQ(ferry(new_run(whole, own)).exit_code, 0);
    const std::string expected = text_of(root_ / whole / "final/model.safetensors");
    int n_failed = 0, n_of_library = 0;
    for (const Moment& moment : moments)
      for (const bool resumes : {false, true})
        for (const int delay_ms : delays_of(device, moment)) {
          const std::string run = "hungry";
          fs::remove_all(root_ / run);
          if (resumes) {
            const pid_t first = started(new_run(run, own));
            while (is_alive(first) && runs::complete_checkpoints(root_ / run).empty())
              std::this_thread::sleep_for(1ms);
            ::kill(first, SIGKILL);
            await_end(first);
          }
          SCOPED_TRACE(std::string(device) + ", " + moment.name + (resumes ? ", resumed, " : ", ") +
                       std::to_string(delay_ms) + " ms later");
          const pid_t child =
              started(resumes ? Words{"train", "--resume=" + run} : new_run(run, own));
          // Not before the process that goes on has said that it is the one.
          const std::string own_pid = "\"pid\": " + std::to_string(child) + ",";
          while (is_alive(child) && !(holds(run, "run.json", own_pid) && moment.has_come(run)))
            std::this_thread::sleep_for(1ms);
          std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
          take_memory_from(child);
          const int code = await_end(child);
          const std::string err = text_of(root_ / "hungry_err");
          // glibc and libgomp end a process by themselves, with a word, where a thread that begins
          // has no memory; after the rehearsal all have begun.
          const bool is_of_library =
              moment.name == std::string("preparing") &&
              ((code == -SIGABRT && contains(err, "Fatal glibc error")) ||
               (code == 1 && contains(err, "libgomp: Thread creation failed")));
          if (is_of_library) {
            ++n_of_library;
          } else if (code != 0) {
            EXPECT_EQ(code, 3) << err;
            expect_holds(err, {"memory", "end other programs", "--resume"});
            EXPECT_EQ(record_of(run)["phase"], "failed");
          }
          n_failed += code != 0;
          // Whatever it left, the run goes on with the same bits where there is memory again.
          const Outcome again = ferry({"train", "--resume=" + run});
          EXPECT_EQ(again.exit_code, 0) << again.err;
          EXPECT_TRUE(text_of(root_ / run / "final/model.safetensors") == expected);
        }
    std::printf("%s: %d runs ended early, %d of them by a library\n", device, n_failed,
                n_of_library);
    // Those that begin: what a step needs is held before the first one.
    EXPECT_GT(n_failed, 0) << device << ": the limit hurt no run, so this test showed nothing";
  }
}

/** A machine that cannot even start the threads says so, and nothing is left half made. */
TEST_F(BadDays, ThereIsTooLittleHostMemoryToStart) {
  const Outcome starved = run_ferry({.arguments = new_run("starved", {"--max-steps=2"}),
                                     .environment = {{"LD_PRELOAD", LITTLE_MEMORY}},
                                     .directory = root_.string()});
  EXPECT_EQ(starved.exit_code, 3) << starved.err;
  expect_holds(starved.err, {"memory", "end other programs"});
}

TEST_F(BadDays, TheClockJumps) {
  const Words more = {"--epochs=20", "--eval-steps=1s", "--save-steps=1s", "--max-time=1h"};
  ASSERT_EQ(ferry(new_run("even", more)).exit_code, 0);
  const Outcome jumping = run_ferry({.arguments = new_run("jumping", more),
                                     .environment = {{"LD_PRELOAD", JUMPING_CLOCK}},
                                     .directory = root_.string()});
  ASSERT_EQ(jumping.exit_code, 0) << jumping.err;
  EXPECT_TRUE(text_of(root_ / "jumping/final/model.safetensors") ==
              text_of(root_ / "even/final/model.safetensors"));
  // It did jump, and every step is there with a duration that is none of the wall clock's.
  std::ifstream lines(root_ / "jumping/metrics.jsonl");
  double latest = 0;
  bool went_back = false;
  int n_steps = 0;
  for (std::string text; std::getline(lines, text);) {
    const auto line = nlohmann::json::parse(text);
    went_back |= line["time"] < latest;
    latest = line["time"];
    if (!line.contains("loss")) continue;
    ++n_steps;
    EXPECT_GT(line["step_ms"], 0);
    EXPECT_LT(line["step_ms"], 60'000);
  }
  EXPECT_TRUE(went_back);
  EXPECT_EQ(n_steps, 200);
  EXPECT_LT(record_of("jumping")["actual"]["training_seconds"], 600);
}

TEST_F(BadDays, ARunKnowsWhichRunItsModelIsOf) {
  ASSERT_EQ(ferry(new_run("first", {"--max-steps=5"})).exit_code, 0);
  ASSERT_TRUE(record_of("first").contains("parent"));
  EXPECT_TRUE(record_of("first")["parent"].is_null());
  ASSERT_EQ(ferry(new_run("second", {"--max-steps=5", "--model=first/final"})).exit_code, 0);
  const nlohmann::json expected = {
      {"run", fs::canonical(root_ / "first").string()}, {"id", "first"}, {"model", "final"}};
  EXPECT_EQ(record_of("second")["parent"], expected);
  forget_end("second");
  ASSERT_EQ(ferry({"train", "--resume=second"}).exit_code, 0);
  EXPECT_EQ(record_of("second")["parent"], expected) << "who resumes keeps it";
  EXPECT_TRUE(contains(ferry({"runs", "show", "second"}).out, "which is of run"));
  EXPECT_FALSE(contains(ferry({"runs", "show", "first"}).out, "which is of run"));
}

/** Written as a user who may not: root may everything. */
TEST_F(BadDays, ADirectoryThatMayNotBeWrittenTo) {
  ASSERT_EQ(ferry(new_run("fixed", {"--max-steps=5"})).exit_code, 0);
  forget_end("fixed");
  Words words = {FERRY_BINARY, "train", "--resume=fixed"};
  if (geteuid() == 0) words.insert(words.begin(), {"setpriv", "--reuid=65534", "--clear-groups"});
  // Another user may look at the run and not write to it; a new run is its owner's alone.
  fs::permissions(root_ / "fixed",
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::group_read |
                      fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec,
                  fs::perm_options::replace);
  Outcome outcome = run_ferry({.arguments = {words.begin() + 1, words.end()},
                               .directory = root_.string(),
                               .program = words[0]});
  if (outcome.exit_code == 98 || outcome.exit_code == 126 || contains(outcome.err, "setpriv:") ||
      contains(outcome.err, "shared libraries"))
    GTEST_SKIP() << "another user cannot be had here: " << outcome.err;
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  expect_holds(outcome.err, {"run.json", "Permission denied", "may write to"});
  EXPECT_TRUE(fs::exists(root_ / "fixed/checkpoint-5/COMPLETE"));
}

TEST_F(BadDays, ACheckpointOfANewerFerryNamesBothVersions) {
  ASSERT_EQ(ferry(new_run("newer", {"--max-steps=5"})).exit_code, 0);
  forget_end("newer");
  const fs::path checkpoint = root_ / "newer/checkpoint-5";
  auto state = nlohmann::json::parse(text_of(checkpoint / "state" / runs::kRunStateName));
  state["format_version"] = 9;
  state["identity"]["ferry"] = "77.0";
  runs::write_checksums(checkpoint, runs::read_checksums(checkpoint), state.dump());
  const Outcome outcome = ferry({"train", "--resume=newer"});
  EXPECT_EQ(outcome.exit_code, 4);
  expect_holds(outcome.err, {"format_version 9", "Ferry 77.0", "this is Ferry "});
}

}  // namespace
}  // namespace ferry::test
