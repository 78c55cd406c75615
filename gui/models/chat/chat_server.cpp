#include "gui/models/chat/chat_server.h"

#include <signal.h>

#include <QNetworkProxy>
#include <QNetworkReply>
#include <QRandomGenerator>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/base/error.h"

namespace ferry::gui {

namespace {

using Json = nlohmann::ordered_json;

/** 128 bits that no other program knows. */
QString new_key() {
  QByteArray bits(16, '\0');
  auto* const words = reinterpret_cast<quint32*>(bits.data());
  QRandomGenerator::system()->fillRange(words, bits.size() / 4);
  return QString::fromLatin1(bits.toHex());
}

/** The server's own words in {"error": {"message": ...}}; empty: there are none. */
QString message_in(const Json& json) {
  const auto error = json.find("error");
  if (error == json.end() || !error->is_object()) return {};
  return to_text(error->value("message", ""));
}

bool is_too_long(const Json& json) {
  const auto error = json.find("error");
  return error != json.end() && error->is_object() &&
         error->value("type", "") == "exceed_context_size_error";
}

}  // namespace

ChatServer::ChatServer(QObject* parent) : QObject(parent), process_(this), network_(this) {
  network_.setProxy(QNetworkProxy::NoProxy);
  connect(&process_, &FerryProcess::line_came, this, &ChatServer::take_address);
  connect(&process_, &FerryProcess::finished, this,
          [this] { end_process(tr("The model's process ended.")); });
  connect(&process_, &FerryProcess::failed, this, &ChatServer::end_process);
  connect(&process_, &FerryProcess::cancelled, this, [this] {
    if (!std::exchange(is_unloading_, false)) return;
    emit unloaded();
    if (state_ == State::loading) start();
  });
}

void ChatServer::load(const ChatModel& model) {
  unload();
  model_ = model;
  state_ = State::loading;
  if (!is_unloading_) start();
}

void ChatServer::start() {
  key_ = new_key();
  QStringList words{"serve", "--model=" + model_.model, "--host=127.0.0.1", "--port=0", "--json"};
  if (!model_.chat_template.isEmpty()) words << "--chat-template=" + model_.chat_template;
  // Other users of the machine see words of a command, and not its environment.
  process_.start(words, FerryProcess::Output::json, {{"FERRY_API_KEY", key_}});
}

void ChatServer::unload() {
  stop();
  is_unloading_ = is_unloading_ || process_.is_running();
  process_.cancel();
  state_ = State::ended;
}

void ChatServer::take_address(const Json& line) {
  const auto host = line.find("host"), port = line.find("port");
  if (state_ != State::loading || host == line.end() || port == line.end()) return;
  address_ = QStringLiteral("http://%1:%2/v1/chat/completions")
                 .arg(to_text(host->get<std::string>()))
                 .arg(port->get<int>());
  state_ = State::ready;
  emit ready();
}

void ChatServer::ask(Json request) {
  stop();
  request["stream"] = true;
  read_.clear();
  was_cut_ = has_ended_ = false;
  QNetworkRequest post{QUrl(address_)};
  post.setHeader(QNetworkRequest::ContentTypeHeader, "application/json");
  post.setRawHeader("Authorization", "Bearer " + key_.toLatin1());
  reply_ = network_.post(post, QByteArray::fromStdString(request.dump()));
  state_ = State::answering;
  connect(reply_, &QNetworkReply::readyRead, this, &ChatServer::read_stream);
  connect(reply_, &QNetworkReply::finished, this, &ChatServer::end_answer);
}

void ChatServer::stop() {
  if (!reply_) return;
  QNetworkReply* const ended = std::exchange(reply_, nullptr);
  ended->disconnect(this);
  ended->abort();  // the server hears that nobody listens
  ended->deleteLater();
  state_ = State::ready;
}

void ChatServer::read_stream() {
  read_ += reply_->readAll();
  const QNetworkReply* const asked = reply_;
  for (qsizetype end; reply_ == asked && (end = read_.indexOf("\n\n")) >= 0;) {
    QByteArray event = read_.first(end);
    read_.remove(0, end + 2);
    constexpr QByteArrayView kData = "data: ";
    if (event.startsWith(kData)) take_event(event.mid(kData.size()));
  }
}

void ChatServer::take_event(const QByteArray& event) {
  if (event == "[DONE]") {
    has_ended_ = true;
    return;
  }
  const Json json = Json::parse(event.begin(), event.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(tr("The model's answer is not understood."), Why::other);
  if (const QString said = message_in(json); !said.isEmpty())
    return fail(message_of(said).text, Why::other);
  const auto choices = json.find("choices");
  if (choices == json.end() || !choices->is_array() || choices->empty()) return;
  const Json& choice = choices->front();
  if (const auto reason = choice.find("finish_reason"); reason != choice.end())
    was_cut_ = was_cut_ || *reason == "length";
  const auto delta = choice.find("delta");
  if (delta == choice.end() || !delta->is_object()) return;
  if (const std::string text = delta->value("content", ""); !text.empty())
    emit text_came(to_text(text));
}

void ChatServer::end_answer() {
  QNetworkReply* const asked = reply_;
  const int status = asked->attribute(QNetworkRequest::HttpStatusCodeAttribute).toInt();
  constexpr int kOk = 200;
  if (status == kOk) {
    read_stream();
    if (reply_ != asked) return;  // an event failed
  }
  if (status == kOk && has_ended_) {
    reply_ = nullptr;
    asked->deleteLater();
    state_ = State::ready;
    emit answered(was_cut_);
    return;
  }
  const QByteArray said = read_ + asked->readAll();
  const Json json = Json::parse(said.begin(), said.end(), nullptr, /*allow_exceptions=*/false);
  const QString message = json.is_object() ? message_in(json) : QString();
  fail(message.isEmpty() ? tr("The answer broke off: %1").arg(asked->errorString())
                         : message_of(message).text,
       json.is_object() && is_too_long(json) ? Why::too_long : Why::other);
}

void ChatServer::end_process(const QString& trouble) {
  stop();
  state_ = State::ended;
  const int code = process_.exit_code();
  const bool is_killed = code == 128 + SIGKILL;
  const bool has_no_room = is_killed || code == static_cast<int>(Fault::does_not_fit) ||
                           code == static_cast<int>(Fault::machine);
  emit failed(trouble, has_no_room ? Why::no_room : Why::other);
}

void ChatServer::fail(const QString& trouble, Why why) {
  stop();
  emit failed(trouble, why);
}

}  // namespace ferry::gui
