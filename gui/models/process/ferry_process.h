#pragma once
// Runs one `ferry VERB ...` beside the event loop: its output as it comes, its end, what it said
// where it failed. The commands of the CLI answer what they were started with and end, so each
// question is a process of its own; without weights to stream that takes about a second.

#include <QMap>
#include <QObject>
#include <QProcess>
#include <QString>
#include <QStringDecoder>
#include <QStringList>
#include <nlohmann/json.hpp>

namespace ferry::gui {

class FerryProcess : public QObject {
  Q_OBJECT

 public:
  enum class Output {
    text,  ///< text_came(): whatever is written, as it comes
    json,  ///< line_came(): one JSON object a line; anything else is a failure
  };

  explicit FerryProcess(QObject* parent = nullptr);
  /** Ends what runs, and waits for nothing. */
  ~FerryProcess() override;

  /** Starts `ferry words...`; what runs is cancelled first. One finished() or failed() follows,
   * unless it is cancelled. Never waits. It ends with this app, also where the app is killed.
   * `variables` are added to the environment. */
  void start(const QStringList& words, Output output, const QMap<QString, QString>& variables = {});
  /** Ends it at once. Nothing more is heard of it but cancelled(). */
  void cancel();

  bool is_running() const { return process_ != nullptr; }
  /** The command as a shell takes it. */
  const QString& command() const { return command_; }
  /** Bytes that it has written so far, to files and pipes alike; 0: nothing runs, or nobody tells.
   */
  int64_t n_bytes_written() const;
  /** The exit code of the last process that failed; 128 and the signal's number where one ended it,
   * 0 where it did not start. */
  int exit_code() const { return exit_code_; }
  /** Notes that it wrote to standard error, without a message of its failure. */
  QStringList notes() const;

 signals:
  void text_came(const QString& text);
  void line_came(const nlohmann::ordered_json& line);
  void finished();
  void failed(const QString& message);
  /** A process that was cancelled is gone, and its memory with it. */
  void cancelled();

 private:
  void read_output();
  void read_errors();
  void take_end(int exit_code, QProcess::ExitStatus status);
  void fail(const QString& message);
  QString message_of_end(int exit_code, QProcess::ExitStatus status) const;

  QProcess* process_ = nullptr;  ///< null: none runs
  Output output_ = Output::text;
  QStringDecoder decoder_;
  QByteArray line_, errors_;
  int exit_code_ = 0;
  QString command_;
};

/** The last message of what a command wrote to standard error: without its "ferry: ". */
QString last_message(const QString& errors);

}  // namespace ferry::gui
