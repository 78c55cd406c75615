#pragma once
// One of a few large choices: a title, two lines on what it is, a mark for the chosen one.

#include <QAbstractButton>

namespace ferry::gui {

class ChoiceCard : public QAbstractButton {
  Q_OBJECT

 public:
  ChoiceCard(const QString& title, const QString& text, QWidget* parent = nullptr);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void enterEvent(QEnterEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  int margin() const;
  int mark_width() const;
  QFont title_font() const;

  QString text_;
};

}  // namespace ferry::gui
