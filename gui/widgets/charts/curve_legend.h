#pragma once
// The names and values of a chart's curves, each beside a piece of its line, in as many lines as
// the width takes.

#include <QWidget>
#include <vector>

namespace ferry::gui {

struct LegendEntry {
  int style;
  QString text;

  bool operator==(const LegendEntry&) const = default;
};

/** Draws them from the top left corner of `where`; gives the height. Null: it only measures. */
double draw_legend(QPainter* painter,
                   const std::vector<LegendEntry>& entries,
                   const QRectF& where,
                   const QFont& font,
                   const QPalette& palette);

class CurveLegend : public QWidget {
  Q_OBJECT

 public:
  explicit CurveLegend(QWidget* parent = nullptr);
  void show_entries(std::vector<LegendEntry> entries);
  const std::vector<LegendEntry>& entries() const { return entries_; }

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<LegendEntry> entries_;
  int lines_height_ = 0;
};

}  // namespace ferry::gui
