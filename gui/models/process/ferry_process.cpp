#include "gui/models/process/ferry_process.h"

#include <signal.h>
#include <sys/prctl.h>

#include <QCoreApplication>
#include <QFile>

#include "gui/models/process/ferry_command.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace {

constexpr qsizetype kErrorsKept = 64 << 10, kLineMax = 64 << 20;
constexpr QLatin1StringView kSays("ferry: ");

}  // namespace

QString last_message(const QString& errors) {
  // A message may have lines of its own: all that follows its first one belongs to it.
  const qsizetype at = errors.lastIndexOf("\n" + kSays);
  const QString last = at < 0 ? errors : errors.mid(at + 1);
  return (last.startsWith(kSays) ? last.mid(kSays.size()) : last).trimmed();
}

FerryProcess::FerryProcess(QObject* parent) : QObject(parent) {}

FerryProcess::~FerryProcess() {
  cancel();
}

void FerryProcess::start(const QStringList& words,
                         Output output,
                         const QMap<QString, QString>& variables) {
  cancel();
  exit_code_ = 0;
  const auto program = find_ferry();
  if (!program) {
    // Every failure is told after start() has returned to its caller, and so is this one.
    QMetaObject::invokeMethod(
        this,
        [this] {
          emit failed(
              tr("The program ferry is not beside this one. Set FERRY to "
                 "its path."));
        },
        Qt::QueuedConnection);
    return;
  }
  output_ = output;
  decoder_ = QStringDecoder(QStringDecoder::Utf8);
  line_.clear();
  errors_.clear();
  command_ = shell_text("ferry", words);

  process_ = new QProcess(this);
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("NO_COLOR", "1");
  for (auto it = variables.begin(); it != variables.end(); ++it)
    environment.insert(it.key(), it.value());
  process_->setProcessEnvironment(environment);
  process_->setProgram(path_text(*program));
  process_->setArguments(words);
  process_->setStandardInputFile(QProcess::nullDevice());
  process_->setChildProcessModifier([] { ::prctl(PR_SET_PDEATHSIG, SIGKILL); });
  connect(process_, &QProcess::readyReadStandardOutput, this, &FerryProcess::read_output);
  connect(process_, &QProcess::readyReadStandardError, this, &FerryProcess::read_errors);
  connect(process_, &QProcess::finished, this, &FerryProcess::take_end);
  connect(
      process_, &QProcess::errorOccurred, this,
      [this, asked = process_](QProcess::ProcessError error) {
        // It comes late: somebody may have cancelled, or asked anew.
        if (error == QProcess::FailedToStart && process_ == asked)
          fail(tr("%1 cannot be started: %2").arg(process_->program(), process_->errorString()));
      },
      Qt::QueuedConnection);
  process_->start();
}

void FerryProcess::cancel() {
  if (!process_) return;
  // ~QProcess would wait; it goes when it has ended, or with the application.
  QProcess* const ended = std::exchange(process_, nullptr);
  ended->disconnect(this);
  ended->setParent(QCoreApplication::instance());
  connect(ended, &QProcess::finished, ended, &QObject::deleteLater);
  connect(ended, &QProcess::finished, this, &FerryProcess::cancelled);
  if (ended->state() == QProcess::NotRunning) {
    ended->deleteLater();
    QMetaObject::invokeMethod(this, &FerryProcess::cancelled, Qt::QueuedConnection);
  } else {
    ended->kill();
  }
}

int64_t FerryProcess::n_bytes_written() const {
  if (!process_) return 0;
  QFile file(QStringLiteral("/proc/%1/io").arg(process_->processId()));
  if (!file.open(QIODevice::ReadOnly)) return 0;
  constexpr QByteArrayView kWritten = "wchar: ";
  for (const QByteArray& line : file.readAll().split('\n'))
    if (line.startsWith(kWritten)) return line.mid(kWritten.size()).toLongLong();
  return 0;
}

QStringList FerryProcess::notes() const {
  QStringList notes;
  for (const QString& line : QString::fromUtf8(errors_).split('\n', Qt::SkipEmptyParts))
    notes << (line.startsWith(kSays) ? line.mid(kSays.size()) : line);
  return notes;
}

void FerryProcess::read_output() {
  const QByteArray read = process_->readAllStandardOutput();
  if (output_ == Output::text) {
    const QString text = decoder_(read);
    if (!text.isEmpty()) emit text_came(text);
    return;
  }
  line_ += read;
  const QProcess* const asked = process_;
  for (qsizetype end; process_ == asked && (end = line_.indexOf('\n')) >= 0;) {
    const QByteArray line = line_.first(end);
    line_.remove(0, end + 1);
    if (line.trimmed().isEmpty()) continue;
    auto json = nlohmann::ordered_json::parse(line.begin(), line.end(), nullptr,
                                              /*allow_exceptions=*/false);
    if (!json.is_object()) {
      fail(tr("ferry answered with something that is not JSON: %1")
               .arg(QString::fromUtf8(line.first(std::min<qsizetype>(line.size(), 200)))));
      return;
    }
    emit line_came(json);
  }
  if (process_ == asked && line_.size() > kLineMax)
    fail(tr("ferry answered with a line that does not end."));
}

void FerryProcess::read_errors() {
  errors_ += process_->readAllStandardError();
  if (errors_.size() > kErrorsKept) errors_.remove(0, errors_.size() - kErrorsKept);
}

QString FerryProcess::message_of_end(int exit_code, QProcess::ExitStatus status) const {
  if (status == QProcess::CrashExit)
    return exit_code == 9 ? tr("The system ended it (signal 9), most likely for want of memory.")
                          : tr("It ended unexpectedly (signal %1).").arg(exit_code);
  const QString said = last_message(QString::fromUtf8(errors_));
  return said.isEmpty() ? tr("It ended with exit code %1 and said nothing.").arg(exit_code)
                        : message_of(said).text;
}

void FerryProcess::take_end(int exit_code, QProcess::ExitStatus status) {
  const QProcess* const asked = process_;
  read_errors();
  read_output();
  if (process_ != asked) return;  // failed, or cancelled by who heard the output
  exit_code_ = status == QProcess::CrashExit ? 128 + exit_code : exit_code;
  if (exit_code_ != 0) return fail(message_of_end(exit_code, status));
  if (output_ == Output::json && !line_.trimmed().isEmpty())
    return fail(tr("ferry ended within a line of its answer."));
  std::exchange(process_, nullptr)->deleteLater();
  emit finished();
}

void FerryProcess::fail(const QString& message) {
  cancel();
  emit failed(message);
}

}  // namespace ferry::gui
