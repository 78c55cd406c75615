#include "gui/widgets/charts/curve_chart.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <QAccessible>
#include <QApplication>
#include <QContextMenuEvent>
#include <QFile>
#include <QImage>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <QWheelEvent>

#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "gui/widgets/charts/curve_plot.h"
#include "gui/widgets/charts/curve_style.h"
#include "gui/widgets/runs/log_pane.h"
#include "src/base/process/host_memory.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

using service::MetricsReader;

void read_all(MetricsReader& reader) {
  while (reader.poll().is_behind) {
  }
}

class CurveChartTest : public ::testing::Test {
 protected:
  void show(int64_t n_steps) {
    if (n_steps > 0) run_.add_steps(1, n_steps);
    reader_.emplace(run_.path());
    read_all(*reader_);
    chart_.set_curves({{.name = "training", .key = "loss", .reader = &*reader_, .run = run_.path()},
                       {.name = "evaluation",
                        .key = "eval_loss",
                        .reader = &*reader_,
                        .run = run_.path(),
                        .is_smoothed = false,
                        .has_markers = true}});
    chart_.resize(640, 360);
    chart_.show();
    QApplication::processEvents();
    chart_.redraw();
  }
  void key(int key, Qt::KeyboardModifiers modifiers = {}) {
    QTest::keyClick(&chart_.plot(), static_cast<Qt::Key>(key), modifiers);
  }
  void wheel(Qt::KeyboardModifiers modifiers) {
    const QPointF at = chart_.plot().rect().center();
    QWheelEvent event(at, chart_.plot().mapToGlobal(at), {}, {0, 120}, Qt::NoButton, modifiers,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(&chart_.plot(), &event);
    is_accepted_ = event.isAccepted();
  }
  QString described() {
    QAccessibleInterface* const told = QAccessible::queryAccessibleInterface(&chart_.plot());
    EXPECT_EQ(told->role(), QAccessible::Chart);
    return told->text(QAccessible::Description);
  }

  ferry::test::TempDir directory_;
  RunFiles run_{directory_ / "run"};
  std::optional<MetricsReader> reader_;
  CurveChart chart_{"Loss", ValueUnit::number};
  bool is_accepted_ = false;
};

TEST_F(CurveChartTest, WithoutValuesItSaysSo) {
  show(0);
  EXPECT_EQ(chart_.n_points_drawn(), 0u);
  EXPECT_TRUE(described().contains("no values yet")) << described().toStdString();
  key(Qt::Key_Right);
  key(Qt::Key_Plus);
  wheel(Qt::ControlModifier);
  chart_.set_log(true);
  EXPECT_TRUE(chart_.readout().isEmpty());
}

TEST_F(CurveChartTest, OneValueIsDrawn) {
  show(1);
  EXPECT_EQ(chart_.n_points_drawn(), 2u);  // as it is, and smoothed
  key(Qt::Key_Right);
  EXPECT_TRUE(chart_.readout().startsWith("Step 1; training 3")) << chart_.readout().toStdString();
}

TEST_F(CurveChartTest, KeysMoveTheReadOutToExactValues) {
  show(512);
  EXPECT_EQ(chart_.plot().focusPolicy(), Qt::StrongFocus);
  key(Qt::Key_Right);
  EXPECT_TRUE(chart_.readout().startsWith("Step 1;"));
  key(Qt::Key_Right, Qt::ControlModifier);
  key(Qt::Key_Right);
  EXPECT_TRUE(chart_.readout().contains(value_text(RunFiles::loss_at(12), ValueUnit::number)))
      << chart_.readout().toStdString();
  EXPECT_TRUE(chart_.readout().contains("at step 100"));  // the nearest evaluation
  key(Qt::Key_Left);
  EXPECT_TRUE(chart_.readout().startsWith("Step 11;"));
  EXPECT_EQ(QAccessible::queryAccessibleInterface(&chart_.plot())->text(QAccessible::Value),
            chart_.readout());
  key(Qt::Key_Escape);
  EXPECT_TRUE(chart_.readout().isEmpty());
  EXPECT_EQ(described().section('.', 0, 1).toStdString(),
            QStringLiteral("training: 512 points, last %1")
                    .arg(value_text(RunFiles::loss_at(512), ValueUnit::number))
                    .section('.', 0, 1)
                    .toStdString() +
                described().section('.', 0, 1).section(',', 2).prepend(',').toStdString());
  EXPECT_TRUE(described().contains(", falling"));
}

TEST_F(CurveChartTest, TheMouseReadsTheNearestStep) {
  show(512);
  CurvePlot& plot = chart_.plot();
  const QPoint at(static_cast<int>(plot.xAxis->coordToPixel(256)),
                  plot.axisRect()->rect().center().y());
  QTest::mouseMove(&plot, at);
  ASSERT_TRUE(wait_until([&] { return !chart_.readout().isEmpty(); }));
  const double step = std::round(plot.xAxis->pixelToCoord(at.x()));
  EXPECT_TRUE(chart_.readout().contains(
      value_text(RunFiles::loss_at(static_cast<int64_t>(step)), ValueUnit::number)))
      << chart_.readout().toStdString();
}

TEST_F(CurveChartTest, TheWheelZoomsWithCtrlOnly) {
  show(512);
  wheel({});
  EXPECT_FALSE(is_accepted_);  // the page scrolls
  EXPECT_FALSE(chart_.is_zoomed());
  wheel(Qt::ControlModifier);
  EXPECT_TRUE(is_accepted_);
  EXPECT_TRUE(chart_.is_zoomed());
  const double width = chart_.plot().xAxis->range().size();
  key(Qt::Key_Plus);
  EXPECT_LT(chart_.plot().xAxis->range().size(), width);
  key(Qt::Key_Minus);
  EXPECT_NEAR(chart_.plot().xAxis->range().size(), width, 1e-6);
  key(Qt::Key_Home);
  EXPECT_FALSE(chart_.is_zoomed());
  for (int i = 0; i < 100; ++i)
    key(Qt::Key_Plus);
  EXPECT_GE(chart_.plot().xAxis->range().size(), 3.9);
  QTest::mouseDClick(&chart_.plot(), Qt::LeftButton, {}, chart_.plot().rect().center());
  EXPECT_FALSE(chart_.is_zoomed());
}

TEST_F(CurveChartTest, ADragChoosesARange) {
  show(512);
  CurvePlot& plot = chart_.plot();
  const QRect area = plot.axisRect()->rect();
  const QPoint from(area.left() + area.width() / 4, area.center().y()),
      to(area.left() + area.width() / 2, area.center().y());
  const double first = plot.xAxis->pixelToCoord(from.x()), last = plot.xAxis->pixelToCoord(to.x());
  QTest::mousePress(&plot, Qt::LeftButton, {}, from);
  QTest::mouseMove(&plot, from + QPoint(30, 0));
  QTest::mouseMove(&plot, to);
  QTest::mouseRelease(&plot, Qt::LeftButton, {}, to);
  EXPECT_NEAR(plot.xAxis->range().lower, first, 2);
  EXPECT_NEAR(plot.xAxis->range().upper, last, 4);
}

TEST_F(CurveChartTest, ValuesThatAreNotFiniteAreSaidOnce) {
  run_.add_steps(1, 20);
  run_.add(
      "{\"step\":21,\"loss\":null,\"nonfinite\":true}\n"
      "{\"step\":22,\"loss\":null,\"nonfinite\":true}\n");
  run_.add_steps(23, 40);
  show(0);
  EXPECT_EQ(chart_.note().toStdString(), "! Not finite: 2, the first at step 21.");
}

TEST_F(CurveChartTest, ClippingAndALogAxisChangeTheAxis) {
  run_.add_steps(1, 400);
  run_.add("{\"step\":401,\"loss\":5000}\n{\"step\":402,\"loss\":0}\n");
  show(0);
  CurvePlot& plot = chart_.plot();
  EXPECT_GT(plot.yAxis->range().upper, 5000);
  chart_.set_clipped(true);
  EXPECT_LT(plot.yAxis->range().upper, 5);
  EXPECT_TRUE(chart_.note().contains("the greatest is 5000")) << chart_.note().toStdString();
  chart_.set_clipped(false);
  chart_.set_log(true);
  EXPECT_EQ(plot.yAxis->scaleType(), QCPAxis::stLogarithmic);
  EXPECT_GT(plot.yAxis->range().lower, 0);
  EXPECT_TRUE(chart_.note().contains("zero and below"));
}

TEST_F(CurveChartTest, IsExportedAsPictureDrawingAndRows) {
  show(120);
  for (const char* name : {"a.png", "a.svg", "a.csv"}) {
    QString file, trouble = "none";
    const auto connection = QObject::connect(&chart_, &CurveChart::exported, &chart_,
                                             [&](const QString& f, const QString& t) {
                                               file = f;
                                               trouble = t;
                                             });
    chart_.export_to(path_text(directory_ / name));
    ASSERT_TRUE(wait_until([&] { return !file.isEmpty(); })) << name;
    EXPECT_TRUE(trouble.isEmpty()) << trouble.toStdString();
    EXPECT_TRUE(chart_.note().contains(name));
    QObject::disconnect(connection);
  }
  const QImage image(path_text(directory_ / "a.png"));
  EXPECT_EQ(image.size(), QSize(2400, 1360));
  int n_ink = 0;
  for (int y = 0; y < image.height(); y += 3)
    for (int x = 0; x < image.width(); x += 3)
      n_ink += image.pixelColor(x, y) != QColor(Qt::white);
  EXPECT_GT(n_ink, 1000);
  QFile svg(path_text(directory_ / "a.svg")), csv(path_text(directory_ / "a.csv"));
  ASSERT_TRUE(svg.open(QIODevice::ReadOnly) && csv.open(QIODevice::ReadOnly));
  const QByteArray drawing = svg.readAll();
  EXPECT_TRUE(drawing.contains("<svg"));
  EXPECT_TRUE(drawing.contains("Loss"));
  EXPECT_TRUE(drawing.contains("path") || drawing.contains("polyline"));
  EXPECT_EQ(csv.readAll().count('\n'), 1 + 120 + 1);
}

TEST_F(CurveChartTest, AnExportThatFailsIsSaidInTheChart) {
  show(20);
  const std::filesystem::path place = run_.path() / "run.json";  // a file: nothing lies below it
  for (const char* name : {"a.png", "a.svg", "a.csv"}) {
    QString said;
    const auto connection =
        QObject::connect(&chart_, &CurveChart::exported, &chart_,
                         [&](const QString&, const QString& trouble) { said = trouble; });
    chart_.export_to(path_text(place / name));
    ASSERT_TRUE(wait_until([&] { return !said.isEmpty(); })) << name;
    EXPECT_TRUE(said.contains(name)) << said.toStdString();
    EXPECT_TRUE(chart_.note().contains(said));
    QObject::disconnect(connection);
  }
}

TEST_F(CurveChartTest, TheTableHasTheSameNumbers) {
  show(120);
  chart_.set_table_shown(true);
  auto* const table = chart_.findChild<QTableView*>("table");
  ASSERT_TRUE(table);
  EXPECT_TRUE(table->isVisible());
  EXPECT_EQ(table->model()->rowCount(), 121);
  EXPECT_EQ(table->model()->index(0, 1).data().toString(),
            value_text(RunFiles::loss_at(1), ValueUnit::number));
  EXPECT_FALSE(table->accessibleName().isEmpty());
  chart_.set_curves({});  // the reader may go now
  EXPECT_EQ(table->model()->rowCount(), 0);
  reader_.reset();
  chart_.redraw();
}

TEST_F(CurveChartTest, CurvesAreToldApartInLightAndDark) {
  for (const QPalette& palette : {light_palette(), dark_palette()}) {
    for (int style = 0; style < kCurveStyles; ++style) {
      EXPECT_GE(contrast(curve_colour(style, palette), palette.color(QPalette::Base)), 4.5)
          << style;
      for (int other = 0; other < style; ++other) {
        EXPECT_NE(curve_pen(style, palette, 2).dashPattern(),
                  curve_pen(other, palette, 2).dashPattern());
        EXPECT_NE(curve_marker(style), curve_marker(other));
      }
    }
    EXPECT_GE(contrast(warning_colour(palette), palette.color(QPalette::Base)), 4.5);
    EXPECT_GE(contrast(warning_colour(palette), palette.color(QPalette::Window)), 4.5);
  }
}

/** A million rows, short ones, in some MB. */
class MillionRows : public CurveChartTest {
 protected:
  static constexpr int64_t kRows = 1'000'000, kSpike = 712'345;
  void SetUp() override {
    for (int64_t part = 0; part < 10; ++part) {
      fmt::memory_buffer text;
      for (int64_t i = 1; i <= kRows / 10; ++i) {
        const int64_t step = part * (kRows / 10) + i;
        fmt::format_to(std::back_inserter(text), "{{\"step\":{},\"loss\":{:.5f}}}\n", step,
                       step == kSpike ? 999.0 : RunFiles::loss_at(step));
      }
      run_.add(fmt::to_string(text));
    }
    show(0);
  }
};

TEST_F(MillionRows, AreDrawnWithTheirSpikeAndReadExactlyWhereZoomedIn) {
  ASSERT_EQ(reader_->n_rows(), kRows);
  EXPECT_LE(chart_.n_points_drawn(), 3u * 4096);
  EXPECT_GT(chart_.n_points_drawn(), 4096u);
  EXPECT_GT(chart_.plot().yAxis->range().upper, 999);
  // The least of several: others may disturb one.
  const auto least_ms = [](const std::function<void()>& work) {
    double least = 1e9;
    for (int i = 0; i < 5; ++i) {
      const double before = cpu_ms();
      work();
      least = std::min(least, cpu_ms() - before);
    }
    return least;
  };
  tell_time("a million rows are put into a chart", least_ms([&] { chart_.redraw(); }), 16);
  tell_time("they are drawn", least_ms([&] { chart_.plot().repaint(); }), 16);
  tell_time("half of them are", least_ms([&] { chart_.zoom_to(200'000, 700'000); }), 16);
  EXPECT_LE(chart_.n_points_drawn(), 3u * 4096);
  tell_time("a value is read out", least_ms([&] { key(Qt::Key_Right); }), 16);

  chart_.zoom_to(kSpike - 400, kSpike + 400);
  EXPECT_LT(chart_.n_points_drawn(), 100u);  // points of hundreds of values
  const Turns turns = turns_until([&] { return chart_.n_points_drawn() > 1500; });
  EXPECT_GT(chart_.n_points_drawn(), 1500u);
  tell_time("the longest turn while rows are read", turns.longest_ms, 40);
  key(Qt::Key_Right);
  const QString first = chart_.readout();
  EXPECT_TRUE(first.contains(value_text(RunFiles::loss_at(kSpike - 400), ValueUnit::number)) ||
              first.contains(value_text(RunFiles::loss_at(kSpike - 401), ValueUnit::number)))
      << first.toStdString();
  // Curves that are given anew, as where a run gets a new one, are read exactly again.
  chart_.set_curves(std::vector<ChartCurve>(chart_.curves()));
  chart_.redraw();
  EXPECT_LT(chart_.n_points_drawn(), 100u);
  ASSERT_TRUE(wait_until([&] { return chart_.n_points_drawn() > 1000; }));
  // Not zoomed in, the value under the mouse is read exactly a moment later.
  chart_.reset_zoom();
  key(Qt::Key_Escape);
  key(Qt::Key_Right);
  EXPECT_TRUE(chart_.readout().contains(" to "));
  ASSERT_TRUE(wait_until([&] { return !chart_.readout().contains(" to "); }));

  // The table begins at once, and its end too.
  double before = cpu_ms();
  chart_.set_table_shown(true);
  auto* const table = chart_.findChild<QTableView*>("table");
  table->scrollToBottom();
  table->viewport()->repaint();
  tell_time("the table of a million rows begins", cpu_ms() - before, 300);
  EXPECT_EQ(table->model()->index(static_cast<int>(kSpike) - 1, 1).data().toString().toStdString(),
            "999");
  before = cpu_ms();
  run_.add("{\"step\":1000001,\"loss\":1}\n");
  read_all(*reader_);
  chart_.redraw();
  table->viewport()->repaint();
  tell_time("a row more is drawn", cpu_ms() - before, 40);
  EXPECT_EQ(table->model()->rowCount(), kRows + 1);
}

TEST_F(CurveChartTest, MemoryStaysWhileARunGrowsForHours) {
  show(100);
  int64_t step = 100;
  const auto grow = [&](int n_times) {
    for (int i = 0; i < n_times; ++i) {
      std::string text;
      for (int n = 0; n < 400; ++n) {
        ++step;
        text += fmt::format("{{\"step\":{},\"loss\":{:.4f},\"grad_norm\":1}}\n", step,
                            RunFiles::loss_at(step));
      }
      run_.add(text);
      read_all(*reader_);
      chart_.redraw();
      if (i % 16 == 0) QApplication::processEvents();
    }
  };
  // 9 hours of 3 steps a second in all, a look every two minutes.
  grow(60);
  malloc_trim(0);
  const int64_t before = process_status_bytes("VmRSS");
  grow(200);
  malloc_trim(0);
  const int64_t after = process_status_bytes("VmRSS");
  EXPECT_LT(after - before, int64_t{6} << 20) << before << " to " << after;
  EXPECT_LE(chart_.n_points_drawn(), 3u * 4096);
}

TEST(LogPane, FollowsTheEndUnlessOneScrolledUp) {
  LogPane pane;
  pane.resize(500, 240);
  pane.show();
  QStringList lines{
      "2026-11-21T10:15:00Z ferry train --learning-rate=3e-5 '--dataset=my data.csv'"};
  for (int i = 0; i < 200; ++i)
    lines << QStringLiteral("line %1").arg(i);
  pane.show_log(lines);
  QApplication::processEvents();
  EXPECT_EQ(pane.command().toStdString(),
            "ferry train --learning-rate=3e-5 '--dataset=my data.csv'");
  EXPECT_TRUE(pane.text().startsWith("2026-11-21T10:15:00Z ferry train"));
  EXPECT_TRUE(pane.follows());
  pane.add({"one more", "and one"});
  EXPECT_TRUE(pane.follows());
  ASSERT_TRUE(pane.find("line 7"));
  EXPECT_FALSE(pane.find("no such words"));
  QApplication::processEvents();
  EXPECT_FALSE(pane.follows());
  pane.add({"later"});
  EXPECT_FALSE(pane.follows());
  auto* const end = pane.findChild<QToolButton*>("log_end");
  EXPECT_TRUE(end->isEnabled());
  end->click();
  EXPECT_TRUE(pane.follows());
  EXPECT_FALSE(end->isEnabled());
}

TEST(LogPane, FollowsOnWhenALineIsLongOrTheWindowGetsAnotherSize) {
  LogPane pane;
  pane.resize(500, 240);
  pane.show();
  QStringList lines;
  for (int i = 0; i < 60; ++i)
    lines << QStringLiteral("line %1").arg(i);
  pane.show_log(lines);
  QApplication::processEvents();
  const auto* const bar = pane.findChild<QPlainTextEdit*>("log")->verticalScrollBar();
  const auto* const end = pane.findChild<QToolButton*>("log_end");
  const auto shows_end = [&] {
    QApplication::processEvents();
    return pane.follows() && bar->value() == bar->maximum() && !end->isEnabled();
  };
  ASSERT_TRUE(shows_end());
  pane.add({QString(400, 'x')});  // a bar below takes room
  EXPECT_TRUE(shows_end());
  for (const QSize size : {QSize(500, 160), QSize(340, 420), QSize(900, 130)}) {
    pane.resize(size);
    EXPECT_TRUE(shows_end()) << size.width();
    pane.add({"newer"});
    EXPECT_TRUE(shows_end()) << size.width();
  }
  // Scrolled up it stays where it is, whatever comes, and is not taken back by a new size.
  QWheelEvent up(QPointF(9, 9), QPointF(9, 9), {}, {0, 240}, Qt::NoButton, Qt::NoModifier,
                 Qt::NoScrollPhase, false);
  QApplication::sendEvent(pane.findChild<QPlainTextEdit*>("log")->viewport(), &up);
  EXPECT_FALSE(pane.follows());
  pane.resize(700, 130);
  pane.add({"later"});
  QApplication::processEvents();
  EXPECT_FALSE(pane.follows());
  EXPECT_TRUE(end->isEnabled());
}

}  // namespace
}  // namespace ferry::gui
