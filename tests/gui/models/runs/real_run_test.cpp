// The queue and the run hours with the real trainer: started, paused, let go on, stopped, the next.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/models/runs/run_keeper.h"
#include "gui/models/runs/run_list_model.h"
#include "gui/models/runs/run_queue.h"
#include "gui/models/text.h"
#include "src/config/models/models.h"
#include "tests/gui/gui_test.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

namespace fs = std::filesystem;

fs::path model_here() {
  try {
    return fs::absolute(config::find_model("all-MiniLM-L6-v2"));
  } catch (const std::exception&) {
    return {};
  }
}

TEST(RealRun, ComesFromTheQueueAndKeepsHours) {
  const char* ferry = getenv("FERRY");
  const fs::path model = model_here();
  if (!ferry || !fs::exists(fs::path(ferry).parent_path() / "../train/ferry-trainer"))
    GTEST_SKIP() << "this build has no trainer";
  if (model.empty()) GTEST_SKIP() << "there is no all-MiniLM-L6-v2 here";
  TestHome home;
  std::ofstream data(home / "data.csv");
  data << "text,label\n";
  for (int i = 0; i < 64; ++i)
    data << (i % 2 ? "what a good day" : "what a bad day") << ' ' << i << ',' << i % 2 << '\n';
  data.close();
  config::Config config;
  const auto set = [&](const char* key, const std::string& value) {
    config.set(key, value, {config::Source::command_line, "test"});
  };
  set("model", model.string());
  set("task", "classification");
  set("dataset", (home / "data.csv").string());
  set("max_length", "16");
  set("train_batch_size", "4");
  set("max_steps", "5000");
  set("save_strategy", "no");

  AppSettings settings(path_text(home / "app.ini"));
  settings.set_runs_directory(home.runs());
  Launcher launcher;
  RunListModel runs(settings, launcher);
  RunQueue queue(settings, launcher, runs);
  RunRequests requests;
  QDateTime now(QDate(2026, 11, 23), QTime(23, 0));
  RunKeeper::World world = RunKeeper::this_machine(runs, requests, [&] { return queue.is_ours(); });
  world.now = [&] { return now; };
  RunKeeper keeper(settings, world);
  queue.set_gate([&] { return keeper.why_not_now(); });
  runs.set_active(true);
  queue.add(config, "first");
  set("seed", "7");
  set("max_steps", "2");
  queue.add(config, "second");
  settings.set_run_hours(true, QTime(22, 0), QTime(7, 0));
  settings.set_queue_on(true);
  const auto state = [&](int row) {
    return runs.index(row, RunListModel::state).data().toString().toStdString();
  };
  ASSERT_TRUE(wait_until([&] { return runs.rowCount() == 1 && state(0) == "Training"; }, 100000))
      << queue.index(0).data(RunQueue::trouble_role).toString().toStdString();
  EXPECT_EQ(queue.rowCount(), 1);
  now = now.addSecs(10 * 3600);  // the morning
  ASSERT_TRUE(wait_until([&] { return state(0) == "Paused"; }, 60000));
  EXPECT_TRUE(keeper.has_paused(runs.path_of(0)));
  EXPECT_FALSE(wait_until([&] { return queue.rowCount() == 0; }, 3000));
  now = now.addSecs(14 * 3600);
  ASSERT_TRUE(wait_until([&] { return state(0) != "Paused"; }, 60000));
  EXPECT_TRUE(wait_until([&] { return !keeper.has_paused(runs.path_of(0)); }));
  requests.stop(runs.path_of(0));
  ASSERT_TRUE(wait_until([&] { return state(0) == "Stopped"; }, 100000)) << state(0);
  ASSERT_TRUE(wait_until([&] { return runs.rowCount() == 2 && state(0) == "Finished"; }, 100000));
  EXPECT_EQ(queue.rowCount(), 0);
  EXPECT_EQ(runs.index(0, RunListModel::progress).data().toString().toStdString(), "100 % (2/2)");
}

}  // namespace
}  // namespace ferry::gui
