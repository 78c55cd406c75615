#include <gtest/gtest.h>

#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QMessageBox>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QStatusBar>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QWheelEvent>

#include "gui/app/app_style.h"
#include "gui/app/main_window.h"
#include "gui/app/palette.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"
#include "gui/pages/new_run/new_run_page.h"
#include "gui/pages/runs/inline_bar.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/plan/plan_view.h"
#include "tests/gui/pages/filled_window.h"
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

/** The places of all that can be clicked on a page but for what is in `beside`. Only layouts are
 * brought up to date, so that nothing comes from a thread meanwhile. */
QMap<QString, QPoint> places_of_fields(const Page& page, const QWidget& beside) {
  for (int n = 0; n < 8; ++n)
    QCoreApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
  QMap<QString, QPoint> places;
  int n = 0;
  for (const QWidget* field : page.findChildren<QWidget*>()) {
    const bool is_field = qobject_cast<const QAbstractButton*>(field) ||
                          qobject_cast<const QComboBox*>(field) ||
                          qobject_cast<const QLineEdit*>(field);
    ++n;
    if (is_field && field->isVisible() && !beside.isAncestorOf(field))
      places[QStringLiteral("%1 (%2)").arg(field->objectName()).arg(n)] =
          field->mapTo(&page, QPoint());
  }
  return places;
}

TEST(Window, ANoticeMovesNothingThatCanBeClicked) {
  FilledWindow filled;
  MainWindow& window = *filled.window;
  window.resize(1280, 800);
  window.queue().add(filled.config, "waits");
  emit window.navigator().new_run_wanted(filled.config);
  emit window.navigator().live_wanted(filled.first);
  emit window.navigator().compare_wanted({filled.first, filled.second});
  emit window.navigator().export_wanted(filled.first);
  emit window.navigator().try_wanted(filled.first);
  const QString words = QStringLiteral("It could not be done as it was asked for. ").repeated(5);
  int n_shown = 0;
  const auto check = [&](const Page& page, const QWidget& notice, const auto& show,
                         const auto& hide) {
    hide();
    const QMap<QString, QPoint> before = places_of_fields(page, notice);
    show();
    const QMap<QString, QPoint> with = places_of_fields(page, notice);
    ++n_shown;
    for (auto it = before.begin(); it != before.end(); ++it)
      EXPECT_EQ(with.value(it.key()), it.value())
          << page.metaObject()->className() << ", " << notice.objectName().toStdString() << ": "
          << it.key().toStdString();
    hide();
  };
  for (int at = 0; at < 10; ++at) {
    Page& page = window.page(static_cast<PageId>(at));
    window.show_page(static_cast<PageId>(at));
    QCoreApplication::processEvents();
    for (auto* notice : page.findChildren<Notice*>())
      if (notice->parentWidget()->isVisible())
        check(
            page, *notice, [&] { notice->show_error(words); }, [&] { notice->clear(); });
    for (auto* bar : page.findChildren<InlineBar*>())
      check(
          page, *bar, [&] { bar->tell(words); }, [&] { bar->hide(); });
  }
  EXPECT_GE(n_shown, 8);
}

/** The most that a pixel of the picture differs from its corner, as a contrast. */
double contrast_in(const QImage& image) {
  double most = 1;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      most = std::max(most, contrast(image.pixelColor(x, y), image.pixelColor(0, 0)));
  return most;
}

