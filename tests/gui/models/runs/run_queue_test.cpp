// The queue: its order outlives the app, one app works on it, it starts when nothing runs.

#include "gui/models/runs/run_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <QAbstractItemModelTester>

#include "gui/models/process/ferry_command.h"
#include "gui/models/text.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

config::Config with(const char* model, const char* rate = "3e-5") {
  config::Config config;
  config.set("model", model, {config::Source::command_line, "test"});
  config.set("dataset", "/data/my reviews.csv", {config::Source::command_line, "test"});
  config.set("learning_rate", rate, {config::Source::command_line, "test"});
  return config;
}

class Queue : public ::testing::Test {
 protected:
  Queue() : settings_(path_text(home_ / "app.ini")) {
    settings_.set_runs_directory(home_.runs());
    if (const char* ferry = getenv("FERRY")) ferry_ = ferry;
    // A trainer that makes a run's directory and is done.
    const fs::path fake = home_ / "fake-ferry";
    std::ofstream(fake) << R"(#!/bin/sh
for word; do case $word in --output-dir=*) run=${word#--output-dir=} ;; esac; done
case "$*" in *bad-model*) echo "[train] no model" >&2; exit 4 ;; esac
mkdir -p "$run" && echo "$*" > "$run/asked"
echo '{"phase": "finished", "created": "2026-11-20T10:15:00Z"}' > "$run/run.json"
)";
    chmod(fake.c_str(), 0700);
    setenv("FERRY", fake.c_str(), 1);
    open();
  }
  ~Queue() override { setenv("FERRY", ferry_.c_str(), 1); }

  void open() {
    queue_.reset();
    runs_ = std::make_unique<RunListModel>(settings_, launcher_);
    queue_ = std::make_unique<RunQueue>(settings_, launcher_, *runs_);
    tester_ = std::make_unique<QAbstractItemModelTester>(
        queue_.get(), QAbstractItemModelTester::FailureReportingMode::Fatal);
  }
  std::vector<std::string> titles() const {
    std::vector<std::string> all;
    for (int i = 0; i < queue_->rowCount(); ++i)
      all.push_back(queue_->index(i).data().toString().toStdString());
    return all;
  }
  std::string role(int row, int role) const {
    return queue_->index(row).data(role).toString().toStdString();
  }
  /** As its timer does it, but at once. */
  bool turns_until(const std::function<bool()>& is_so) {
    return wait_until([&] {
      runs_->look();
      queue_->look();
      return is_so();
    });
  }
  std::vector<std::string> started() const {
    std::vector<std::string> all;
    for (const auto& run : fs::directory_iterator(home_.runs()))
      if (fs::exists(run.path() / "asked")) all.push_back(run.path().filename().string());
    return all;
  }

  TestHome home_;
  std::string ferry_;
  AppSettings settings_;
  Launcher launcher_;
  std::unique_ptr<RunListModel> runs_;
  std::unique_ptr<RunQueue> queue_;
  std::unique_ptr<QAbstractItemModelTester> tester_;
};

TEST_F(Queue, KeepsItsOrderFromOneAppToTheNext) {
  for (const char* title : {"one", "two", "שלוש\nthree"})
    EXPECT_FALSE(queue_->add(with("/models/a"), title));
  EXPECT_THAT(titles(), ElementsAre("one", "two", "שלוש three"));
  EXPECT_EQ(role(0, RunQueue::about_role), "a on my reviews.csv");
  queue_->move(2, -1);
  queue_->move(0, 2);
  EXPECT_THAT(titles(), ElementsAre("שלוש three", "two", "one"));
  queue_->move(0, -1);  // there is nothing above
  queue_->move(2, 1);
  open();
  EXPECT_THAT(titles(), ElementsAre("שלוש three", "two", "one"));
  queue_->remove(1);
  open();
  EXPECT_THAT(titles(), ElementsAre("שלוש three", "one"));
  std::ofstream(RunQueue::default_directory() / "order.json") << "{ damaged";
  open();
  EXPECT_THAT(titles(), ElementsAre("one", "שלוש three"));
}

