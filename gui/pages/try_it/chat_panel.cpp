#include "gui/pages/try_it/chat_panel.h"

#include <QCheckBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "gui/models/text.h"
#include "gui/pages/try_it/sampling_fields.h"
#include "gui/pages/try_it/transcript.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"

namespace ferry::gui {

ChatPanel::ChatPanel(QWidget* parent) : QWidget(parent), chats_(this) {
  auto* rows = new QVBoxLayout(this);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->addWidget(make_settings());
  auto* sides = new QHBoxLayout;
  tuned_ = make_column("tuned", chats_.tuned());
  base_ = make_column("base", chats_.base());
  for (const Column* column : {&tuned_, &base_})
    sides->addWidget(column->box, 1);
  rows->addLayout(sides, 1);
  rows->addWidget(make_message());
  connect(&chats_, &SideBySide::changed, this, &ChatPanel::show_chats);
  connect(&chats_, &SideBySide::failed, this, [this](Chat* chat, const QString& trouble) {
    (chat == tuned_.chat ? tuned_ : base_).message->show_error(trouble);
  });
  show_chats();
}

QWidget* ChatPanel::make_settings() {
  auto* box = new QWidget;
  auto* column = new QVBoxLayout(box);
  column->setContentsMargins(0, 0, 0, 0);
  auto* row = new QHBoxLayout;
  system_ = new QLineEdit;
  system_->setPlaceholderText(tr("none"));
  system_->setToolTip(
      tr("Says before the first message how the model is to answer. A change "
         "counts from the next message on."));
  length_ = make_length_field(ChatSettings().n_new_max);
  temperature_ = make_temperature_field(ChatSettings().temperature);
  top_p_ = make_top_p_field(ChatSettings().top_p);
  add_field(*row, tr("S&ystem prompt"), system_, "chat_system", 4);
  add_field(*row, tr("&Length"), length_, "chat_length");
  add_field(*row, tr("&Temperature"), temperature_, "chat_temperature");
  add_field(*row, tr("Top-&p"), top_p_, "chat_top_p");
  column->addLayout(row);
  auto* second = new QHBoxLayout;
  compare_ = new QCheckBox(tr("&Compare with the base model"));
  compare_->setObjectName("chat_compare");
  one_at_a_time_ = note_label();
  one_at_a_time_->setObjectName("chat_one_at_a_time");
  one_at_a_time_->setAlignment(Qt::AlignLeading | Qt::AlignVCenter);
  second->addWidget(compare_);
  second->addWidget(one_at_a_time_, 1);
  column->addLayout(second);
  connect(compare_, &QCheckBox::toggled, this, &ChatPanel::compare);
  return box;
}

ChatPanel::Column ChatPanel::make_column(const char* name, Chat& chat) {
  const QString its = QString::fromLatin1(name);
  Column column{.box = new QWidget,
                .title = heading_label({}, 1),
                .doing = quiet_label(),
                .message = new Notice,
                .text = new Transcript,
                .chat = &chat};
  auto* rows = new QVBoxLayout(column.box);
  rows->setContentsMargins(0, 0, 0, 0);
  auto* head = new QHBoxLayout;
  head->addWidget(column.title, 1);
  head->addWidget(column.doing);
  rows->addLayout(head);
  rows->addWidget(column.message);
  rows->addWidget(column.text, 1);
  column.title->setObjectName("chat_title_" + its);
  column.title->setTextFormat(Qt::PlainText);
  column.doing->setObjectName("chat_doing_" + its);
  column.message->setObjectName("chat_message_" + its);
  column.text->setObjectName("chat_text_" + its);
  connect(&chat, &Chat::text_came, column.text, &Transcript::add_text);
  return column;
}

QWidget* ChatPanel::make_message() {
  auto* box = new QWidget;
  auto* rows = new QVBoxLayout(box);
  rows->setContentsMargins(0, 0, 0, 0);
  auto* label = new TextLabel(tr("Messa&ge"));
  input_ = new QPlainTextEdit;
  input_->setObjectName("chat_input");
  input_->setAccessibleName(tr("Message"));
  input_->setPlaceholderText(tr("Enter sends it, Shift+Enter begins a new line."));
  input_->setTabChangesFocus(true);
  input_->setFixedHeight(input_->fontMetrics().lineSpacing() * 3 + 2 * input_->frameWidth() +
                         static_cast<int>(2 * input_->document()->documentMargin()));
  input_->installEventFilter(this);
  label->setBuddy(input_);
  rows->addWidget(label);
  rows->addWidget(input_);
  auto* buttons = new QHBoxLayout;
  const auto add = [&](const QString& text, const char* name) {
    auto* button = new QPushButton(text);
    button->setObjectName(name);
    buttons->addWidget(button);
    return button;
  };
  send_ = add(tr("&Send"), "chat_send");
  send_->setDefault(true);
  stop_ = add(tr("St&op"), "chat_stop");
  stop_->setShortcut(Qt::Key_Escape);
  stop_->setToolTip(tr("Ends the answers; what came of them stays."));
  again_ = add(tr("A&nother answer"), "chat_again");
  again_->setToolTip(tr("Asks the last message again."));
  reset_ = add(tr("&Begin anew"), "chat_reset");
  reset_->setToolTip(tr("Forgets what was said."));
  buttons->addStretch(1);
  rows->addLayout(buttons);
  connect(input_, &QPlainTextEdit::textChanged, this, &ChatPanel::show_chats);
  connect(send_, &QPushButton::clicked, this, &ChatPanel::send);
  connect(stop_, &QPushButton::clicked, &chats_, &SideBySide::stop);
  connect(again_, &QPushButton::clicked, this, &ChatPanel::ask_again);
  connect(reset_, &QPushButton::clicked, this, &ChatPanel::reset);
  return box;
}

bool ChatPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched != input_ || event->type() != QEvent::KeyPress)
    return QWidget::eventFilter(watched, event);
  const auto* const pressed = static_cast<QKeyEvent*>(event);
  const bool is_enter = pressed->key() == Qt::Key_Return || pressed->key() == Qt::Key_Enter;
  if (!is_enter || pressed->modifiers() & ~Qt::KeypadModifier)
    return QWidget::eventFilter(watched, event);
  send();
  return true;
}

