#include "src/train/loop/tracing.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace ferry {
namespace {

/** The rehearsals were the warm-up; more than this is hard to look at. */
constexpr int kTracedSteps = 10;

}  // namespace

Tracing::Tracing(Session& session,
                 const config::Config& config,
                 const StepShape& shape,
                 runs::MetricsLog& metrics,
                 term::Progress& progress)
    : session_(session), metrics_(metrics), progress_(progress) {
  const auto file = config.maybe_text("trace");
  if (!file) return;
  file_ = *file;
  write_chrome_trace(file_, {});  // one that cannot be written is known now, not ten steps later
  tracer_.emplace(session.device(), shape);
  session.executor().set_tracer(&*tracer_);
}

void Tracing::after_step() {
  if (tracer_ && tracer_->n_steps() >= kTracedSteps) finish();
}

void Tracing::finish() {
  if (!tracer_) return;
  session_.executor().settle();
  session_.executor().set_tracer(nullptr);
  const std::vector<TimedAction> actions = tracer_->take();
  const int n_steps = tracer_->n_steps();
  tracer_.reset();
  if (actions.empty()) return;
  try {
    write_chrome_trace(file_, actions);
  } catch (const Error& error) {  // no reason to end a run
    return progress_.log_line(error.what());
  }
  const Overlap overlap = overlap_of(actions);
  nlohmann::ordered_json line = {{"step", session_.n_steps()},
                                 {"traced_steps", n_steps},
                                 {"overlap_percent", 100 * overlap.hidden_share()}};
  for (QueueId queue : {QueueId::compute, QueueId::h2d, QueueId::d2h, QueueId::host})
    line[fmt::format("{}_busy_ms", name_of(queue))] = 1e3 * overlap.busy_s[queue] / n_steps;
  metrics_.append(line);
  progress_.log_line(fmt::format(
      "trace of {} steps in '{}': {:.0f} % of the time of copies and updates lies under computing",
      n_steps, file_.string(), 100 * overlap.hidden_share()));
}

}  // namespace ferry
