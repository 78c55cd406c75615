#pragma once
// Fusion, with edges that can be seen: on dark grounds it draws fields and boxes without one.

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
  using QProxyStyle::polish;
  void polish(QWidget* widget) override;
};

}  // namespace ferry::gui
