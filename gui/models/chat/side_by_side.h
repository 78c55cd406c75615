#pragma once
// A tuned model and, where that is wanted, its base: both answer each question. Where the machine's
// memory does not hold both, one is loaded after the other.

#include <QObject>
#include <QString>

#include "gui/models/chat/chat.h"

namespace ferry::gui {

class SideBySide : public QObject {
  Q_OBJECT

 public:
  explicit SideBySide(QObject* parent = nullptr);

  Chat& tuned() { return tuned_; }
  Chat& base() { return base_; }
  /** Other models end the chats with the former ones. A base without a name: there is none. */
  void set_models(const ChatModel& tuned, const ChatModel& base);
  bool has_base() const { return !base_.model().model.isEmpty(); }
  /** The base answers, too, from the next question on: it is told what was said so far. */
  void set_compares(bool compares);
  bool compares() const { return compares_; }
  /** True once the memory was found to hold one of them alone. */
  bool is_one_at_a_time() const { return is_one_at_a_time_; }

  void ask(const QString& question, const ChatSettings& settings);
  /** The last question again, for another answer. */
  void ask_again(const ChatSettings& settings);
  void stop();
  void reset();
  void unload();
  bool is_busy() const;
  /** The model waits until the other one has answered. */
  bool waits(const Chat& chat) const { return waiting_ == &chat; }

 signals:
  void changed();
  /** A question was not answered, and why. */
  void failed(ferry::gui::Chat* chat, const QString& trouble);

 private:
  void take_end(Chat& chat, const QString& trouble, ChatServer::Why why);
  void ask_waiting();
  Chat& other(Chat& chat) { return &chat == &tuned_ ? base_ : tuned_; }

  Chat tuned_, base_;
  Chat* waiting_ = nullptr;  ///< it gets question_ later
  QString question_;
  ChatSettings settings_;
  bool compares_ = false, is_one_at_a_time_ = false;
};

}  // namespace ferry::gui
