// The page of runs, by keys and clicks alone, over real directories and runs that live.

#include "gui/pages/runs/runs_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAccessible>
#include <QSignalSpy>
#include <QTest>
#include <QtWidgets>

#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "gui/pages/runs/inline_bar.h"
#include "src/runs/directory/checkpoints.h"
#include "tests/gui/run_files.h"

Q_DECLARE_METATYPE(std::filesystem::path)

namespace ferry::gui {
namespace {

using runs::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Runs : public ::testing::Test {
 protected:
  Runs() : settings_(path_text(home_ / "app.ini")) { settings_.set_runs_directory(home_.runs()); }
  ~Runs() override { apply_theme(Theme::light); }

  void open() {
    runs_ = std::make_unique<RunListModel>(settings_, launcher_);
    queue_ = std::make_unique<RunQueue>(settings_, launcher_, *runs_);
    shared_ = std::make_unique<Shared>(Shared{settings_, launcher_, navigator_, *runs_, *queue_});
    page_ = std::make_unique<RunsPage>(*shared_);
    page_->resize(1060, 740);
    page_->show();
    QApplication::setActiveWindow(page_.get());
    ASSERT_TRUE(QTest::qWaitForWindowActive(page_.get()));
    page_->set_active(true);
    ASSERT_TRUE(wait_until([&] { return !runs_->is_loading() && runs_->n_passes() > 1; }));
  }
  template <class Widget>
  Widget* find(const char* name) const {
    auto* found = page_->findChild<Widget*>(name);
    EXPECT_NE(found, nullptr) << name;
    return found;
  }
  QTableView* table() const { return find<QTableView>("run_table"); }
  QAction* action(const char* name) const { return find<QAction>(name); }
  /** Clicks the button of an action. */
  void click(const char* name) {
    auto* bar = find<QToolBar>("run_actions");
    QWidget* button = bar->widgetForAction(action(name));
    ASSERT_TRUE(action(name)->isEnabled()) << name;
    // An action that does not fit, or is used less, is in a menu; its action is the same.
    if (button && button->isVisible())
      QTest::mouseClick(button, Qt::LeftButton);
    else
      action(name)->trigger();
  }
  int row_of(const fs::path& run) const {
    for (int row = 0; row < table()->model()->rowCount(); ++row)
      if (table()->model()->index(row, 0).data(RunListModel::path_role).toString() ==
          path_text(fs::weakly_canonical(run)))
        return row;
    return -1;
  }
  void select(const fs::path& run, Qt::KeyboardModifiers keys = {}) {
    const int row = row_of(run);
    ASSERT_GE(row, 0) << run;
    const QModelIndex index = table()->model()->index(row, RunListModel::name);
    table()->scrollTo(index);
    QTest::mouseClick(table()->viewport(), Qt::LeftButton, keys,
                      table()->visualRect(index).center());
  }
  std::string said() const { return find<InlineBar>("inline_bar")->text().toStdString(); }
  std::string details() const {
    return find<QTextBrowser>("run_details")->toPlainText().toStdString();
  }
  std::string state(const fs::path& run) const {
    return table()
        ->model()
        ->index(row_of(run), RunListModel::state)
        .data()
        .toString()
        .toStdString();
  }
  void see(const char* name) {
    if (const char* where = getenv("FERRY_SCREENSHOTS")) {
      wait_until([] { return false; }, 600);
      page_->grab().save(QString(where) + '/' + name + ".png");
    }
  }

  TestHome home_;
  AppSettings settings_;
  Launcher launcher_;
  Navigator navigator_;
  std::unique_ptr<RunListModel> runs_;
  std::unique_ptr<RunQueue> queue_;
  std::unique_ptr<Shared> shared_;
  std::unique_ptr<RunsPage> page_;
};

TEST_F(Runs, AnEmptyListSaysWhatToDo) {
  open();
  EXPECT_TRUE(find<QWidget>("runs_empty")->isVisible());
  QSignalSpy pages(&navigator_, &Navigator::page_wanted);
  QTest::mouseClick(find<QPushButton>("runs_empty_action_start_page"), Qt::LeftButton);
  QTest::mouseClick(find<QPushButton>("runs_empty_action_new"), Qt::LeftButton);
  QTest::mouseClick(find<QPushButton>("new_run_button"), Qt::LeftButton);
  EXPECT_EQ(pages.count(), 3);
  see("runs-empty");
}

TEST_F(Runs, NamesAreWholeInANarrowWindow) {
  const QString name = "2026-11-20_1015_minilm-l6_reviews";
  make_run(home_.runs() / name.toStdString());
  open();
  const auto is_whole = [&] {
    return table()->columnWidth(RunListModel::name) >
           table()->fontMetrics().horizontalAdvance(name);
  };
  page_->resize(1400, 740);
  ASSERT_TRUE(wait_until(is_whole));
  EXPECT_FALSE(table()->isColumnHidden(RunListModel::speed));
  page_->resize(800, 740);
  ASSERT_TRUE(wait_until([&] { return table()->isColumnHidden(RunListModel::speed); }));
  EXPECT_TRUE(is_whole());
  EXPECT_FALSE(table()->horizontalScrollBar()->isVisible());
  page_->resize(1400, 740);
  EXPECT_TRUE(wait_until([&] { return !table()->isColumnHidden(RunListModel::speed); }));
}

TEST_F(Runs, ColumnsThatSomebodyDraggedAndMovedAreKept) {
  make_run(home_.runs() / "a");
  open();
  page_->resize(1400, 740);
  ASSERT_TRUE(wait_until([&] { return table()->model()->rowCount() == 1; }));
  QCoreApplication::processEvents();
  table()->setColumnWidth(RunListModel::model, 321);
  table()->horizontalHeader()->moveSection(RunListModel::started, 1);
  QCoreApplication::processEvents();
  page_->set_active(false);
  page_.reset();
  open();
  page_->resize(1500, 740);
  EXPECT_TRUE(wait_until([&] { return table()->columnWidth(RunListModel::model) == 321; }));
  EXPECT_EQ(table()->horizontalHeader()->visualIndex(RunListModel::started), 1);
}

TEST_F(Runs, TheNameTakesTheWidthThatOthersCanSpare) {
  const std::string model = "/models/a-model-with-a-rather-long-name-of-some-maker";
  const QString name = "2026-11-18_2140_smollm2-135m_shakespeare", long_name(180, 'w');
  make_run(
      home_.runs() / name.toStdString(),
      {.more = {{"model", model}, {"dataset", "/data/all-questions-and-answers-of-2025.jsonl"}}});
  open();
  ASSERT_TRUE(wait_until([&] { return table()->model()->rowCount() == 1; }));
  const auto width = [&](int column) { return table()->columnWidth(column); };
  for (const Qt::LayoutDirection direction : {Qt::LeftToRight, Qt::RightToLeft}) {
    page_->setLayoutDirection(direction);
    page_->resize(898, 660);  // as in a window of 1024 x 700
    EXPECT_TRUE(wait_until([&] {
      return width(RunListModel::name) > table()->fontMetrics().horizontalAdvance(name) &&
             !table()->horizontalScrollBar()->isVisible();
    })) << width(RunListModel::name);
  }
  make_run(home_.runs() / long_name.toStdString());
  ASSERT_TRUE(wait_until([&] { return table()->model()->rowCount() == 2; }));
  page_->resize(900, 660);
  EXPECT_TRUE(wait_until([&] { return !table()->horizontalScrollBar()->isVisible(); }));
  for (const int column : {RunListModel::model, RunListModel::data_set, RunListModel::state})
    EXPECT_GT(width(RunListModel::name), width(column));
  const QModelIndex index = table()->model()->index(0, RunListModel::name);
  const QString tip = index.data(Qt::ToolTipRole).toString() +
                      index.siblingAtRow(1).data(Qt::ToolTipRole).toString();
  EXPECT_TRUE(tip.contains(long_name)) << tip.toStdString();
}

TEST_F(Runs, SearchAndStateChooseWhatIsShown) {
  make_run(home_.runs() / "reviews-one");
  make_run(home_.runs() / "reviews-two", {.phase = "failed"});
  make_run(home_.runs() / "poems");
  open();
  EXPECT_EQ(table()->model()->rowCount(), 3);
  QTest::keyClick(page_.get(), Qt::Key_F, Qt::ControlModifier);
  auto* search = find<QLineEdit>("run_search");
  EXPECT_TRUE(search->hasFocus());
  QTest::keyClicks(search, "REV");
  EXPECT_EQ(table()->model()->rowCount(), 3) << "the data are reviews.csv";
  QTest::keyClicks(search, "iews- t");
  EXPECT_EQ(table()->model()->rowCount(), 2);
  QTest::keyClicks(search, "wo");
  EXPECT_EQ(table()->model()->rowCount(), 1);
  QTest::keyClicks(search, " nothing");
  EXPECT_TRUE(find<QWidget>("runs_none")->isVisible());
  QTest::mouseClick(find<QPushButton>("runs_none_action_show_all"), Qt::LeftButton);
  EXPECT_EQ(table()->model()->rowCount(), 3);
  auto* states = find<QComboBox>("run_state_filter");
  states->setFocus();
  for (int i = 0; i < 5; ++i)
    QTest::keyClick(states, Qt::Key_Down);
  EXPECT_EQ(states->currentText(), "Failed or killed");
  EXPECT_EQ(table()->model()->rowCount(), 1);
}

TEST_F(Runs, IsSortedByItsHeaders) {
  make_run(home_.runs() / "b", {.created = "2026-11-20T10:15:00Z", .n_done = 2});
  make_run(home_.runs() / "a", {.created = "2026-11-22T10:15:00Z", .n_done = 10});
  make_run(home_.runs() / "c", {.created = "2026-11-21T10:15:00Z", .n_done = 5});
  open();
  ASSERT_TRUE(wait_until(
      [&] { return table()->model()->index(2, RunListModel::loss).data().toString() == "1.5"; }));
  const auto names = [&] {
    std::vector<std::string> all;
    for (int row = 0; row < 3; ++row)
      all.push_back(
          table()->model()->index(row, RunListModel::name).data().toString().toStdString());
    return all;
  };
  EXPECT_THAT(names(), ElementsAre("a", "c", "b"));
  QHeaderView* header = table()->horizontalHeader();
  const auto click_header = [&](int column) {
    QTest::mouseClick(header->viewport(), Qt::LeftButton, {},
                      {header->sectionViewportPosition(column) + 10, header->height() / 2});
  };
  click_header(RunListModel::name);
  EXPECT_THAT(names(), ElementsAre("a", "b", "c"));
  click_header(RunListModel::loss);
  EXPECT_THAT(names(), ElementsAre("a", "c", "b"));
  click_header(RunListModel::loss);
  EXPECT_THAT(names(), ElementsAre("b", "c", "a"));
}

TEST_F(Runs, ActionsAreThoseThatTheSelectionAllows) {
  const fs::path done = make_run(home_.runs() / "done"),
                 failed =
                     make_run(home_.runs() / "failed",
                              {.phase = "failed", .more = {{"exit_reason", "the disk is full"}}});
  fs::create_directories(done / "final");
  runs::NewCheckpoint(done, 20).commit();
  LivingRun living(home_.runs() / "living");
  open();
  const auto enabled = [&] {
    std::set<std::string> names;
    for (const QAction* one : page_->page_actions())
      if (one->isEnabled() && !one->isSeparator() && one->objectName() != "action_find")
        names.insert(one->objectName().mid(7).toStdString());
    return names;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(enabled(), Names{});
  EXPECT_EQ(action("action_pause")->toolTip(), "Select a run");
  select(done);
  EXPECT_EQ(enabled(),
            (Names{"open", "extend", "clone", "try", "export", "folder", "report", "delete"}));
  EXPECT_THAT(action("action_resume")->toolTip().toStdString(), HasSubstr("It is finished"));
  EXPECT_THAT(details(), HasSubstr("All steps are done."));
  EXPECT_THAT(details(), HasSubstr("checkpoint-20"));
  select(failed);
  EXPECT_EQ(enabled(), (Names{"open", "resume", "clone", "folder", "report", "delete"}));
  EXPECT_THAT(details(), HasSubstr("The disk is full"));
  select(living.path());
  EXPECT_EQ(enabled(), (Names{"open", "pause", "stop", "folder", "report"}));
  EXPECT_THAT(details(), HasSubstr("on this machine"));
  select(done, Qt::ControlModifier);
  EXPECT_EQ(enabled(), Names{"compare"});
  EXPECT_THAT(details(), HasSubstr("2 run"));
  QTest::keyClick(table(), Qt::Key_A, Qt::ControlModifier);
  EXPECT_EQ(enabled(), Names{"compare"});
}

TEST_F(Runs, GoWhereTheUserWants) {
  const fs::path one = make_run(home_.runs() / "one"), two = make_run(home_.runs() / "two");
  for (const char* name : {"final", "samples"})
    fs::create_directories(one / name);
  std::ofstream(one / "config.toml", std::ios::app)
      << "nvme_path = ['/elsewhere']\ntrace = '/elsewhere/trace'\n";
  open();
  std::vector<std::string> went;
  const auto note = [&](const char* where) {
    return [&went, where](const fs::path& run) {
      went.push_back(where + (" " + run.filename().string()));
    };
  };
  QObject::connect(&navigator_, &Navigator::live_wanted, note("live"));
  QObject::connect(&navigator_, &Navigator::samples_wanted, note("samples"));
  QObject::connect(&navigator_, &Navigator::try_wanted, note("try"));
  QObject::connect(&navigator_, &Navigator::export_wanted, note("export"));
  QObject::connect(&navigator_, &Navigator::compare_wanted, [&](const auto& runs) {
    went.push_back("compare " + std::to_string(runs.size()));
  });
  QObject::connect(&navigator_, &Navigator::new_run_wanted, [&](const config::Config& settings) {
    went.push_back("new " + settings.text("task") + (settings.is_set("output_dir") ? " here" : ""));
    EXPECT_DOUBLE_EQ(settings.number("learning_rate"), 3e-5);
    EXPECT_FALSE(settings.is_set("seed"));
    for (const char* place : {"nvme_path", "trace"})
      EXPECT_FALSE(settings.is_set(place)) << "a run may be somebody else's";
  });
  select(one);
  QTest::keyClick(table(), Qt::Key_Return);
  QTest::keyClick(page_.get(), Qt::Key_O, Qt::ControlModifier);
  const QRect cell = table()->visualRect(table()->model()->index(row_of(one), RunListModel::name));
  QTest::mouseDClick(table()->viewport(), Qt::LeftButton, {}, cell.center());
  for (const char* name : {"action_samples", "action_try", "action_export", "action_clone"})
    click(name);
  select(two, Qt::ControlModifier);
  click("action_compare");
  EXPECT_THAT(went, ElementsAre("live one", "live one", "live one", "samples one", "try one",
                                "export one", "new classification", "compare 2"));
  std::ofstream(two / "config.toml") << "no_such_key = 1\n";
  select(two);
  click("action_clone");
  EXPECT_THAT(said(), HasSubstr("no_such_key"));
  QTest::mouseClick(find<QPushButton>("inline_no"), Qt::LeftButton);
  EXPECT_EQ(said(), "");
}

TEST_F(Runs, RunsThatLiveArePausedResumedAndStopped) {
  LivingRun one(home_.runs() / "one"), two(home_.runs() / "two");
  open();
  QSignalSpy replies(&navigator_, &Navigator::said);
  select(one.path());
  QTest::keyClick(page_.get(), Qt::Key_P, Qt::ControlModifier);
  ASSERT_TRUE(wait_until([&] { return state(one.path()) == "Paused"; }));
  EXPECT_EQ(state(two.path()), "Training");
  select(two.path(), Qt::ControlModifier);
  EXPECT_FALSE(action("action_pause")->isEnabled());  // one of them is paused already
  select(one.path());
  click("action_resume");
  ASSERT_TRUE(wait_until([&] { return state(one.path()) == "Training"; }));
  QTest::keyClick(table(), Qt::Key_A, Qt::ControlModifier);
  click("action_pause");
  ASSERT_TRUE(
      wait_until([&] { return state(one.path()) == "Paused" && state(two.path()) == "Paused"; }));
  see("runs-paused");
  click("action_stop");
  ASSERT_TRUE(wait_until([&] { return replies.count() >= 6; }));
  EXPECT_EQ(said(), "");
  one.vanish();
  ASSERT_TRUE(wait_until([&] { return state(one.path()) == "Killed"; }));
  select(one.path());
  EXPECT_THAT(details(), HasSubstr("host memory"));
}

TEST_F(Runs, ARunIsMovedToTheTrashOnlyWhenAsked) {
  const fs::path goes = make_run(home_.runs() / "goes"), stays = make_run(home_.runs() / "stays");
  open();
  select(goes);
  QTest::keyClick(table(), Qt::Key_Delete);
  EXPECT_THAT(said(), HasSubstr("goes"));
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
  EXPECT_EQ(said(), "");
  EXPECT_TRUE(fs::exists(goes));
  click("action_delete");
  see("runs-delete");
  QTest::mouseClick(find<QPushButton>("inline_yes"), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return !fs::exists(goes) || !said().empty(); }));
  if (fs::exists(goes)) {  // no trash here: it asks again
    EXPECT_THAT(said(), HasSubstr("for good"));
    QTest::mouseClick(find<QPushButton>("inline_yes"), Qt::LeftButton);
  }
  ASSERT_TRUE(wait_until([&] { return !fs::exists(goes) && row_of(goes) < 0; }));
  EXPECT_TRUE(fs::exists(stays));
  EXPECT_EQ(table()->model()->rowCount(), 1);
}

TEST_F(Runs, OfManyRunsSomeAreNamedAndNoneThatStartsIsMovedToTheTrash) {
  std::vector<fs::path> all;
  for (const char* name : {"one", "two", "three", "four", "five"})
    all.push_back(fs::weakly_canonical(make_run(home_.runs() / name)));
  PlayedFerry ferry(home_, "exec sleep 5\n");
  open();
  table()->selectAll();
  click("action_delete");
  EXPECT_THAT(said(), HasSubstr("and 2 more"));
  launcher_.resume(all[3]);
  QTest::mouseClick(find<QPushButton>("inline_yes"), Qt::LeftButton);
  EXPECT_FALSE(action("action_delete")->isEnabled());  // it is done beside
  ASSERT_TRUE(wait_until([&] {
    return action("action_report")->isVisible() && row_of(all[0]) < 0;
  })) << said();
  if (said().find("for good") != std::string::npos)
    QTest::mouseClick(find<QPushButton>("inline_yes"), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return table()->model()->rowCount() == 1; }));
  EXPECT_TRUE(fs::exists(all[3]));
  EXPECT_EQ(row_of(all[3]), 0);
}

