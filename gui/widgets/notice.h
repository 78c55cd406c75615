#pragma once
// A line or two at the top of a page that say what matters now, with a sign beside the colour.

#include <QFrame>

class QLabel;

namespace ferry::gui {

class Notice : public QFrame {
  Q_OBJECT

 public:
  enum class Kind { info, good, warning };

  explicit Notice(QWidget* parent = nullptr);
  /** Empty text hides it. */
  void say(Kind kind, const QString& text);
  QString text() const;

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void restyle();

  Kind kind_ = Kind::info;
  QLabel* sign_ = nullptr;
  QLabel* text_ = nullptr;
};

}  // namespace ferry::gui
