#include "gui/models/curves/curve.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QFile>
#include <algorithm>
#include <limits>

#include "gui/models/curves/csv_export.h"
#include "gui/models/curves/metrics_table.h"
#include "gui/models/text.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

using service::MetricsReader;
using service::Series;
using service::SeriesPoint;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Series series_of(const std::vector<double>& values, size_t points_max = 4096) {
  Series series(points_max);
  for (size_t i = 0; i < values.size(); ++i)
    series.add(static_cast<int64_t>(i) + 1, values[i]);
  return series;
}

void read_all(MetricsReader& reader) {
  while (reader.poll().is_behind) {
  }
}

TEST(Curve, NoExtremeIsLostHoweverManyValuesAPointHolds) {
  std::vector<double> values(100'000, 1.0);
  values[33'333] = 17;
  values[77'777] = -4;
  const Series series = series_of(values, 64);
  ASSERT_GT(series.values_per_point(), 1000);
  const auto line = raw_line(series.points());
  EXPECT_LE(line.size(), 128u);
  const auto [min, max] = std::ranges::minmax(line, {}, &CurvePoint::y);
  EXPECT_EQ(min.y, -4);
  EXPECT_EQ(max.y, 17);
  EXPECT_TRUE(std::ranges::is_sorted(line, {}, &CurvePoint::x));
  const auto extent = extent_of(series.points());
  EXPECT_EQ(extent->min, -4);
  EXPECT_EQ(extent->max, 17);
}

TEST(Curve, WhatIsNotFiniteIsAGap) {
  const Series series = series_of({1, kNan, std::numeric_limits<double>::infinity(), 4});
  const auto line = raw_line(series.points());
  ASSERT_EQ(line.size(), 4u);
  EXPECT_EQ(line[0].y, 1);
  EXPECT_TRUE(std::isnan(line[1].y));
  EXPECT_TRUE(std::isnan(line[2].y));
  EXPECT_EQ(line[3].y, 4);
  EXPECT_EQ(first_nonfinite(series.points()), 2);
  const auto smooth = smooth_line(series.points(), Smoother(0.5));
  EXPECT_TRUE(std::isnan(smooth[1].y));
  EXPECT_NEAR(smooth[3].y, (0.25 * 1 + 0.5 * 4) / 0.75, 1e-12);  // the gap weighs nothing
}

TEST(Curve, ALogAxisHasNoPlaceForZeroAndBelow) {
  const Series series = series_of({1, 0, -2, 10});
  const auto line = raw_line(series.points(), true);
  EXPECT_TRUE(std::isnan(line[1].y));
  EXPECT_TRUE(std::isnan(line[2].y));
  const auto extent = extent_of(series.points(), true);
  EXPECT_EQ(extent->min, 1);
  EXPECT_EQ(extent->max, 10);
  EXPECT_FALSE(extent_of(series_of({-1, 0}).points(), true));
}

TEST(Curve, SmoothingBeginsAtTheFirstValueAndCountsEveryValueOfAPoint) {
  const auto constant = series_of(std::vector<double>(50, 3.5));
  for (const CurvePoint& point : smooth_line(constant.points(), Smoother(0.99)))
    EXPECT_NEAR(point.y, 3.5, 1e-9);
  // Ten equal values as one point and as ten are the same.
  Smoother each(0.8), whole(0.8);
  for (int i = 0; i < 10; ++i)
    each.add({i, i, 2, 2, 2, 1, 0});
  whole.add({0, 9, 2, 2, 2, 10, 0});
  each.add({10, 10, 7, 7, 7, 1, 0});
  whole.add({10, 10, 7, 7, 7, 1, 0});
  EXPECT_NEAR(each.value(), whole.value(), 1e-12);
  EXPECT_TRUE(std::isnan(Smoother(0.5).value()));
  Smoother none(0);
  none.add({1, 1, 5, 5, 5, 1, 0});
  none.add({2, 2, 9, 9, 9, 1, 0});
  EXPECT_EQ(none.value(), 9);
}

TEST(Curve, AReducedLineKeepsItsCornersAndGaps) {
  std::vector<CurvePoint> line;
  for (int i = 0; i < 10'000; ++i)
    line.push_back({static_cast<double>(i), i == 7'777 ? kNan : std::sin(i * 0.7)});
  line[1'234].y = 50;
  line[5'678].y = -60;
  const auto few = reduced(line, 100);
  EXPECT_LE(few.size(), 302u);
  EXPECT_TRUE(std::ranges::is_sorted(few, {}, &CurvePoint::x));
  EXPECT_EQ(few.front().x, 0);
  EXPECT_EQ(few.back().x, 9'999);
  EXPECT_EQ(std::ranges::count(few, 50, &CurvePoint::y), 1);
  EXPECT_EQ(std::ranges::count(few, -60, &CurvePoint::y), 1);
  EXPECT_EQ(std::ranges::count_if(few, [](const CurvePoint& p) { return std::isnan(p.y); }), 1);
  EXPECT_EQ(reduced(few, 200).size(), few.size());
}

TEST(Curve, PercentileLeavesOutTheSpike) {
  std::vector<double> values(1000, 2.0);
  values[500] = 1e6;
  EXPECT_EQ(percentile(series_of(values).points(), 0.99), 2.0);
  EXPECT_EQ(percentile(series_of(values).points(), 1.0), 1e6);
  EXPECT_TRUE(std::isnan(percentile({}, 0.99)));
}

TEST(Curve, TheNearestPointIsFoundAtBothSides) {
  Series series(16);
  for (const int64_t step : {10, 20, 40})
    series.add(step, static_cast<double>(step));
  EXPECT_EQ(nearest_point(series.points(), -5)->first_step, 10);
  EXPECT_EQ(nearest_point(series.points(), 14)->first_step, 10);
  EXPECT_EQ(nearest_point(series.points(), 16)->first_step, 20);
  EXPECT_EQ(nearest_point(series.points(), 31)->first_step, 40);
  EXPECT_EQ(nearest_point(series.points(), 99)->first_step, 40);
  EXPECT_EQ(nearest_point({}, 5), nullptr);
  EXPECT_EQ(visible_points(series.points(), 15, 25).size(), 3u);  // and a neighbour at each side
  EXPECT_EQ(visible_points(series.points(), 41, 90).size(), 1u);
}

TEST(Curve, IsToldInWords) {
  std::vector<double> falling;
  for (int i = 0; i < 512; ++i)
    falling.push_back(5 - i * 0.005);
  const Series series = series_of(falling);
  EXPECT_EQ(curve_in_words("Training loss", &series, ValueUnit::number).toStdString(),
            "Training loss: 512 points, last 2.445, falling");
  const Series bad = series_of({1, 2, kNan});
  EXPECT_EQ(curve_in_words("Loss", &bad, ValueUnit::number).toStdString(),
            "Loss: 3 points, last not finite");
  EXPECT_EQ(curve_in_words("Loss", nullptr, ValueUnit::number).toStdString(),
            "Loss: no values yet");
  const Series steady = series_of(std::vector<double>(100, 1.0));
  EXPECT_TRUE(curve_in_words("Rate", &steady, ValueUnit::number).endsWith("steady"));
}

TEST(Curve, ValuesAreWrittenByTheirUnit) {
  EXPECT_EQ(value_text(6.1 * (1 << 30), ValueUnit::bytes).toStdString(), "6.10 GiB");
  EXPECT_EQ(value_text(97.24, ValueUnit::percent).toStdString(), "97.2 %");
  EXPECT_EQ(value_text(8213.4, ValueUnit::per_second), step_text(8213) + "/s")
      << "grouped as every large number of the app";
  EXPECT_EQ(value_text(kNan, ValueUnit::bytes).toStdString(), "not finite");
  EXPECT_EQ(tick_text(12'000, ValueUnit::number).toStdString(), "12k");
  EXPECT_EQ(tick_text(5e-5, ValueUnit::number).toStdString(), "5e-05");
  EXPECT_EQ(tick_text(1.5 * (1 << 30), ValueUnit::bytes).toStdString(), "1.5 GiB");
}

TEST(ExactRange, HasEveryRowOfTheRangeInTurns) {
  ferry::test::TempDir directory;
  RunFiles run(directory / "run");
  run.add_steps(1, 20'000);
  MetricsReader reader(run.path(), 64);
  read_all(reader);
  ExactRange range(reader, {"loss", "eval_loss"}, 5'000, 9'000);
  int n_turns = 1;
  while (!range.advance())
    ++n_turns;
  EXPECT_GE(n_turns, 3);
  EXPECT_FALSE(range.is_cut());
  const Series* const loss = range.find("loss");
  ASSERT_TRUE(loss);
  ASSERT_EQ(loss->n_values(), 4'001);
  EXPECT_EQ(loss->values_per_point(), 1);
  for (const SeriesPoint& point : loss->points())
    EXPECT_NEAR(point.mean, RunFiles::loss_at(point.first_step), 1e-6);
  EXPECT_EQ(range.find("eval_loss")->n_values(), 41);
  EXPECT_EQ(range.find("no such"), nullptr);
}

TEST(ExactRange, IsBounded) {
  ferry::test::TempDir directory;
  RunFiles run(directory / "run");
  std::string text;
  for (int64_t step = 1; step <= ExactRange::kRows_max + 5'000; ++step)
    text += fmt::format("{{\"step\":{},\"loss\":1}}\n", step);
  run.add(text);
  MetricsReader reader(run.path(), 64);
  read_all(reader);
  ExactRange range(reader, {"loss"}, 0, 1'000'000'000);
  while (!range.advance()) {
  }
  EXPECT_TRUE(range.is_cut());
  EXPECT_EQ(range.find("loss")->n_values(), ExactRange::kRows_max);
}

TEST(MetricsTable, ShowsRowsOfAFileThatGrows) {
  ferry::test::TempDir directory;
  RunFiles run(directory / "run");
  run.add_steps(1, 250);
  run.add("{\"step\":251,\"loss\":null,\"nonfinite\":true}\n");
  MetricsReader reader(run.path(), 64);
  read_all(reader);
  MetricsTable table;
  const QAbstractItemModelTester tester(&table,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  table.show(&reader,
             {{"loss", "loss", ValueUnit::number}, {"eval_loss", "evaluation", ValueUnit::number}});
  ASSERT_EQ(table.rowCount(), 253);  // with two evaluations
  const auto text = [&](int row, int column) {
    return table.index(row, column).data().toString().toStdString();
  };
  EXPECT_EQ(text(0, 0), "1");
  EXPECT_EQ(text(0, 1), value_text(RunFiles::loss_at(1), ValueUnit::number).toStdString());
  EXPECT_EQ(text(0, 2), "");
  EXPECT_EQ(text(100, 0), "100");
  EXPECT_EQ(text(100, 2), "0.8");
  EXPECT_EQ(text(252, 1), "not finite");
  EXPECT_EQ(table.index(252, 1).data(Qt::AccessibleTextRole).toString().toStdString(),
            "loss: not finite");
  run.add_steps(252, 400);
  run.add("{\"step\":401,\"los");  // half written
  read_all(reader);
  table.update();
  EXPECT_EQ(table.rowCount(), 253 + 149 + 2);
  EXPECT_EQ(text(table.rowCount() - 1, 0), "400");
  run.add("s\":5}\n");
  read_all(reader);
  table.update();
  EXPECT_EQ(text(table.rowCount() - 1, 1), "5");
  std::filesystem::remove_all(run.path());
  EXPECT_TRUE(table.trouble().isEmpty());
  MetricsTable other;
  QString said;
  QObject::connect(&other, &MetricsTable::trouble_changed, &other,
                   [&](const QString& trouble) { said = trouble; });
  other.show(&reader, {{"loss", "loss", ValueUnit::number}});
  EXPECT_FALSE(other.index(300, 1).data().isValid());
  EXPECT_TRUE(said.contains("metrics.jsonl")) << said.toStdString();
  table.show(nullptr, {});
  EXPECT_EQ(table.rowCount(), 0);
}

TEST(Csv, HasEveryDigitOfTheExactRows) {
  ferry::test::TempDir directory;
  RunFiles run(directory / "run");
  run.add(
      "{\"step\":1,\"loss\":2.0855886936187744,\"grad_norm\":1}\n"
      "{\"step\":1,\"save_seconds\":3}\n"
      "{\"step\":2,\"loss\":null}\n"
      "{\"step\":2,\"eval_loss\":0.5}\n");
  const QString file = path_text(directory / "a.csv");
  write_csv({{"a, \"b\"", run.path()}}, {"loss", "eval_loss"}, file);
  const auto text_of = [](const QString& name) {
    QFile read(name);
    EXPECT_TRUE(read.open(QIODevice::ReadOnly));
    return read.readAll().toStdString();
  };
  EXPECT_EQ(text_of(file), "step,loss,eval_loss\n1,2.0855886936187744,\n2,nan,\n2,,0.5\n");
  write_csv({{"a, \"b\"", run.path()}, {"c", run.path()}}, {"eval_loss"}, file);
  EXPECT_EQ(text_of(file), "run,step,eval_loss\n\"a, \"\"b\"\"\",2,0.5\nc,2,0.5\n");
}

TEST(Csv, SaysWhyItCannotBeWritten) {
  ferry::test::TempDir directory;
  RunFiles run(directory / "run");
  run.add_steps(1, 3);
  CsvExport csv;
  QString said;
  QObject::connect(&csv, &CsvExport::ended, &csv,
                   [&](const QString&, const QString& trouble) { said = trouble; });
  // Below a file there is no directory, for root either.
  csv.start({{"run", run.path()}}, {"loss"}, path_text(run.path() / "run.json" / "a.csv"));
  EXPECT_TRUE(wait_until([&] { return !said.isEmpty(); }));
  EXPECT_TRUE(said.contains("a.csv")) << said.toStdString();
}

}  // namespace
}  // namespace ferry::gui
