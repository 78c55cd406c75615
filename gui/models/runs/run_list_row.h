#pragma once
// A row of the list of runs: what is known of one run. For RunListModel alone.

#include <chrono>
#include <limits>
#include <memory>
#include <optional>

#include "gui/models/runs/run_list_model.h"
#include "src/files/file_stamp.h"
#include "src/service/runs/metrics_reader.h"
#include "src/service/runs/run_watch.h"

namespace ferry::gui {

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  ///< not known

struct RunListModel::Row {
  Row(std::filesystem::path run, std::filesystem::path its_key, QString when)
      : path(run), key(std::move(its_key)), created(std::move(when)), watch(std::move(run)) {}

  std::filesystem::path path, key;
  QString created;
  service::RunWatch watch;
  service::RunFacts facts;  ///< as they were told last
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

  bool is_alive() const { return facts.trainer != service::Trainer::none || is_starting; }
};

}  // namespace ferry::gui