TEST(Window, AThemeThatIsChosenLaterLeavesNothingUnseen) {
  FilledWindow filled;
  MainWindow& window = *filled.window;
  emit window.navigator().live_wanted(filled.first);
  for (const Theme theme : {Theme::dark, Theme::light, Theme::dark}) {
    filled.settings.set_theme(theme);
    window.show_page(PageId::live);
    QCoreApplication::processEvents();
    auto& live = window.page(PageId::live);
    auto* const menu = live.findChild<QWidget*>("chart_loss")->findChild<QToolButton*>();
    ASSERT_TRUE(menu);
    ASSERT_TRUE(menu->isVisible());
    EXPECT_GE(contrast_in(menu->grab().toImage()), 3) << "the mark of the chart's menu";
    window.show_page(PageId::new_run);
    auto& basic = part<QPushButton>(window.page(PageId::new_run), "basic_button");
    auto& all = part<QPushButton>(window.page(PageId::new_run), "all_button");
    all.click();
    const QImage off = basic.grab().toImage();
    basic.click();
    const QImage on = basic.grab().toImage();
    double most = 1;
    for (int x = 0; x < on.width(); ++x)
      for (int y = 0; y < on.height(); ++y)
        most = std::max(most, contrast(on.pixelColor(x, y), off.pixelColor(x, y)));
    EXPECT_GE(most, 2) << "which of Basic and All settings is chosen";
  }
  filled.settings.set_theme(Theme::light);
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
  EXPECT_EQ(noticed[1], "The disk is full");
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

// --- The size of the window ----------------------------------------------------------------------

TEST(Window, WordsNeverSetItsLeastWidth) {
  FilledWindow filled;
  MainWindow& window = *filled.window;
  emit window.navigator().new_run_wanted(filled.config);
  emit window.navigator().live_wanted(filled.first);
  emit window.navigator().compare_wanted({filled.first, filled.second});
  auto& new_run = dynamic_cast<NewRunPage&>(window.page(PageId::new_run));
  for (int step = 0; step < NewRunPage::n_steps; ++step) {
    new_run.show_step(static_cast<NewRunPage::Step>(step));
    ASSERT_TRUE(has_all_fields(new_run));
  }
  // One word that has no place to be broken at, and a path.
  const QString word(400, 'm'), path = "/a/long/path" + QString(300, 'm') + "/to/a model";
  int n_labels = 0;
  for (int page = 0; page < 10; ++page) {
    Page& shown = window.page(static_cast<PageId>(page));
    window.show_page(static_cast<PageId>(page));
    for (QLabel* label : shown.findChildren<QLabel*>()) {
      EXPECT_TRUE(qobject_cast<TextLabel*>(label))
          << page << ": " << label->objectName().toStdString() << " '"
          << label->text().toStdString() << "' is a label that does not give way";
      if (label->text().isEmpty() && !label->pixmap(Qt::ReturnByValue).isNull()) continue;
      label->setText(n_labels++ % 2 ? word : path);
    }
    for (Notice* notice : shown.findChildren<Notice*>())
      notice->show_error(path);
    QCoreApplication::processEvents();
    EXPECT_LE(shown.minimumSizeHint().width(), 800) << page;
  }
  EXPECT_GT(n_labels, 100);
  EXPECT_LE(window.minimumSizeHint().width(), 640);
  EXPECT_LE(window.minimumSizeHint().height(), 480);
}

TEST(Window, EveryStopOfTheTabKeyShowsThatItHasTheFocus) {
  FilledWindow filled;
  for (int page = 0; page < 10; ++page) {
    Page& shown = filled.window->page(static_cast<PageId>(page));
    for (const QWidget* stop : shown.findChildren<QWidget*>()) {
      if (!(stop->focusPolicy() & Qt::TabFocus)) continue;
      // Links show which of them has it.
      if (const auto* label = qobject_cast<const QLabel*>(stop);
          label && label->textInteractionFlags() & Qt::LinksAccessibleByKeyboard)
        continue;
      EXPECT_FALSE(qobject_cast<const QLabel*>(stop) || qobject_cast<const QScrollArea*>(stop))
          << page << ": " << stop->objectName().toStdString();
    }
  }
}

TEST(Window, TheFirstOneFitsTheScreenAndSoDoesOneFromALargerScreen) {
  TestHome home;
  AppSettings settings(home.file("app.ini"));
  const QSize room = QGuiApplication::primaryScreen()->availableSize();
  const auto fits = [&](const MainWindow& window) {
    return window.width() <= room.width() && window.height() <= room.height();
  };
  {
    MainWindow first(settings);
    first.show();
    EXPECT_TRUE(fits(first)) << first.width() << " x " << first.height();
  }
  QWidget large;
  large.resize(room * 2);
  settings.set_value("window/geometry", large.saveGeometry());
  MainWindow next(settings);
  next.show();
  EXPECT_TRUE(fits(next)) << next.width() << " x " << next.height();
}

TEST(Window, TextIsMadeLargerAndStaysSo) {
  TestHome home;
  AppSettings settings(home.file("app.ini"));
  MainWindow window(settings);
  window.show();
  const double before = QApplication::font().pointSizeF();
  auto* const title = window.page(PageId::start).findChild<QLabel*>();
  ASSERT_TRUE(title);  // a heading, with a size of its own
  const double heading = title->font().pointSizeF();
  for (int n = 0; n < 3; ++n)
    part<QAction>(window, "action_zoom_in").trigger();
  EXPECT_EQ(settings.zoom(), 130);
  EXPECT_NEAR(QApplication::font().pointSizeF(), before * 1.3, 0.01);
  EXPECT_NEAR(title->font().pointSizeF(), heading * 1.3, 0.05);
  part<QAction>(window, "action_zoom_out").trigger();
  EXPECT_EQ(AppSettings(home.file("app.ini")).zoom(), 120);
  part<QAction>(window, "action_zoom_reset").trigger();
  EXPECT_NEAR(QApplication::font().pointSizeF(), before, 0.01);
  EXPECT_NEAR(title->font().pointSizeF(), heading, 0.05);
}

TEST(Window, TellsTheLoadOfTheMachine) {
  FilledWindow filled;
  EXPECT_TRUE(
      wait_until([&] { return part<QLabel>(*filled.window, "host_load").text().contains("GiB"); }));
}

// --- A look at another card
// ------------------------------------------------------------------------

TEST(Window, AWhatIfPlanChangesNoSettingOfTheRun) {
  FilledWindow filled;
  emit filled.window->navigator().new_run_wanted(filled.config);
  auto& page = dynamic_cast<NewRunPage&>(filled.window->page(PageId::new_run));
  page.show_step(NewRunPage::memory_step);
  auto* plan = page.findChild<PlanView*>();
  ASSERT_TRUE(plan);
  ASSERT_TRUE(wait_until([&] { return plan->answer() != nullptr; }));
  const auto before = page.settings().texts();
  auto& note = part<QWidget>(page, "plan_what_if");
  EXPECT_FALSE(note.isVisible());
  emit plan->change_wanted("machine", "3090-24g");
  EXPECT_TRUE(note.isVisible());
  for (const auto& [key, value] : {std::pair{"gpu_memory", "256MiB"},
                                   {"host_memory", "3GiB"},
                                   {"train_batch_size", "7"},
                                   {"max_length", "8"}})
    emit plan->change_wanted(key, value);
  ASSERT_TRUE(wait_until(
      [&] { return plan->answer() && plan->answer()->config.integer("train_batch_size") == 7; }));
  EXPECT_EQ(plan->answer()->config.integer("gpu_memory"), int64_t{256} << 20);
  EXPECT_EQ(page.settings().texts(), before);
  emit plan->change_wanted("machine", "auto");
  EXPECT_FALSE(note.isVisible());
  ASSERT_TRUE(wait_until([&] { return !plan->is_planning(); }));
  EXPECT_FALSE(plan->answer()->config.maybe_integer("gpu_memory"));
  EXPECT_EQ(part<QPushButton>(page, "start_button").text(), "&Start");
  EXPECT_EQ(page.settings().texts(), before);

  // Wanted, it becomes the run's.
  emit plan->change_wanted("machine", "3090-24g");
  emit plan->change_wanted("host_memory", "3GiB");
  part<QPushButton>(page, "plan_take_over").click();
  EXPECT_EQ(page.settings().text("host_memory"), "3GiB");
}

TEST(Window, TheDefaultOfAnAmountIsNoChange) {
  FilledWindow filled;
  emit filled.window->navigator().new_run_wanted(filled.config);
  auto& page = dynamic_cast<NewRunPage&>(filled.window->page(PageId::new_run));
  page.show_step(NewRunPage::memory_step);
  auto* plan = page.findChild<PlanView*>();
  emit plan->change_wanted("host_memory", "3GiB");
  EXPECT_EQ(page.settings().text("host_memory"), "3GiB");
  emit plan->change_wanted("host_memory", "auto");
  EXPECT_FALSE(page.settings().is_changed("host_memory"));
}

// --- Data that cannot be read
// ----------------------------------------------------------------------

TEST(Window, AFaultOfTheDataStandsAtItsFieldAndNothingStarts) {
  FilledWindow filled;
  write_file(filled.home / "broken.csv", "text,label\n\"never closed,0\nanother,1\n");
  config::Config config = filled.config;
  config.set("dataset", (filled.home / "broken.csv").string(),
             {config::Source::command_line, "test"});
  emit filled.window->navigator().new_run_wanted(config);
  auto& page = dynamic_cast<NewRunPage&>(filled.window->page(PageId::new_run));
  page.show_step(NewRunPage::data_step);
  auto& start = part<QPushButton>(page, "start_button");
  const auto fault = [&] {
    for (const SettingsModel::Problem& problem : page.settings().problems())
      if (problem.text.contains("broken.csv")) return problem.key;
    return QString();
  };
  ASSERT_TRUE(wait_until([&] { return !fault().isEmpty(); }));
  EXPECT_FALSE(start.isEnabled());
  auto& error = part<ErrorLabel>(page, ("error_" + fault()).toLatin1());
  EXPECT_TRUE(error.isVisible());
  EXPECT_EQ(part<ErrorLabel>(page, "preview_error").error(), "") << "said once";
  // Remedies are in the app's words.
  EXPECT_FALSE(error.error().contains("dataset_quoting")) << error.error().toStdString();
  EXPECT_FALSE(error.error().contains("--")) << error.error().toStdString();
  page.settings().set_text("dataset", path_text(filled.home / "x.tsv"));
  EXPECT_TRUE(wait_until([&] { return start.isEnabled(); }));
  EXPECT_TRUE(page.settings().problems().empty());
}

// --- Leaving
// ---------------------------------------------------------------------------------------

TEST(Window, AsksBeforeItLeavesWorkThatItDoesForRuns) {
  FilledWindow filled;
  MainWindow& window = *filled.window;
  LivingRun night(filled.home.runs() / "night");
  ASSERT_TRUE(wait_until([&] {
    window.runs().look();
    return !window.runs().running().empty() && window.queue().is_ours();
  }));
  filled.settings.set_queue_on(true);
  ASSERT_FALSE(window.queue().add(filled.config, "waits"));
  EXPECT_FALSE(window.close());
  EXPECT_TRUE(window.isVisible());
  auto* question = window.findChild<QMessageBox*>("leave_question");
  ASSERT_TRUE(question);
  EXPECT_TRUE(question->informativeText().contains("1 run")) << "what is left behind";
  const auto press = [&](const QString& text) {
    for (QAbstractButton* button : question->buttons())
      if (button->text() == text) return button->click();
    ADD_FAILURE() << text.toStdString();
  };
  press("&Stay");
  EXPECT_TRUE(window.isVisible());
  ASSERT_TRUE(wait_until([&] { return !window.findChild<QMessageBox*>("leave_question"); }));
  EXPECT_FALSE(window.close());
  question = window.findChild<QMessageBox*>("leave_question");
  ASSERT_TRUE(question);
  press("C&lose");
  EXPECT_FALSE(window.isVisible());
}

TEST(Window, LeavesAtOnceWhereNothingWaitsForIt) {
  FilledWindow filled;
  EXPECT_TRUE(filled.window->close());
}

TEST(Window, AnAppThatChangedNothingKeepsNoDraftOverAnothers) {
  FilledWindow filled;
  auto& idle = dynamic_cast<NewRunPage&>(filled.window->page(PageId::new_run));
  filled.window->show_page(PageId::new_run);
  AppSettings others(path_text(filled.home / "app.ini"));
  {
    MainWindow busy(others);
    busy.show();
    auto& page = dynamic_cast<NewRunPage&>(busy.page(PageId::new_run));
    busy.show_page(PageId::new_run);
    page.settings().set_text("learning_rate", "7e-5");
    busy.show_page(PageId::runs);
  }
  EXPECT_EQ(idle.settings().text("learning_rate"), "");
  filled.window->show_page(PageId::runs);  // keeps its form, which is empty
  const QVariantMap kept = others.value("new_run/texts").toMap();
  EXPECT_EQ(kept.value("learning_rate").toString(), "7e-5");
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
