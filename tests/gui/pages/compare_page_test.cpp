#include "gui/pages/compare/compare_page.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QComboBox>
#include <QFile>
#include <QPushButton>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <QTreeView>

#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "gui/widgets/charts/curve_chart.h"
#include "gui/widgets/charts/curve_plot.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

class ComparePageTest : public ::testing::Test {
 protected:
  ComparePageTest() {
    settings_.set_runs_directory(home_ / "runs");
    for (int i = 0; i < 7; ++i) {
      RunFiles run(home_ / "runs" / fmt::format("2026-11-2{}_minilm_reviews", i));
      run.add_steps(1, 200 + 50 * i, 1 + 0.12 * i);
      run.record({{"created", fmt::format("2026-11-2{}T10:00:00Z", i)},
                  {"actual", {{"host_bytes_peak", 3.5e9}, {"training_seconds", 60 + i}}}});
      std::ofstream(run.path() / "config.toml")
          << fmt::format("learning_rate = {}e-05\nmax_grad_norm = 1.0\nseed = {}\n", i + 1, i % 2);
      runs_.push_back(run.path());
    }
    page_.resize(1060, 740);
    page_.show();
    page_.set_active(true);
  }
  std::vector<std::filesystem::path> first(size_t n) const {
    return {runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(n)};
  }
  static QString value(const ComparisonTable& table, const QString& name, int run) {
    for (const ComparisonLine& line : table.lines())
      if (line.name == name) return line.values.value(run);
    return "no such line";
  }

  TestHome home_;
  std::vector<std::filesystem::path> runs_;
  AppSettings settings_{path_text(home_ / "app.ini")};
  Launcher launcher_;
  Navigator navigator_;
  RunListModel run_list_{settings_, launcher_};
  RunQueue queue_{settings_, launcher_, run_list_};
  Shared shared_{settings_, launcher_, navigator_, run_list_, queue_};
  ComparePage page_{shared_};
};

TEST_F(ComparePageTest, ShowsResultsAndTheSettingsThatDiffer) {
  page_.show_runs(first(3));
  ASSERT_TRUE(wait_until([&] { return page_.results().rowCount() > 0; }));
  const ComparisonTable& results = page_.results();
  EXPECT_EQ(results.columnCount(), 4);
  EXPECT_EQ(value(results, "State", 0).toStdString(), "Finished");
  EXPECT_EQ(value(results, "Steps", 1).toStdString(), "250 of 2,000");
  EXPECT_EQ(
      value(results, "Last loss", 0),
      value_text(std::stod(fmt::format("{:.6f}", RunFiles::loss_at(200))), ValueUnit::number));
  EXPECT_EQ(value(results, "Host memory, peak", 2).toStdString(), "3.26 GiB");
  EXPECT_NE(value(results, "Evaluation accuracy", 0), "no such line");
  EXPECT_EQ(value(results, "GPU memory, peak", 0), "no such line");  // none of them has it
  const ComparisonTable& settings = page_.settings();
  EXPECT_EQ(value(settings, "Learning rate", 2).toStdString(), "3e-05");
  EXPECT_EQ(value(settings, "Seed", 1).toStdString(), "1");
  EXPECT_EQ(settings.lines().size(), 2u);
}

