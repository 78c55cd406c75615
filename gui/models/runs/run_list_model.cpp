#include "gui/models/runs/run_list_model.h"

#include <unistd.h>

#include <QLocale>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "gui/models/runs/run_progress.h"
#include "gui/models/text.h"
#include "src/config/config.h"
#include "src/files/file_stamp.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/index/run_index.h"
#include "src/runs/index/run_list.h"
#include "src/service/runs/metrics_reader.h"
#include "src/service/runs/run_watch.h"

namespace ferry::gui {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::ordered_json;
using service::RunFacts;
using service::Trainer;

namespace {

constexpr auto kSlice = 5ms;  // of a turn; one look more may come on top
constexpr int kActiveMs = 250, kIdleMs = 2000;
constexpr int kLooksAMoment = 64, kLooksIdle = 250;  // runs that have ended, in a turn
constexpr auto kSearchPeriod = 2s, kSearchAnyway = 20s;
constexpr auto kGoneShown = 10s;
constexpr size_t kCurvePoints = 48, kReadBytes = size_t{96} << 10;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

QString this_host() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return QString::fromUtf8(host);
}

int64_t steps_in(const ordered_json& record) {
  if (!record.is_object()) return 0;
  const auto found = record.find("n_steps");
  return found != record.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

fs::path key_of(const fs::path& run) {
  std::error_code error;
  const fs::path key = fs::weakly_canonical(fs::absolute(run, error), error);
  return error ? run.lexically_normal() : key.has_filename() ? key : key.parent_path();
}

/** By which a run has its place in the list, where it does not say when it was made. */
QString time_of_directory(const fs::path& run) {
  const auto stamp = file_stamp(run);
  if (!stamp) return {};
  return QDateTime::fromMSecsSinceEpoch(stamp->changed_ns / 1'000'000, Qt::UTC)
      .toString(Qt::ISODate);
}

QString created_of(const fs::path& run) {
  try {
    if (const QString created = text_in(runs::read_record(run), "created"); !created.isEmpty())
      return created;
  } catch (const std::exception&) {  // its row says so
  }
  return time_of_directory(run);
}

std::vector<fs::path> runs_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error, none;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (fs::is_regular_file(it->path() / "run.json", none)) found.push_back(it->path());
  return found;
}

QString stamp_text(const fs::path& path) {
  const auto stamp = file_stamp(path);
  if (!stamp) return {};
  return QString::number(stamp->inode) + '/' + QString::number(stamp->n_bytes) + '/' +
         QString::number(stamp->changed_ns);
}

/** The task of a run's settings; empty where they cannot be read. */
QString task_of(const fs::path& run) {
  try {
    config::Config config;
    config::read_toml_file(config, run / "config.toml", config::Source::file);
    return to_text(config.text("task"));
  } catch (const std::exception&) {
    return {};
  }
}

QString number_text(double value) {
  return std::isfinite(value) ? QLocale().toString(value, 'g', 4) : QString();
}

/** The last part of a path or of the hub's name of something. */
QString short_name(const QString& path) {
  const QString trimmed = path.endsWith('/') ? path.chopped(1) : path;
  return trimmed.section('/', -1);
}

}  // namespace

struct RunListModel::Row {
  Row(fs::path run, fs::path its_key, QString when)
      : path(run), key(std::move(its_key)), created(std::move(when)), watch(std::move(run)) {}

  fs::path path, key;
  QString created;
  service::RunWatch watch;
  RunFacts facts;  ///< as they were told last
  std::optional<FileStamp> record_stamp;
  QString trouble;
  bool is_looked_at = false;
  bool is_starting = false;
  QString start_failure;
  std::optional<Clock::time_point> gone_since;

  /** Kept only while there is something to read: a list of hundreds stays small. */
  std::unique_ptr<service::MetricsReader> metrics;
  bool is_read = false;  ///< to its end, and the run has ended
  bool is_behind = false;
  double loss = kNone, speed = kNone, seconds = 0;
  std::optional<double> host_bytes;  ///< at the last step
  int64_t n_steps = 0;
  QVariantList curve;
  bool has_task = false;
  QString task;

  bool is_alive() const { return facts.trainer != Trainer::none || is_starting; }
};

