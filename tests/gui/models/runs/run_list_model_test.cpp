// The list of runs: hundreds of them, damaged ones, such as come and go.

#include "gui/models/runs/run_list_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <cmath>

#include "gui/models/text.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

using runs::Phase;
using ::testing::HasSubstr;

class RunList : public ::testing::Test {
 protected:
  RunList() : settings_(path_text(home_ / "app.ini")) {
    settings_.set_runs_directory(home_.runs());
  }

  void open(bool is_tested = true) {
    model_ = std::make_unique<RunListModel>(settings_, launcher_);
    if (is_tested)
      tester_ = std::make_unique<QAbstractItemModelTester>(
          model_.get(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    model_->set_active(true);
  }
  std::string text(int row, int column, int role = Qt::DisplayRole) const {
    return model_->index(row, column).data(role).toString().toStdString();
  }
  int row(const fs::path& run) const { return model_->row_of(run); }
  std::string state(const fs::path& run) const {
    return row(run) < 0 ? "" : text(row(run), RunListModel::state);
  }
  bool is_read() const {
    for (int i = 0; i < model_->rowCount(); ++i)
      if (text(i, RunListModel::data_set).find("classification") == std::string::npos) return false;
    return model_->rowCount() > 0;
  }

  TestHome home_;
  AppSettings settings_;
  Launcher launcher_;
  std::unique_ptr<RunListModel> model_;
  std::unique_ptr<QAbstractItemModelTester> tester_;
};

TEST_F(RunList, TellsEveryColumnOfARun) {
  const fs::path run = make_run(home_.runs() / "2026-11-20_1015_minilm", {.n_steps = 40});
  open();
  ASSERT_TRUE(wait_until([&] { return is_read(); }));
  EXPECT_EQ(text(0, RunListModel::state), "Finished");
  EXPECT_EQ(text(0, RunListModel::name), "2026-11-20_1015_minilm");
  EXPECT_EQ(text(0, RunListModel::model), "MiniLM-L6");
  EXPECT_EQ(text(0, RunListModel::data_set), "reviews.csv (classification)");
  EXPECT_EQ(text(0, RunListModel::progress), "50 % (20/40)");
  EXPECT_EQ(text(0, RunListModel::time), "10 s");
  EXPECT_EQ(text(0, RunListModel::speed), "1,235");
  EXPECT_EQ(text(0, RunListModel::loss), "0.15");
  EXPECT_FALSE(text(0, RunListModel::started).empty());
  EXPECT_DOUBLE_EQ(model_->index(0, 0).data(RunListModel::progress_role).toDouble(), 0.5);
  EXPECT_EQ(model_->index(0, 0).data(RunListModel::sparkline_role).toList().size(), 20);
  EXPECT_EQ(text(0, RunListModel::curve, Qt::AccessibleTextRole),
            "Loss curve: from 3 to 0.15, falling");
  EXPECT_EQ(text(0, RunListModel::state, Qt::AccessibleTextRole), "State: Finished");
  EXPECT_EQ(to_path(model_->index(0, 0).data(RunListModel::path_role).toString()), run);
}

TEST_F(RunList, OpensFiveHundredRunsAtOnceAndReadsThemInSlices) {
  constexpr int kRuns = 500;
  for (int i = 0; i < kRuns; ++i)
    make_run(
        home_.runs() / fmt::format("run-{:03}", i),
        {.created = fmt::format("2026-11-{:02}T{:02}:{:02}:00Z", 1 + i / 50, i / 10 % 24, i % 60)});
  const double begun_ms = cpu_ms(CLOCK_PROCESS_CPUTIME_ID);
  open(/*is_tested=*/false);  // which would look at every cell again with every change
  ASSERT_TRUE(wait_until([&] {
    return model_->rowCount() == kRuns && text(kRuns - 1, RunListModel::state) == "Finished";
  }));
  // All threads together: who waits for another program waits longer.
  const double opened_ms = cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - begun_ms;
  tell_time("500 runs are listed", opened_ms, 300);
  for (int i = 0; i < kRuns; i += 50)
    EXPECT_EQ(text(i, RunListModel::state), "Finished");
  // No turn is long: measured by the thread's own time, which others do not take.
  double longest = 0;
  int n_turns = 0;
  for (; n_turns < 2000 && !is_read(); ++n_turns) {
    const double begin = cpu_ms();
    model_->look();
    longest = std::max(longest, cpu_ms() - begin);
  }
  EXPECT_TRUE(is_read());
  QAbstractItemModelTester(model_.get(), QAbstractItemModelTester::FailureReportingMode::Fatal);
  EXPECT_GT(n_turns, 1) << "the runs are read in slices";
  tell_time("the longest turn while 500 runs are read", longest, 16);
  for (int i = 1; i < kRuns; ++i)
    EXPECT_GE(model_->index(i - 1, RunListModel::started).data(RunListModel::sort_role).toString(),
              model_->index(i, RunListModel::started).data(RunListModel::sort_role).toString());
}

TEST_F(RunList, FollowsARunThatLives) {
  make_run(home_.runs() / "old");
  open();
  ASSERT_TRUE(wait_until([&] { return model_->rowCount() == 1; }));
  QSignalSpy resets(model_.get(), &QAbstractItemModel::modelReset);
  LivingRun living(home_.runs() / "new");
  model_->refresh();
  ASSERT_TRUE(wait_until([&] { return state(living.path()) == "Training"; }));
  EXPECT_EQ(row(living.path()), 0);  // the newest first
  ASSERT_EQ(model_->running().size(), 1U);
  EXPECT_EQ(model_->running()[0].path, fs::weakly_canonical(living.path()));
  EXPECT_TRUE(model_->allowed(0).allows(service::RunAction::pause));
  std::ofstream(living.path() / "metrics.jsonl") << metrics_text(7);
  EXPECT_TRUE(wait_until([&] { return text(0, RunListModel::progress) == "7 % (7/100)"; }));
  living.end(Phase::finished);
  EXPECT_TRUE(wait_until([&] { return state(living.path()) == "Finished"; }));
  EXPECT_TRUE(model_->running().empty());
  LivingRun again(living.path());
  EXPECT_TRUE(wait_until([&] { return state(living.path()) == "Training"; }));
  again.vanish();
  EXPECT_TRUE(wait_until([&] { return state(living.path()) == "Killed"; }));
  EXPECT_EQ(resets.count(), 0);
}

TEST_F(RunList, ARunThatIsRemovedSaysSoAndGoes) {
  const fs::path stays = make_run(home_.runs() / "stays"), goes = make_run(home_.runs() / "goes");
  open();
  ASSERT_TRUE(wait_until([&] { return model_->rowCount() == 2 && is_read(); }));
  fs::remove_all(goes);
  EXPECT_TRUE(wait_until([&] { return state(goes) == "Removed"; }));
  EXPECT_THAT(model_->trouble_of_row(row(goes)).toStdString(), HasSubstr("removed"));
  EXPECT_FALSE(model_->allowed(row(goes)).allows(service::RunAction::delete_run));
  EXPECT_TRUE(wait_until([&] { return model_->rowCount() == 1; }));
  EXPECT_EQ(row(stays), 0);
  model_->forget(stays);
  EXPECT_EQ(model_->rowCount(), 0);
}

TEST_F(RunList, DamagedRunsAreRowsWithWords) {
  const fs::path half = make_run(home_.runs() / "half");
  std::ofstream(half / "run.json") << R"({"phase": "trai)";
  const fs::path odd =
      make_run(home_.runs() / "odd", {.metrics = R"({"step": 1, "loss": 2.5})"
                                                 "\n"
                                                 R"({"step": 2, "loss": null, "nonfinite": true})"
                                                 "\n"
                                                 "no line at all\n"
                                                 R"({"step": 3, "loss": 1.5})"
                                                 "\n"
                                                 R"({"step": 4, "lo)"});
  const fs::path bare = make_run(home_.runs() / "bare");
  fs::remove(bare / "metrics.jsonl");
  fs::remove(bare / "config.toml");
  open();
  ASSERT_TRUE(wait_until(
      [&] { return model_->rowCount() == 3 && text(row(odd), RunListModel::loss) == "1.5"; }));
  EXPECT_EQ(state(half), "Unreadable");
  EXPECT_THAT(text(row(half), RunListModel::state, Qt::ToolTipRole), HasSubstr("run.json"));
  EXPECT_EQ(text(row(odd), RunListModel::progress), "15 % (3/20)");
  const QVariantList curve = model_->index(row(odd), 0).data(RunListModel::sparkline_role).toList();
  ASSERT_EQ(curve.size(), 3);
  EXPECT_TRUE(std::isnan(curve[1].toDouble()));
  EXPECT_THAT(text(row(odd), RunListModel::curve, Qt::AccessibleTextRole), HasSubstr("not finite"));
  EXPECT_EQ(state(bare), "Finished");
  EXPECT_EQ(text(row(bare), RunListModel::loss), "");
  // The record comes back.
  make_run(half);
  EXPECT_TRUE(wait_until([&] { return state(half) == "Finished"; }));
}

TEST_F(RunList, TakesAnyName) {
  const std::vector<std::string> names = {"öäü 模型", "ריצה ראשונה",    std::string(200, 'x'),
                                          "a\nb\tc",  "not \xff utf-8", "50% <b>&amp;"};
  for (const std::string& name : names)
    make_run(home_.runs() / name);
  open();
  ASSERT_TRUE(wait_until([&] { return model_->rowCount() == 6 && is_read(); }));
  for (const std::string& name : names) {
    const int at = row(home_.runs() / name);
    ASSERT_GE(at, 0) << name;
    EXPECT_EQ(model_->path_of(at), fs::weakly_canonical(home_.runs() / name));
  }
}

TEST_F(RunList, WhatAStartChangesIsToldAtOnce) {
  const fs::path run = make_run(home_.runs() / "one", {.phase = "failed"});
  open();
  ASSERT_TRUE(wait_until([&] { return state(run) == "Failed"; }));
  // Pages show details and buttons anew on this signal: a row that is another needs it, too.
  QSignalSpy looked(model_.get(), &RunListModel::looked);
  make_run(run, {.phase = "stopped"});
  emit launcher_.started(run);
  EXPECT_EQ(state(run), "Stopped");
  EXPECT_EQ(looked.count(), 1);
  emit launcher_.failed(run, "no room", "ferry train");
  EXPECT_EQ(state(run), "Not started");
  EXPECT_EQ(looked.count(), 2);
  model_->forget(run);
  EXPECT_EQ(looked.count(), 3);
}

TEST_F(RunList, AStartThatFailsIsARow) {
  open();
  config::Config config;
  config.set("model", "/no/such/model", {config::Source::command_line, "test"});
  config.set("dataset", "/no/such.csv", {config::Source::command_line, "test"});
  const fs::path run = launcher_.start(config, home_.runs());
  ASSERT_TRUE(wait_until([&] { return state(run) == "Starting"; }));
  EXPECT_TRUE(model_->running().at(0).is_starting);
  ASSERT_TRUE(wait_until([&] { return state(run) == "Not started"; }, 60000));
  EXPECT_THAT(model_->trouble_of_row(row(run)).toStdString(), HasSubstr("/no/such"));
  EXPECT_TRUE(model_->running().empty());
}

TEST_F(RunList, StaysSmallOverHours) {
  for (int i = 0; i < 20; ++i)
    make_run(home_.runs() / fmt::format("run-{}", i));
  open();
  ASSERT_TRUE(wait_until([&] { return model_->rowCount() == 20 && is_read(); }));
  const auto kept_kib = [] {
    long pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * 4;
  };
  for (int i = 0; i < 2000; ++i)
    model_->look();
  [[maybe_unused]] const long before = kept_kib();
  for (int i = 0; i < 14400; ++i)  // an hour of a page that is shown
    model_->look();
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(kept_kib() - before, 1024);
#endif
}

TEST_F(RunList, ARunWhoseNameIsNoTextIsListedAndReached) {
  const fs::path run = make_run(home_.runs() / "caf\xe9");
  open();
  ASSERT_TRUE(wait_until([&] { return is_read(); }));
  ASSERT_EQ(model_->rowCount(), 1);
  EXPECT_EQ(model_->path_of(0), run);
  EXPECT_TRUE(text(0, RunListModel::name).starts_with("caf"));
  EXPECT_EQ(text(0, RunListModel::state), "Finished");
  EXPECT_EQ(to_path(model_->index(0, 0).data(RunListModel::path_role).toString()), run);
}

TEST(RunWords, TellThePlannedMemory) {
  const auto planned = nlohmann::ordered_json::parse(
      R"({"plan": {"rows": [{"place": "host", "bytes": 5}, {"place": "device", "bytes": 3},
                            {"place": "host", "bytes": 6}, {"place": 7}, 8]}})");
  EXPECT_EQ(planned_host_bytes(planned), 11);
  EXPECT_EQ(planned_gpu_bytes(planned), 3);
  EXPECT_EQ(budgeted_host_bytes(planned), 0);
  const auto measured = nlohmann::ordered_json::parse(
      R"({"promised": {"host_bytes_peak": 62490000000},
          "host_budget_bytes": 54760833024,
          "plan": {"rows": [{"tag": "weights", "place": "host", "bytes": 1}]}})");
  EXPECT_EQ(planned_host_bytes(measured), 62490000000);
  EXPECT_EQ(budgeted_host_bytes(measured), 54760833024);
}

TEST(RunWords, TellDurations) {
  for (const auto& [seconds, text] : {std::pair{std::nan(""), ""},
                                      {-1.0, ""},
                                      {0.4, "0 s"},
                                      {42.9, "42 s"},
                                      {303.0, "5 min 3 s"},
                                      {725.0, "12 min"},
                                      {8'040.0, "2 h 14 min"},
                                      {172'799.0, "47 h 59 min"},
                                      {187'200.0, "2 d 4 h"}})
    EXPECT_EQ(duration_text(seconds).toStdString(), text);
}

}  // namespace
}  // namespace ferry::gui
