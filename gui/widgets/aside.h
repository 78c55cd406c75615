#pragma once
// A part of a page that explains the rest: beside it in a wide window, below it in a narrow one.

#include <QWidget>

class QBoxLayout;
class QFrame;
class QTextBrowser;

namespace ferry::gui {

class Aside : public QWidget {
  Q_OBJECT

 public:
  /** Both belong to it. Below `main`, `words` have a few lines; beside it they are a panel as high
   * as the page. */
  Aside(QWidget* main, QTextBrowser* words, QWidget* parent = nullptr);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  QBoxLayout* layout_;
  QTextBrowser* words_;
};

}  // namespace ferry::gui
