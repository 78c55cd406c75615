#include "gui/models/runs/run_queue.h"

#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLockFile>
#include <QRegularExpression>
#include <QSaveFile>
#include <QStandardPaths>
#include <algorithm>

#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/config/options/option.h"
#include "src/config/options/value.h"
#include "src/files/file_stamp.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

constexpr int kQueueLookMs = 2000;
constexpr const char* kOrder = "order.json";
/** Passes over all runs without a process before the next start: one may have begun in a terminal
 * while the last look at it was some seconds ago. */
constexpr int64_t kFreePasses = 2;

/** The settings, as a file that `ferry train --config` takes, too. */
QByteArray toml_of(const config::Config& settings, QString title) {
  title.replace(QRegularExpression("[\\x00-\\x1f\\x7f]+"), " ");
  QByteArray text = "# " + title.toUtf8() + "\n";
  for (const config::Option& option : config::option_table())
    if (settings.is_set(option.key))
      text += QByteArray::fromStdString(std::string(option.key) + " = " +
                                        config::to_toml(option, settings.value(option.key)) + "\n");
  return text;
}

QString title_in(const fs::path& file) {
  QFile opened(path_text(file));
  if (!opened.open(QIODevice::ReadOnly)) return {};
  const QString line = QString::fromUtf8(opened.readLine(4096)).trimmed();
  return line.startsWith("# ") ? line.mid(2) : QString();
}

QString name_in_queue(const std::string& text) {
  QString name = to_text(text);
  while (name.endsWith('/'))
    name.chop(1);
  return name.section('/', -1);
}

std::optional<QString> write_whole(const fs::path& file, const QByteArray& text) {
  QSaveFile saved(path_text(file));
  if (!saved.open(QIODevice::WriteOnly)) return saved.errorString();
  saved.write(text);
  if (!saved.commit()) return saved.errorString();
  return std::nullopt;
}

}  // namespace

fs::path RunQueue::default_directory() {
  return to_path(QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation)) / "ferry" /
         "queue";
}

RunQueue::RunQueue(AppSettings& settings,
                   Launcher& launcher,
                   RunListModel& runs,
                   fs::path directory,
                   QObject* parent)
    : QAbstractListModel(parent),
      settings_(settings),
      launcher_(launcher),
      runs_(runs),
      directory_(std::move(directory)) {
  connect(&launcher_, &Launcher::started, this,
          [this](const fs::path& run) { end_start(run, {}); });
  connect(&launcher_, &Launcher::failed, this, [this](const fs::path& run, const QString& message) {
    end_start(run, message.isEmpty() ? tr("It could not be started.") : message);
  });
  connect(&settings_, &AppSettings::changed, this, &RunQueue::tell);
  connect(&timer_, &QTimer::timeout, this, &RunQueue::look);
  timer_.start(kQueueLookMs);
  take_lock();
  read_directory();
}

RunQueue::~RunQueue() = default;

fs::path RunQueue::file_of(const Entry& entry) const {
  return directory_ / to_path(entry.id + ".toml");
}

void RunQueue::take_lock() {
  if (is_ours_) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  if (!lock_) {
    lock_ = std::make_unique<QLockFile>(path_text(directory_ / "lock"));
    lock_->setStaleLockTime(0);  // held as long as its process lives
  }
  is_ours_ = lock_->tryLock(0);
  if (is_ours_) stamp_.clear();
}

std::optional<QString> RunQueue::add(const config::Config& settings, QString title) {
  take_lock();
  const QByteArray text = toml_of(settings, title);
  QString id = QDateTime::currentDateTimeUtc().toString("yyyyMMdd-hhmmss-zzz");
  for (int n = 2; is_there(directory_ / to_path(id + ".toml")); ++n)
    id = id.section('_', 0, 0) + '_' + QString::number(n).rightJustified(4, '0');
  if (const auto trouble = write_whole(directory_ / to_path(id + ".toml"), text))
    return tr("The queue cannot be written: %1").arg(*trouble);
  read_directory();
  return std::nullopt;
}

// The files in the directory.

