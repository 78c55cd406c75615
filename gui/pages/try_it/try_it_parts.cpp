// The parts of the page: what is asked, the answer, the history.

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollBar>
#include <QSpinBox>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableWidget>
#include <QTextEdit>
#include <QVBoxLayout>
#include <cmath>

#include "gui/models/text.h"
#include "gui/pages/try_it/sampling_fields.h"
#include "gui/pages/try_it/try_it_page.h"
#include "gui/widgets/charts/score_bar.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"

namespace ferry::gui {

namespace {

QPlainTextEdit* make_text(const char* name, int n_lines) {
  auto* text = new QPlainTextEdit;
  text->setObjectName(name);
  text->setTabChangesFocus(true);
  text->setMinimumHeight(text->fontMetrics().lineSpacing() * n_lines);
  return text;
}

/** Says what will stand in its place. */
QLabel* framed_note() {
  QLabel* note = note_label();
  note->setFrameShape(QFrame::StyledPanel);
  note->setBackgroundRole(QPalette::Base);
  note->setAutoFillBackground(true);
  note->setMargin(note->fontMetrics().averageCharWidth());
  return note;
}

}  // namespace

QWidget* TryItPage::make_form() {
  form_box_ = new QWidget;
  auto* column = new QVBoxLayout(form_box_);
  column->setContentsMargins(0, 0, 0, 0);
  first_ = make_text("text", 3);
  first_label_ = new TextLabel(tr("&Text"));
  first_label_->setBuddy(first_);
  column->addWidget(first_label_);
  column->addWidget(first_, 1);

  second_box_ = new QWidget;
  auto* second = new QVBoxLayout(second_box_);
  second->setContentsMargins(0, 0, 0, 0);
  second_ = make_text("context", 4);
  second_label_ = new TextLabel;
  second_label_->setBuddy(second_);
  second->addWidget(second_label_);
  second->addWidget(second_, 1);
  column->addWidget(second_box_, 2);
  column->addWidget(make_generation_settings());

  auto* buttons = new QHBoxLayout;
  ask_button_ = new QPushButton(tr("As&k"));
  ask_button_->setObjectName("ask_button");
  ask_button_->setDefault(true);
  cancel_button_ = new QPushButton(tr("&Cancel"));
  cancel_button_->setObjectName("cancel_button");
  cancel_button_->setShortcut(Qt::Key_Escape);
  busy_ = new QProgressBar;
  busy_->setRange(0, 0);
  busy_->setTextVisible(false);
  busy_->setAccessibleName(tr("The model answers"));
  busy_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  told_ = note_label();
  told_->setObjectName("told");
  told_->setWordWrap(false);
  told_->setAlignment(Qt::AlignLeading | Qt::AlignVCenter);
  buttons->addWidget(ask_button_);
  buttons->addWidget(cancel_button_);
  buttons->addWidget(busy_, 1);
  buttons->addWidget(told_, 1);
  column->addLayout(buttons);
  connect(ask_button_, &QPushButton::clicked, this, &TryItPage::ask);
  connect(cancel_button_, &QPushButton::clicked, this, &TryItPage::cancel);
  connect(first_, &QPlainTextEdit::textChanged, this, &TryItPage::update_ask);
  connect(second_, &QPlainTextEdit::textChanged, this, &TryItPage::update_ask);
  return form_box_;
}

QWidget* TryItPage::make_generation_settings() {
  generation_box_ = new QWidget;
  auto* row = new QHBoxLayout(generation_box_);
  row->setContentsMargins(0, 0, 0, 0);
  length_ = make_length_field(128);
  temperature_ = make_temperature_field(0.8);
  top_k_ = new QSpinBox;
  top_k_->setRange(0, 100000);
  top_k_->setSpecialValueText(tr("all"));
  top_k_->setToolTip(tr("Draws among so many of the likeliest tokens."));
  top_p_ = make_top_p_field(0.95);
  seed_ = new QSpinBox;
  seed_->setRange(0, 2147483647);
  seed_->setValue(42);
  seed_->setToolTip(tr("The same seed draws the same text again."));
  stop_ = new QLineEdit;
  stop_->setPlaceholderText(tr("none"));
  stop_->setToolTip(
      tr("Texts that end it, with commas between them. \\n stands for the end of a "
         "line."));
  add_field(*row, tr("&Length"), length_, "field_length");
  add_field(*row, tr("&Temperature"), temperature_, "field_temperature");
  add_field(*row, tr("Top-&k"), top_k_, "field_top_k");
  add_field(*row, tr("Top-&p"), top_p_, "field_top_p");
  add_field(*row, tr("S&eed"), seed_, "field_seed");
  add_field(*row, tr("St&op at"), stop_, "field_stop");
  return generation_box_;
}

QWidget* TryItPage::make_result() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  message_ = new Notice;
  message_->setObjectName("message");
  column->addWidget(message_);
  column->addWidget(new TextLabel(tr("Answer")));
  summary_ = heading_label({}, 1.2);
  summary_->setObjectName("summary");
  summary_->setTextFormat(Qt::PlainText);
  summary_->setWordWrap(true);
  summary_->hide();
  column->addWidget(summary_);
  result_ = new QStackedWidget;

