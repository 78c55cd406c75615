#include "gui/models/runs/run_progress.h"

#include <gtest/gtest.h>

#include "gui/models/runs/run_follower.h"
#include "gui/models/text.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

using service::RunAction;
using service::RunFacts;

class RunProgressTest : public ::testing::Test {
 protected:
  RunProgress progress(const nlohmann::ordered_json& record, const std::string& phase) {
    service::MetricsReader reader(run_.path());
    while (reader.poll().is_behind) {
    }
    return progress_of(record, {.phase = phase}, reader);
  }

  TestHome home_;
  RunFiles run_{home_ / "run"};
};

TEST_F(RunProgressTest, TellsTheTimeLeftAfterTheFirstStepsOfThisSessionOnly) {
  const auto line = [](int64_t step, double ms, int64_t time) {
    return fmt::format(
        "{{\"step\":{},\"epoch\":{},\"loss\":2,\"step_ms\":{},\"train_tokens_per_second\":100,"
        "\"time\":{}}}\n",
        step, static_cast<double>(step) / 50, ms, time);
  };
  // 1795600000 is 2026-11-25T09:46:40Z.
  const nlohmann::ordered_json first = {{"started", "2026-11-25T09:46:40Z"}, {"n_steps", 100}};
  for (int64_t step = 1; step <= 4; ++step)
    run_.add(line(step, 1000, 1795600000 + step));
  EXPECT_TRUE(progress(first, "training").is_estimating);
  for (int64_t step = 5; step <= 40; ++step)
    run_.add(line(step, 1000, 1795600000 + step));
  const RunProgress known = progress(first, "training");
  EXPECT_FALSE(known.is_estimating);
  EXPECT_NEAR(known.seconds_left.value(), 60, 1e-6);
  EXPECT_EQ(known.step, 40);
  EXPECT_NEAR(known.share(), 0.4, 1e-9);
  EXPECT_EQ(known.n_epochs, 2);
  EXPECT_NEAR(known.epoch, 0.8, 1e-9);
  EXPECT_NEAR(known.epoch_share(), 0.4, 1e-9) << "of all epochs, as its words say";
  // Resumed an hour later, on a slower machine: the steps of before tell nothing.
  const nlohmann::ordered_json second = {{"started", "2026-11-25T10:46:40Z"}, {"n_steps", 100}};
  EXPECT_TRUE(progress(second, "training").is_estimating);
  for (int64_t step = 41; step <= 46; ++step)
    run_.add(line(step, 3000, 1795603600 + step));
  EXPECT_NEAR(progress(second, "training").seconds_left.value(), 3 * 54, 1e-6);
  EXPECT_FALSE(progress(second, "paused").seconds_left);
  EXPECT_FALSE(progress(second, "paused").is_estimating);
  EXPECT_FALSE(progress(second, "finished").seconds_left);
}

TEST_F(RunProgressTest, AnythingInARecordIsTaken) {
  run_.add_steps(1, 10);
  for (const nlohmann::ordered_json& record :
       {nlohmann::ordered_json(), nlohmann::ordered_json::array(), nlohmann::ordered_json("text"),
        nlohmann::ordered_json{{"n_steps", "many"}, {"started", 7}, {"promised", 3}},
        nlohmann::ordered_json{{"n_steps", -4}, {"started", "yesterday"}}}) {
    const RunProgress found = progress(record, "training");
    EXPECT_EQ(found.step, 10);
    EXPECT_EQ(found.n_steps, 0);
    EXPECT_EQ(found.share(), 0);
    EXPECT_FALSE(why_ended(record, {.phase = "lost"}, {}, {}).isEmpty());
  }
}