TEST_F(Runs, AFinishedRunIsAskedForMoreSteps) {
  const fs::path run = make_run(home_.runs() / "run");
  runs::NewCheckpoint(run, 20).commit();
  const fs::path fake = home_ / "fake-ferry";
  std::ofstream(fake) << "#!/bin/sh\necho \"$*\" > '" << (home_ / "asked").string()
                      << "'\nsleep 1\n";
  fs::permissions(fake, fs::perms::owner_all);
  const std::string before = getenv("FERRY") ? getenv("FERRY") : "";
  setenv("FERRY", fake.c_str(), 1);
  open();
  select(run);
  click("action_extend");
  EXPECT_THAT(said(), HasSubstr("20 steps"));
  EXPECT_EQ(find<QSpinBox>("inline_number")->value(), 10);
  see("runs-extend");
  QTest::keyClicks(find<QSpinBox>("inline_number"), "25");
  QTest::keyClick(find<QSpinBox>("inline_number"), Qt::Key_Return);
  ASSERT_TRUE(wait_until([&] { return fs::exists(home_ / "asked"); }));
  ASSERT_TRUE(wait_until([&] { return fs::file_size(home_ / "asked") > 0; }));
  std::ifstream file(home_ / "asked");
  std::string asked;
  std::getline(file, asked);
  EXPECT_EQ(asked, "train --resume=" + fs::weakly_canonical(run).string() + " --max-steps=45");
  EXPECT_TRUE(wait_until([&] { return state(run) == "Starting"; }));
  EXPECT_TRUE(wait_until([&] { return state(run) == "Not started"; }));
  EXPECT_TRUE(wait_until([&] { return said().find("could not be started") != std::string::npos; }));
  setenv("FERRY", before.c_str(), 1);
}

