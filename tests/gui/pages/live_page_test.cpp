#include "gui/pages/live/live_page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <QAbstractButton>
#include <QAbstractScrollArea>
#include <QAccessible>
#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "gui/pages/live/action_bar.h"
#include "gui/pages/live/live_charts.h"
#include "gui/widgets/charts/curve_chart.h"
#include "gui/widgets/charts/curve_legend.h"
#include "gui/widgets/runs/log_pane.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

using runs::Phase;
using service::RunAction;
using service::RunFacts;
using service::Trainer;

class LivePageTest : public ::testing::Test {
 protected:
  LivePageTest() {
    settings_.set_runs_directory(home_ / "runs");
    page_.resize(1080, 760);
    page_.show();
    page_.set_active(true);
  }
  template <typename Widget>
  Widget* child(const char* name) {
    auto* const found = page_.findChild<Widget*>(name);
    EXPECT_TRUE(found) << name;
    return found;
  }
  std::string label(const char* name) { return child<QLabel>(name)->text().toStdString(); }

  TestHome home_;
  RunFiles run_{home_ / "runs" / "2026-11-21_1015_minilm_reviews"};
  AppSettings settings_{path_text(home_ / "app.ini")};
  Launcher launcher_;
  Navigator navigator_;
  RunListModel run_list_{settings_, launcher_};
  RunQueue queue_{settings_, launcher_, run_list_};
  Shared shared_{settings_, launcher_, navigator_, run_list_, queue_};
  LivePage page_{shared_};
};

TEST(ActionBarTest, HasWhatIsAllowedInEveryState) {
  ActionBar bar;
  bar.show();
  int n_states = 0;
  for (const char* phase : {"preparing", "training", "evaluating", "sampling", "saving", "paused",
                            "finished", "stopped", "failed", "lost", "unstarted", "unreadable"})
    for (const Trainer trainer :
         {Trainer::none, Trainer::here, Trainer::elsewhere, Trainer::unknown})
      for (int bits = 0; bits < 16; ++bits)
        for (const bool is_starting : {false, true}) {
          const RunFacts facts{.phase = phase,
                               .trainer = trainer,
                               .has_socket = (bits & 1) != 0,
                               .waits_for_room = (bits & 2) != 0,
                               .has_checkpoint = (bits & 4) != 0,
                               .is_writable = (bits & 4) != 0,
                               .is_stop_overdue = (bits & 8) != 0};
          bar.show_run(facts, is_starting);
          const service::AllowedActions allowed = service::allowed_actions(facts);
          ++n_states;
          for (size_t i = 0; i < service::kRunActions; ++i) {
            const auto action = static_cast<RunAction>(i);
            const QAction* const shown = bar.action(action);
            if (!shown) continue;
            const bool is_held = is_starting && action == RunAction::resume_run;
            EXPECT_EQ(shown->isEnabled(), allowed.allows(action) && !is_held)
                << phase << ", " << name_of(action);
            if (!allowed.allows(action)) {
              EXPECT_TRUE(shown->toolTip().contains(to_text(allowed.why_not(action))))
                  << phase << ", " << name_of(action);
            }
          }
          const auto button = [&](const char* name) { return bar.findChild<QToolButton*>(name); };
          // The key pauses or goes on, never both.
          EXPECT_NE(bar.action(RunAction::pause)->shortcut().isEmpty(),
                    bar.action(RunAction::resume)->shortcut().isEmpty());
          EXPECT_EQ(button("pause_button")->isEnabled(),
                    allowed.allows(std::string(phase) == "paused" ? RunAction::resume
                                                                  : RunAction::pause));
          EXPECT_EQ(button("save_button")->isEnabled(), allowed.allows(RunAction::save_now));
          EXPECT_EQ(button("force_quit_button")->isVisible(),
                    allowed.allows(RunAction::force_quit));
          EXPECT_EQ(button("stop_button")->isEnabled(),
                    allowed.allows(RunAction::stop) ||
                        allowed.allows(RunAction::stop_without_saving) ||
                        allowed.allows(RunAction::force_quit));
          // Whatever is allowed can be reached.
          if (allowed.allows(RunAction::resume_run)) {
            EXPECT_TRUE(button("resume_run_button")->isVisible()) << phase;
          }
          if (allowed.allows(RunAction::stop_without_saving)) {
            EXPECT_TRUE(button("stop_button")->isVisible()) << phase;
          }
        }
  EXPECT_EQ(n_states, 12 * 4 * 16 * 2);
}

