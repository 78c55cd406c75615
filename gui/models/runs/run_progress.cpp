#include "gui/models/runs/run_progress.h"

#include <unistd.h>

#include <QCoreApplication>
#include <QDateTime>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gui/models/service_words.h"
#include "gui/models/text.h"
#include "src/base/process/host_memory.h"

namespace ferry::gui {

namespace {

using Json = nlohmann::ordered_json;
using service::MetricsReader;
using service::Series;

struct ProgressWords {
  Q_DECLARE_TR_FUNCTIONS(ferry::gui::RunProgress)
};

std::optional<double> last_of(const MetricsReader& metrics, const char* key) {
  const Series* const series = metrics.find(key);
  if (!series || series->n_values() == 0 || !std::isfinite(series->last())) return std::nullopt;
  return series->last();
}

/** The last step before this session's process began. */
int64_t steps_before(const Json& record, const MetricsReader& metrics) {
  const QDateTime started = QDateTime::fromString(text_in(record, "started"), Qt::ISODate);
  const Series* const times = metrics.find("time");
  if (!started.isValid() || !times) return 0;
  const double since = static_cast<double>(started.toSecsSinceEpoch());
  const auto points = times->points();
  const auto first = std::ranges::partition_point(
      points, [since](const service::SeriesPoint& point) { return point.max < since; });
  return first == points.begin() ? 0 : std::prev(first)->last_step;
}

/** By the newest steps after this one; a pause is none of their time. */
std::optional<double> seconds_a_step(const MetricsReader& metrics, int64_t after) {
  constexpr int64_t kNewest = 100;
  const Series* const took = metrics.find("step_ms");
  if (!took) return std::nullopt;
  service::SeriesPoint all;
  const auto points = took->points();
  for (size_t i = points.size(); i > 0 && all.n_finite < kNewest; --i) {
    if (points[i - 1].last_step <= after) break;
    all.add(points[i - 1]);
  }
  if (all.n_finite == 0) return std::nullopt;
  return all.mean / 1e3;
}

bool is_training(const std::string& phase) {
  return phase == "training" || phase == "evaluating" || phase == "sampling" || phase == "saving";
}

QString why_lost(const Json& record, std::optional<double> used, const HostRoom& room) {
  const int64_t planned = planned_host_bytes(record), available = budgeted_host_bytes(record);
  const bool is_here = text_in(record, "host").toStdString() == room.host;
  if (planned == 0)
    return ProgressWords::tr("The process ended unexpectedly: it was killed, or the power failed.");
  const QString planned_text = bytes_text(planned);
  const double most = std::max(static_cast<double>(planned), used.value_or(0));
  if (available > 0 && most > 0.9 * static_cast<double>(available))
    return ProgressWords::tr("Killed, most likely out of host memory: planned %1, available %2.")
        .arg(planned_text, bytes_text(available));
  // The memory of then is not known; that of now is near it where nothing else has changed.
  if (available == 0 && is_here && room.free_bytes > 0 &&
      most > 0.9 * static_cast<double>(room.free_bytes))
    return ProgressWords::tr(
               "Killed, most likely out of host memory: planned %1, available now %2.")
        .arg(planned_text, bytes_text(room.free_bytes));
  if (is_here && room.free_bytes > 0)
    return ProgressWords::tr(
               "The process ended unexpectedly: it was killed, or the power failed. It "
               "had planned %1 of host memory; %2 are available now.")
        .arg(planned_text, bytes_text(room.free_bytes));
  return ProgressWords::tr(
             "The process ended unexpectedly: it was killed, or the power failed. It had "
             "planned %1 of host memory.")
      .arg(planned_text);
}

}  // namespace

double RunProgress::share() const {
  return n_steps > 0 ? std::clamp(static_cast<double>(step) / static_cast<double>(n_steps), 0., 1.)
                     : 0;
}

double RunProgress::epoch_share() const {
  return n_epochs > 0 ? std::clamp(epoch / n_epochs, 0., 1.) : 0;
}

RunProgress progress_of(const Json& record,
                        const service::RunFacts& facts,
                        const MetricsReader& metrics) {
  RunProgress progress;
  progress.step = metrics.n_steps();
  progress.n_steps = steps_in(record);
  progress.epoch = last_of(metrics, "epoch").value_or(0);
  if (progress.step > 0 && progress.epoch > 0)
    progress.n_epochs =
        progress.epoch / static_cast<double>(progress.step) * static_cast<double>(progress.n_steps);
  // Two percent less than a whole number of epochs is rounding of the last step.
  if (const double whole = std::round(progress.n_epochs);
      std::abs(progress.n_epochs - whole) < 0.02)
    progress.n_epochs = whole;
  progress.tokens_per_second = last_of(metrics, "train_tokens_per_second");
  if (const double loss = metrics.mean_loss(); std::isfinite(loss)) progress.loss = loss;
  if (!is_training(facts.phase) || progress.n_steps == 0) return progress;
  const int64_t before = std::min(steps_before(record, metrics), progress.step);
  if (progress.step - before < kSteps_to_estimate && progress.step < progress.n_steps) {
    progress.is_estimating = true;
    return progress;
  }
  if (const auto seconds = seconds_a_step(metrics, before))
    progress.seconds_left =
        *seconds * static_cast<double>(std::max<int64_t>(0, progress.n_steps - progress.step));
  return progress;
}

std::optional<double> used_host_bytes(const MetricsReader& metrics) {
  return last_of(metrics, "host_bytes");
}

bool uses_gpu(const Json& record, const MetricsReader& metrics) {
  return last_of(metrics, "gpu_bytes_peak").value_or(0) > 0 ||
         number_in(record, "promised", "gpu_bytes_peak").value_or(0) > 0;
}

HostRoom read_host_room() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  HostRoom room{.host = host, .free_bytes = 0};
  trouble_of([&] { room.free_bytes = read_host_memory().budget_bytes(); });
  return room;
}

QString why_ended(const Json& record,
                  const service::RunFacts& facts,
                  std::optional<double> used_host_bytes,
                  const HostRoom& room) {
  const QString reason = sentence(service_words(text_in(record, "exit_reason"))),
                warning = text_in(record, "warning");
  if (facts.phase == "failed")
    return reason.isEmpty() ? ProgressWords::tr("It failed; its log says more.") : reason;
  if (facts.phase == "lost") return why_lost(record, used_host_bytes, room);
  if (facts.phase == "unstarted")
    return ProgressWords::tr("It ended before its first step; its log says more.");
  if (facts.phase == "stopped") return reason;
  return warning;
}

}  // namespace ferry::gui
