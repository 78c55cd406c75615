#include "gui/models/runs/run_keeper.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <QLocale>
#include <QTimeZone>
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "gui/models/text.h"
#include "src/base/bytes.h"
#include "src/service/machine/gpu_meter.h"
#include "src/service/machine/nvidia.h"

namespace ferry::gui {

namespace fs = std::filesystem;
using Running = RunListModel::Running;

namespace {

constexpr int kKeeperLookMs = 1000;
constexpr const char* kKeptKey = "keeper/paused";
/** A program that only begins and ends is not made way for; one that changes its scenes is not
 * taken for gone. */
constexpr qint64 kWantedSeconds = 5, kFreeSeconds = 30;
constexpr qint64 kAskAgainSeconds = 60;
/** Held by a process of a run beside what it plans with: libraries and the driver's context. */
constexpr int64_t kContextBytes = 700 * kMiB;
constexpr int64_t kThresholdMib = 1024;
/** Before that not every run was looked at, and none may be taken for gone. */
constexpr int64_t kKeeperPasses = 2;

}  // namespace

bool is_within_hours(const QDateTime& now, QTime from, QTime until) {
  if (from == until) return true;
  // Instants, not times of day: an hour that comes twice has one end.
  const auto at = [&](int days, QTime time) {
    const QDate date = now.date().addDays(days);
    return (now.timeSpec() == Qt::TimeZone ? QDateTime(date, time, now.timeZone())
                                           : QDateTime(date, time, now.timeSpec()))
        .toMSecsSinceEpoch();
  };
  const qint64 instant = now.toMSecsSinceEpoch();
  for (const int days : {-1, 0})
    if (at(days, from) <= instant && instant < at(until > from ? days : days + 1, until))
      return true;
  return false;
}

struct GpuMemoryReader::Shared {
  std::mutex mutex;
  std::condition_variable_any wakes;
  std::optional<int64_t> used;
  std::chrono::steady_clock::time_point asked{};
  std::jthread thread;
};

GpuMemoryReader::GpuMemoryReader() : shared_(std::make_unique<Shared>()) {}

GpuMemoryReader::~GpuMemoryReader() {
  shared_->thread.request_stop();
  shared_->wakes.notify_all();
}

std::optional<int64_t> GpuMemoryReader::used_bytes() {
  using Clock = std::chrono::steady_clock;
  using namespace std::chrono_literals;
  const std::scoped_lock lock(shared_->mutex);
  shared_->asked = Clock::now();
  shared_->wakes.notify_all();
  if (shared_->thread.joinable()) return shared_->used;
  // Opening the driver's library takes tens of milliseconds.
  shared_->thread = std::jthread([shared = shared_.get()](std::stop_token stop) {
    const service::Nvidia nvidia = service::read_nvidia();
    const service::Gpu* gpu = service::first_visible_gpu(nvidia);
    if (!gpu) return;
    const service::GpuMeter meter;
    while (!stop.stop_requested()) {
      const auto used = meter.read(static_cast<int>(gpu - nvidia.gpus.data())).memory_used_bytes;
      std::unique_lock its_lock(shared->mutex);
      shared->used = used;
      shared->wakes.wait_for(its_lock, stop, 1s, [] { return false; });
      // Nobody asks: it sleeps until somebody does.
      if (Clock::now() - shared->asked > 5s) {
        shared->used.reset();
        shared->wakes.wait(its_lock, stop, [&] { return Clock::now() - shared->asked <= 5s; });
      }
    }
  });
  return std::nullopt;
}

RunKeeper::World RunKeeper::this_machine(RunListModel& runs,
                                         RunRequests& requests,
                                         std::function<bool()> is_in_charge) {
  auto reader = std::make_shared<GpuMemoryReader>();
  return {.now = [] { return QDateTime::currentDateTime(); },
          .gpu_used_bytes = [reader] { return reader->used_bytes(); },
          .runs = [&runs] { return runs.running(); },
          .pause = [&requests](const fs::path& run) { requests.pause(run); },
          .resume = [&requests](const fs::path& run) { requests.resume(run); },
          .is_in_charge =
              [&runs, is_in_charge = std::move(is_in_charge)] {
                return runs.n_passes() >= kKeeperPasses && is_in_charge();
              }};
}

RunKeeper::RunKeeper(AppSettings& settings, World world, QObject* parent)
    : QObject(parent), settings_(settings), world_(std::move(world)) {
  read_kept();
  connect(&timer_, &QTimer::timeout, this, &RunKeeper::look);
  timer_.start(kKeeperLookMs);
}

int64_t RunKeeper::threshold_bytes() const {
  return settings_.value("yields/threshold_mib", qlonglong{kThresholdMib}).toLongLong() * kMiB;
}

void RunKeeper::read_kept() {
  const QJsonObject kept =
      QJsonDocument::fromJson(settings_.value(kKeptKey).toByteArray()).object();
  for (auto run = kept.begin(); run != kept.end(); ++run)
    kept_[run.key()] = {.process = run.value().toString(), .is_seen_paused = false};
}

void RunKeeper::write_kept() {
  QJsonObject kept;
  for (const auto& [run, how] : kept_)
    kept[run] = how.process;
  settings_.set_value(kKeptKey, QJsonDocument(kept).toJson(QJsonDocument::Compact));
}

bool RunKeeper::has_paused(const fs::path& run) const {
  return kept_.contains(path_text(run));
}

std::vector<fs::path> RunKeeper::paused() const {
  std::vector<fs::path> runs;
  for (const auto& [path, kept] : kept_)
    runs.push_back(to_path(path));
  return runs;
}

QString RunKeeper::why_not_now() const {
  if (is_outside_) return tr("Run hours begin at %1").arg(hour_text(settings_.run_from()));
  if (is_wanted_) return tr("Another program uses the GPU's memory");
  return {};
}

/** Another program holds memory of the GPU, for a while now, or did a moment ago. */
bool RunKeeper::is_gpu_wanted(const QDateTime& now, const std::vector<Running>& runs) {
  const auto used = settings_.yields() ? world_.gpu_used_bytes() : std::nullopt;
  if (!used) {
    wanted_since_.reset();
    free_since_.reset();
    return false;
  }
  // One that starts has memory of the GPU before it can tell how much.
  if (std::any_of(runs.begin(), runs.end(), [](const Running& run) { return run.is_starting; }))
    return is_wanted_;
  int64_t own = 0;
  for (const Running& run : runs) {
    // Paused it has let go of it, unless it is on its way back.
    const bool has_left = run.facts.phase == "paused" && !asked_.contains(path_text(run.path));
    own += kContextBytes + (has_left ? 0 : run.gpu_bytes);
  }
  if (*used - own > threshold_bytes()) {
    free_since_.reset();
    if (!wanted_since_ || *wanted_since_ > now) wanted_since_ = now;
    return is_wanted_ || wanted_since_->secsTo(now) >= kWantedSeconds;
  }
  wanted_since_.reset();
  if (!is_wanted_) return false;
  if (!free_since_ || *free_since_ > now) free_since_ = now;
  return free_since_->secsTo(now) < kFreeSeconds;
}

void RunKeeper::follow(const Running& run, const QDateTime& now, const QString& why_not) {
  const QString path = path_text(run.path);
  const bool is_paused = run.facts.phase == "paused";
  if (const auto kept = kept_.find(path); kept != kept_.end()) {
    if (kept->second.process != run.process) {  // another process of it: not what was paused
      kept_.erase(kept);
      asked_.erase(path);
      write_kept();
    } else if (is_paused) {
      kept->second.is_seen_paused = true;
    } else if (kept->second.is_seen_paused) {
      // It goes on: as asked, or because the user wants it to.
      if (!why_not.isEmpty() && !asked_.contains(path)) left_alone_.insert(path);
      kept_.erase(kept);
      asked_.erase(path);
      write_kept();
    }
  }
  if (why_not.isEmpty()) left_alone_.erase(path);
  if (const auto asked = asked_.find(path); asked != asked_.end()) {
    const qint64 ago = asked->second.secsTo(now);
    const bool wants_pause = !why_not.isEmpty() && !left_alone_.contains(path);
    if (ago >= 0 && ago < kAskAgainSeconds && wants_pause != is_paused) return;
    asked_.erase(asked);
  }
  const service::AllowedActions allowed = service::allowed_actions(run.facts);
  if (!why_not.isEmpty() && allowed.allows(service::RunAction::pause) &&
      !left_alone_.contains(path)) {
    kept_[path] = {.process = run.process, .is_seen_paused = false};
    asked_[path] = now;
    write_kept();  // first: an app that ends here must not leave it paused for ever
    emit acted(run.path, tr("%1 is paused: %2").arg(isolated(run_name(run.path)), why_not));
    world_.pause(run.path);
  } else if (why_not.isEmpty() && kept_.contains(path) && is_paused &&
             allowed.allows(service::RunAction::resume)) {
    asked_[path] = now;
    emit acted(run.path, tr("%1 is resumed").arg(isolated(run_name(run.path))));
    world_.resume(run.path);
  }
}

void RunKeeper::look() {
  if (!world_.is_in_charge()) return;
  const QDateTime now = world_.now();
  const std::vector<Running> runs = world_.runs();
  const QString before = why_not_now();
  is_outside_ = settings_.has_run_hours() &&
                !is_within_hours(now, settings_.run_from(), settings_.run_until());
  is_wanted_ = is_gpu_wanted(now, runs);
  const QString why_not = why_not_now();
  for (const Running& run : runs)
    if (!run.is_starting) follow(run, now, why_not);
  // One whose process ended has nothing to go on with.
  const auto is_gone = [&](const QString& path) {
    return std::none_of(runs.begin(), runs.end(),
                        [&](const Running& run) { return path_text(run.path) == path; });
  };
  std::erase_if(asked_, [&](const auto& asked) { return is_gone(asked.first); });
  std::erase_if(left_alone_, is_gone);
  if (std::erase_if(kept_, [&](const auto& kept) { return is_gone(kept.first); }) > 0) write_kept();
  if (why_not != before) emit changed();
}

}  // namespace ferry::gui