TEST_F(Runs, AReportIsWrittenBesideTheEventLoop) {
  const fs::path run = make_run(home_.runs() / "run");
  open();
  select(run);
  click("action_report");
  EXPECT_FALSE(action("action_report")->isEnabled());
  ASSERT_TRUE(wait_until([&] { return !said().empty(); }, 60000));
  EXPECT_THAT(said(), HasSubstr("ferry-report-run"));
  EXPECT_TRUE(fs::exists(home_ / "ferry-report-run.zip"));
  EXPECT_TRUE(action("action_report")->isEnabled());
}

TEST_F(Runs, TheQueueIsOrderedByItsButtons) {
  open();
  EXPECT_TRUE(find<QLabel>("queue_empty")->isVisible());
  config::Config config;
  config.set("model", "/models/a", {config::Source::command_line, "test"});
  for (const char* title : {"one", "two", "three"})
    queue_->add(config, title);
  auto* list = find<QListView>("queue_list");
  EXPECT_TRUE(list->isVisible());
  const auto press = [&](const char* name) {
    QTest::mouseClick(find<QPushButton>(name), Qt::LeftButton);
  };
  QTest::mouseClick(list->viewport(), Qt::LeftButton, {},
                    list->visualRect(list->model()->index(2, 0)).center());
  press("queue_up");
  press("queue_up");
  EXPECT_FALSE(find<QPushButton>("queue_up")->isEnabled());
  EXPECT_EQ(list->model()->index(0, 0).data().toString(), "three");
  press("queue_down");
  EXPECT_EQ(list->model()->index(1, 0).data().toString(), "three");
  press("queue_remove");
  EXPECT_EQ(list->model()->rowCount(), 2);
  EXPECT_FALSE(settings_.is_queue_on());
  queue_->set_gate([] { return QStringLiteral("Run hours begin at 22:00"); });
  QTest::mouseClick(find<QCheckBox>("queue_switch"), Qt::LeftButton, {}, {8, 8});
  EXPECT_TRUE(settings_.is_queue_on());
  EXPECT_THAT(find<QLabel>("queue_status")->text().toStdString(), HasSubstr("22:00"));
}