std::vector<RunQueue::Entry> RunQueue::read_order() const {
  QFile file(path_text(directory_ / kOrder));
  if (!file.open(QIODevice::ReadOnly)) return entries_;
  // A damaged one costs the order, not the entries.
  const QJsonArray order = QJsonDocument::fromJson(file.readAll()).array();
  std::vector<Entry> entries;
  for (const QJsonValue& value : order) {
    const QJsonObject known = value.toObject();
    Entry entry{.id = known["id"].toString(), .title = {}, .about = {}, .trouble = {}, .run = {}};
    if (entry.id.isEmpty() || entry.id.contains('/') || !is_there(file_of(entry))) continue;
    entry.trouble = known["trouble"].toString();
    entry.run = to_path(known["run"].toString());
    entry.pid = static_cast<pid_t>(known["pid"].toInt());
    // Its start was under way when the app that did it ended.
    if (is_of_former_app(entry)) {
      // Asked first: a process may write its run.json and end in between.
      const bool is_alive = Launcher::is_start_of(entry.pid, entry.run);
      if (is_there(entry.run / "run.json")) {
        std::error_code error;
        fs::remove(file_of(entry), error);
        if (!error) continue;
        // Without a trouble it would be started again.
        entry.trouble =
            tr("The queue cannot be written: %1").arg(QString::fromStdString(error.message()));
        entry.run.clear();
      } else if (!is_alive) {
        entry.run.clear();
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

bool RunQueue::is_of_former_app(const Entry& entry) const {
  return is_ours_ && !entry.run.empty() && !launcher_.is_starting(entry.run);
}

void RunQueue::look_at_former_starts() {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!is_of_former_app(entries_[i])) continue;
    const fs::path run = entries_[i].run;
    const bool is_alive = Launcher::is_start_of(entries_[i].pid, run);
    if (is_there(run / "run.json")) return end_start(run, {});  // the list is another one now
    if (is_alive) continue;
    // Why it ended nobody heard: it waits again.
    free_since_pass_ = -1;
    entries_[i].run.clear();
    change(static_cast<int>(i));
  }
}

void RunQueue::read_directory() {
  const auto time = file_stamp(directory_);
  const QString stamp = time ? QString::number(time->changed_ns) : QString();
  if (stamp == stamp_) return;
  stamp_ = stamp;
  const auto trouble = trouble_of([&] {
    std::vector<QString> ids;
    std::error_code error;
    for (fs::directory_iterator it(directory_, error), end; !error && it != end;
         it.increment(error))
      if (it->path().extension() == ".toml") ids.push_back(path_text(it->path().stem()));
    std::sort(ids.begin(), ids.end());
    // Nothing throws between the model's begin and end.
    std::vector<Entry> entries = read_order();
    for (const QString& id : ids)
      if (is_there(directory_ / to_path(id + ".toml")) &&
          std::none_of(entries.begin(), entries.end(),
                       [&](const Entry& entry) { return entry.id == id; }))
        entries.push_back({.id = id, .title = {}, .about = {}, .trouble = {}, .run = {}});
    for (Entry& entry : entries) {
      entry.title = title_in(file_of(entry));
      const auto wrong = words_of_trouble([&] {
        config::Config settings;
        config::read_toml_file(settings, file_of(entry), config::Source::file);
        const QString model = name_in_queue(settings.maybe_text("model_name_or_path").value_or("")),
                      data = name_in_queue(settings.maybe_text("dataset").value_or(""));
        entry.about = data.isEmpty()
                          ? model
                          : tr("%1 on %2", "model on data").arg(isolated(model), isolated(data));
      });
      if (wrong) entry.trouble = *wrong;
      if (entry.title.isEmpty()) entry.title = entry.about.isEmpty() ? entry.id : entry.about;
    }
    const bool is_other =
        !std::equal(entries.begin(), entries.end(), entries_.begin(), entries_.end(),
                    [](const Entry& one, const Entry& other) { return one.id == other.id; });
    beginResetModel();
    entries_ = std::move(entries);
    endResetModel();
    if (is_other && is_ours_ && !entries_.empty()) write_order();
  });
  trouble_ = trouble.value_or(QString());
  tell();
}

void RunQueue::write_order() {
  QJsonArray order;
  for (const Entry& entry : entries_) {
    QJsonObject known{{"id", entry.id}};
    if (!entry.trouble.isEmpty()) known["trouble"] = entry.trouble;
    if (!entry.run.empty()) {
      known["run"] = path_text(entry.run);
      known["pid"] = static_cast<qint64>(entry.pid);
    }
    order.append(known);
  }
  // A disk that is full costs the order at the next start of the app, nothing else.
  write_whole(directory_ / kOrder, QJsonDocument(order).toJson());
  if (const auto time = file_stamp(directory_)) stamp_ = QString::number(time->changed_ns);
}

// Actions of the user.

void RunQueue::move(int row, int by) {
  const int to = row + by;
  if (!is_ours_ || row < 0 || row >= rowCount() || to < 0 || to >= rowCount() || by == 0) return;
  beginMoveRows({}, row, row, {}, by > 0 ? to + 1 : to);
  Entry entry = std::move(entries_[static_cast<size_t>(row)]);
  entries_.erase(entries_.begin() + row);
  entries_.insert(entries_.begin() + to, std::move(entry));
  endMoveRows();
  write_order();
  emit dataChanged(index(0), index(rowCount() - 1));
  tell();
}

void RunQueue::remove(int row) {
  if (!is_ours_ || row < 0 || row >= rowCount()) return;
  drop(row);
}

void RunQueue::drop(int row) {
  std::error_code error;
  fs::remove(file_of(entries_[static_cast<size_t>(row)]), error);
  beginRemoveRows({}, row, row);
  entries_.erase(entries_.begin() + row);
  endRemoveRows();
  write_order();
  if (!entries_.empty()) emit dataChanged(index(0), index(rowCount() - 1));
  tell();
}

void RunQueue::start_now(int row) {
  if (!is_ours_ || row < 0 || row >= rowCount()) return;
  start(row);
}

// Starting.

void RunQueue::start(int row) {
  Entry& entry = entries_[static_cast<size_t>(row)];
  if (!entry.run.empty()) return;
  entry.trouble.clear();
  config::Config settings;
  if (const auto trouble = words_of_trouble(
          [&] { config::read_toml_file(settings, file_of(entry), config::Source::file); })) {
    entry.trouble = *trouble;
    return change(row);
  }
  const QString id = entry.id;
  const fs::path run = launcher_.start(settings, settings_.runs_directory());
  // A listener to the start may have changed the list.
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& other) { return other.id == id; });
  if (found == entries_.end()) return;
  if (run.empty()) {
    found->trouble = tr("The program ferry is not beside this app. Install both together.");
  } else {
    found->run = run;
    found->pid = launcher_.pid_of(run);
  }
  change(static_cast<int>(found - entries_.begin()));
}