RunListModel::RunListModel(AppSettings& settings, Launcher& launcher, QObject* parent)
    : QAbstractTableModel(parent), settings_(settings), launcher_(launcher), search_(this) {
  connect(&timer_, &QTimer::timeout, this, &RunListModel::look);
  connect(&launcher_, &Launcher::started, this, [this](const fs::path& run) { note_start(run); });
  connect(&launcher_, &Launcher::failed, this, [this](const fs::path& run, const QString& message) {
    const int row = row_of(run);
    if (row < 0 || message.isEmpty()) return;
    rows_[static_cast<size_t>(row)]->is_starting = false;
    rows_[static_cast<size_t>(row)]->start_failure = message;
    emit dataChanged(index(row, 0), index(row, kColumns - 1));
  });
  timer_.start(0);  // soon, once the window is there
}

RunListModel::~RunListModel() = default;

void RunListModel::set_active(bool active) {
  if (is_active_ == active) return;
  is_active_ = active;
  has_more_to_read_ = true;
  if (active) is_search_wanted_ = true;
  set_pace();
}

void RunListModel::refresh() {
  is_search_wanted_ = true;
  timer_.start(0);
}

void RunListModel::set_pace() {
  timer_.start(has_more_to_read_ ? 0 : is_active_ ? kActiveMs : kIdleMs);
}

// Searching.

void RunListModel::search_when_due() {
  if (is_searching_) return;
  const auto now = Clock::now();
  if (!is_search_wanted_) {
    if (now - last_search_ < kSearchPeriod) return;
    // A run is entered into the index once its record is there.
    const std::vector<QString> sources = {stamp_text("runs"),
                                          stamp_text(settings_.runs_directory()),
                                          stamp_text(runs::RunIndex::default_file())};
    if (sources == sources_seen_ && now - last_search_ < kSearchAnyway) return;
    sources_seen_ = sources;
  }
  last_search_ = now;
  is_search_wanted_ = false;
  is_searching_ = true;
  std::set<fs::path> known;
  for (const auto& row : rows_)
    known.insert(row->key);
  search_.post([this, seen = std::move(known),
                directory = settings_.runs_directory()](const LatestWorker::Turn& turn) mutable {
    // Entering hundreds into the index takes long the first time: those that lie here come
    // before.
    for (const bool is_last : {false, true}) {
      std::vector<Found> found;
      try {
        std::vector<fs::path> paths = is_last ? runs::known_runs() : runs_in(directory);
        if (!is_last)
          for (fs::path& run : runs_in("runs"))
            paths.push_back(std::move(run));
        for (const fs::path& run : paths) {
          fs::path key = key_of(run);
          if (!seen.insert(key).second) continue;
          QString created = created_of(run);
          found.push_back({key, key, std::move(created)});
        }
      } catch (const std::exception&) {  // what was found is shown
      }
      turn.deliver([this, is_last, found = std::move(found)] { take_found(found, is_last); });
    }
  });
}

void RunListModel::take_found(const std::vector<Found>& found, bool is_last) {
  is_searching_ = !is_last;
  std::vector<std::unique_ptr<Row>> rows;
  for (const Found& run : found)
    rows.push_back(std::make_unique<Row>(run.path, run.key, run.created));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a->created > b->created; });
  if (!rows.empty()) has_more_to_read_ = true;
  if (rows_.empty() && !rows.empty()) {
    beginInsertRows({}, 0, static_cast<int>(rows.size()) - 1);
    rows_ = std::move(rows);
    endInsertRows();
  } else {
    for (auto& row : rows)
      if (row_of(row->key) < 0) add(std::move(row));
  }
  has_searched_ |= is_last;
  set_pace();
  emit searched(is_last);
}

void RunListModel::add(std::unique_ptr<Row> row) {
  const auto place = std::find_if(rows_.begin(), rows_.end(), [&](const auto& other) {
    return other->created <= row->created;
  });
  const int at = static_cast<int>(place - rows_.begin());
  beginInsertRows({}, at, at);
  rows_.insert(place, std::move(row));
  endInsertRows();
}

void RunListModel::remove(int row) {
  beginRemoveRows({}, row, row);
  rows_.erase(rows_.begin() + row);
  endRemoveRows();
}

void RunListModel::forget(const fs::path& run) {
  if (const int row = row_of(run); row >= 0) remove(row);
}

/** A run that is being started, or was a moment ago, has a row whether or not it was found. */
void RunListModel::note_start(const fs::path& run) {
  int row = row_of(run);
  if (row < 0) {
    add(std::make_unique<Row>(run, key_of(run),
                              QDateTime::currentDateTimeUtc().toString(Qt::ISODate)));
    row = row_of(run);
  }
  Row& started = *rows_[static_cast<size_t>(row)];
  started.path = run;
  started.start_failure.clear();
  started.is_starting = launcher_.is_starting(run);
  if (look_at(started)) emit dataChanged(index(row, 0), index(row, kColumns - 1));
}

