// A run of many steps takes no more memory, descriptors and threads at its end than near its
// beginning, and its log has every step once. 1,500 steps here; FERRY_LONG=1: 10,000, and 1,000
// with states on a drive, in the memory that was planned.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/train/start_ferry.h"
#include "tests/train/tiny_model.h"

namespace ferry::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Sample {
  int64_t step = 0, resident_bytes = 0, n_descriptors = 0, n_threads = 0;
};

/** Number in /proc/PID/status behind `key`; -1 when the process has gone. */
int64_t status_of(pid_t process, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1));
  return -1;
}

int64_t count_entries(const fs::path& directory) {
  int64_t n = 0;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    ++n;
  return n;
}

/** Steps whose lines are in the log by now. */
class LogFollower {
 public:
  explicit LogFollower(const fs::path& file) : file_(file) {}
  int64_t n_steps() {
    std::ifstream file(file_, std::ios::binary);
    file.seekg(read_bytes_);
    for (std::string line; std::getline(file, line) && !file.eof();) {
      read_bytes_ += static_cast<std::streamoff>(line.size()) + 1;
      const auto json = nlohmann::json::parse(line);
      if (json.contains("loss")) steps_.push_back(json["step"].get<int64_t>());
    }
    return static_cast<int64_t>(steps_.size());
  }
  const std::vector<int64_t>& steps() const { return steps_; }

 private:
  fs::path file_;
  std::streamoff read_bytes_ = 0;
  std::vector<int64_t> steps_;
};

/** Most (or fewest) of a quantity among the samples of these steps. */
template <class Choose>
int64_t of_range(const std::vector<Sample>& samples,
                 int64_t from,
                 int64_t to,
                 int64_t Sample::*what,
                 Choose choose) {
  std::vector<int64_t> values;
  for (const Sample& sample : samples)
    if (sample.step >= from && sample.step < to) values.push_back(sample.*what);
  if (values.empty()) ADD_FAILURE() << "no sample of steps " << from << " to " << to;
  return values.empty() ? 0 : *choose(values.begin(), values.end());
}

bool is_long() {
  const char* text = std::getenv("FERRY_LONG");
  return text && std::string(text) == "1";
}

class LongRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = fs::temp_directory_path() / ("ferry_flat_" + std::to_string(getpid()));
    fs::create_directories(root_);
    write_tiny_model(root_ / "model");
    write_tiny_data(root_ / "train.tsv", 200, 1);
    write_tiny_data(root_ / "dev.tsv", 40, 2);
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  /** Runs it to its end. */
  static void train(const std::string& run, int64_t n_steps, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",
                                      "--dataset=train.tsv",
                                      "--eval-dataset=dev.tsv",
                                      "--device=cpu",
                                      "--train-batch-size=8",
                                      "--intra-op-threads=1",
                                      "--max-steps=" + std::to_string(n_steps),
                                      "--eval-strategy=steps",
                                      "--output-dir=" + run,
                                      "--eval-steps=" + std::to_string(n_steps / 15),
                                      "--save-steps=" + std::to_string(n_steps / 30)};
    words.insert(words.end(), more.begin(), more.end());
    const pid_t child = start_ferry(root_, words);
    LogFollower log(root_ / run / "metrics.jsonl");
    std::vector<Sample> samples;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      const int64_t step = log.n_steps();
      const std::string process = "/proc/" + std::to_string(child);
      Sample sample{.step = step,
                    .resident_bytes = status_of(child, "VmRSS") * 1024,
                    .n_descriptors = count_entries(process + "/fd"),
                    .n_threads = status_of(child, "Threads")};
      if (sample.resident_bytes > 0 && step < n_steps) samples.push_back(sample);
      std::this_thread::sleep_for(5ms);
    }
    std::ostringstream said;
    said << std::ifstream(root_ / "err").rdbuf();
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << said.str();
    log.n_steps();
    ASSERT_EQ(static_cast<int64_t>(log.steps().size()), n_steps);
    for (int64_t i = 0; i < n_steps; ++i)
      ASSERT_EQ(log.steps()[static_cast<size_t>(i)], i + 1);
    expect_flat(samples, n_steps);
  }

  static inline fs::path root_;

 private:
  /** A third of the steps each; checkpoints and evaluations have come and gone in both. */
  static void expect_flat(const std::vector<Sample>& samples, int64_t n_steps) {
    const auto most = [](auto begin, auto end) { return std::max_element(begin, end); };
    const auto fewest = [](auto begin, auto end) { return std::min_element(begin, end); };
    const auto grown = [&](int64_t Sample::*what, auto choose) {
      return of_range(samples, 2 * n_steps / 3, n_steps, what, choose) -
             of_range(samples, n_steps / 3, 2 * n_steps / 3, what, choose);
    };
    // The losses of all steps are kept, for the curve at the end: 8 bytes each.
    EXPECT_LE(grown(&Sample::resident_bytes, most), 2 << 20);
    EXPECT_LE(grown(&Sample::n_descriptors, fewest), 0);
    EXPECT_LE(grown(&Sample::n_threads, fewest), 0);
  }
};

TEST_F(LongRun, MemoryDescriptorsAndThreadsStayWhereTheyWere) {
  train("run", is_long() ? 10000 : 1500, {"--model=model"});
}

/** The states are several times the twentieth by which memory may be above the plan. */
TEST_F(LongRun, StatesOnADriveStayWithinThePlannedMemory) {
  if (!is_long()) GTEST_SKIP() << "FERRY_LONG=1 takes that time";
  fs::create_directories(root_ / "wide");
  fs::create_directories(root_ / "drive");
  std::ifstream file(root_ / "model/config.json");
  auto config = nlohmann::json::parse(file);
  config["hidden_size"] = 256;
  config["num_hidden_layers"] = 6;
  config["intermediate_size"] = 1024;
  std::ofstream(root_ / "wide/config.json") << config;
  train("on_drive", 1000,
        {"--config-name=wide", "--tokenizer-name=model", "--placement=nvme",
         "--nvme-path=" + (root_ / "drive").string()});
  std::ifstream record(root_ / "on_drive/run.json");
  const auto run = nlohmann::json::parse(record);
  const auto planned = run.at("promised").at("host_bytes_peak").get<int64_t>(),
             taken = run.at("actual").at("host_bytes_peak").get<int64_t>();
  RecordProperty("planned_bytes", std::to_string(planned));
  RecordProperty("taken_bytes", std::to_string(taken));
  EXPECT_LE(taken, planned * 105 / 100);
  const auto stored = run.at("nvme_store").at("bytes").get<int64_t>();
  EXPECT_GT(stored / 5, 2 * (planned / 20)) << "of the states there are at most five copies";
}

}  // namespace
}  // namespace ferry::test
