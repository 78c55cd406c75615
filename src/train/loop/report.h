#pragma once
// The text that a run prints before and after: the plan in bytes, the loss curve, the confusion
// matrix, a few predictions, promise against outcome. Text goes to stdout, and plan and outcome to
// run.json; nothing here computes.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/term/terminal.h"
#include "src/train/loop/loop.h"
#include "src/train/loop/rehearsal.h"

namespace ferry {

/** Prints the weights that the user's model has and the run does not read: a sign of another kind
 * of model. */
void print_unused(const LoadReport& loaded, const term::Terminal& terminal);
/** `is_resumed`: the weights that were loaded are replaced by those of a checkpoint. */
void print_start(const Job& job,
                 const LoadReport& loaded,
                 bool is_resumed,
                 const term::Terminal& terminal);
/** Prints the time and memory that the run is expected to take, before its first step. */
void print_expected(const Promise& promise);
void print_metrics(const Evaluation& evaluation, const Task& task, const term::Terminal& terminal);
/** Faults of a run that came to its end: a loss that ended far above its start, and what to do; a
 * best model that was not kept. */
std::vector<std::string> warnings_of(const TrainingResult& result, const Job& job);
void print_end(const TrainingResult& result,
               const Job& job,
               const Promise& promise,
               const std::filesystem::path& final,
               const term::Terminal& terminal);

/** run.json's "plan": why, bytes by tag and place, and what it takes of drives. */
nlohmann::ordered_json plan_json(const Job& job);
/** run.json's "promised". */
nlohmann::ordered_json promised_json(const Promise& promise);
/** run.json's "actual"; none: the training did not come to its end. */
nlohmann::ordered_json actual_json(const TrainingResult* result = nullptr);

}  // namespace ferry