TEST_F(Queue, StartsNothingUntilItIsSwitchedOn) {
  queue_->add(with("/models/a"), "one");
  for (int i = 0; i < 50; ++i) {
    runs_->look();
    queue_->look();
    QCoreApplication::processEvents();
  }
  EXPECT_THAT(queue_->status().toStdString(), HasSubstr("off"));
  EXPECT_TRUE(started().empty());
  settings_.set_queue_on(true);
  ASSERT_TRUE(turns_until([&] { return queue_->rowCount() == 0; }));
  ASSERT_EQ(started().size(), 1U);
  std::ifstream file(home_.runs() / started()[0] / "asked");
  std::string asked;
  std::getline(file, asked);
  EXPECT_THAT(asked,
              HasSubstr("train --model-name-or-path=/models/a --dataset=/data/my reviews.csv"));
  EXPECT_THAT(asked, HasSubstr("--learning-rate=3e-05"));
  EXPECT_FALSE(fs::exists(RunQueue::default_directory() / "x.toml"));
}

TEST_F(Queue, WaitsWhileAnyRunHasAProcessHere) {
  settings_.set_queue_on(true);
  auto living = std::make_unique<LivingRun>(home_.runs() / "direct");
  runs_->refresh();
  ASSERT_TRUE(turns_until([&] { return runs_->running().size() == 1; }));
  queue_->add(with("/models/a", "1e-5"), "one");
  queue_->add(with("/models/a", "2e-5"), "two");
  for (int i = 0; i < 200; ++i) {
    runs_->look();
    queue_->look();
    QCoreApplication::processEvents();
  }
  EXPECT_THAT(titles(), ElementsAre("one", "two"));
  EXPECT_THAT(queue_->status().toStdString(), HasSubstr("direct"));
  living.reset();
  ASSERT_TRUE(turns_until([&] { return queue_->rowCount() == 0; }));
  EXPECT_EQ(started().size(), 2U);
}

TEST_F(Queue, AStartThatFailsStaysWithItsReason) {
  settings_.set_queue_on(true);
  queue_->add(with("/models/bad-model"), "bad");
  queue_->add(with("/models/a"), "good");
  ASSERT_TRUE(turns_until([&] { return queue_->rowCount() == 1; }));
  EXPECT_THAT(titles(), ElementsAre("bad"));
  EXPECT_EQ(role(0, RunQueue::state_role), "Could not start");
  EXPECT_THAT(role(0, RunQueue::trouble_role), HasSubstr("no model"));
  open();
  EXPECT_THAT(role(0, RunQueue::trouble_role), HasSubstr("no model"));
  // It is tried again when the user says so.
  setenv("FERRY", "/no/such/ferry", 1);
  queue_->start_now(0);
  ASSERT_TRUE(wait_until([&] { return !role(0, RunQueue::trouble_role).empty(); }));
  EXPECT_EQ(role(0, RunQueue::state_role), "Could not start");
}

TEST_F(Queue, HasAGate) {
  settings_.set_queue_on(true);
  QString why = "Run hours begin at 22:00";
  queue_->set_gate([&] { return why; });
  queue_->add(with("/models/a"), "one");
  for (int i = 0; i < 100; ++i) {
    runs_->look();
    queue_->look();
    QCoreApplication::processEvents();
  }
  EXPECT_THAT(queue_->status().toStdString(), HasSubstr("22:00"));
  EXPECT_EQ(queue_->rowCount(), 1);
  why.clear();
  EXPECT_TRUE(turns_until([&] { return queue_->rowCount() == 0; }));
}

TEST_F(Queue, OneAppWorksOnIt) {
  AppSettings others(path_text(home_ / "app.ini"));
  RunListModel runs(others, launcher_);
  RunQueue other(others, launcher_, runs);
  EXPECT_TRUE(queue_->is_ours());
  EXPECT_FALSE(other.is_ours());
  EXPECT_THAT(other.status().toStdString(), HasSubstr("Another"));
  EXPECT_FALSE(other.add(with("/models/a"), "from the other"));
  EXPECT_EQ(other.rowCount(), 1);
  other.remove(0);
  other.start_now(0);
  EXPECT_EQ(other.rowCount(), 1);
  queue_->look();
  EXPECT_THAT(titles(), ElementsAre("from the other"));
  queue_.reset();
  other.look();
  EXPECT_TRUE(other.is_ours());
}

TEST_F(Queue, WhatWasStartedBeforeTheAppEndedIsNotStartedAgain) {
  queue_->add(with("/models/a"), "one");
  queue_->add(with("/models/a"), "two");
  const auto order = [&] {
    std::ifstream file(RunQueue::default_directory() / "order.json");
    return nlohmann::json::parse(file);
  };
  nlohmann::json entries = order();
  entries[0]["run"] = make_run(home_.runs() / "one").string();
  entries[1]["run"] = (home_.runs() / "two").string();  // nothing came of it
  queue_.reset();
  std::ofstream(RunQueue::default_directory() / "order.json") << entries;
  open();
  EXPECT_THAT(titles(), ElementsAre("two"));
  EXPECT_EQ(role(0, RunQueue::state_role), "Next");
}