// --- The models --------------------------------------------------------------------------------

void ChatPanel::set_model(const QString& model, const QString& name, const ModelForm& form) {
  const ChatModel tuned = {.model = model, .chat_template = {}};
  ChatModel base;
  if (!form.base.empty())
    base = {.model = path_text(form.base), .chat_template = path_text(form.base_template)};
  if (tuned != tuned_.chat->model()) clear_messages();
  chats_.set_models(tuned, base);
  tuned_.title->setText(name);
  base_.title->setText(tr("Base: %1").arg(isolated(path_text(form.base.filename()))));
  base_.title->setToolTip(path_text(form.base));
  compare_->setToolTip(chats_.has_base()
                           ? tr("%1 answers the same messages.").arg(shown_path(form.base))
                           : tr("The model that this one was trained from is not known, or not on "
                                "this machine."));
  show_chats();
}

void ChatPanel::clear() {
  clear_messages();
  chats_.set_models({}, {});
}

void ChatPanel::unload() {
  chats_.unload();
}

void ChatPanel::compare(bool compares) {
  chats_.set_compares(compares);
  base_.message->clear();
}

// --- Messages ----------------------------------------------------------------------------------

ChatSettings ChatPanel::settings() const {
  return {.system_prompt = system_->text(),
          .n_new_max = length_->value(),
          .temperature = temperature_->value(),
          .top_p = top_p_->value()};
}

bool ChatPanel::can_send() const {
  return !tuned_.chat->model().model.isEmpty() && !chats_.is_busy() &&
         !input_->toPlainText().trimmed().isEmpty();
}

QString ChatPanel::last_answer() const {
  const auto& exchanges = tuned_.chat->exchanges();
  return exchanges.empty() ? QString() : exchanges.back().answer;
}

void ChatPanel::send() {
  if (!can_send()) return;
  const QString message = input_->toPlainText();
  input_->clear();
  clear_messages();
  chats_.ask(message, settings());
}

void ChatPanel::ask_again() {
  clear_messages();
  chats_.ask_again(settings());
}

void ChatPanel::reset() {
  clear_messages();
  chats_.reset();
  input_->setFocus();
}

void ChatPanel::clear_messages() {
  for (const Column* column : {&tuned_, &base_})
    column->message->clear();
}

// --- What is shown -----------------------------------------------------------------------------

QString ChatPanel::doing_of(const Column& column) const {
  if (column.chat->is_loading()) return tr("The model is being loaded...");
  if (column.chat->is_busy()) return tr("The model answers...");
  if (chats_.waits(*column.chat)) return tr("Waits for the other model");
  return column.chat->is_loaded() ? tr("Loaded") : tr("Loaded with the next message");
}

void ChatPanel::show_column(const Column& column) {
  column.text->show_exchanges(column.chat->exchanges());
  column.text->setAccessibleName(tr("The chat with %1").arg(column.title->text()));
  column.doing->setText(doing_of(column));
}

void ChatPanel::show_chats() {
  show_column(tuned_);
  show_column(base_);
  base_.box->setVisible(chats_.compares());
  compare_->setEnabled(chats_.has_base());
  {
    const QSignalBlocker blocker(compare_);
    compare_->setChecked(chats_.compares());
  }
  one_at_a_time_->setText(
      chats_.compares() && chats_.is_one_at_a_time()
          ? tr("The memory holds one of the two: they answer one after the other.")
          : QString());
  const bool has_said = !tuned_.chat->exchanges().empty(), is_busy = chats_.is_busy();
  send_->setEnabled(can_send());
  stop_->setVisible(is_busy);
  again_->setVisible(!is_busy);
  again_->setEnabled(has_said);
  reset_->setEnabled(has_said);
  emit changed();
}

}  // namespace ferry::gui
