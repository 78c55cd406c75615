#pragma once
// The state of a run as JSON: the steps that were taken, the state of the optimizer and the
// identity. A checkpoint has it as run_state.json, a generation of states on a drive as its
// metadata.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "src/base/json/json_reader.h"
#include "src/engine/session.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/pin_record.h"
#include "src/train/prepare/job.h"

namespace ferry {

/** The content of run_state.json. */
nlohmann::ordered_json run_state_json(const SessionState& state, const Identity& identity);

/** The metadata of a generation of states on a drive: run_state_json() as text, and the report of
 * the step where there is one. */
std::string metadata_of(const SessionState& state, const StepReport* report, const Job& job);

/** The run_state.json of a checkpoint. Throws Error(data) where it is damaged, or of a format that
 * this Ferry does not read. */
JsonReader run_state_of(const runs::Checkpoint& checkpoint);

/** The part of a run's state that the session takes. Throws Error(data) as run_state_of(). */
SessionState session_state_in(const JsonReader& state);
/** The report of the step that metadata_of() wrote; none where it had none. */
std::optional<StepReport> report_in(const JsonReader& state);

/** The record of a generation in the job's store. */
runs::PinRecord pin_record_of(const Job& job, const std::string& pin, int64_t generation);

/** Throws Error(usage) where the run's identity, or the kind of its states, is another than the
 * checkpoint's or the last step's: known before any weights are. */
void check_same(const runs::Checkpoint& checkpoint, const Job& job);
void check_same(const runs::LastStep& last, const Job& job);

/** Settings that differ from those that the run goes on from: by name, "was" and "is". Options that
 * change training, and with new_identity what fixes the bits. */
nlohmann::ordered_json changes_since(const runs::Checkpoint& checkpoint, const Identity& identity);
nlohmann::ordered_json changes_since(const runs::LastStep& last, const Identity& identity);

}  // namespace ferry