TEST_F(Queue, AStartThatAFormerAppBeganIsNotBegunAgain) {
  const PlayedFerry slow(home_, R"(
for word; do case $word in --output-dir=*) run=${word#--output-dir=} ;; esac; done
mkdir -p "$run" && echo "$*" > "$run/asked"
while ! [ -e "$(dirname "$0")/go-on" ]; do sleep 0.05; done
case "$*" in *ends-at-once*) exit 1 ;; esac
echo '{"phase": "finished", "created": "2026-11-20T10:15:00Z"}' > "$run/run.json"
)");
  struct Always {  // it ends whatever fails
    ~Always() { std::ofstream(file) << "\n"; }
    fs::path file;
  } const go_on{home_ / "go-on"};
  queue_->add(with("/models/a"), "one");
  queue_->add(with("/models/ends-at-once"), "two");
  queue_->add(with("/models/c"), "three");
  {
    Launcher former;
    queue_.reset();
    RunQueue queue(settings_, former, *runs_);
    queue.start_now(0);
    queue.start_now(1);
    ASSERT_TRUE(wait_until([&] { return started().size() == 2; }));
  }
  settings_.set_queue_on(true);
  open();
  EXPECT_THAT(titles(), ElementsAre("one", "two", "three"));
  EXPECT_EQ(role(0, RunQueue::state_role), "Starting");
  EXPECT_EQ(role(1, RunQueue::state_role), "Starting");
  for (int i = 0; i < 100; ++i) {
    runs_->look();
    queue_->look();
    QCoreApplication::processEvents();
  }
  EXPECT_EQ(started().size(), 2U);
  settings_.set_queue_on(false);
  std::ofstream(go_on.file) << "\n";
  // One has begun, of the other nothing came.
  ASSERT_TRUE(turns_until([&] {
    return titles() == std::vector<std::string>{"two", "three"} &&
           role(0, RunQueue::state_role) == "Next";
  }));
  EXPECT_EQ(started().size(), 2U);
}

TEST_F(Queue, AnEntryThatCannotBeRemovedIsNotStartedAgain) {
  queue_->add(with("/models/a"), "one");
  queue_->add(with("/models/a"), "two");
  const fs::path order = RunQueue::default_directory() / "order.json";
  std::ifstream file(order);
  nlohmann::json entries = nlohmann::json::parse(file);
  entries[0]["run"] = make_run(home_.runs() / "one").string();
  queue_.reset();
  std::ofstream(order) << entries;
  const fs::path entry =
      RunQueue::default_directory() / (entries[0]["id"].get<std::string>() + ".toml");
  fs::remove(entry);
  fs::create_directories(entry / "not empty");
  open();
  ASSERT_EQ(queue_->rowCount(), 2);
  EXPECT_EQ(role(0, RunQueue::state_role), "Could not start");
  EXPECT_EQ(role(1, RunQueue::state_role), "Next");
}

TEST_F(Queue, SettingsThatCannotBeReadSayWhy) {
  queue_->add(with("/models/a"), "one");
  for (const auto& file : fs::directory_iterator(RunQueue::default_directory()))
    if (file.path().extension() == ".toml") std::ofstream(file.path()) << "no_such_key = 1\n";
  open();
  EXPECT_THAT(role(0, RunQueue::trouble_role), HasSubstr("no_such_key"));
  settings_.set_queue_on(true);
  queue_->look();
  EXPECT_EQ(queue_->rowCount(), 1);
}

TEST_F(Queue, EverySettingComesBack) {
  config::Config config = with("hub/model \"quoted\"");
  config.set("gpu_memory", "8GiB", {config::Source::preset, "p.toml:3"});
  config.set("save_steps", "30min", {config::Source::command_line, "test"});
  config.set("warmup_steps", "0.1", {config::Source::environment, "FERRY_WARMUP_STEPS"});
  queue_->add(config, "all");
  config::Config back;
  for (const auto& file : fs::directory_iterator(RunQueue::default_directory()))
    if (file.path().extension() == ".toml")
      config::read_toml_file(back, file.path(), config::Source::file);
  EXPECT_EQ(arguments_of(back, config::kTrain), arguments_of(config, config::kTrain));
}

}  // namespace
}  // namespace ferry::gui