TEST_F(LivePageTest, OffersTheNewestRunsWhereNoneIsChosen) {
  page_.show_picker();
  const QAbstractItemModel& list = *child<QTreeView>("picker_runs")->model();
  ASSERT_TRUE(wait_until([&] { return list.index(0, RunListModel::state).data() == "Finished"; }));
  EXPECT_EQ(list.rowCount(), 1);
  EXPECT_TRUE(list.index(0, RunListModel::name).data().toString().contains("minilm"));
  QTest::mouseClick(child<QPushButton>("picker_choose"), Qt::LeftButton);
  ASSERT_TRUE(page_.follower());
  EXPECT_EQ(page_.follower()->run(), run_.path());
  EXPECT_EQ(label("phase"), "Finished");
}

TEST_F(LivePageTest, FollowsARunThatGrows) {
  LivingRun live(run_.path(), 2000);
  run_.add_steps(1, 3);
  page_.show_run(run_.path());
  EXPECT_EQ(label("phase"), "Training");
  ASSERT_TRUE(wait_until([&] { return label("steps") == "Step 3 of 2,000"; }));
  EXPECT_EQ(label("time_left"), "estimating");
  ASSERT_TRUE(wait_until([&] { return page_.log().command().startsWith("ferry train"); }));
  EXPECT_EQ(page_.charts().chart("eval"), nullptr);
  run_.add_steps(4, 250);
  run_.add("{\"step\":251,\"loss\":0.");  // half written
  run_.add_log("2026-11-21T10:16:00Z step 250\n");
  ASSERT_TRUE(wait_until([&] { return label("steps") == "Step 250 of 2,000"; }));
  EXPECT_NE(label("time_left"), "estimating");
  EXPECT_NE(label("speed"), "–");
  EXPECT_TRUE(page_.charts().chart("eval"));  // with its first evaluation
  ASSERT_TRUE(wait_until([&] { return page_.log().text().contains("step 250"); }));
  CurveChart* const loss = page_.charts().chart("loss");
  ASSERT_TRUE(wait_until([&] { return loss->summary().contains("250 points"); }));
  EXPECT_EQ(child<QProgressBar>("step_bar")->value(), 125);
  for (const char* id : {"loss", "learning_rate", "grad_norm", "speed", "memory", "overlap"})
    EXPECT_TRUE(page_.charts().chart(id)) << id;
  EXPECT_FALSE(page_.charts().is_shown("step_time"));
}

TEST_F(LivePageTest, PausesByKeyAndGoesOn) {
  LivingRun live(run_.path(), 2000);
  run_.add_steps(1, 30);
  page_.show_run(run_.path());
  page_.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&page_));
  QTest::keyClick(&page_, Qt::Key_P, Qt::ControlModifier);
  ASSERT_TRUE(wait_until([&] { return label("phase") == "Paused"; }));
  EXPECT_TRUE(page_.notice().contains("the GPU is free")) << page_.notice().toStdString();
  // The run says that it pauses before it answers.
  EXPECT_TRUE(wait_until([&] { return page_.answer().contains("memory is free"); }))
      << page_.answer().toStdString();
  EXPECT_EQ(label("time_left"), "paused");
  EXPECT_EQ(child<QToolButton>("pause_button")->text().toStdString(), "Resume");
  QTest::keyClick(&page_, Qt::Key_P, Qt::ControlModifier);
  ASSERT_TRUE(wait_until([&] { return label("phase") == "Training"; }));
  EXPECT_TRUE(page_.notice().isEmpty());
  QTest::keyClick(&page_, Qt::Key_S, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(wait_until([&] { return live.asked() == "save"; }));
  QTest::keyClick(&page_, Qt::Key_Period, Qt::ControlModifier);
  ASSERT_TRUE(wait_until([&] { return live.asked() == "stop yes"; }));
  page_.actions().action(RunAction::stop_without_saving)->trigger();
  ASSERT_TRUE(wait_until([&] { return live.asked() == "stop no"; }));
}

TEST_F(LivePageTest, APausedRunWithoutAGpuFreesNone) {
  LivingRun live(run_.path());
  live.directory().set_phase(Phase::paused);
  page_.show_run(run_.path());
  ASSERT_TRUE(wait_until([&] { return label("phase") == "Paused"; }));
  EXPECT_TRUE(page_.notice().contains("the processor is free")) << page_.notice().toStdString();
}