void RunQueue::change(int row) {
  emit dataChanged(index(row), index(row));
  write_order();
  tell();
}

int RunQueue::row_starting(const fs::path& run) const {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (!entries_[i].run.empty() && entries_[i].run == run) return static_cast<int>(i);
  return -1;
}

void RunQueue::end_start(const fs::path& run, const QString& trouble) {
  const int row = run.empty() ? -1 : row_starting(run);
  if (row < 0) return;
  free_since_pass_ = -1;
  // The same settings twice are one start.
  for (Entry& entry : entries_)
    if (entry.run == run) entry.run.clear();
  if (trouble.isEmpty()) return drop(row);
  entries_[static_cast<size_t>(row)].trouble = trouble;
  change(row);
}

int RunQueue::next() const {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].trouble.isEmpty() && entries_[i].run.empty()) return static_cast<int>(i);
  return -1;
}

/** No run has a process here, and that was so for a while. */
bool RunQueue::is_free() {
  const bool is_one_starting = !launcher_.starting().empty() ||
                               std::any_of(entries_.begin(), entries_.end(),
                                           [](const Entry& entry) { return !entry.run.empty(); });
  if (is_one_starting || runs_.is_loading() || !runs_.running().empty()) {
    free_since_pass_ = -1;
    return false;
  }
  if (free_since_pass_ < 0) free_since_pass_ = runs_.n_passes();
  return runs_.n_passes() - free_since_pass_ >= kFreePasses;
}

void RunQueue::look() {
  take_lock();
  read_directory();
  look_at_former_starts();
  if (is_ours_ && settings_.is_queue_on() && next() >= 0 && is_free() && why_not_now().isEmpty())
    start(next());
  tell();
}

void RunQueue::tell() {
  const QString now = status();
  if (now == status_) return;
  status_ = now;
  emit status_changed();
}

QString RunQueue::status() const {
  if (!is_ours_ && lock_ && lock_->error() == QLockFile::PermissionError)
    return tr("The queue cannot be written: %1").arg(shown_path(directory_));
  if (!is_ours_) return tr("Another Ferry app on this machine works on the queue.");
  if (!trouble_.isEmpty()) return trouble_;
  const int first = next();
  for (const Entry& entry : entries_)
    if (!entry.run.empty()) return tr("Starting %1").arg(isolated(entry.title));
  if (first < 0) return {};
  const QString title = isolated(entries_[static_cast<size_t>(first)].title);
  if (!settings_.is_queue_on()) return tr("The queue is off: it starts nothing by itself.");
  const std::vector<RunListModel::Running> running = runs_.running();
  if (!running.empty())
    return tr("Next: %1, when %2 has ended").arg(title, isolated(run_name(running[0].path)));
  if (const QString why = why_not_now(); !why.isEmpty()) return tr("Next: %1. %2").arg(title, why);
  return tr("Next: %1, in a moment").arg(title);
}

// The list.

int RunQueue::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(entries_.size());
}

QVariant RunQueue::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const Entry& entry = entries_[static_cast<size_t>(index.row())];
  const auto state = [&] {
    if (!entry.run.empty()) return tr("Starting");
    if (!entry.trouble.isEmpty()) return tr("Could not start");
    if (index.row() == next()) return tr("Next");
    return tr("Waits");
  };
  switch (role) {
    case Qt::DisplayRole:
    case title_role:
      return entry.title;
    case state_role:
      return state();
    case trouble_role:
    case Qt::ToolTipRole:
      return entry.trouble;
    case about_role:
      return entry.about;
    case Qt::AccessibleTextRole:
      return tr("%1, %2: %3. %4")
          .arg(index.row() + 1)
          .arg(entry.title, state(), entry.trouble.isEmpty() ? entry.about : entry.trouble);
    default:
      return {};
  }
}

}  // namespace ferry::gui
