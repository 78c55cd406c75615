#include "gui/models/chat/chat.h"

namespace ferry::gui {

namespace {

using Json = nlohmann::ordered_json;

Json turn(const char* role, const QString& text) {
  return {{"role", role}, {"content", text.toStdString()}};
}

void add_note(Exchange& exchange, const QString& note) {
  exchange.note += (exchange.note.isEmpty() ? QString() : QStringLiteral(" ")) + note;
}

}  // namespace

Chat::Chat(QObject* parent) : QObject(parent), server_(this) {
  connect(&server_, &ChatServer::ready, this, [this] {
    emit loaded();
    if (is_asked_) send();
  });
  connect(&server_, &ChatServer::unloaded, this, &Chat::unloaded);
  connect(&server_, &ChatServer::text_came, this, &Chat::take_text);
  connect(&server_, &ChatServer::answered, this, &Chat::take_end);
  connect(&server_, &ChatServer::failed, this, &Chat::take_failure);
}

bool Chat::is_loaded() const {
  return server_.state() == ChatServer::State::ready ||
         server_.state() == ChatServer::State::answering;
}

void Chat::set_model(const ChatModel& model) {
  if (model == model_) return;
  unload();
  model_ = model;
  exchanges_.clear();
  emit changed();
}

void Chat::take_over(const std::vector<Exchange>& exchanges) {
  stop();
  exchanges_ = exchanges;
  emit changed();
}

void Chat::ask(const QString& question, const ChatSettings& settings) {
  stop();
  exchanges_.push_back({.question = question, .answer = {}, .note = {}});
  settings_ = settings;
  n_left_out_ = 0;
  is_asked_ = true;
  if (is_loaded())
    send();
  else if (!is_loading())
    server_.load(model_);
  emit changed();
}

void Chat::send() {
  server_.ask(request());
  emit changed();
}

/** The exchanges that the context has room for, as far as is known. */
Json Chat::request() const {
  Json messages = Json::array();
  if (!settings_.system_prompt.trimmed().isEmpty())
    messages.push_back(turn("system", settings_.system_prompt));
  for (size_t i = n_left_out_; i + 1 < exchanges_.size(); ++i) {
    if (exchanges_[i].answer.isEmpty()) continue;
    messages.push_back(turn("user", exchanges_[i].question));
    messages.push_back(turn("assistant", exchanges_[i].answer));
  }
  messages.push_back(turn("user", exchanges_.back().question));
  return {{"messages", std::move(messages)},
          {"max_tokens", settings_.n_new_max},
          {"temperature", settings_.temperature},
          {"top_p", settings_.top_p}};
}

void Chat::take_text(const QString& text) {
  exchanges_.back().answer += text;
  emit text_came(text);
}

void Chat::take_end(bool was_cut) {
  is_asked_ = false;
  Exchange& last = exchanges_.back();
  if (last.answer.isEmpty()) add_note(last, tr("The model ended its answer at once."));
  if (was_cut) add_note(last, tr("Cut here: the answer has as many tokens as were asked for."));
  if (n_left_out_ > 0)
    add_note(last, tr("The context had no room for the first %n question(s).", nullptr,
                      static_cast<int>(n_left_out_)));
  emit changed();
  emit ended({}, ChatServer::Why::other);
}

void Chat::take_failure(const QString& trouble, ChatServer::Why why) {
  if (why == ChatServer::Why::too_long && n_left_out_ + 1 < exchanges_.size()) {
    ++n_left_out_;
    return send();
  }
  const bool was_asked = std::exchange(is_asked_, false);
  emit changed();
  // A process that ends between two questions is started again with the next one.
  if (was_asked) emit ended(trouble, why);
}

void Chat::stop() {
  if (!std::exchange(is_asked_, false)) return;
  server_.stop();
  add_note(exchanges_.back(), tr("Stopped."));
  emit changed();
}

QString Chat::take_back() {
  stop();
  if (exchanges_.empty()) return {};
  const QString question = exchanges_.back().question;
  exchanges_.pop_back();
  emit changed();
  return question;
}

void Chat::reset() {
  stop();
  exchanges_.clear();
  emit changed();
}

void Chat::unload() {
  stop();
  server_.unload();
  emit changed();
}

}  // namespace ferry::gui
