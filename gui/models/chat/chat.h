#pragma once
// A chat with one model: its questions and answers, sent whole with each new question. The model is
// loaded with the first question, and stays until unload().

#include <QObject>
#include <QString>
#include <optional>
#include <vector>

#include "gui/models/chat/chat_server.h"

namespace ferry::gui {

/** The settings of an answer. */
struct ChatSettings {
  QString system_prompt;  ///< empty: none
  int n_new_max = 512;    ///< tokens
  double temperature = 0.7, top_p = 0.95;
};

struct Exchange {
  QString question;
  QString answer;  ///< empty: none came, and the model is not told of the question again
  QString note;    ///< for people: that it was cut, stopped, or left out what came first

  bool operator==(const Exchange&) const = default;
};

class Chat : public QObject {
  Q_OBJECT

 public:
  explicit Chat(QObject* parent = nullptr);

  /** Another model ends the chat with the former one. */
  void set_model(const ChatModel& model);
  const ChatModel& model() const { return model_; }
  const std::vector<Exchange>& exchanges() const { return exchanges_; }
  /** Replaces the chat by what was said with another model. */
  void take_over(const std::vector<Exchange>& exchanges);

  /** Adds a question, loads the model where need be, and asks it. Ends the answer before. */
  void ask(const QString& question, const ChatSettings& settings);
  /** Ends the answer; what came of it stays. */
  void stop();
  /** Takes the last question with its answer back, and gives the question; empty: there is none. */
  QString take_back();
  /** Begins anew, with the model that is loaded. */
  void reset();
  /** Frees the memory that the model takes; the chat stays. */
  void unload();

  bool is_busy() const { return is_asked_; }
  bool is_loading() const { return server_.state() == ChatServer::State::loading; }
  /** The memory that the model took is not free yet. */
  bool is_unloading() const { return server_.is_unloading(); }
  /** The model lies in memory and can answer. */
  bool is_loaded() const;

 signals:
  /** Questions, answers or what the model does are others. */
  void changed();
  /** More of the last answer. */
  void text_came(const QString& text);
  void loaded();
  void unloaded();
  /** The last question has been dealt with. `trouble` is empty where it was answered. */
  void ended(const QString& trouble, ferry::gui::ChatServer::Why why);

 private:
  void send();
  void take_text(const QString& text);
  void take_end(bool was_cut);
  void take_failure(const QString& trouble, ChatServer::Why why);
  nlohmann::ordered_json request() const;

  ChatServer server_;
  ChatModel model_;
  ChatSettings settings_;
  std::vector<Exchange> exchanges_;
  bool is_asked_ = false;  ///< the last question has no whole answer yet
  size_t n_left_out_ = 0;  ///< first exchanges for which the context has no room
};

}  // namespace ferry::gui
