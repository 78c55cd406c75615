#pragma once
// Fusion, with edges that can be seen: on dark grounds it draws fields and boxes without one. Cells
// of tables and buttons with a menu have more room.
// Where words run from right to left, foreign ones (paths, names, amounts) keep their own order.

#include <QProxyStyle>

namespace ferry::gui {

class AppStyle : public QProxyStyle {
 public:
  AppStyle();

  /** The edge of what takes input: 3:1 against both the ground and the field, as WCAG 2.1 asks of
   * parts of controls. */
  static QColor edge(const QPalette& palette);

  void drawPrimitive(PrimitiveElement element,
                     const QStyleOption* option,
                     QPainter* painter,
                     const QWidget* widget) const override;
  void drawComplexControl(ComplexControl control,
                          const QStyleOptionComplex* option,
                          QPainter* painter,
                          const QWidget* widget) const override;
  void drawControl(ControlElement element,
                   const QStyleOption* option,
                   QPainter* painter,
                   const QWidget* widget) const override;
  /** By words_flags(). */
  void drawItemText(QPainter* painter,
                    const QRect& rect,
                    int flags,
                    const QPalette& palette,
                    bool enabled,
                    const QString& text,
                    QPalette::ColorRole role) const override;
  int pixelMetric(PixelMetric metric,
                  const QStyleOption* option,
                  const QWidget* widget) const override;
  QSize sizeFromContents(ContentsType type,
                         const QStyleOption* option,
                         const QSize& size,
                         const QWidget* widget) const override;
  using QProxyStyle::polish;
  void polish(QWidget* widget) override;
};

}  // namespace ferry::gui
