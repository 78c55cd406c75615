#pragma once
// A chat with a model, and with its base beside it: a system prompt, what was said, the next
// message. `ferry serve` answers, so the model stays loaded between messages.

#include <QWidget>

#include "gui/models/chat/side_by_side.h"
#include "gui/models/results/model_form.h"

class QCheckBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace ferry::gui {

class Notice;
class Transcript;

class ChatPanel : public QWidget {
  Q_OBJECT

 public:
  explicit ChatPanel(QWidget* parent = nullptr);

  /** Another model ends the chat. `model` is as --model takes it, `name` is for people. */
  void set_model(const QString& model, const QString& name, const ModelForm& form);
  /** Ends the chat: there is no model. */
  void clear();
  void send();
  /** Frees the memory of the models; the chat stays, and its next message loads them. */
  void unload();
  bool can_send() const;
  /** The tuned model's last answer; empty: there is none. */
  QString last_answer() const;
  SideBySide& chats() { return chats_; }

 signals:
  /** can_send() or last_answer() are others. */
  void changed();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  /** One model's side. */
  struct Column {
    QWidget* box;
    QLabel *title, *doing;
    Notice* message;
    Transcript* text;
    Chat* chat;
  };
  QWidget* make_settings();
  QWidget* make_message();
  Column make_column(const char* name, Chat& chat);
  ChatSettings settings() const;
  QString doing_of(const Column& column) const;
  void show_chats();
  void show_column(const Column& column);
  void compare(bool compares);
  void ask_again();
  void reset();
  void clear_messages();

  SideBySide chats_;
  QLineEdit* system_;
  QSpinBox* length_;
  QDoubleSpinBox *temperature_, *top_p_;
  QCheckBox* compare_;
  QLabel* one_at_a_time_;
  Column tuned_{}, base_{};
  QPlainTextEdit* input_;
  QPushButton *send_, *stop_, *again_, *reset_;
};

}  // namespace ferry::gui
