// A whole run by mouse and keyboard against the real trainer: from a preset to a model, paused,
// stopped, exported, with the app closed and killed in between.

#include <gtest/gtest.h>
#include <signal.h>

#include <QApplication>
#include <QLabel>
#include <QProcess>
#include <QTableView>
#include <QTest>
#include <QTreeWidget>

#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "src/runs/directory/checkpoints.h"
#include "tests/gui/whole_run/driver.h"

namespace ferry::gui::test {

namespace {

namespace fs = std::filesystem;

/** The window of one start of the app. */
struct Shown {
  explicit Shown(const Desk& desk) : settings(desk.settings_file()) {
    settings.set_runs_directory(desk.runs());
    settings.set_has_seen_start(true);
    window = std::make_unique<MainWindow>(settings);
    window->show();
    window->show_page(window->current_page());
    EXPECT_TRUE(QTest::qWaitForWindowExposed(window.get()));
    window->activateWindow();
  }
  AppSettings settings;
  std::unique_ptr<MainWindow> window;
};

/** New run, the preset by its name, Start. Gives the run. */
fs::path start_preset(Shown& shown, Hands& hands, const Desk& desk) {
  hands.go_to(PageId::new_run);
  hands.click("preset_button");
  hands.type("preset_search", "tells colours");
  auto* search = hands.find("preset_search");
  auto* found = hands.find<QTreeWidget>("preset_tree");
  if (!search || !found ||
      !Hands::wait_until("the preset", [&] { return found->currentItem() != nullptr; }))
    return {};
  QTest::keyClick(search, Qt::Key_Return);
  auto* start = hands.find("start_button");
  if (!start || !Hands::wait_until(
                    "Start is enabled", [&] { return start->isEnabled(); }, 30)) {
    if (auto* state = hands.find<QLabel>("state")) ADD_FAILURE() << state->text().toStdString();
    return {};
  }
  hands.click(*start);
  Hands::wait_until(
      "the Live page", [&] { return shown.window->current_page() == PageId::live; }, 30);
  return desk.newest_run();
}

/** Finds the only run in the list and opens it by a double click. */
void open_only_run(Shown& shown, Hands& hands) {
  hands.go_to(PageId::runs);
  auto* table = qobject_cast<QTableView*>(hands.wait_for("run_table"));
  ASSERT_TRUE(table);
  ASSERT_TRUE(Hands::wait_until(
      "the run in the list", [&] { return table->model()->rowCount() == 1; }, 20));
  const QRect cell = table->visualRect(table->model()->index(0, 1));
  QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, cell.center());
  QTest::mouseDClick(table->viewport(), Qt::LeftButton, {}, cell.center());
  ASSERT_TRUE(Hands::wait_until(
      "the Live page", [&] { return shown.window->current_page() == PageId::live; }, 10));
}

TEST(WholeRun, FromAPresetToAnExportedModel) {
  Desk desk;
  Shown shown(desk);
  Hands hands(*shown.window);
  const fs::path run = start_preset(shown, hands, desk);
  ASSERT_FALSE(run.empty());
  auto* phase = hands.find<QLabel>("phase");
  ASSERT_TRUE(phase);
  ASSERT_TRUE(Hands::wait_until("finished", [&] { return phase_of(run) == "finished"; }));
  EXPECT_TRUE(Hands::wait_until(
      "the page says so",
      [&] { return phase->text() == "finished" || phase->text() == "Finished"; }, 5));
  EXPECT_EQ(last_step_of(run), 60);

  hands.click("export_button");
  ASSERT_TRUE(Hands::wait_until(
      "the Export page", [&] { return shown.window->current_page() == PageId::export_model; }, 5));
  hands.type("target", path_text(desk.home() / "exported"));
  auto* button = hands.find("export_button");
  ASSERT_TRUE(button && Hands::wait_until(
                            "Export is enabled", [&] { return button->isEnabled(); }, 20));
  hands.click(*button);
  EXPECT_TRUE(Hands::wait_until(
      "an exported model",
      [&] { return fs::exists(desk.home() / "exported" / "model.safetensors"); }, 60));
}

TEST(WholeRun, PausesGoesOnAndStops) {
  Desk desk;
  desk.write_preset(20000);
  Shown shown(desk);
  Hands hands(*shown.window);
  const fs::path run = start_preset(shown, hands, desk);
  ASSERT_FALSE(run.empty());
  ASSERT_TRUE(Hands::wait_until("steps", [&] { return last_step_of(run) > 3; }));

  ASSERT_TRUE(hands.wait_for("pause_button"));
  hands.press(Qt::Key_P, Qt::ControlModifier);
  ASSERT_TRUE(Hands::wait_until("paused", [&] { return phase_of(run) == "paused"; }));
  const int64_t held = last_step_of(run);
  QTest::qWait(500);
  EXPECT_EQ(last_step_of(run), held);
  ASSERT_TRUE(hands.wait_for("pause_button"));  // it resumes now
  hands.press(Qt::Key_P, Qt::ControlModifier);
  ASSERT_TRUE(Hands::wait_until("more steps", [&] { return last_step_of(run) > held; }));

  // Closing the app ends nothing, and the next one finds the run.
  shown.window->close();
  shown.window.reset();
  const int64_t at_close = last_step_of(run);
  ASSERT_TRUE(
      Hands::wait_until("steps without the app", [&] { return last_step_of(run) > at_close + 3; }));
  Shown again(desk);
  Hands new_hands(*again.window);
  open_only_run(again, new_hands);
  new_hands.press_shortcut_of("action_stop");
  ASSERT_TRUE(Hands::wait_until("stopped", [&] { return phase_of(run) == "stopped"; }));
  EXPECT_TRUE(fs::exists(run / ("checkpoint-" + std::to_string(last_step_of(run)) + "/COMPLETE")));
}

TEST(WholeRun, AKilledTrainerIsSaidAndResumed) {
  Desk desk;
  desk.write_preset(20000);  // more than it can do before the test has seen a checkpoint
  Shown shown(desk);
  Hands hands(*shown.window);
  const fs::path run = start_preset(shown, hands, desk);
  ASSERT_FALSE(run.empty());
  // The run removes old checkpoints, so the test waits for any.
  ASSERT_TRUE(
      Hands::wait_until("a checkpoint", [&] { return !runs::complete_checkpoints(run).empty(); }));
  ASSERT_EQ(kill(pid_of(run), SIGKILL), 0);
  auto* resume = hands.wait_for("resume_run_button");
  ASSERT_TRUE(resume);
  const int64_t at_kill = last_step_of(run);
  hands.click(*resume);
  ASSERT_TRUE(Hands::wait_until("more steps", [&] { return last_step_of(run) > at_kill; }));
  hands.press_shortcut_of("action_stop");
  ASSERT_TRUE(Hands::wait_until("stopped", [&] { return phase_of(run) == "stopped"; }));
}

/** The same program, started to be killed. */
TEST(WholeRun, AKilledAppLeavesItsRun) {
  Desk desk;
  desk.write_preset(20000);
  QProcess app;
  app.setProcessChannelMode(QProcess::ForwardedChannels);
  app.start(QApplication::applicationFilePath(), {"--be-an-app", path_text(desk.home())});
  fs::path run;
  ASSERT_TRUE(Hands::wait_until("a run", [&] {
    run = desk.newest_run();
    return !run.empty() && last_step_of(run) > 3;
  }));
  app.kill();
  app.waitForFinished();
  const int64_t at_kill = last_step_of(run);
  ASSERT_TRUE(
      Hands::wait_until("steps without the app", [&] { return last_step_of(run) > at_kill + 3; }));
  Shown shown(desk);
  Hands hands(*shown.window);
  open_only_run(shown, hands);
  hands.press_shortcut_of("action_stop");
  ASSERT_TRUE(Hands::wait_until("stopped", [&] { return phase_of(run) == "stopped"; }));
}

/** Starts the preset, then waits to be killed. */
int be_an_app(const fs::path& home) {
  const Desk desk(home);
  Shown shown(desk);
  Hands hands(*shown.window);
  start_preset(shown, hands, desk);
  return QApplication::exec();
}

}  // namespace
}  // namespace ferry::gui::test

int main(int argc, char** argv) {
  using namespace ferry::gui;
  using namespace ferry::gui::test;
  testing::InitGoogleTest(&argc, argv);
  QApplication app(argc, argv);
  apply_theme(Theme::light);
  if (argc == 3 && std::string_view(argv[1]) == "--be-an-app") return be_an_app(argv[2]);
  return RUN_ALL_TESTS();
}
