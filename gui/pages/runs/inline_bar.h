#pragma once
// One question or message of a page, in a bar above what it concerns instead of a box in the way.

#include <QElapsedTimer>
#include <QFrame>
#include <functional>

class QLabel;
class QPushButton;
class QSpinBox;

namespace ferry::gui {

class InlineBar : public QFrame {
  Q_OBJECT

 public:
  explicit InlineBar(QWidget* parent = nullptr);

  void tell(const QString& text);
  /** With a button that does something about it. */
  void tell(const QString& text, const QString& action, std::function<void()> act);
  /** Esc and "Cancel" take it away. */
  void ask(const QString& text, const QString& yes, std::function<void()> act);
  void ask_number(const QString& text, int value, const QString& yes, std::function<void(int)> act);
  QString text() const;

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void show_with(const QString& text, const QString& yes, const QString& no, bool has_number);

  QLabel* text_;
  QSpinBox* number_;
  QPushButton *yes_, *no_;
  QElapsedTimer answered_;  ///< since the last yes
  std::function<void()> act_;
};

}  // namespace ferry::gui
