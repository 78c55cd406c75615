#pragma once
// The log of a run: the exact command line above it, its end in view unless the user scrolled up,
// find and copy.

#include <QStringList>
#include <QWidget>

class QAction;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QToolButton;

namespace ferry::gui {

class LogPane : public QWidget {
  Q_OBJECT

 public:
  explicit LogPane(QWidget* parent = nullptr);

  /** Begins anew with these lines; the first is the command line with its time. */
  void show_log(const QStringList& lines);
  void add(const QStringList& lines);

  QString command() const;
  QString text() const;
  /** The end is in view, and stays there as lines come. */
  bool follows() const { return follows_; }
  /** Goes to the next line with the text, or back; false where there is none. */
  bool find(const QString& text, bool is_backward = false);
  /** Opens the search. */
  QAction* find_action() const { return find_action_; }

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void note_scroll();
  void go_to_end();
  void show_search();
  void search(bool is_backward);

  bool follows_ = true, is_adding_ = false;
  int value_ = 0;  ///< of the scroll bar, when it was looked at last
  QLineEdit* command_ = nullptr;
  QPlainTextEdit* text_ = nullptr;
  QWidget* search_ = nullptr;
  QLineEdit* wanted_ = nullptr;
  QLabel* outcome_ = nullptr;
  QToolButton* end_button_ = nullptr;
  QAction* find_action_ = nullptr;
};

}  // namespace ferry::gui
