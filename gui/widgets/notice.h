#pragma once
// A message in the page, beside what it concerns or at its top: a sign and a bar of its kind's
// colour, words that can be selected. It takes no room while there is none, but where room is kept.

#include <QFrame>

#include "gui/widgets/look.h"

class QHBoxLayout;
class QLabel;

namespace ferry::gui {

class Notice : public QFrame {
  Q_OBJECT

 public:
  enum class Kind { info, good, warning, error };

  explicit Notice(QWidget* parent = nullptr);
  /** Empty text hides it. */
  void say(Kind kind, const QString& text);
  void show_done(const QString& text) { say(Kind::good, text); }
  void show_warning(const QString& text) { say(Kind::warning, text); }
  void show_error(const QString& text) { say(Kind::error, text); }
  void clear() { say(kind_, {}); }
  /** Takes the room of so many lines also while nothing is shown: what is below it stays where it
   * is. */
  void keep_room(int n_lines = 2);
  /** Empty: nothing is shown. */
  QString text() const;
  bool is_error() const { return kind_ == Kind::error && !text().isEmpty(); }

 protected:
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  QColor colour() const;
  void restyle();

  Kind kind_ = Kind::info;
  QLabel* sign_ = nullptr;
  QLabel* text_ = nullptr;
  int n_lines_ = 0;  ///< whose room is kept
};

/** A page's title and what the page is for, with the notice beside them: nothing moves as it comes
 * and goes. */
QHBoxLayout* title_with(const QString& title, const QString& purpose, Notice& notice);
/** The same of a part of a page. */
QHBoxLayout* heading_with(const QString& title, Notice& notice);

}  // namespace ferry::gui