TEST_F(LivePageTest, AKilledRunWaitsForNothing) {
  run_.record({{"phase", "saving"}, {"waits_for", "room on the disk"}, {"pid", 1}});
  page_.show_run(run_.path());
  ASSERT_TRUE(wait_until([&] { return label("phase") == "Killed"; }));
  EXPECT_FALSE(page_.notice().contains("finishes by itself")) << page_.notice().toStdString();
  EXPECT_TRUE(page_.notice().contains("ended unexpectedly")) << page_.notice().toStdString();
}

TEST_F(LivePageTest, BarsAndLossSayWhatTheirWordsSay) {
  run_.add_steps(1, 1000);  // at epoch 1.5 of 3
  run_.record({{"phase", "stopped"}, {"n_steps", 2000}});
  page_.show_run(run_.path());
  ASSERT_TRUE(wait_until([&] { return label("epochs") == "Epoch 1.5 of 3"; })) << label("epochs");
  const auto* const bar = child<QProgressBar>("epoch_bar");
  EXPECT_EQ(bar->value(), bar->maximum() / 2);
  // The header and the legend of the chart tell the same loss.
  const auto* const legend = page_.findChild<QWidget*>("chart_loss")->findChild<CurveLegend*>();
  ASSERT_TRUE(wait_until([&] { return !legend->entries().empty(); }));
  EXPECT_TRUE(legend->entries().front().text.endsWith(child<QLabel>("loss_now")->text()))
      << legend->entries().front().text.toStdString() << " and " << label("loss_now");
}

TEST_F(LivePageTest, ANoticeMovesNoButton) {
  LivingRun live(run_.path());
  page_.show_run(run_.path());
  ASSERT_TRUE(wait_until([&] { return label("phase") == "Training"; }));
  const auto place = [&] {
    QApplication::processEvents();
    QList<QPoint> places;
    for (const char* name : {"pause_button", "save_button", "stop_button", "choose_charts"})
      places << child<QToolButton>(name)->mapTo(&page_, QPoint());
    return places;
  };
  const QList<QPoint> before = place();
  live.directory().set_phase(Phase::paused);
  ASSERT_TRUE(wait_until([&] { return !page_.notice().isEmpty(); }));
  EXPECT_EQ(place(), before);
}

TEST_F(LivePageTest, ChangesASettingWhileItTrains) {
  LivingRun live(run_.path(), 2000);
  page_.show_run(run_.path());
  auto* const value = child<QLineEdit>("change_value");
  auto* const button = child<QPushButton>("change_button");
  EXPECT_EQ(value->text().toStdString(), "3e-05");  // of the run's config.toml
  EXPECT_FALSE(button->isEnabled());
  value->setFocus();
  value->selectAll();
  QTest::keyClicks(value, "quick");
  EXPECT_FALSE(button->isEnabled());
  EXPECT_TRUE(child<QLabel>("change_trouble")->isVisible());
  value->selectAll();
  QTest::keyClicks(value, "1e-5");
  EXPECT_TRUE(button->isEnabled());
  QTest::mouseClick(button, Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return live.asked() == "set learning_rate 1e-5"; }));
  ASSERT_TRUE(wait_until([&] { return page_.answer() == "Set done"; }));
  auto* const keys = child<QComboBox>("change_key");
  keys->setCurrentIndex(keys->findData("max_grad_norm"));
  EXPECT_EQ(value->text().toStdString(), "1");
  live.directory().set("changes", {{{"step", 7}, {"key", "max_grad_norm"}, {"value", "0.5"}}});
  ASSERT_TRUE(wait_until([&] { return value->text() == "0.5"; }));
  live.end(Phase::finished, nlohmann::ordered_json::object());
  ASSERT_TRUE(wait_until([&] { return !value->isVisible(); }));
}

TEST_F(LivePageTest, ShowsARunWhoseNameIsNoText) {
  RunFiles run(run_.path().parent_path() / "caf\xe9");
  run.add_steps(1, 10);
  page_.show_run(run.path());
  EXPECT_EQ(label("phase"), "Finished");
  EXPECT_TRUE(wait_until([&] { return page_.log().text().contains("begins"); }));
  EXPECT_TRUE(
      wait_until([&] { return page_.findChild<CurveChart*>()->summary().contains("10 points"); }));
}

