// Run hours and making way for other programs, over simulated days.

#include "gui/models/runs/run_keeper.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <QTimeZone>
#include <fstream>

#include "gui/models/text.h"
#include "src/base/bytes.h"

namespace ferry::gui {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Kept : public ::testing::Test {
 protected:
  Kept() : settings_(directory_.filePath("app.ini")), zone_("Europe/Berlin") { restart(); }

  /** The app ends and begins anew. */
  void restart() {
    keeper_ = std::make_unique<RunKeeper>(
        settings_, RunKeeper::World{.now = [this] { return now_; },
                                    .gpu_used_bytes = [this] { return gpu_used_; },
                                    .runs = [this] { return runs_; },
                                    .pause = [this](const auto& run) { ask("pause", run); },
                                    .resume = [this](const auto& run) { ask("resume", run); },
                                    .is_in_charge = [this] { return is_in_charge_; }});
  }
  void ask(const std::string& what, const std::filesystem::path& run) {
    said_.push_back(
        fmt::format("{} {} {}", now_.toString("ddd hh:mm").toStdString(), what, run.string()));
    if (obeys_)
      for (auto& one : runs_)
        if (one.path == run) one.facts.phase = what == "pause" ? "paused" : "training";
  }
  void add_run(const char* name, int64_t gpu_bytes = 0) {
    runs_.push_back(
        {.path = name,
         .facts = {.phase = "training", .trainer = service::Trainer::here, .has_socket = true},
         .process = "1@now",
         .gpu_bytes = gpu_bytes});
  }
  void set_time(int year, int month, int day, int hour, int minute = 0) {
    now_ = QDateTime(QDate(year, month, day), QTime(hour, minute), zone_);
  }
  void pass(int seconds, int step = 1) {
    for (int i = 0; i < seconds; i += step) {
      now_ = now_.addSecs(step);
      keeper_->look();
    }
  }

