#pragma once
// Small parts that many pages are made of: headings, notes, messages beside what they concern.

#include <QFrame>
#include <QLabel>

namespace ferry::gui {

/** Bold and larger: the name of a page, or with a smaller `step` of a part of it. */
QLabel* make_heading(const QString& text, double step = 1.3);
/** Explains something, in several lines where need be. */
QLabel* make_note(const QString& text = {});

/** A ground behind words that are meant, on which text has 4.5:1; `n` tells neighbours apart. */
QColor mark_colour(const QPalette& palette, int n = 0);

/** A message in the page: it begins with a word for its kind, can be selected, and takes no room
 * while there is none. */
class Message : public QFrame {
  Q_OBJECT

 public:
  explicit Message(QWidget* parent = nullptr);

  void show_error(const QString& text);
  void show_warning(const QString& text);
  void show_done(const QString& text);
  void clear();
  /** Empty: nothing is shown. */
  const QString& text() const { return text_; }
  bool is_error() const { return is_error_; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void show_text(const QString& kind, const QString& text, bool is_error);

  QLabel* label_;
  QString text_;
  bool is_error_ = false;
};

}  // namespace ferry::gui
