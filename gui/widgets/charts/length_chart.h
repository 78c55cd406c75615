#pragma once
// A histogram of texts by their number of tokens.

#include <QWidget>

#include "src/service/preview.h"

namespace ferry::gui {

class LengthChart : public QWidget {
  Q_OBJECT

 public:
  explicit LengthChart(QWidget* parent = nullptr);

  void set_numbers(const service::PreviewNumbers& numbers, int64_t max_length);
  /** The bar under the mouse or the cursor, in words; empty: none. */
  QString read_out() const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 signals:
  void read_out_changed(const QString& text);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  QRect plot() const;
  void select(int bin);

  service::LengthBins bins_;
  int64_t max_length_ = 0, n_most_ = 0, n_all_ = 0;
  int selected_ = -1;
};

}  // namespace ferry::gui