void RunListModel::tell_ended() {
  for (const fs::path& run : std::exchange(ended_, {}))
    emit ended(run);
}

void RunListModel::follow_launcher() {
  for (const fs::path& run : launcher_.starting()) {
    const int row = row_of(run);
    if (row < 0 || !rows_[static_cast<size_t>(row)]->is_starting) note_start(run);
  }
}

// Looking.

void RunListModel::look() {
  const auto until = Clock::now() + kSlice;
  search_when_due();
  follow_launcher();
  bool has_changed = false;
  has_more_to_read_ = false;
  const auto look_at_row = [&](int row) {
    if (!look_at(*rows_[static_cast<size_t>(row)])) return;
    has_changed = true;
    emit dataChanged(index(row, 0), index(row, kColumns - 1));
  };
  for (int row = 0; row < rowCount() && Clock::now() < until; ++row)
    if (rows_[static_cast<size_t>(row)]->is_alive()) look_at_row(row);
  const int n = is_active_ ? kLooksAMoment : kLooksIdle;
  int n_looks = 0;
  for (size_t i = 0; i < rows_.size() && n_looks < n && Clock::now() < until; ++i) {
    if (next_ >= rows_.size()) {
      next_ = 0;
      ++n_passes_;
    }
    const auto row = static_cast<int>(next_++);
    if (rows_[static_cast<size_t>(row)]->is_alive()) continue;
    // One that has to be read yet does not count: it goes on as long as there is time.
    const bool is_new = !rows_[static_cast<size_t>(row)]->is_looked_at;
    look_at_row(row);
    if (!is_new) ++n_looks;
  }
  if (rows_.empty() && has_searched_) ++n_passes_;
  for (int row = rowCount() - 1; row >= 0; --row) {
    const Row& shown = *rows_[static_cast<size_t>(row)];
    if (!shown.gone_since || Clock::now() - *shown.gone_since < kGoneShown) continue;
    remove(row);
    has_changed = true;
  }
  for (const auto& row : rows_)
    if (!row->is_looked_at ||
        (is_active_ && !row->gone_since &&
         (row->is_behind || !row->has_task || (!row->is_read && !row->is_alive()))))
      has_more_to_read_ = true;
  set_pace();
  if (has_changed) emit looked();
  tell_ended();
}

/** True where its row changed. */
bool RunListModel::look_at(Row& row) {
  row.watch.look();
  bool has_changed = !row.is_looked_at;
  const bool was_starting = row.is_starting, was_alive = row.is_looked_at && row.is_alive();
  row.is_starting = launcher_.is_starting(row.path);
  if (row.is_starting) row.start_failure.clear();
  has_changed |= was_starting != row.is_starting;
  const auto stamp = file_stamp(row.path / "run.json");
  if (stamp != row.record_stamp) {
    row.record_stamp = stamp;
    has_changed = true;
  }
  if (!(row.facts == row.watch.facts())) {
    row.facts = row.watch.facts();
    has_changed = true;
  }
  if (was_alive && !row.is_alive() && has_ended(row.facts.phase)) ended_.push_back(row.path);
  if (row.facts.trainer != Trainer::none) row.is_read = false;  // it goes on, or goes on again
  std::error_code error;
  const bool is_gone = !row.record_stamp && !row.is_starting && row.start_failure.isEmpty() &&
                       !fs::exists(row.path, error);
  if (is_gone != row.gone_since.has_value()) {
    row.gone_since = is_gone ? std::optional(Clock::now()) : std::nullopt;
    has_changed = true;
  }
  const QString trouble = is_gone ? tr("Its directory was removed.") : to_text(row.watch.trouble());
  if (trouble != row.trouble) {
    row.trouble = trouble;
    has_changed = true;
  }
  // All rows first get their state, then their curves.
  if (!row.is_looked_at)
    row.is_looked_at = true;
  else if (is_active_ && !is_gone)
    has_changed |= read_on(row);
  return has_changed;
}

