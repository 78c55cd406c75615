// train.log: what is said, once each, whatever happens to the disk or to who listens.

#include "src/runs/logs/train_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "src/base/print.h"
#include "tests/config/config_fixture.h"

namespace ferry::runs {
namespace {

using config::TemporaryDirectory;
using Words = std::vector<std::string>;

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

/** "2026-11-21T10:15:00Z text" without its time. */
std::string without_time(const std::string& line) {
  EXPECT_GT(line.size(), 21u) << line;
  EXPECT_EQ(line[10], 'T') << line;
  EXPECT_EQ(line.substr(19, 2), "Z ") << line;
  return line.substr(21);
}

TEST(TrainLog, BeginsWithTheCommandAndGoesOnWithOne) {
  TemporaryDirectory run;
  {
    TrainLog log(run.path(),
                 Words{"ferry", "train", "--lr=1e-5", "--dataset", "my data.tsv", "it's"});
    const Listening listening([&](std::string_view line) { log.add(line); });
    log_line("first\nsecond \x1b[31mred");
  }
  log_line("nobody hears this");
  std::ofstream(run.path() / kTrainLogName, std::ios::app) << "torn by a ki";
  TrainLog(run.path(), Words{"ferry", "train", "--resume", "here"}).add("third");
  const auto lines = lines_of(run.path() / kTrainLogName);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(without_time(lines[0]), R"(ferry train --lr=1e-5 --dataset 'my data.tsv' 'it'\''s')");
  EXPECT_EQ(without_time(lines[1]), "first");
  EXPECT_EQ(without_time(lines[2]), "second \\x1b[31mred");
  EXPECT_EQ(lines[3], "torn by a ki");
  EXPECT_EQ(without_time(lines[4]), "the run is resumed: ferry train --resume here");
  EXPECT_EQ(without_time(lines[5]), "third");
}

TEST(TrainLog, AFullDiskIsSaidOnceAndTheLogGoesOnAfterIt) {
  TemporaryDirectory run;
  TrainLog log(run.path(), Words{"ferry"});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 60, .rlim_max = before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::string> said;
  const Listening listening([&](std::string_view line) { said.emplace_back(line); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  log.add("this line is longer than what is left");
  log.add("so is this");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("cannot be written"), std::string::npos) << said[0];
  log.add("room again");
  const std::vector<std::string> lines = lines_of(run.path() / kTrainLogName);
  ASSERT_EQ(lines.size(), 4u) << "what found no room comes first";
  EXPECT_EQ(without_time(lines[1]), "this line is longer than what is left");
  EXPECT_EQ(without_time(lines[2]), "so is this");
  EXPECT_EQ(without_time(lines[3]), "room again");
}

TEST(TrainLog, ADirectoryThatIsNotThereIsSaid) {
  TemporaryDirectory run;
  testing::internal::CaptureStderr();
  TrainLog log(run.path() / "gone", Words{"ferry"});
  log.add("lost");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("training goes on"), std::string::npos);
}

}  // namespace
}  // namespace ferry::runs
