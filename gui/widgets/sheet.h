#pragma once
// A sheet in the middle of a page, on which the page's words and fields lie.

#include <QWidget>

namespace ferry::gui {

/** Holds the content of a page that scrolls. The sheet is as high as the content needs, no wider
 * than lines and fields are easily read, and in the middle of a wide window. In a narrow one it
 * fills the width. For a QScrollArea whose widget is resizable. */
class Sheet : public QWidget {
  Q_OBJECT

 public:
  /** `content` has a layout. */
  explicit Sheet(QWidget* content, QWidget* parent = nullptr);

  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  int margin() const;
  int content_width(int width) const;
  int content_height(int content_width) const;
  void place();

  QWidget* content_;
};

}  // namespace ferry::gui