TEST_F(LivePageTest, SaysWhyARunEnded) {
  {
    LivingRun live(run_.path(), 2000);
    page_.show_run(run_.path());
    live.end(Phase::failed, {{"exit_reason", "the GPU has no memory left"}});
    ASSERT_TRUE(wait_until([&] { return label("phase") == "Failed"; }));
  }
  EXPECT_EQ(page_.notice().toStdString(), "The GPU has no memory left");
  EXPECT_FALSE(child<QToolButton>("pause_button")->isVisible());
  EXPECT_TRUE(child<QToolButton>("resume_run_button")->isEnabled());
  EXPECT_FALSE(child<QToolButton>("try_button")->isVisible());
}

TEST_F(LivePageTest, EverySettingThatMayChangeIsShown) {
  std::ofstream(run_.path() / "config.toml")
      << "learning_rate = 3e-05\nweight_decay = 0.01\nmax_grad_norm = 1\neval_steps = \"30min\"\n";
  LivingRun live(run_.path(), 2000);
  page_.show_run(run_.path());
  auto* const keys = child<QComboBox>("change_key");
  QStringList values;
  for (int i = 0; i < keys->count(); ++i) {
    keys->setCurrentIndex(i);
    values << child<QLineEdit>("change_value")->text();
  }
  EXPECT_EQ(values.join(' ').toStdString(), "3e-05 0.01 1 30min");
}

TEST_F(LivePageTest, ALostRunIsExplained) {
  LivingRun live(run_.path(), 2000);
  page_.show_run(run_.path());
  live.vanish();
  ASSERT_TRUE(wait_until([&] { return label("phase") == "Killed"; }));
  EXPECT_TRUE(page_.notice().contains("planned 3.73 GiB")) << page_.notice().toStdString();
  EXPECT_TRUE(child<QToolButton>("resume_run_button")->isVisible());
}

TEST_F(LivePageTest, ADivergedRunWarns) {
  run_.record({{"warning", "the loss rose from 2 to 9: the training diverged"}});
  run_.add_steps(1, 20);
  page_.show_run(run_.path());
  EXPECT_TRUE(page_.notice().contains("diverged"));
  EXPECT_TRUE(child<QToolButton>("try_button")->isVisible());
}

TEST_F(LivePageTest, ARunWhoseDirectoryGoesStaysReadable) {
  LivingRun live(run_.path(), 2000);
  run_.add_steps(1, 50);
  page_.show_run(run_.path());
  ASSERT_TRUE(wait_until([&] { return label("steps") == "Step 50 of 2,000"; }));
  live.vanish();
  std::filesystem::remove_all(run_.path());
  ASSERT_TRUE(wait_until([&] { return page_.notice().contains("no longer there"); }));
  EXPECT_FALSE(page_.actions().action(RunAction::resume_run)->isEnabled());
  CurveChart* const loss = page_.charts().chart("loss");
  EXPECT_TRUE(loss->summary().contains("50 points"));
  loss->set_table_shown(true);
  QApplication::processEvents();
  QTest::qWait(50);
}

/** Rights are asked for as somebody who is not root: root may write everywhere. */
class AsNobody {
 public:
  AsNobody() : was_(getuid()) {
    if (was_ == 0) {
      EXPECT_EQ(setreuid(kNobody, 0), 0);
    }
  }
  ~AsNobody() {
    if (was_ == 0) {
      EXPECT_EQ(setreuid(0, 0), 0);
    }
  }

 private:
  static constexpr uid_t kNobody = 65534;
  uid_t was_;
};

TEST_F(LivePageTest, ARunThatCannotBeWrittenIsSeenAndNotGoneOnWith) {
  run_.record({{"phase", "stopped"}});
  run_.add_steps(1, 10);
  std::filesystem::create_directories(run_.path() / "checkpoint-10");
  std::ofstream(run_.path() / "checkpoint-10/COMPLETE") << "";
  using std::filesystem::perms;
  for (auto at = run_.path().parent_path(); at != home_.path().parent_path(); at = at.parent_path())
    std::filesystem::permissions(at, perms::all);
  for (const bool is_locked : {false, true}) {
    std::filesystem::permissions(
        run_.path(),
        is_locked ? perms::all & ~(perms::owner_write | perms::group_write | perms::others_write)
                  : perms::all);
    const AsNobody rights;
    page_.show_run(run_.path());
    const QAction& resume = *page_.actions().action(RunAction::resume_run);
    ASSERT_TRUE(wait_until([&] { return resume.isEnabled() != is_locked; })) << is_locked;
    if (is_locked) {
      EXPECT_TRUE(resume.toolTip().contains("cannot be written")) << resume.toolTip().toStdString();
    }
    EXPECT_TRUE(wait_until(
        [&] { return page_.findChild<CurveChart*>()->summary().contains("10 points"); }));
  }
  std::filesystem::permissions(run_.path(), perms::owner_all);
}