TEST_F(Runs, EverythingHasANameAndTabGoesThroughIt) {
  make_run(home_.runs() / "one");
  open();
  for (const QWidget* widget : page_->findChildren<QWidget*>()) {
    const bool takes_keys = widget->focusPolicy() & Qt::TabFocus && widget->isVisible();
    if (!takes_keys || qobject_cast<const QToolBar*>(widget)) continue;
    QAccessibleInterface* told =
        QAccessible::queryAccessibleInterface(const_cast<QWidget*>(widget));
    ASSERT_NE(told, nullptr);
    EXPECT_FALSE(told->text(QAccessible::Name).isEmpty())
        << widget->metaObject()->className() << " " << widget->objectName().toStdString();
  }
  find<QLineEdit>("run_search")->setFocus();
  std::set<std::string> met;
  for (int i = 0; i < 40; ++i) {
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
    met.insert(QApplication::focusWidget()->objectName().toStdString());
  }
  for (const char* name :
       {"run_state_filter", "new_run_button", "run_table", "run_details", "queue_switch"})
    EXPECT_TRUE(met.contains(name)) << name;
}

TEST_F(Runs, LooksAsItShould) {
  const auto wavy = [](int n, int nan_at) {
    std::string text;
    for (int step = 1; step <= n; ++step)
      text += step == nan_at
                  ? fmt::format("{{\"step\": {}, \"loss\": null, \"nonfinite\": true}}\n", step)
                  : fmt::format(
                        "{{\"step\": {}, \"loss\": {:.4f}, \"step_ms\": {}, "
                        "\"train_tokens_per_second\": 8123}}\n",
                        step, 2.4 / (1 + step * 0.05) + 0.15 * std::sin(step * 1.7), 900);
    return text;
  };
  make_run(home_.runs() / "2026-11-20_1015_minilm-l6_reviews",
           {.n_steps = 500, .metrics = wavy(500, 0)});
  make_run(home_.runs() / "2026-11-21_2210_qwen2.5-1.5b_alpaca",
           {.phase = "failed",
            .created = "2026-11-21T22:10:00Z",
            .n_steps = 1000,
            .more = {{"exit_reason", "the loss is not finite at step 130"}},
            .metrics = wavy(130, 90)});
  make_run(home_.runs() / "2026-11-22_0900_gpt2_book",
           {.phase = "stopped",
            .created = "2026-11-22T09:00:00Z",
            .n_steps = 3000,
            .more = {{"exit_reason", "stopped by the user"}},
            .metrics = wavy(1200, 0)});
  const fs::path killed =
      make_run(home_.runs() / "2026-11-23_0115_llama-3.2-1b_chat",
               {.phase = "training",
                .created = "2026-11-23T01:15:00Z",
                .n_steps = 2000,
                .more = {{"host", "elsewhere"},
                         {"promised", {{"host_bytes_peak", 62490000000}}},
                         {"host_budget_bytes", 54760833024},
                         {"parent", {{"run", "2026-11-22_0900_gpt2_book"}}},
                         {"plan",
                          {{"why",
                            "weights and optimizer in host memory; every layer is sent to the GPU "
                            "as it is needed"},
                           {"rows", nlohmann::ordered_json::array()}}}},
                .metrics = wavy(300, 0)});
  const fs::path half = make_run(home_.runs() / "2026-11-19_half-written");
  std::ofstream(half / "run.json") << "{";
  make_run(home_.runs() / "ריצה ראשונה", {.created = "2026-11-18T01:15:00Z"});
  LivingRun living(home_.runs() / "2026-11-24_1830_roberta-base_news");
  std::ofstream(living.path() / "metrics.jsonl") << wavy(42, 0);
  open();
  config::Config config;
  config.set("model", "/models/all-MiniLM-L6-v2", {config::Source::command_line, "test"});
  config.set("dataset", "/data/tickets.csv", {config::Source::command_line, "test"});
  queue_->add(config, "MiniLM on support tickets");
  queue_->add(config, "The same with a larger learning rate");
  settings_.set_queue_on(true);
  select(killed);
  EXPECT_THAT(details(), HasSubstr("planned 58.20 GiB, available 51.00 GiB"));
  EXPECT_THAT(details(), HasSubstr("2026-11-22_0900_gpt2_book"));
  see("runs-light");
  apply_theme(Theme::dark);
  see("runs-dark");
  apply_theme(Theme::light);
  page_->setLayoutDirection(Qt::RightToLeft);
  see("runs-rtl");
  EXPECT_LE(page_->minimumSizeHint().width(), 1060);
}

}  // namespace
}  // namespace ferry::gui
