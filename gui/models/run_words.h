#pragma once
// Words for what a run is and how it ended, the same in the list, its details and the queue.

#include <QDateTime>
#include <QString>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "src/service/runs/run_actions.h"

namespace ferry::gui {

/** By which runs are filtered and marked. */
enum class RunGroup { running, paused, finished, stopped, failed, unreadable };

RunGroup group_of(const service::RunFacts& facts);
QString group_text(RunGroup group);
/** "Training", "Waits for room on the disk", "Killed". */
QString state_text(const service::RunFacts& facts);

/** "42 s", "5 min 3 s", "2 h 14 min", "3 d 4 h"; empty of less than a second. */
QString duration_text(double seconds);
/** "512.0 MiB", "6.1 GiB" in the user's numerals. */
QString bytes_text(int64_t bytes);
/** A time of run.json, which is UTC; invalid where it is none. */
QDateTime time_of_record(const nlohmann::ordered_json& record, const char* key);
QString time_text(const QDateTime& time);

/** A name inside a sentence, whichever way it is written. */
QString isolated(const QString& name);
QString run_name(const std::filesystem::path& run);

/** Bytes of host memory that a run was planned or measured to need at most; 0: not told. */
int64_t planned_host_bytes(const nlohmann::ordered_json& record);
/** Likewise of the GPU's memory. */
int64_t planned_gpu_bytes(const nlohmann::ordered_json& record);

/** Why a run ended, in a sentence or two; for one whose process is gone the likely reason, with its
 * planned and available host memory where they are known. Empty of a run that goes on. */
QString end_text(const service::RunFacts& facts,
                 const nlohmann::ordered_json& record,
                 int64_t host_limit_bytes = 0);

/** A line of the details of a run. */
struct RunDetail {
  QString label, text;
};
/** Reads the names of its checkpoints. */
std::vector<RunDetail> details_of(const std::filesystem::path& run,
                                  const service::RunFacts& facts,
                                  const nlohmann::ordered_json& record,
                                  const QString& trouble);

}  // namespace ferry::gui
