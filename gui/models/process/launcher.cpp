#include "gui/models/process/launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <QDir>
#include <QFile>
#include <QProcess>
#include <algorithm>

#include "gui/models/process/ferry_command.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/files/paths.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

constexpr int kStartLookMs = 100;

fs::file_time_type time_of(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  return error ? fs::file_time_type::min() : time;
}

/** False of a zombie. In a container, process 1 may never ask for the status of one. */
bool is_alive(pid_t pid) {
  if (kill(pid, 0) != 0) return errno != ESRCH;
  QFile stat(QStringLiteral("/proc/%1/stat").arg(pid));
  if (!stat.open(QIODevice::ReadOnly)) return false;
  const QByteArray text = stat.readAll();
  const qsizetype name_end = text.lastIndexOf(')');
  return !(name_end >= 0 && name_end + 2 < text.size() &&
           (text[name_end + 2] == 'Z' || text[name_end + 2] == 'X'));
}

/** The last lines of what a start said. */
QString said_in(const fs::path& log) {
  QFile file(path_text(log));
  if (!file.open(QIODevice::ReadOnly)) return {};
  constexpr qint64 kTail = 4000;
  if (file.size() > kTail) file.seek(file.size() - kTail);
  return QString::fromUtf8(file.readAll()).trimmed();
}

/** Messages of the command line among other lines. */
QString in_app_words(const QString& said) {
  QStringList lines = said.split('\n');
  for (QString& line : lines)
    if (line.startsWith(QLatin1String("ferry: "))) line = message_of(line).text;
  return lines.join('\n');
}

}  // namespace

Launcher::Launcher(QObject* parent) : QObject(parent) {
  timer_.setInterval(kStartLookMs);
  connect(&timer_, &QTimer::timeout, this, &Launcher::look);
}

fs::path Launcher::start(const config::Config& config, const fs::path& runs) {
  // A double click on Start is one start: the same settings while the first one is on its way.
  const QStringList asked = arguments_of(config, config::kTrain);
  for (const Start& start : starts_)
    if (start.asked == asked) return start.run;

  const auto directory = config.maybe_text("output_dir");
  Start start{
      .run = fs::absolute(directory ? fs::path(*directory) : new_run_directory(runs, config)),
      .asked = asked};
  config::Config settings = config;
  settings.set("output_dir", start.run.string(), {config::Source::command_line, "the app"});
  std::error_code error;
  fs::create_directories(start.run.parent_path(), error);  // the trainer tells what is wrong
  const fs::path run = start.run;
  return launch(std::move(start), arguments_of(settings, config::kTrain)) ? run : fs::path();
}

void Launcher::resume(const fs::path& run, const QStringList& extra) {
  const fs::path directory = run_of_checkpoint(run);
  if (is_starting(directory)) return;
  launch({.run = directory}, QStringList{"--resume=" + path_text(run)} + extra);
}

bool Launcher::launch(Start start, const QStringList& arguments) {
  const auto ferry = find_ferry();
  const QStringList words = QStringList{"train"} + arguments;
  start.command = shell_text(ferry ? path_text(*ferry) : QStringLiteral("ferry"), words);
  if (!ferry) {
    emit failed(start.run, tr("The program ferry is not beside this app. Install both together."),
                start.command);
    return false;
  }
  static int n_starts = 0;
  start.log =
      to_path(QDir::tempPath()) / fmt::format("ferry-start-{}-{}.log", getpid(), ++n_starts);
  start.before = time_of(start.run / "run.json");
  QProcess process;
  process.setProgram(path_text(*ferry));
  process.setArguments(words);
  process.setStandardInputFile(QProcess::nullDevice());
  process.setStandardOutputFile(path_text(start.log));
  process.setStandardErrorFile(path_text(start.log), QIODevice::Append);
  qint64 pid = 0;
  if (!process.startDetached(&pid)) {
    emit failed(start.run, tr("The program cannot be started: %1").arg(process.errorString()),
                start.command);
    return false;
  }
  start.pid = static_cast<pid_t>(pid);
  starts_.push_back(std::move(start));
  timer_.start();
  return true;
}

bool Launcher::is_starting(const fs::path& run) const {
  return std::any_of(starts_.begin(), starts_.end(),
                     [&](const Start& start) { return start.run == run; });
}

pid_t Launcher::pid_of(const fs::path& run) const {
  for (const Start& start : starts_)
    if (start.run == run) return start.pid;
  return 0;
}

bool Launcher::is_start_of(pid_t pid, const fs::path& run) {
  if (pid <= 0 || run.empty() || !is_alive(pid)) return false;
  // Numbers come again: the command names the run. A process that has ended has no command.
  QFile command(QStringLiteral("/proc/%1/cmdline").arg(pid));
  if (!command.open(QIODevice::ReadOnly)) return false;
  return command.readAll().contains(QByteArray::fromStdString(run.string()));
}

QString Launcher::doing(const fs::path& run) const {
  for (const Start& start : starts_)
    if (start.run == run && start.choosing)
      return tr("choosing the plan: a step of each is timed (%1 of at most %2)")
          .arg(start.choosing->n)
          .arg(start.choosing->n_most);
  return {};
}

std::vector<fs::path> Launcher::starting() const {
  std::vector<fs::path> all;
  for (const Start& start : starts_)
    all.push_back(start.run);
  return all;
}

void Launcher::look() {
  // Signals come last: who hears them may start another.
  std::vector<Start> running, over, ended;
  std::vector<fs::path> changed;
  for (Start& start : starts_) {
    if (time_of(start.run / "run.json") != start.before)
      over.push_back(std::move(start));
    else if (!is_alive(start.pid))
      ended.push_back(std::move(start));
    else {
      const auto choosing = find_choosing_progress(said_in(start.log).toStdString());
      if (choosing != start.choosing) changed.push_back(start.run);
      start.choosing = choosing;
      running.push_back(std::move(start));
    }
  }
  starts_ = std::move(running);
  if (starts_.empty()) timer_.stop();
  for (const fs::path& run : changed)
    emit doing_changed(run);
  for (const Start& start : over) {
    emit started(start.run);
    QFile::remove(path_text(start.log));
  }
  for (const Start& start : ended) {
    const QString said = said_in(start.log);
    QFile::remove(path_text(start.log));
    emit failed(start.run, said.isEmpty() ? tr("It ended without a message.") : in_app_words(said),
                start.command);
  }
}

}  // namespace ferry::gui
