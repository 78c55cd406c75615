#pragma once
// Words and figures of a run, the same in the list, its details and the queue.

#include <QDateTime>
#include <QString>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "src/service/runs/run_actions.h"

namespace ferry::gui {

/** By which runs are filtered and marked. */
enum class RunGroup { running, paused, finished, stopped, failed, unreadable };

RunGroup run_group(const std::string& phase);
QString group_text(RunGroup group);
/** "Training", "Killed": the word of a phase of RunFacts. */
QString state_text(const std::string& phase);
/** Likewise; "Waits for disk" where it does. */
QString state_text(const service::RunFacts& facts);
/** All steps are done and the end does not fit the disk; not of a run that has ended since. */
bool waits_for_room(const service::RunFacts& facts);
/** The run's process is gone for good: finished, stopped, failed, lost, unstarted. */
bool has_ended(const std::string& phase);

/** "42 s", "5 min 3 s", "12 min", "3 h 20 min", "2 d 4 h"; empty of what is no time. */
QString duration_text(double seconds);
/** "512.0 MiB", "6.10 GiB": as the program prints it, with the user's decimal point. */
QString bytes_text(int64_t bytes);
/** A text of run.json; empty where it has none. */
QString text_in(const nlohmann::ordered_json& record, const char* key);
/** A number of run.json; nullopt where it has none. */
std::optional<double> number_in(const nlohmann::ordered_json& record,
                                const char* part,
                                const char* key);
/** The steps of the whole run by run.json; 0: not known. */
int64_t steps_in(const nlohmann::ordered_json& record);
/** A time of run.json, which is UTC; invalid where it is none. */
QDateTime time_of_record(const nlohmann::ordered_json& record, const char* key);
QString time_text(const QDateTime& time);
/** Hours and minutes as the system writes them: "03:00". */
QString hour_text(QTime time);

QString run_name(const std::filesystem::path& run);

/** Bytes of host memory that a run was planned or measured to need at most; 0: not told. */
int64_t planned_host_bytes(const nlohmann::ordered_json& record);
/** Bytes of host memory that it was planned to stay below; 0: not told. */
int64_t budgeted_host_bytes(const nlohmann::ordered_json& record);
/** Bytes of the GPU's memory that it was planned or measured to need at most; 0: not told. */
int64_t planned_gpu_bytes(const nlohmann::ordered_json& record);

}  // namespace ferry::gui
