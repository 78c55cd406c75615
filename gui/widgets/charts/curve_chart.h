#pragma once
// A chart of one run's or several runs' curves, for all pages: values and smoothed lines, read-out,
// zoom, log axis, clipping, a table of the same numbers, export. It never loses a least or greatest
// value, and a redraw costs the same for a hundred rows and for a million.
//
//   chart.set_curves({{.name = tr("loss"), .key = "loss", .reader = &reader, .run = run}});
//   connect(&follower, &RunFollower::metrics_changed, &chart, &CurveChart::update_data);

#include <QElapsedTimer>
#include <QFrame>
#include <QTimer>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/curves/csv_export.h"
#include "gui/models/curves/curve.h"
#include "gui/models/curves/metrics_table.h"
#include "gui/widgets/charts/curve_legend.h"

class QAction;
class QComboBox;
class QLabel;
class QStackedLayout;
class QTableView;
class QToolButton;

namespace ferry::gui {

class CurvePlot;
struct PlotCurve;
struct PlotPicture;
struct PlotRange;

struct ChartCurve {
  QString name;
  std::string key;
  /** Outlives the chart, or is taken away by set_curves(). */
  const service::MetricsReader* reader = nullptr;
  std::filesystem::path run = {};
  bool is_smoothed = true;
  bool has_markers = false;  ///< of few values: evaluations
  int style = -1;            ///< -1: by its place in the chart
};

class CurveChart : public QFrame {
  Q_OBJECT

 public:
  CurveChart(const QString& title, ValueUnit unit, QWidget* parent = nullptr);
  ~CurveChart() override;

  const QString& title() const { return title_; }
  void set_title(const QString& title);
  void set_unit(ValueUnit unit);
  /** Also where a reader began anew. */
  void set_curves(std::vector<ChartCurve> curves);
  const std::vector<ChartCurve>& curves() const { return curves_; }
  void set_legend_shown(bool shown);

  /** The readers have more: the chart is drawn again soon, at most once a second, while it is seen.
   */
  void update_data();
  void redraw();

  void set_smoothing(double weight);
  void set_log(bool is_log);
  void set_clipped(bool is_clipped);
  bool is_log() const { return is_log_; }
  /** Steps; nothing: all. */
  void zoom_to(double first, double last);
  void zoom(double centre, double factor);
  void reset_zoom();
  bool is_zoomed() const { return zoom_.has_value(); }
  void set_table_shown(bool shown);
  bool is_table_shown() const;

  /** Writes .png, .svg or .csv; exported() follows, and what goes wrong is said in the chart. */
  void export_to(const QString& file);

  /** "Loss: 512 points, last 1.83, falling", a sentence a curve. */
  QString summary() const;
  QString readout() const { return readout_text_; }
  /** The lines below the curves: values that are not finite, trouble. */
  QString note() const;
  size_t n_points_drawn() const;
  CurvePlot& plot() { return *plot_; }
  MetricsTable& table() { return table_; }
  const CurveLegend& legend() const { return *legend_; }

 signals:
  void exported(const QString& file, const QString& trouble);

 protected:
  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  using Points = std::span<const service::SeriesPoint>;
  void make_menu();
  int style_of(size_t curve) const;
  const service::Series* series_of(const ChartCurve& curve) const;
  /** Exact ones where they are known, else those of the reader. */
  Points points_of(const ChartCurve& curve) const;
  std::optional<PlotRange> full_range() const;
  void draw_curve(size_t number, PlotPicture& picture);
  void choose_values(PlotPicture& picture);
  void show_notes();
  /** The value that the legend tells while nobody points at a step. */
  double now_of(const ChartCurve& curve) const;
  void show_legend();
  /** The curve whose points the read-out goes along. */
  const ChartCurve* leading_curve() const;
  void point_at(double step);
  void move_readout(int n_points);
  void show_readout();
  void read_exact_values();
  void leave();
  void want_exact();
  void read_exact();
  void fill_table();
  void paint_all(QPaintDevice& device, QSize size);
  void ask_for_file(const QString& kind);
  void say(const QString& trouble);

  QString title_;
  ValueUnit unit_;
  std::vector<ChartCurve> curves_;
  double smoothing_ = 0.9;
  bool is_log_ = false, is_clipped_ = false, is_dirty_ = true;
  std::unique_ptr<PlotRange> shown_;
  std::optional<std::pair<double, double>> zoom_;
  std::map<const service::MetricsReader*, std::unique_ptr<ExactRange>> exact_;

  std::optional<double> readout_;
  std::map<size_t, double> exact_values_;  ///< of the read-out, by curve
  QString readout_text_, trouble_, done_, clip_note_;

  QLabel* heading_ = nullptr;
  QLabel* where_ = nullptr;
  QLabel *note_ = nullptr, *quiet_ = nullptr;
  CurveLegend* legend_ = nullptr;
  CurvePlot* plot_ = nullptr;
  QToolButton* menu_button_ = nullptr;
  QStackedLayout* stack_ = nullptr;
  QWidget* table_page_ = nullptr;
  QTableView* table_view_ = nullptr;
  QComboBox* table_run_ = nullptr;
  QAction *log_action_ = nullptr, *clip_action_ = nullptr, *table_action_ = nullptr;
  MetricsTable table_;
  CsvExport csv_;
  QTimer draw_timer_, exact_timer_, rest_timer_;
  QElapsedTimer drawn_;
};

}  // namespace ferry::gui