bool RunListModel::read_on(Row& row) {
  if (row.is_read) {
    if (row.has_task) return false;
    row.has_task = true;
    row.task = task_of(row.path);
    return !row.task.isEmpty();
  }
  if (!row.metrics) row.metrics = std::make_unique<service::MetricsReader>(row.path, kCurvePoints);
  const service::MetricsReader::Poll poll = row.metrics->poll(kReadBytes);
  const service::MetricsReader& metrics = *row.metrics;
  row.is_behind = poll.is_behind;
  const bool has_changed = poll.has_changed || poll.is_anew;
  if (has_changed) {
    row.loss = metrics.mean_loss();
    row.n_steps = metrics.n_steps();
    row.seconds = metrics.training_seconds();
    const service::Series* speed = metrics.find("train_tokens_per_second");
    row.speed = speed ? speed->last() : kNone;
    row.host_bytes = used_host_bytes(metrics);
    row.curve.clear();
    if (const service::Series* loss = metrics.find("loss"))
      for (const service::SeriesPoint& point : loss->points())
        row.curve << (point.n_finite > 0 ? point.mean : kNone);
  }
  if (!poll.is_behind && row.facts.trainer == Trainer::none) {
    row.is_read = true;
    row.metrics.reset();
  } else if (!poll.is_behind && !row.has_task) {
    row.has_task = true;
    row.task = task_of(row.path);
    return true;
  }
  return has_changed;
}

// Questions of others.

int RunListModel::row_of(const fs::path& run) const {
  for (size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i]->path.native() == run.native()) return static_cast<int>(i);
  const fs::path key = key_of(run);
  for (size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i]->key.native() == key.native()) return static_cast<int>(i);
  return -1;
}

const fs::path& RunListModel::path_of(int row) const {
  return rows_[static_cast<size_t>(row)]->path;
}
const RunFacts& RunListModel::facts_of(int row) const {
  return rows_[static_cast<size_t>(row)]->facts;
}
const ordered_json& RunListModel::record_of(int row) const {
  return rows_[static_cast<size_t>(row)]->watch.record();
}
service::AllowedActions RunListModel::allowed(int row) const {
  return service::allowed_actions(facts_of(row));
}
bool RunListModel::is_starting(int row) const {
  return rows_[static_cast<size_t>(row)]->is_starting;
}
QString RunListModel::trouble_of_row(int row) const {
  const Row& shown = *rows_[static_cast<size_t>(row)];
  if (shown.is_starting) return {};
  return shown.start_failure.isEmpty() ? shown.trouble : shown.start_failure;
}

QString RunListModel::why_ended_of(int row) const {
  const Row& shown = *rows_[static_cast<size_t>(row)];
  if (shown.is_alive()) return {};
  return why_ended(shown.watch.record(), shown.facts, shown.host_bytes, read_host_room());
}

std::vector<RunListModel::Running> RunListModel::running() const {
  std::vector<Running> all;
  for (const auto& row : rows_) {
    const ordered_json& record = row->watch.record();
    const bool is_here =
        row->facts.trainer == Trainer::here ||
        (row->facts.trainer == Trainer::elsewhere && text_in(record, "host") == this_host());
    if (!is_here && !row->is_starting) continue;
    Running run{.path = row->path, .facts = row->facts, .is_starting = row->is_starting};
    if (record.is_object()) {
      const auto pid = record.find("pid");
      run.process =
          (pid != record.end() && pid->is_number_integer() ? QString::number(pid->get<int64_t>())
                                                           : QString()) +
          '@' + text_in(record, "started");
      run.gpu_bytes = planned_gpu_bytes(record);
    }
    all.push_back(std::move(run));
  }
  return all;
}

// The table.

int RunListModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int RunListModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kColumns;
}

QVariant RunListModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= kColumns) return {};
  const bool is_number = section == loss || section == time || section == speed;
  if (role == Qt::TextAlignmentRole)
    return int(Qt::AlignVCenter | (is_number ? Qt::AlignRight : Qt::AlignLeft));
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case state:
      return tr("State");
    case name:
      return tr("Name");
    case model:
      return tr("Model");
    case data_set:
      return tr("Data and task");
    case loss:
      return tr("Loss");
    case curve:
      return tr("Curve");
    case progress:
      return tr("Progress");
    case time:
      return tr("Time");
    case speed:
      return tr("Tokens/s");
    default:
      return tr("Started");
  }
}