TEST_F(LivePageTest, AFullDiskIsSaidWhileTheRunWaits) {
  LivingRun live(run_.path(), 2000);
  page_.show_run(run_.path());
  live.directory().set_phase(Phase::saving, {{"waits_for", "room on the disk"}});
  ASSERT_TRUE(wait_until([&] { return page_.notice().contains("waits for room on the disk"); }));
  live.directory().set("waits_for", nullptr);
  live.end(Phase::finished);
  ASSERT_TRUE(wait_until([&] { return label("phase") == "Finished"; }));
  EXPECT_FALSE(page_.notice().contains("waits for room")) << page_.notice().toStdString();
}

TEST_F(LivePageTest, BrokenFilesAreSaid) {
  std::ofstream(run_.path() / "run.json") << "{";
  run_.add("not json\n{\"step\":1,\"loss\":2}\n[]\n");
  page_.show_run(run_.path());
  EXPECT_EQ(label("phase"), "Unreadable");
  EXPECT_TRUE(page_.notice().contains("run.json")) << page_.notice().toStdString();
  EXPECT_TRUE(
      wait_until([&] { return page_.charts().chart("loss")->summary().contains("1 point"); }));
}

TEST_F(LivePageTest, ChartsAreChosenAndAdaptToTheWidth) {
  run_.add_steps(1, 200);
  page_.show_run(run_.path());
  ASSERT_TRUE(wait_until([&] { return page_.charts().chart("eval") != nullptr; }));
  const size_t n_before = page_.charts().shown_charts().size();
  auto* const action = page_.charts().menu()->findChild<QAction*>("show_chart_speed");
  ASSERT_TRUE(action);
  action->trigger();
  EXPECT_FALSE(page_.charts().is_shown("speed"));
  EXPECT_FALSE(page_.charts().chart("speed")->isVisible());
  EXPECT_EQ(page_.charts().shown_charts().size(), n_before - 1);
  EXPECT_FALSE(settings_.value("live/chart_speed", true).toBool());
  page_.resize(500, 700);
  QApplication::processEvents();
  EXPECT_EQ(page_.charts().n_columns(), 1);
  page_.resize(1080, 700);
  QApplication::processEvents();
  EXPECT_EQ(page_.charts().n_columns(), 2);
  page_.resize(2400, 700);
  QApplication::processEvents();
  EXPECT_EQ(page_.charts().n_columns(), 3);
}