  nothing_ = framed_note();
  nothing_->setObjectName("no_answer");
  scores_ = new QTableWidget(0, 2);
  scores_->setObjectName("scores");
  scores_->setAccessibleName(tr("Classes and how sure the model is of each"));
  scores_->setHorizontalHeaderLabels({tr("Class"), tr("Confidence")});
  scores_->verticalHeader()->hide();
  scores_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  scores_->setSelectionBehavior(QAbstractItemView::SelectRows);
  scores_->setShowGrid(false);
  scores_->setTabKeyNavigation(false);
  scores_->setItemDelegateForColumn(1, new ScoreBar(scores_));
  new ColumnFit(scores_, {.rest = 1});
  marked_ = new QTextEdit;
  marked_->setObjectName("marked");
  marked_->setAccessibleName(tr("The answer in its text"));
  marked_->setReadOnly(true);
  marked_->setTabChangesFocus(true);
  for (QWidget* one : std::initializer_list<QWidget*>{nothing_, scores_, marked_})
    result_->addWidget(one);
  column->addWidget(result_, 1);
  return box;
}

QWidget* TryItPage::make_history() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  auto* label = new TextLabel(tr("Hi&story"));
  history_list_ = new QListWidget;
  history_list_->setObjectName("history");
  history_list_->setAccessibleName(tr("What was asked before"));
  history_list_->setAlternatingRowColors(true);
  history_list_->setTextElideMode(Qt::ElideRight);
  history_list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  label->setBuddy(history_list_);
  no_history_ = framed_note();
  no_history_->setObjectName("no_history");
  no_history_->setText(
      tr("What you ask is listed here with its answer. Choose an entry to see it again."));
  history_list_->hide();
  copy_button_ = new QPushButton(tr("Cop&y answer"));
  copy_button_->setObjectName("copy_button");
  again_button_ = new QPushButton(tr("&Use text again"));
  again_button_->setObjectName("again_button");
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(copy_button_);
  buttons->addWidget(again_button_);
  column->addWidget(label);
  column->addWidget(no_history_, 1);
  column->addWidget(history_list_, 1);
  column->addLayout(buttons);
  connect(history_list_, &QListWidget::currentRowChanged, this, &TryItPage::choose_try);
  connect(history_list_, &QListWidget::itemActivated, this, [this] { use_again(); });
  connect(copy_button_, &QPushButton::clicked, this, &TryItPage::copy_answer);
  connect(again_button_, &QPushButton::clicked, this, &TryItPage::use_again);
  return box;
}

void TryItPage::make_actions() {
  ask_action_ = new QAction(tr("Ask the model"), this);
  ask_action_->setShortcuts(
      {QKeySequence(Qt::CTRL | Qt::Key_Return), QKeySequence(Qt::CTRL | Qt::Key_Enter)});
  copy_action_ = new QAction(tr("Copy the answer"), this);
  copy_action_->setShortcut(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C));
  again_action_ = new QAction(tr("Use the text again"), this);
  for (QAction* action : {ask_action_, copy_action_, again_action_}) {
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    addAction(action);
  }
  connect(ask_action_, &QAction::triggered, this, &TryItPage::ask);
  connect(copy_action_, &QAction::triggered, this, &TryItPage::copy_answer);
  connect(again_action_, &QAction::triggered, this, &TryItPage::use_again);
}

}  // namespace ferry::gui
