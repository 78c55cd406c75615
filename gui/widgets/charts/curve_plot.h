#pragma once
// The drawing surface of a chart: QCustomPlot with our looks, mouse, keys and accessibility. It
// draws lines that it is given and tells what the user wants; CurveChart decides.

#include <QVector>
#include <functional>
#include <optional>
#include <vector>

#include <qcustomplot.h>

#include "gui/models/curves/curve.h"

namespace ferry::gui {

struct PlotRange {
  double first, last;

  bool operator==(const PlotRange&) const = default;
};

/** A curve as it is drawn. */
struct PlotCurve {
  int style = 0;
  bool is_faint = false;  ///< the values behind a smoothed line
  bool has_markers = false;
  std::vector<CurvePoint> line;
};

struct PlotPicture {
  std::vector<PlotCurve> curves;
  PlotRange x{0, 1}, y{0, 1};
  bool is_log = false;
  ValueUnit unit = ValueUnit::number;
  std::vector<double> warnings;  ///< steps with a marker at the lower edge
  QString empty_text;            ///< instead of curves
};

class CurvePlot : public QCustomPlot {
  Q_OBJECT

 public:
  explicit CurvePlot(QWidget* parent = nullptr);
  ~CurvePlot() override;

  void show_picture(const PlotPicture& picture);
  size_t n_points_drawn() const { return n_points_; }

  struct Mark {
    double x, y;
    int style;
  };
  /** A line at this step with rings on the curves; nullopt: none. */
  void show_readout(std::optional<double> step, const std::vector<Mark>& marks);

  /** Told by a screen reader: the chart in words, and the values that are read out. */
  void set_summary(std::function<QString()> summary) { summary_ = std::move(summary); }
  void set_readout_text(const QString& text);
  QString summary() const { return summary_ ? summary_() : QString(); }
  const QString& readout_text() const { return readout_text_; }

 signals:
  void zoom_wanted(double centre, double factor);  ///< below 1: nearer
  void range_wanted(double first, double last);
  void reset_wanted();
  /** The mouse is at this step. */
  void pointed(double step);
  void left();
  /** Keys: so many points on, or back. */
  void readout_step_wanted(int n_points);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  void restyle();
  void set_scale(bool is_log, ValueUnit unit);
  QCPGraph& graph_at(int number);

  PlotPicture picture_;
  size_t n_points_ = 0;
  std::function<QString()> summary_;
  QString readout_text_;
  QCPItemStraightLine* cursor_ = nullptr;
  QCPItemText* empty_ = nullptr;
  std::vector<QCPItemText*> warnings_;
  std::vector<QCPItemEllipse*> rings_;
  std::vector<QCPGraph*> graphs_;
  std::optional<QPoint> pressed_;
  QRect band_;  ///< that a drag chooses
  std::optional<double> readout_;
};

}  // namespace ferry::gui