TEST_F(ComparePageTest, TheTableIsAModel) {
  ComparisonTable table;
  const QAbstractItemModelTester tester(&table,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  table.show({"a", "b"}, {{"Loss", {"1", ""}}, {"Speed", {"", "2"}}});
  EXPECT_EQ(table.index(0, 2).data().toString().toStdString(), "–");
  EXPECT_EQ(table.index(0, 2).data(Qt::AccessibleTextRole).toString().toStdString(),
            "Loss, b: none");
  table.show({}, {});
}

TEST_F(ComparePageTest, OverlaysACurveOfEachRun) {
  page_.show_runs(first(3));
  ASSERT_TRUE(wait_until([&] { return page_.chart().summary().count("points") == 3; }));
  EXPECT_EQ(page_.chart().curves().size(), 3u);
  QComboBox& metric = page_.metric();
  const int accuracy = metric.findData("eval_accuracy");
  ASSERT_GE(accuracy, 0);
  metric.setCurrentIndex(accuracy);
  EXPECT_EQ(page_.chart().title().toStdString(), "Evaluation accuracy");
  EXPECT_EQ(page_.chart().curves()[0].key, "eval_accuracy");
  page_.chart().set_table_shown(true);
  auto* const choice = page_.chart().findChild<QComboBox*>();
  EXPECT_EQ(choice->count(), 3);
}

TEST_F(ComparePageTest, RunsAreAddedAndLeftOut) {
  page_.show_runs(first(2));
  page_.add_runs(runs_);
  EXPECT_EQ(page_.shown_runs().size(), 6u);  // at most six, none twice
  EXPECT_FALSE(page_.findChild<QPushButton*>("add_runs")->isEnabled());
  auto* const remove = page_.findChild<QToolButton*>("remove_run_0");
  ASSERT_TRUE(remove);
  QTest::mouseClick(remove, Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return page_.shown_runs().size() == 5; }));
  EXPECT_EQ(page_.shown_runs().front(), runs_[1]);
  EXPECT_TRUE(page_.findChild<QPushButton*>("add_runs")->isEnabled());
  ASSERT_TRUE(wait_until([&] { return page_.results().columnCount() == 6; }));
  while (page_.shown_runs().size() > 1)
    page_.remove_run(page_.shown_runs().back());
  EXPECT_TRUE(page_.notice().contains("another run")) << page_.notice().toStdString();
  page_.remove_run(page_.shown_runs().back());
  auto* const list = page_.findChild<QTreeView*>("picker_runs");
  ASSERT_TRUE(wait_until([&] { return list->model()->rowCount() == 7; }));
  list->clearSelection();
  for (const int row : {2, 0})
    list->selectionModel()->select(list->model()->index(row, RunListModel::name),
                                   QItemSelectionModel::Select | QItemSelectionModel::Rows);
  QTest::mouseClick(page_.findChild<QPushButton*>("picker_choose"), Qt::LeftButton);
  ASSERT_EQ(page_.shown_runs().size(), 2u);
  EXPECT_EQ(page_.shown_runs()[0], runs_[6]);
}

TEST_F(ComparePageTest, ARunThatGoesIsSaid) {
  std::filesystem::remove(runs_[1] / "config.toml");
  page_.show_runs(first(2));
  ASSERT_TRUE(wait_until([&] { return page_.notice().contains("config.toml"); }))
      << page_.notice().toStdString();
}

TEST_F(ComparePageTest, IsExported) {
  page_.show_runs(first(2));
  ASSERT_TRUE(wait_until([&] { return page_.results().rowCount() > 0; }));
  const QString file = path_text(home_ / "comparison.csv");
  page_.export_table(file);
  QFile read(file);
  ASSERT_TRUE(read.open(QIODevice::ReadOnly));
  const QString text = QString::fromUtf8(read.readAll());
  EXPECT_TRUE(text.startsWith(",2026-11-20_minilm_reviews,2026-11-21_minilm_reviews\n"))
      << text.toStdString();
  EXPECT_TRUE(text.contains("\nLearning rate,1e-05,2e-05\n")) << text.toStdString();
  page_.export_table(path_text(runs_[0] / "run.json" / "comparison.csv"));
  EXPECT_TRUE(page_.notice().contains("cannot be written")) << page_.notice().toStdString();
}

TEST_F(ComparePageTest, Pictures) {
  const char* const place = std::getenv("FERRY_SHOTS");
  if (!place) GTEST_SKIP() << "FERRY_SHOTS names no directory";
  for (const bool is_dark : {false, true}) {
    apply_theme(is_dark ? Theme::dark : Theme::light);
    page_.show_runs(first(4));
    wait_until([&] { return page_.results().rowCount() > 0; });
    QTest::qWait(1300);
    const QString name = QString::fromLocal8Bit(place) + (is_dark ? "/dark-" : "/light-");
    page_.grab().save(name + "compare.png");
    page_.metric().setCurrentIndex(page_.metric().findData("eval_accuracy"));
    QTest::qWait(1300);
    page_.grab().save(name + "compare-eval.png");
  }
  apply_theme(Theme::light);
}

}  // namespace
}  // namespace ferry::gui
