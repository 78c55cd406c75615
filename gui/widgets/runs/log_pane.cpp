#include "gui/widgets/runs/log_pane.h"
#include "gui/widgets/look.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QToolButton>
#include <QVBoxLayout>

namespace ferry::gui {

namespace {

constexpr int kLines = 5000;

QToolButton* button(const QString& text, const char* name) {
  auto* const made = new QToolButton;
  made->setText(text);
  made->setObjectName(name);
  return made;
}

}  // namespace

LogPane::LogPane(QWidget* parent) : QWidget(parent) {
  auto* const command_label = new TextLabel(tr("C&ommand"));
  command_ = new QLineEdit;
  command_->setObjectName("command");
  command_->setReadOnly(true);
  show_code(*command_);
  command_->setAccessibleName(tr("Command line of the run"));
  command_label->setBuddy(command_);
  auto* const copy = button(tr("Copy"), "copy_command");
  copy->setAccessibleName(tr("Copy the command line"));
  copy->setToolTip(tr("Copies the command line"));
  auto* const find_button = button(tr("Find"), "find_in_log");
  end_button_ = button(tr("To the end"), "log_end");
  end_button_->setToolTip(tr("Shows the newest lines and follows them"));
  end_button_->setEnabled(false);

  text_ = new QPlainTextEdit;
  text_->setObjectName("log");
  text_->setAccessibleName(tr("Log of the run"));
  text_->setReadOnly(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  show_code(*text_);
  text_->setLineWrapMode(QPlainTextEdit::NoWrap);
  text_->setMaximumBlockCount(kLines);
  text_->setMinimumHeight(3 * fontMetrics().height());

  search_ = new QWidget;
  search_->setVisible(false);
  wanted_ = new QLineEdit;
  wanted_->setObjectName("find_text");
  wanted_->setPlaceholderText(tr("Find in the log"));
  wanted_->setAccessibleName(tr("Text to find in the log"));
  wanted_->setClearButtonEnabled(true);
  auto* const next = button(tr("Next"), "find_next");
  auto* const back = button(tr("Previous"), "find_previous");
  outcome_ = new TextLabel;
  auto* const row = new QHBoxLayout(search_);
  row->setContentsMargins({});
  row->addWidget(wanted_, 1);
  row->addWidget(next);
  row->addWidget(back);
  row->addWidget(outcome_);

  auto* const head = new QHBoxLayout;
  head->addWidget(command_label);
  head->addWidget(command_, 1);
  head->addWidget(copy);
  head->addWidget(find_button);
  head->addWidget(end_button_);
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins({});
  column->setSpacing(4);
  column->addLayout(head);
  column->addWidget(search_);
  column->addWidget(text_, 1);

  find_action_ = new QAction(tr("&Find in the log"), this);
  find_action_->setObjectName("action_find_in_log");
  find_action_->setShortcut(QKeySequence::Find);
  addAction(find_action_);
  connect(find_action_, &QAction::triggered, this, &LogPane::show_search);
  connect(find_button, &QToolButton::clicked, this, &LogPane::show_search);
  connect(copy, &QToolButton::clicked, this,
          [this] { QGuiApplication::clipboard()->setText(command()); });
  connect(end_button_, &QToolButton::clicked, this, &LogPane::go_to_end);
  connect(wanted_, &QLineEdit::returnPressed, this, [this] { search(false); });
  connect(next, &QToolButton::clicked, this, [this] { search(false); });
  connect(back, &QToolButton::clicked, this, [this] { search(true); });
  QScrollBar* const bar = text_->verticalScrollBar();
  connect(bar, &QScrollBar::valueChanged, this, &LogPane::note_scroll);
  // Keys and the search move the view without that signal.
  connect(
      text_, &QPlainTextEdit::updateRequest, this,
      [this, bar] {
        if (bar->value() != value_) note_scroll();
      },
      Qt::QueuedConnection);
  // The view became larger or smaller, or a bar below it came: the end stays in view.
  connect(
      bar, &QScrollBar::rangeChanged, this,
      [this] {
        if (follows_) go_to_end();
      },
      Qt::QueuedConnection);
}

QString LogPane::command() const {
  return command_->text();
}
QString LogPane::text() const {
  return text_->toPlainText();
}

void LogPane::note_scroll() {
  // A new size or new lines move the end away and change no value: whatever does is the user.
  if (is_adding_) return;
  const QScrollBar* const bar = text_->verticalScrollBar();
  value_ = bar->value();
  follows_ = value_ >= bar->maximum();
  end_button_->setEnabled(!follows_);
}

void LogPane::show_log(const QStringList& lines) {
  // Its first word is the time.
  command_->setText(lines.isEmpty() ? QString() : lines.first().section(' ', 1));
  command_->setCursorPosition(0);
  text_->setPlainText(lines.join('\n'));
  go_to_end();
}

void LogPane::add(const QStringList& lines) {
  if (lines.isEmpty()) return;
  if (text_->document()->isEmpty()) return show_log(lines);
  const int at = text_->verticalScrollBar()->value(),
            across = text_->horizontalScrollBar()->value();
  const int n_before = text_->blockCount();
  is_adding_ = true;
  text_->appendPlainText(lines.join('\n'));
  text_->horizontalScrollBar()->setValue(across);
  // Lines that went at the beginning took the view along.
  const int n_gone = n_before + static_cast<int>(lines.size()) - text_->blockCount();
  if (!follows_) text_->verticalScrollBar()->setValue(std::max(0, at - n_gone));
  is_adding_ = false;
  value_ = text_->verticalScrollBar()->value();
  if (follows_) return go_to_end();
  end_button_->setEnabled(true);
}

void LogPane::go_to_end() {
  follows_ = true;
  QScrollBar* const bar = text_->verticalScrollBar();
  bar->setValue(bar->maximum());
  value_ = bar->value();
  end_button_->setEnabled(false);
}

void LogPane::show_search() {
  search_->setVisible(true);
  wanted_->setFocus(Qt::ShortcutFocusReason);
  wanted_->selectAll();
}

void LogPane::search(bool is_backward) {
  outcome_->setText(find(wanted_->text(), is_backward) ? QString() : tr("Not found"));
}

bool LogPane::find(const QString& wanted, bool is_backward) {
  if (wanted.isEmpty()) return false;
  const auto flags = is_backward ? QTextDocument::FindBackward : QTextDocument::FindFlags();
  if (text_->find(wanted, flags)) return true;
  // Once around.
  const QTextCursor before = text_->textCursor();
  text_->moveCursor(is_backward ? QTextCursor::End : QTextCursor::Start);
  if (text_->find(wanted, flags)) return true;
  text_->setTextCursor(before);
  return false;
}

void LogPane::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape && search_->isVisible()) {
    search_->hide();
    text_->setFocus();
    return;
  }
  QWidget::keyPressEvent(event);
}

}  // namespace ferry::gui