TEST_F(LivePageTest, NothingTakesLongAndAnIdlePageDoesNothing) {
  LivingRun live(run_.path(), 2000);
  run_.add_steps(1, 60'000);  // some 15 MB
  page_.show_run(run_.path());
  // Turns of the loop, each of which may be several handlers: generous.
  std::vector<double> turns;
  ASSERT_TRUE(wait_until([&] {
    const double before = cpu_ms();
    QApplication::processEvents(QEventLoop::AllEvents, 1);
    turns.push_back(cpu_ms() - before);
    return page_.follower()->metrics().n_steps() == 60'000;
  }));
  // A slice is a length of time, so their number depends on the machine.
  EXPECT_GT(turns.size(), 3u) << "60,000 steps are read in slices";
  std::ranges::sort(turns);
  tell_time("half of the turns while 60,000 steps are read", turns[turns.size() / 2], 16);
  page_.set_active(false);
  const int64_t n_rows = page_.follower()->metrics().n_rows();
  run_.add_steps(60'001, 60'100);
  QTest::qWait(600);
  EXPECT_EQ(page_.follower()->metrics().n_rows(), n_rows);
}

TEST_F(LivePageTest, EverythingHasAName) {
  LivingRun live(run_.path(), 2000);
  run_.add_steps(1, 200);
  page_.show_run(run_.path());
  QApplication::processEvents();
  // The window's menus have these.
  QString letters = "favh";
  for (QWidget* const widget : page_.findChildren<QWidget*>()) {
    const auto* const button = qobject_cast<QAbstractButton*>(widget);
    const auto* const named = qobject_cast<QLabel*>(widget);
    const QString text = button ? button->text() : named && named->buddy() ? named->text() : "";
    const qsizetype at = text.indexOf('&');
    if (!widget->isVisible() || at < 0) continue;
    const QChar letter = text[at + 1].toLower();
    EXPECT_FALSE(letters.contains(letter)) << text.toStdString();
    letters += letter;
  }
  EXPECT_GT(letters.size(), 6);
  for (QWidget* const widget : page_.findChildren<QWidget*>()) {
    if (!widget->isVisible() || widget->focusPolicy() == Qt::NoFocus) continue;
    if (qobject_cast<QAbstractScrollArea*>(widget->parentWidget())) continue;  // a viewport
    QAccessibleInterface* const told = QAccessible::queryAccessibleInterface(widget);
    EXPECT_FALSE(told->text(QAccessible::Name).isEmpty())
        << widget->metaObject()->className() << " " << widget->objectName().toStdString();
  }
}

TEST_F(LivePageTest, ARunThatStartsIsShownBeforeItsFilesAreThere) {
  const auto run = home_ / "runs" / "new";
  // A program that writes nothing for a while.
  const auto program = home_ / "ferry";
  write_file(program, "#!/bin/sh\nsleep 0.5\necho 'no such model' >&2\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const WithVariable ferry("FERRY", program.c_str());
  config::Config config;
  config.set("output_dir", run.string(), {config::Source::command_line, "test"});
  ASSERT_EQ(launcher_.start(config, home_ / "runs"), run);
  page_.show_run(run);
  EXPECT_EQ(label("phase"), "Preparing");
  EXPECT_TRUE(page_.notice().contains("It starts")) << page_.notice().toStdString();
  ASSERT_TRUE(wait_until([&] { return page_.notice().contains("no such model"); }))
      << page_.notice().toStdString();
}

/** FERRY_SHOTS=DIR writes what the page looks like there. */
TEST_F(LivePageTest, Pictures) {
  const char* const place = std::getenv("FERRY_SHOTS");
  if (!place) GTEST_SKIP() << "FERRY_SHOTS names no directory";
  for (const bool is_dark : {false, true}) {
    apply_theme(is_dark ? Theme::dark : Theme::light);
    const QString name = QString::fromLocal8Bit(place) + (is_dark ? "/dark-" : "/light-");
    LivePage page(shared_);
    page.resize(1060, 740);
    page.show();
    page.set_active(true);
    page.show_picker();
    wait_until([&] { return page.findChild<QTreeView*>("picker_runs")->model()->rowCount() > 0; });
    page.grab().save(name + "picker.png");
    LivingRun live(run_.path(), 2000);
    if (!is_dark) {
      run_.add_steps(1, 700);
      run_.add("{\"step\":701,\"loss\":null,\"grad_norm\":null,\"nonfinite\":true}\n");
      run_.add_steps(702, 1200);
      run_.add_log(
          "2026-11-21T10:15:02Z 22,713,216 parameters on CUDA, bf16: 1 micro-batch of 32\n"
          "2026-11-21T10:15:09Z step 100  loss 1.234  lr 5e-05  8,213 tokens/s\n"
          "2026-11-21T10:15:19Z step 200  loss 0.934  lr 5e-05  8,190 tokens/s\n");
    }
    page.show_run(run_.path());
    wait_until([&] { return page.follower()->metrics().n_steps() == 1200; });
    QTest::qWait(1300);
    page.grab().save(name + "live.png");
    CurveChart* const loss = page.charts().chart("loss");
    QTest::keyClick(loss->findChild<QWidget*>("plot"), Qt::Key_Right);
    for (int i = 0; i < 30; ++i)
      QTest::keyClick(loss->findChild<QWidget*>("plot"), Qt::Key_Right, Qt::ControlModifier);
    loss->set_log(true);
    page.follower()->pause();
    QTest::qWait(700);
    page.grab().save(name + "paused.png");
    loss->export_to(name + "loss.png");
    loss->export_to(name + "loss.svg");
    loss->set_table_shown(true);
    live.vanish();
    QTest::qWait(700);
    page.grab().save(name + "lost.png");
  }
  apply_theme(Theme::light);
}

}  // namespace
}  // namespace ferry::gui
