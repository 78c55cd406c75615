#pragma once
// Stacked horizontal bars with limits and a legend: colour and pattern tell segments apart, the
// mouse and the arrow keys read them out.

#include <QWidget>
#include <vector>

#include "gui/models/plan/bars.h"

namespace ferry::gui {

class StackedBars : public QWidget {
  Q_OBJECT

 public:
  explicit StackedBars(QWidget* parent = nullptr);

  /** `name`: what the bars show, for those who do not see them. */
  void set_bars(const QString& name, std::vector<Bar> bars);
  const std::vector<Bar>& bars() const { return bars_; }
  /** With a line below the bars that names the kinds. */
  void set_legend(bool has_legend);
  /** The segment under the mouse or the cursor, in words; empty: none. */
  QString read_out() const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 signals:
  void read_out_changed(const QString& text);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Place {
    int bar = -1, segment = -1;
    bool operator==(const Place&) const = default;
  };
  struct LegendItem {
    int kind;
    QString name;
    QRect rect;
  };
  int bar_height() const;
  int row_height() const;
  QRect rect_of(int bar) const;  ///< of the bar itself
  QRectF rect_of(Place place) const;
  Place place_at(QPoint point) const;
  void select(Place place);
  std::vector<LegendItem> legend(int width) const;
  void paint_segment(QPainter& painter, const QRectF& rect, const BarSegment& segment) const;
  void paint_limit(QPainter& painter, const QRect& rect, const Bar& bar) const;

  QString name_;
  std::vector<Bar> bars_;
  bool has_legend_ = true;
  Place selected_;
};

}  // namespace ferry::gui