TEST_F(RunProgressTest, AKilledRunSaysWhetherMemoryWasTheReason) {
  const auto why = [&](const nlohmann::ordered_json& record, int64_t free_bytes,
                       std::optional<double> used = {}) {
    return why_ended(record, {.phase = "lost"}, used, {.host = "vm", .free_bytes = free_bytes})
        .toStdString();
  };
  const int64_t gib = int64_t{1} << 30;
  const nlohmann::ordered_json planned = {{"host", "vm"},
                                          {"promised", {{"host_bytes_peak", 58 * gib}}}};
  EXPECT_EQ(why(planned, 51 * gib),
            "Killed, most likely out of host memory: planned 58.00 GiB, available now 51.00 GiB.");
  const std::string enough = why(planned, 128 * gib);
  EXPECT_EQ(enough.find("most likely"), std::string::npos);
  EXPECT_NE(enough.find("58.00 GiB"), std::string::npos);
  nlohmann::ordered_json told = planned;
  told["host_budget_bytes"] = 51 * gib;
  EXPECT_EQ(why(told, 128 * gib),
            "Killed, most likely out of host memory: planned 58.00 GiB, available 51.00 GiB.");
  told["host_budget_bytes"] = 128 * gib;
  EXPECT_EQ(why(told, 51 * gib).find("most likely"), std::string::npos) << "the memory of then";
  EXPECT_NE(why(told, 51 * gib, 120.0 * static_cast<double>(gib)).find("most likely"),
            std::string::npos)
      << "it held more than was planned";
  nlohmann::ordered_json elsewhere = planned;
  elsewhere["host"] = "another";
  EXPECT_EQ(why(elsewhere, gib).find("available"), std::string::npos);
}

TEST_F(RunProgressTest, EndsAreToldInTheWordsOfTheRun) {
  const nlohmann::ordered_json record = {{"exit_reason", "the reason"}, {"warning", "diverged"}};
  const auto why = [&](const char* phase) {
    return why_ended(record, {.phase = phase}, {}, {}).toStdString();
  };
  EXPECT_EQ(why("failed"), "The reason");
  EXPECT_EQ(why("stopped"), "The reason");
  EXPECT_EQ(why("finished"), "diverged");
  EXPECT_EQ(why("training"), "diverged");
}

TEST_F(RunProgressTest, AFollowerSeesTheEndAlsoInTheBackground) {
  LivingRun live(run_.path(), 2000);
  RunFollower follower(run_.path());
  QString ended;
  int n_changes = 0;
  QObject::connect(&follower, &RunFollower::ended, &follower,
                   [&](const QString& phase) { ended += phase; });
  QObject::connect(&follower, &RunFollower::changed, &follower, [&] { ++n_changes; });
  follower.set_active(true);
  EXPECT_EQ(follower.facts().phase, "training");
  follower.set_active(false);
  live.end(runs::Phase::failed, {{"exit_reason", "no room"}});
  EXPECT_TRUE(wait_until([&] { return !ended.isEmpty(); }));
  EXPECT_EQ(ended.toStdString(), "failed");
  EXPECT_EQ(n_changes, 1);
  EXPECT_FALSE(follower.allowed().allows(RunAction::pause));
}

TEST_F(RunProgressTest, AFollowerPausesARealSocketAndTellsTheAnswer) {
  LivingRun live(run_.path(), 2000);
  RunFollower follower(run_.path());
  follower.set_active(true);
  QString answer;
  bool is_done = false;
  QObject::connect(&follower, &RunFollower::replied, &follower,
                   [&](bool done, const QString& text) {
                     is_done = done;
                     answer = text;
                   });
  ASSERT_TRUE(follower.allowed().allows(RunAction::pause));
  follower.pause();
  EXPECT_TRUE(follower.is_waiting());
  ASSERT_TRUE(wait_until([&] { return !answer.isEmpty(); }));
  EXPECT_TRUE(is_done);
  EXPECT_TRUE(answer.contains("memory is free"));
  ASSERT_TRUE(wait_until([&] { return follower.facts().phase == "paused"; }));
  EXPECT_FALSE(follower.allowed().allows(RunAction::pause));
  follower.pause();  // not allowed: nothing is asked
  EXPECT_FALSE(follower.is_waiting());
  answer.clear();
  follower.set_setting("learning_rate", "refused");
  ASSERT_TRUE(wait_until([&] { return !answer.isEmpty(); }));
  EXPECT_FALSE(is_done);
  EXPECT_EQ(live.asked(), "set learning_rate refused");
}

TEST_F(RunProgressTest, AFollowerForgetsALogThatBeganAnew) {
  RunFollower follower(run_.path());
  int n_anew = 0;
  QObject::connect(&follower, &RunFollower::log_anew, &follower, [&] { ++n_anew; });
  follower.set_active(true);
  ASSERT_TRUE(wait_until([&] { return follower.log().size() == 2; }));
  std::ofstream(run_.path() / "train.log") << "t ferry train\n";
  ASSERT_TRUE(wait_until([&] { return n_anew == 1 && follower.log().size() == 1; }));
}

}  // namespace
}  // namespace ferry::gui
