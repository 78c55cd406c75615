#include "gui/models/chat/side_by_side.h"

namespace ferry::gui {

SideBySide::SideBySide(QObject* parent) : QObject(parent), tuned_(this), base_(this) {
  for (Chat* const chat : {&tuned_, &base_}) {
    connect(chat, &Chat::changed, this, &SideBySide::changed);
    connect(chat, &Chat::ended, this, [this, chat](const QString& trouble, ChatServer::Why why) {
      take_end(*chat, trouble, why);
    });
    connect(chat, &Chat::unloaded, this, [this, chat] {
      if (waiting_ == &other(*chat) && is_one_at_a_time_ && !chat->is_busy()) ask_waiting();
    });
  }
  // The base is planned for what the tuned model leaves of the memory.
  connect(&tuned_, &Chat::loaded, this, [this] {
    if (waiting_ == &base_ && !is_one_at_a_time_) ask_waiting();
  });
}

void SideBySide::set_models(const ChatModel& tuned, const ChatModel& base) {
  if (tuned == tuned_.model() && base == base_.model()) return;
  stop();
  is_one_at_a_time_ = false;
  tuned_.set_model(tuned);
  base_.set_model(base);
  if (!has_base()) compares_ = false;
  emit changed();
}

void SideBySide::set_compares(bool compares) {
  if (compares == compares_ || (compares && !has_base())) return;
  stop();
  compares_ = compares;
  if (compares_) {
    base_.take_over(tuned_.exchanges());
  } else {
    base_.unload();
    base_.reset();
  }
  emit changed();
}

void SideBySide::ask(const QString& question, const ChatSettings& settings) {
  stop();
  question_ = question;
  settings_ = settings;
  Chat& first = compares_ && is_one_at_a_time_ && base_.is_loaded() ? base_ : tuned_;
  if (compares_) waiting_ = &other(first);
  first.ask(question, settings);
  if (waiting_ && !is_one_at_a_time_ && first.is_loaded()) ask_waiting();
}

void SideBySide::ask_again(const ChatSettings& settings) {
  stop();
  const QString question = tuned_.take_back();
  // A base that was still waiting has not seen it.
  if (base_.exchanges().size() > tuned_.exchanges().size()) base_.take_back();
  if (!question.isEmpty()) ask(question, settings);
}

void SideBySide::ask_waiting() {
  if (is_one_at_a_time_) {
    Chat& former = other(*waiting_);
    former.unload();
    if (former.is_unloading()) return;  // it comes here again once the memory is free
  }
  std::exchange(waiting_, nullptr)->ask(question_, settings_);
}

void SideBySide::take_end(Chat& chat, const QString& trouble, ChatServer::Why why) {
  Chat& its_other = other(chat);
  if (why == ChatServer::Why::no_room && compares_ && !is_one_at_a_time_ &&
      (its_other.is_loaded() || its_other.is_loading())) {
    is_one_at_a_time_ = true;
    chat.take_back();
    waiting_ = &chat;
    if (!its_other.is_busy()) ask_waiting();
    emit changed();
    return;
  }
  if (waiting_ == &its_other) ask_waiting();
  if (!trouble.isEmpty()) emit failed(&chat, trouble);
  emit changed();
}

void SideBySide::stop() {
  waiting_ = nullptr;
  tuned_.stop();
  base_.stop();
}

void SideBySide::reset() {
  stop();
  tuned_.reset();
  base_.reset();
}

void SideBySide::unload() {
  stop();
  tuned_.unload();
  base_.unload();
}

bool SideBySide::is_busy() const {
  return waiting_ || tuned_.is_busy() || base_.is_busy();
}

}  // namespace ferry::gui
