#pragma once
// Looks of curves: each differs from the others by colour, dashes and marker, so that none is told
// by colour alone. The colours are Okabe and Ito's, made dark or light enough for their ground.

#include <QColor>
#include <QPainter>
#include <QPalette>
#include <QPen>
#include <QWidget>

namespace ferry::gui {

inline constexpr int kCurveStyles = 6;

enum class Marker : uint8_t { circle, square, triangle, diamond, cross, plus };

/** For text and lines: 4.5:1 and more on the palette's Base. */
QColor curve_colour(int style, const QPalette& palette);
/** For warnings, likewise. */
QColor warning_colour(const QPalette& palette);
QPen curve_pen(int style, const QPalette& palette, double width);
Marker curve_marker(int style);
void draw_marker(QPainter& painter, Marker marker, QPointF centre, double size);

/** A piece of the curve for a legend. */
void draw_sample(QPainter& painter, const QRectF& where, int style, const QPalette& palette);

/** It as a widget, beside a curve's or a run's name. */
class CurveSample : public QWidget {
  Q_OBJECT

 public:
  explicit CurveSample(int style, QWidget* parent = nullptr);
  void set_style(int style);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  int style_;
};

}  // namespace ferry::gui