  QTemporaryDir directory_;
  AppSettings settings_;
  QTimeZone zone_;
  QDateTime now_;
  std::optional<int64_t> gpu_used_;
  std::vector<RunListModel::Running> runs_;
  std::vector<std::string> said_;
  bool obeys_ = true, is_in_charge_ = true;
  std::unique_ptr<RunKeeper> keeper_;
};

TEST_F(Kept, HoursHaveOneBeginAndOneEndADay) {
  settings_.set_run_hours(true, QTime(22, 0), QTime(7, 0));
  add_run("a");
  set_time(2026, 11, 23, 21, 30);  // a Monday
  const auto kib = [] {
    long pages = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * 4;
  };
  pass(3600);
  [[maybe_unused]] const long before = kib();
  pass(7 * 86400 - 3600, 10);
  EXPECT_THAT(said_, ElementsAre("Mon 21:30 pause a", "Mon 22:00 resume a", "Tue 07:00 pause a",
                                 "Tue 22:00 resume a", "Wed 07:00 pause a", "Wed 22:00 resume a",
                                 "Thu 07:00 pause a", "Thu 22:00 resume a", "Fri 07:00 pause a",
                                 "Fri 22:00 resume a", "Sat 07:00 pause a", "Sat 22:00 resume a",
                                 "Sun 07:00 pause a", "Sun 22:00 resume a", "Mon 07:00 pause a"));
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(kib() - before, 2048);
#endif
}

TEST_F(Kept, ClocksThatAreSetForwardOrBackChangeNothing) {
  // The hour from 2 to 3 comes twice on one night, and not at all on the other.
  for (const auto& [month, day] : {std::pair{10, 24}, {3, 28}}) {
    said_.clear();
    settings_.set_run_hours(true, QTime(0, 30), QTime(2, 30));
    runs_.clear();
    add_run("a");
    set_time(2026, month, day, 12);
    restart();
    pass(86400, 30);
    ASSERT_EQ(said_.size(), 3U) << testing::PrintToString(said_);
    EXPECT_EQ(said_[0], "Sat 12:00 pause a");
    EXPECT_EQ(said_[1], "Sun 00:30 resume a");
    EXPECT_TRUE(said_[2].ends_with("pause a")) << said_[2];
  }
  const QTimeZone berlin("Europe/Berlin");
  for (const auto& [from, until] :
       {std::pair{QTime(2, 30), QTime(4, 0)}, {QTime(22, 0), QTime(7, 0)}}) {
    const QDateTime noon(QDate(2026, 3, 28), QTime(12, 0), berlin);
    int n_changes = 0;
    bool was = is_within_hours(noon, from, until);
    for (int minute = 1; minute <= 1440; ++minute) {
      const bool is = is_within_hours(noon.addSecs(60 * minute), from, until);
      n_changes += is != was;
      was = is;
    }
    EXPECT_EQ(n_changes, 2) << from.toString().toStdString();
  }
}

TEST_F(Kept, HoursWithinADayAndNone) {
  const QDateTime noon(QDate(2026, 11, 23), QTime(12, 0), zone_);
  EXPECT_TRUE(is_within_hours(noon, QTime(9, 0), QTime(17, 0)));
  EXPECT_FALSE(is_within_hours(noon, QTime(9, 0), QTime(12, 0)));
  EXPECT_TRUE(is_within_hours(noon, QTime(12, 0), QTime(12, 1)));
  EXPECT_TRUE(is_within_hours(noon, QTime(8, 0), QTime(8, 0)));
  const QDateTime midnight(QDate(2026, 11, 23), QTime(0, 0), zone_);
  EXPECT_TRUE(is_within_hours(midnight, QTime(22, 0), QTime(7, 0)));
  EXPECT_FALSE(is_within_hours(midnight, QTime(7, 0), QTime(22, 0)));
}

TEST_F(Kept, WhatTheUserPausedStaysPaused) {
  settings_.set_run_hours(true, QTime(22, 0), QTime(7, 0));
  add_run("mine");
  add_run("users");
  runs_[1].facts.phase = "paused";
  set_time(2026, 11, 23, 21, 0);
  pass(7200);
  EXPECT_THAT(said_, ElementsAre("Mon 21:00 pause mine", "Mon 22:00 resume mine"));
}

TEST_F(Kept, ARestartForgetsNothing) {
  settings_.set_run_hours(true, QTime(22, 0), QTime(7, 0));
  add_run("a");
  set_time(2026, 11, 23, 21, 0);
  pass(10);
  EXPECT_TRUE(keeper_->has_paused("a"));
  restart();
  EXPECT_TRUE(keeper_->has_paused("a"));
  pass(3600);
  EXPECT_THAT(said_, ElementsAre("Mon 21:00 pause a", "Mon 22:00 resume a"));
  EXPECT_FALSE(keeper_->has_paused("a"));
  // Another process of the run, which the user paused, is not its.
  pass(9 * 3600, 10);
  ASSERT_TRUE(keeper_->has_paused("a"));
  runs_[0].process = "2@later";
  pass(86400, 60);
  EXPECT_EQ(said_.back(), "Tue 07:00 pause a");
}

TEST_F(Kept, ARunThatTheUserLetsGoOnIsLeftAlone) {
  settings_.set_run_hours(true, QTime(22, 0), QTime(7, 0));
  add_run("a");
  set_time(2026, 11, 23, 20, 0);
  pass(600);
  runs_[0].facts.phase = "training";
  pass(3 * 3600, 10);
  EXPECT_THAT(said_, ElementsAre("Mon 20:00 pause a"));
  pass(9 * 3600, 10);  // the next day it is as always
  EXPECT_EQ(said_.back(), "Tue 07:00 pause a");
  EXPECT_EQ(said_.size(), 2U);
}

TEST_F(Kept, HoursThatAreSwitchedOffLetItGoOn) {
  settings_.set_run_hours(true, QTime(22, 0), QTime(7, 0));
  add_run("a");
  set_time(2026, 11, 23, 12, 0);
  pass(10);
  EXPECT_FALSE(keeper_->why_not_now().isEmpty());
  settings_.set_run_hours(false, QTime(22, 0), QTime(7, 0));
  pass(10);
  EXPECT_TRUE(keeper_->why_not_now().isEmpty());
  EXPECT_THAT(said_, ElementsAre("Mon 12:00 pause a", "Mon 12:00 resume a"));
}

TEST_F(Kept, MakesWayForAnotherProgramAndComesBack) {
  settings_.set_yields(true);
  add_run("a", 8 * kGiB);
  set_time(2026, 11, 23, 12, 0);
  gpu_used_ = 9 * kGiB;  // its own, its context, and a desktop
  pass(600);
  EXPECT_THAT(said_, IsEmpty());
  gpu_used_ = 14 * kGiB;  // a game begins
  pass(3);
  gpu_used_ = 9 * kGiB;  // and ends at once
  pass(60);
  EXPECT_THAT(said_, IsEmpty());
  gpu_used_ = 14 * kGiB;
  pass(10);
  EXPECT_THAT(said_, ElementsAre("Mon 12:11 pause a"));
  gpu_used_ = 6 * kGiB;  // paused the run has let go of its memory
  pass(600);
  gpu_used_ = 1 * kGiB;  // the next scene loads
  pass(10);
  gpu_used_ = 6 * kGiB;
  pass(600);
  EXPECT_EQ(said_.size(), 1U);
  gpu_used_ = 1 * kGiB;
  pass(60);
  EXPECT_EQ(said_.size(), 2U);
  gpu_used_ = 9 * kGiB;
  pass(3600);
  EXPECT_EQ(said_.size(), 2U) << testing::PrintToString(said_);
}

TEST_F(Kept, ItsOwnReturnIsNoOtherProgram) {
  settings_.set_yields(true);
  add_run("a", 8 * kGiB);
  set_time(2026, 11, 23, 12, 0);
  gpu_used_ = 14 * kGiB;
  pass(20);
  gpu_used_ = 1 * kGiB;
  obeys_ = false;  // it takes its time
  pass(40);
  EXPECT_EQ(said_.size(), 2U);
  gpu_used_ = 9 * kGiB;
  pass(40);
  runs_[0].facts.phase = "training";
  pass(600);
  EXPECT_EQ(said_.size(), 2U) << testing::PrintToString(said_);
}

TEST_F(Kept, WithoutAReadingOrWithoutBeingInChargeItDoesNothing) {
  settings_.set_yields(true);
  add_run("a", kGiB);
  set_time(2026, 11, 23, 12, 0);
  pass(100);
  settings_.set_run_hours(true, QTime(22, 0), QTime(7, 0));
  is_in_charge_ = false;
  pass(100);
  EXPECT_THAT(said_, IsEmpty());
  is_in_charge_ = true;
  pass(10);
  EXPECT_EQ(said_.size(), 1U);
}

TEST_F(Kept, ARunThatDoesNotAnswerIsAskedAgainNowAndThen) {
  settings_.set_run_hours(true, QTime(22, 0), QTime(7, 0));
  add_run("a");
  obeys_ = false;
  set_time(2026, 11, 23, 12, 0);
  pass(301);
  EXPECT_GE(said_.size(), 4U);
  EXPECT_LE(said_.size(), 6U);
  runs_.clear();
  pass(10);
  EXPECT_FALSE(keeper_->has_paused("a"));
  EXPECT_EQ(settings_.value("keeper/paused").toByteArray(), "{}");
}

TEST_F(Kept, ARunThatPreparesIsPausedOnceItTakesRequests) {
  settings_.set_run_hours(true, QTime(22, 0), QTime(7, 0));
  add_run("a");
  runs_[0].facts = {.phase = "preparing", .trainer = service::Trainer::here, .has_socket = false};
  set_time(2026, 11, 23, 12, 0);
  pass(100);
  EXPECT_THAT(said_, IsEmpty());
  runs_[0].facts.phase = "training";
  runs_[0].facts.has_socket = true;
  pass(2);
  EXPECT_EQ(said_.size(), 1U);
}

}  // namespace
}  // namespace ferry::gui
