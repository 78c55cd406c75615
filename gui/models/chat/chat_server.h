#pragma once
// One model behind `ferry serve` at a port of this machine that only the app knows the key of: it
// is loaded once and answers many turns, each as it is written.

#include <QByteArray>
#include <QNetworkAccessManager>
#include <QObject>
#include <QString>
#include <nlohmann/json.hpp>

#include "gui/models/process/ferry_process.h"

class QNetworkReply;

namespace ferry::gui {

/** The model of a chat, as `ferry serve` takes it. */
struct ChatModel {
  QString model;          ///< --model: a run, a checkpoint, a directory, a name
  QString chat_template;  ///< --chat-template; empty: the model's own

  bool operator==(const ChatModel&) const = default;
};

class ChatServer : public QObject {
  Q_OBJECT

 public:
  enum class State { ended, loading, ready, answering };
  /** Kinds of failures that callers act on. */
  enum class Why {
    other,
    no_room,   ///< the machine's memory does not hold the model now
    too_long,  ///< the context does not hold the messages
  };

  explicit ChatServer(QObject* parent = nullptr);

  State state() const { return state_; }
  /** Starts to load a model: ready() or failed() follows. A model that is there goes first. */
  void load(const ChatModel& model);
  /** Ends the model's process. Nothing more is heard of it but unloaded(). */
  void unload();
  /** The process of a model that was unloaded still has its memory. */
  bool is_unloading() const { return is_unloading_; }
  /** A request of OpenAI's chat API, without "stream". text_came(), then answered() or failed().
   * The server is ready. */
  void ask(nlohmann::ordered_json request);
  /** Ends the answer that is being written; nothing more is heard of it. */
  void stop();

 signals:
  void ready();
  void unloaded();
  void text_came(const QString& text);
  /** was_cut: the answer has as many tokens as were asked for, or fills the context. */
  void answered(bool was_cut);
  void failed(const QString& trouble, ferry::gui::ChatServer::Why why);

 private:
  void start();
  void take_address(const nlohmann::ordered_json& line);
  void read_stream();
  /** An event of the stream, without "data: ". */
  void take_event(const QByteArray& event);
  void end_answer();
  void end_process(const QString& trouble);
  void fail(const QString& trouble, Why why);

  State state_ = State::ended;
  FerryProcess process_;
  QNetworkAccessManager network_;
  QNetworkReply* reply_ = nullptr;
  ChatModel model_;
  QString address_, key_;
  QByteArray read_;  ///< of an event that is not whole
  bool was_cut_ = false, has_ended_ = false, is_unloading_ = false;
};

}  // namespace ferry::gui
