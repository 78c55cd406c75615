#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QLineEdit>
#include <QMenuBar>
#include <QPushButton>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTest>
#include <QWheelEvent>

#include "gui/app/app_style.h"
#include "gui/app/main_window.h"
#include "gui/app/palette.h"
#include "gui/models/runs/run_words.h"
#include "gui/pages/new_run/new_run_page.h"
#include "gui/widgets/plan/plan_view.h"
#include "tests/gui/pages/page_test.h"
#include "tests/gui/run_files.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

TEST(Window, GoesWherePagesAsk) {
  TestHome home;
  AppSettings settings(home.file("app.ini"));
  MainWindow window(settings);
  window.show();
  EXPECT_EQ(window.current_page(), PageId::start);
  for (int page = 0; page < 10; ++page) {
    emit window.navigator().page_wanted(static_cast<PageId>(page));
    EXPECT_EQ(window.current_page(), static_cast<PageId>(page));
  }
}

TEST(Window, TheWheelChangesNothingThatHasNotTheFocus) {
  QTemporaryDir directory;
  AppSettings settings(directory.filePath("app.ini"));
  MainWindow window(settings);
  window.show();
  int n = 0;
  for (int page = 0; page < 10; ++page) {
    window.show_page(static_cast<PageId>(page));
    for (QComboBox* combo : window.page(static_cast<PageId>(page)).findChildren<QComboBox*>()) {
      if (!combo->isVisible() || !combo->isEnabled() || combo->count() < 2) continue;
      const int before = combo->currentIndex();
      QWheelEvent down(QPointF(4, 4), combo->mapToGlobal(QPointF(4, 4)), {}, {0, -120},
                       Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
      QApplication::sendEvent(combo, &down);
      EXPECT_EQ(combo->currentIndex(), before) << combo->objectName().toStdString();
      ++n;
    }
  }
  EXPECT_GT(n, 2);
}

TEST(Window, PlansForACardThatIsNotHere) {
  TestHome home;
  AppSettings settings(home.file("app.ini"));
  MainWindow window(settings);
  window.show();
  config::Config config;
  config.set("model", "bert-large-uncased", {config::Source::command_line, "test"});
  config.set("dataset", "texts.csv", {config::Source::command_line, "test"});
  write_file(home / "texts.csv", "text,label\na good day,0\na bad day,1\n");
  emit window.navigator().new_run_wanted(config);
  auto& page = dynamic_cast<NewRunPage&>(window.page(PageId::new_run));
  page.show_step(NewRunPage::memory_step);
  auto* plan = page.findChild<PlanView*>();
  ASSERT_TRUE(plan);
  ASSERT_TRUE(wait_until([&] { return plan->answer() != nullptr; }));
  QComboBox* card = nullptr;
  for (auto* combo : plan->findChildren<QComboBox*>())
    if (combo->findData("2080ti-11g") >= 0) card = combo;
  ASSERT_TRUE(card);
  card->setFocus();
  for (int i = 0; i < card->count() && card->currentData() != "2080ti-11g"; ++i)
    QTest::keyClick(card, Qt::Key_Down);
  ASSERT_TRUE(wait_until([&] {
    return plan->answer() && plan->answer()->machine.name.find("2080") != std::string::npos;
  }));
  EXPECT_TRUE(plan->summary().contains("2080")) << plan->summary().toStdString();
}

/** A window over two runs, and settings whose texts and plan are shown. */
struct FilledWindow {
  FilledWindow() {
    settings.set_runs_directory(home.runs());
    first = make_run(home.runs() / "first");
    second = make_run(home.runs() / "second");
    ferry::test::write_tiny_model(home / "model");
    ferry::test::write_tiny_data(home / "x.tsv", 40, 3);
    for (const auto& [key, value] : {std::pair{"model", "model"}, {"dataset", "x.tsv"}})
      config.set(key, (home / value).string(), {config::Source::command_line, "test"});
    window.emplace(settings);
    window->show();
    for (const QAction* menu : window->menuBar()->actions())
      menus << menu->text();
  }

  TestHome home;
  AppSettings settings{home.file("app.ini")};
  fs::path first, second;
  config::Config config;
  std::optional<MainWindow> window;
  QStringList menus;
};

TEST(Window, NoLetterOfAltIsTwiceOnAPage) {
  FilledWindow filled;
  MainWindow& window = *filled.window;
  ASSERT_GE(filled.menus.size(), 4);
  window.queue().add(filled.config, "waits");  // the queue's buttons are seen
  emit window.navigator().live_wanted(filled.first);
  emit window.navigator().compare_wanted({filled.first, filled.second});
  for (int page = 0; page < 10; ++page) {
    window.show_page(static_cast<PageId>(page));
    QCoreApplication::processEvents();
    check_mnemonics(window, "page " + std::to_string(page), filled.menus);
  }
  Page& runs = window.page(PageId::runs);
  EXPECT_TRUE(part<QPushButton>(runs, "queue_remove").isVisibleTo(&runs));
}

TEST(Window, NoLetterOfAltIsTwiceInAStepOfNewRun) {
  FilledWindow filled;
  emit filled.window->navigator().new_run_wanted(filled.config);
  auto& page = dynamic_cast<NewRunPage&>(filled.window->page(PageId::new_run));
  for (int step = 0; step < NewRunPage::n_steps; ++step) {
    page.show_step(static_cast<NewRunPage::Step>(step));
    if (step == NewRunPage::data_step) {
      ASSERT_TRUE(
          wait_until([&] { return part<QPushButton>(page, "preview_previous").isVisible(); }));
    }
    if (step == NewRunPage::memory_step) {
      ASSERT_TRUE(wait_until([&] {
        const auto* plan = page.findChild<PlanView*>();
        return plan && plan->isVisible() && plan->answer();
      }));
    }
    for (const bool all : {false, true}) {
      filled.settings.set_shows_all_options(all);
      ASSERT_TRUE(has_all_fields(page));
      QCoreApplication::processEvents();
      check_mnemonics(*filled.window, "step " + std::to_string(step), filled.menus);
    }
  }
}

TEST(Window, StartWarnsOfThisMachineWhateverCardIsLookedAt) {
  FilledWindow filled;
  emit filled.window->navigator().new_run_wanted(filled.config);
  auto& page = dynamic_cast<NewRunPage&>(filled.window->page(PageId::new_run));
  page.show_step(NewRunPage::memory_step);
  auto* plan = page.findChild<PlanView*>();
  ASSERT_TRUE(plan);
  ASSERT_TRUE(wait_until([&] { return plan->answer() != nullptr; }));
  emit plan->change_wanted("machine", "2080ti-11g");
  const auto state = [&] { return part<QLabel>(page, "state").text(); };
  ASSERT_TRUE(wait_until([&] { return state().contains("This machine"); }))
      << state().toStdString();
  auto& start = part<QPushButton>(page, "start_button");
  EXPECT_EQ(start.text(), "&Start");
  page.settings().set_text("host_memory", "1MiB");
  EXPECT_TRUE(wait_until([&] { return start.text() == "&Start anyway"; })) << state().toStdString();
  page.settings().reset("host_memory");
  EXPECT_TRUE(wait_until([&] { return start.text() == "&Start"; })) << state().toStdString();
}

/** Warnings of Qt fail any of these tests; this one goes everywhere, and takes the tab key along.
 */
TEST(Window, EveryPageAndStepOpensWithoutAWarning) {
  FilledWindow filled;
  MainWindow& window = *filled.window;
  emit window.navigator().new_run_wanted(filled.config);
  emit window.navigator().live_wanted(filled.first);
  emit window.navigator().compare_wanted({filled.first, filled.second});
  auto& new_run = dynamic_cast<NewRunPage&>(window.page(PageId::new_run));
  for (const bool all : {false, true}) {
    filled.settings.set_shows_all_options(all);
    for (int page = 0; page < 10; ++page) {
      window.show_page(static_cast<PageId>(page));
      QTest::keyClick(&window, Qt::Key_Tab);
    }
    for (int step = 0; step < NewRunPage::n_steps; ++step) {
      new_run.show_step(static_cast<NewRunPage::Step>(step));
      EXPECT_TRUE(has_all_fields(new_run));
    }
  }
  part<QLineEdit>(new_run, "option_search").setText("memory");
  EXPECT_TRUE(wait_until([&] { return new_run.findChild<QWidget*>("hit_gpu_memory"); }));
}

TEST(Window, TellsTheEndOfARunThatNoPageShows) {
  FilledWindow filled;
  MainWindow& window = *filled.window;
  std::optional<LivingRun> night(filled.home.runs() / "night");
  emit window.navigator().live_wanted(filled.first);
  const auto see = [&](const char* phase) {
    return wait_until([&] {
      window.runs().look();
      const int row = window.runs().row_of(filled.home.runs() / "night");
      return row >= 0 && window.runs().facts_of(row).phase == phase;
    });
  };
  QStringList ended, noticed;
  QObject::connect(&window.notices(), &RunNotices::happened, &window,
                   [&](const QString& text) { ended << text; });
  QObject::connect(&window.notices(), &RunNotices::noticed, &window,
                   [&](const QString& title, const QString& text) { noticed << title << text; });
  ASSERT_TRUE(see("training"));
  night->directory().set_phase(runs::Phase::saving, {{"waits_for", "room on the disk"}});
  ASSERT_TRUE(see("saving"));
  ASSERT_TRUE(wait_until([&] { return !noticed.isEmpty(); }));
  EXPECT_EQ(noticed[0], isolated("night") + ": Waits for disk");
  noticed.clear();
  ended.clear();
  night->end(runs::Phase::failed, {{"exit_reason", "the disk is full"}});
  ASSERT_TRUE(see("failed"));
  ASSERT_TRUE(wait_until([&] { return !noticed.isEmpty(); }));
  EXPECT_EQ(ended.size(), 1);
  ASSERT_EQ(noticed.size(), 2) << "not those that had ended before";
  EXPECT_EQ(noticed[0], isolated("night") + ": Failed");
  EXPECT_EQ(noticed[1], "the disk is full");
  EXPECT_EQ(window.statusBar()->currentMessage(), noticed[0]);

  filled.settings.set_notifies(false);
  night.emplace(filled.home.runs() / "night");
  ASSERT_TRUE(see("training"));
  night->end(runs::Phase::stopped);
  ASSERT_TRUE(see("stopped"));
  ASSERT_TRUE(wait_until([&] { return ended.size() == 2; }));
  EXPECT_EQ(noticed.size(), 2) << "the user wants none";
  emit window.notices().chosen(filled.second);
  EXPECT_EQ(window.current_page(), PageId::live);
}

TEST(Palette, TextIsReadable) {
  for (const QPalette& palette : {light_palette(), dark_palette()})
    for (const auto& [ink, ground] : {std::pair{QPalette::Text, QPalette::Base},
                                      {QPalette::Text, QPalette::AlternateBase},
                                      {QPalette::WindowText, QPalette::Window},
                                      {QPalette::ButtonText, QPalette::Button},
                                      {QPalette::HighlightedText, QPalette::Highlight},
                                      {QPalette::Link, QPalette::Base},
                                      {QPalette::Link, QPalette::Window},
                                      {QPalette::PlaceholderText, QPalette::Base},
                                      {QPalette::Mid, QPalette::Window}})
      EXPECT_GE(contrast(palette.color(ink), palette.color(ground)), 4.5)
          << palette.color(ink).name().toStdString() << " on "
          << palette.color(ground).name().toStdString();
}

TEST(Palette, EdgesOfFieldsAreSeen) {
  for (const QPalette& palette : {light_palette(), dark_palette()})
    for (const auto ground : {QPalette::Window, QPalette::Base})
      EXPECT_GE(contrast(AppStyle::edge(palette), palette.color(ground)), 3)
          << palette.color(ground).name().toStdString();
}

}  // namespace
}  // namespace ferry::gui