QVariant RunListModel::shown(const Row& row, int column) const {
  const ordered_json& record = row.watch.record();
  const QLocale locale;
  switch (column) {
    case state:
      if (row.is_starting) return tr("Starting");
      if (!row.start_failure.isEmpty()) return tr("Not started");
      if (row.gone_since) return tr("Removed");
      return row.is_looked_at ? state_text(row.facts) : tr("Reading");
    case name:
      return run_name(row.path);
    case model:
      return short_name(text_in(record, "model"));
    case data_set: {
      const QString data = short_name(text_in(record, "dataset"));
      if (row.task.isEmpty()) return data;
      return data.isEmpty() ? row.task : tr("%1 (%2)", "data and task").arg(data, row.task);
    }
    case loss:
      return number_text(row.loss);
    case curve:
      return {};
    case progress: {
      const int64_t all = steps_in(record);
      if (all <= 0) return row.n_steps > 0 ? locale.toString(qlonglong{row.n_steps}) : QString();
      const int percent = static_cast<int>(100.0 * static_cast<double>(std::min(row.n_steps, all)) /
                                           static_cast<double>(all));
      return tr("%3 % (%1/%2)", "steps done, all steps, percent")
          .arg(locale.toString(qlonglong{row.n_steps}), locale.toString(qlonglong{all}))
          .arg(percent);
    }
    case time:
      return row.seconds >= 1 ? duration_text(row.seconds) : QString();
    case speed:
      return std::isfinite(row.speed) ? locale.toString(qlonglong(std::llround(row.speed)))
                                      : QString();
    default:
      return time_text(time_of_record(record, "started"));
  }
}

QVariant RunListModel::sorted_by(const Row& row, int column) const {
  const ordered_json& record = row.watch.record();
  const auto number = [](double value) { return std::isfinite(value) ? value : -1.0; };
  switch (column) {
    case state:
      return static_cast<int>(run_group(row.facts.phase)) * 2 + (row.is_alive() ? 0 : 1);
    case loss:
      return std::isfinite(row.loss) ? row.loss : std::numeric_limits<double>::max();
    case curve:
    case progress: {
      const int64_t all = steps_in(record);
      return all > 0 ? static_cast<double>(row.n_steps) / static_cast<double>(all) : -1.0;
    }
    case time:
      return row.seconds;
    case speed:
      return number(row.speed);
    case started: {
      const QString at = text_in(record, "started");
      return at.isEmpty() ? row.created : at;
    }
    default:
      return shown(row, column).toString().toCaseFolded();
  }
}

QString RunListModel::spoken(const Row& row, int column) const {
  const QString text = shown(row, column).toString();
  if (column != curve) {
    const QString header = headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
    return tr("%1: %2", "column and value").arg(header, text.isEmpty() ? tr("none") : text);
  }
  double first = kNone, last = kNone;
  int n_gaps = 0;
  for (const QVariant& value : row.curve) {
    const double loss = value.toDouble();
    if (!std::isfinite(loss)) {
      ++n_gaps;
      continue;
    }
    if (!std::isfinite(first)) first = loss;
    last = loss;
  }
  if (!std::isfinite(first)) return tr("Loss curve: none");
  const QString way = last < first ? tr("falling") : last > first ? tr("rising") : tr("level");
  const QString said =
      tr("Loss curve: from %1 to %2, %3").arg(number_text(first), number_text(last), way);
  return n_gaps > 0 ? tr("%1; it has values that are not finite").arg(said) : said;
}

QVariant RunListModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount() || index.column() >= kColumns) return {};
  const Row& row = *rows_[static_cast<size_t>(index.row())];
  const ordered_json& record = row.watch.record();
  switch (role) {
    case Qt::DisplayRole:
      return shown(row, index.column());
    case Qt::AccessibleTextRole:
      return spoken(row, index.column());
    case Qt::TextAlignmentRole:
      return headerData(index.column(), Qt::Horizontal, Qt::TextAlignmentRole);
    case Qt::ToolTipRole:
      switch (index.column()) {
        case state: {
          const QString trouble = trouble_of_row(index.row());
          return trouble.isEmpty() ? why_ended_of(index.row()) : trouble;
        }
        case name:
          return path_text(row.path);
        case model:
          return text_in(record, "model");
        case data_set:
          return text_in(record, "dataset");
        case curve:
          return spoken(row, curve);
        default:
          return {};
      }
    case path_role:
      return path_text(row.path);
    case group_role:
      return static_cast<int>(row.is_starting                ? RunGroup::running
                              : !row.start_failure.isEmpty() ? RunGroup::failed
                                                             : run_group(row.facts.phase));
    case sort_role:
      return sorted_by(row, index.column());
    case sparkline_role:
      return row.curve;
    case progress_role: {
      const int64_t all = steps_in(record);
      if (all <= 0) return {};
      return std::clamp(static_cast<double>(row.n_steps) / static_cast<double>(all), 0.0, 1.0);
    }
    case search_role:
      return QStringList{shown(row, state).toString(), run_name(row.path),
                         path_text(row.path),          text_in(record, "model"),
                         text_in(record, "dataset"),   row.task}
          .join('\n');
    default:
      return {};
  }
}

}  // namespace ferry::gui
