#include "gui/models/runs/run_list_model.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "gui/models/runs/run_list_row.h"
#include "gui/models/runs/run_progress.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/config/config.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/index/run_index.h"
#include "src/runs/index/run_list.h"

namespace ferry::gui {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::ordered_json;
using service::RunFacts;
using service::Trainer;

namespace {

constexpr auto kSlice = 5ms;  // of a turn; one look more may come on top
constexpr int kActiveMs = 250, kIdleMs = 2000;
constexpr int kLooksAMoment = 64, kLooksIdle = 125;  // runs that have ended, in a turn
constexpr auto kSearchPeriod = 2s, kSearchAnyway = 20s;
constexpr auto kGoneShown = 10s;
constexpr size_t kCurvePoints = 48, kReadBytes = size_t{96} << 10;

QString this_host() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return QString::fromUtf8(host);
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

}  // namespace

RunListModel::RunListModel(AppSettings& settings, Launcher& launcher, QObject* parent)
    : QAbstractTableModel(parent), settings_(settings), launcher_(launcher), search_(this) {
  connect(&timer_, &QTimer::timeout, this, &RunListModel::look);
  connect(&launcher_, &Launcher::started, this, [this](const fs::path& run) { note_start(run); });
  connect(&launcher_, &Launcher::failed, this, [this](const fs::path& run, const QString& message) {
    const int row = row_of(run);
    if (row < 0 || message.isEmpty()) return;
    rows_[static_cast<size_t>(row)]->is_starting = false;
    rows_[static_cast<size_t>(row)]->start_failure = message;
    tell_change(row);
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
  const int row = row_of(run);
  if (row < 0) return;
  remove(row);
  emit looked();
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
  if (look_at(started)) tell_change(row);
}

/** Tells of a change between two turns. Details and buttons follow at once, as after a turn. */
void RunListModel::tell_change(int row) {
  emit dataChanged(index(row, 0), index(row, kColumns - 1));
  emit looked();
}

void RunListModel::tell_news() {
  for (const fs::path& run : std::exchange(ended_, {}))
    emit ended(run);
  for (const fs::path& run : std::exchange(waiting_, {}))
    emit waits_for_room(run);
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
  tell_news();
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
    if (was_alive && gui::waits_for_room(row.watch.facts()) && !gui::waits_for_room(row.facts))
      waiting_.push_back(row.path);
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
  const QString trouble =
      is_gone ? tr("Its directory was removed.") : message_of(to_text(row.watch.trouble())).text;
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

}  // namespace ferry::gui
