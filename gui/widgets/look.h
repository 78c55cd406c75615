#pragma once
// The look of pages' texts beside plain ones: headings, quiet words, errors. Colours follow the
// palette, also where it changes.

#include <QLabel>

class QComboBox;
class QPainter;

namespace ferry::gui {

/** True where what is written or drawn on is dark. */
bool has_dark_base(const QPalette& palette);

/** Red enough to be read at 4.5:1 on the palette's window and base. */
QColor error_colour(const QPalette& palette);

/** A ground behind words that are meant, on which text has 4.5:1; `n` tells neighbours apart. */
QColor mark_colour(const QPalette& palette, int n = 0);

/** Flags of QPainter::drawText: words stand at the side that `flags` name in this direction. Where
 * the app's words run from right to left, a text without such a letter (a path, a name, an amount)
 * runs from left to right, and any other from right to left. */
int words_flags(Qt::LayoutDirection direction, int flags, const QString& text);
/** Draws words as a widget's own painter directs. */
void draw_words(QPainter& painter, const QRect& place, int flags, const QString& text);

/** Shows code, a command or a log: letters of one width, from left to right in every language. */
void show_code(QWidget& widget);

/** The label of all words in pages. Words never set the least width of a window: a long path, an
 * error or a name gives way. One line that is too long for its room ends in dots, with all of its
 * words in the tool tip; several lines are wrapped. They begin where the page's lines begin,
 * whichever way their letters run. */
class TextLabel : public QLabel {
  Q_OBJECT

 public:
  explicit TextLabel(const QString& text = {}, QWidget* parent = nullptr);
  QSize minimumSizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  /** One line of plain words that is wider than its room. */
  bool is_too_long() const;
};
/** The same of a box whose items are foreign words. */
void give_way(QComboBox* combo);

QFont bold_font(QFont font);
/** Bold, and so much larger. */
inline constexpr double kTitle = 1.3, kHeading = 1.15;
QFont heading_font(QFont font, double larger = kHeading);
/** The name of a page, or of a part of one. */
QLabel* heading_label(const QString& text, double larger = kHeading);
/** A label whose text is of the palette's placeholder colour. */
QLabel* quiet_label(const QString& text = {});
/** Likewise: explains something, in several lines where need be. */
QLabel* note_label(const QString& text = {});

/** An error beside what it concerns: hidden while it is empty. The sign before it says "error"
 * without colour. */
class ErrorLabel : public TextLabel {
  Q_OBJECT

 public:
  explicit ErrorLabel(QWidget* parent = nullptr);
  void set_error(const QString& text);
  const QString& error() const { return error_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QString error_;
};

}  // namespace ferry::gui
