#include "src/service/runs/run_actions.h"

#include "src/runs/directory/run_directory.h"

namespace ferry::service {
namespace {

using runs::Phase;

bool is_in(const RunFacts& facts, Phase phase) {
  return facts.phase == name_of(phase);
}

/** Why the run takes no requests; empty where it does. */
std::string_view why_deaf(const RunFacts& facts) {
  if (facts.trainer == Trainer::none) return "the run has no process";
  if (facts.trainer == Trainer::unknown)
    return "it is not known yet whether its process lives on the other machine";
  if (is_in(facts, Phase::saving))
    return facts.waits_for_room ? "all steps are done; it waits for room on the disk"
                                : "all steps are done; it writes its end";
  if (!facts.has_socket) return "it takes requests once it trains";
  return {};
}

std::string_view why_not_signal(const RunFacts& facts) {
  return facts.trainer == Trainer::here ? "" : "its process is on another machine";
}

std::string_view why_not_stop_unsaved(const RunFacts& facts) {
  const std::string_view deaf = why_deaf(facts);
  return stops_by_signal(facts) ? why_not_signal(facts) : deaf;
}

std::string_view why_not_sample(const RunFacts& facts) {
  if (const std::string_view deaf = why_deaf(facts); !deaf.empty()) return deaf;
  if (!facts.has_prompts) return "it has no prompts to go on with";
  return is_in(facts, Phase::paused) ? "it is paused: resume it first" : "";
}

std::string_view why_not_force(const RunFacts& facts) {
  if (facts.trainer == Trainer::none) return "the run has no process";
  if (!why_not_signal(facts).empty()) return why_not_signal(facts);
  return facts.is_stop_overdue ? "" : "it is given a minute after a stop was asked for";
}

/** Why a new process of the run, or its removal, must wait; empty where it need not. */
std::string_view why_not_idle(const RunFacts& facts) {
  if (facts.trainer == Trainer::none) return {};
  return facts.trainer == Trainer::unknown ? why_deaf(facts) : "its process runs: stop it first";
}

std::string_view why_not_resume_run(const RunFacts& facts) {
  if (!why_not_idle(facts).empty()) return why_not_idle(facts);
  if (facts.phase == "unreadable") return "its run.json cannot be read";
  if (is_in(facts, Phase::finished)) return "it is finished; it can be given more steps";
  return facts.is_writable ? "" : "its directory cannot be written to";
}

std::string_view why_not_extend(const RunFacts& facts) {
  if (!why_not_idle(facts).empty()) return why_not_idle(facts);
  if (!is_in(facts, Phase::finished)) return "it is not finished";
  if (!facts.has_checkpoint) return "it has no checkpoint to go on from";
  return facts.is_writable ? "" : "its directory cannot be written to";
}

std::string_view why_not_delete(const RunFacts& facts) {
  if (!why_not_idle(facts).empty()) return why_not_idle(facts);
  return facts.is_removable ? "" : "its directory cannot be removed";
}

}  // namespace

std::string_view name_of(RunAction action) {
  constexpr std::array<std::string_view, kRunActions> kNames = {
      "pause",      "resume",          "save now",   "sample now", "stop",  "stop without saving",
      "force quit", "change settings", "resume run", "extend run", "delete"};
  return kNames[static_cast<size_t>(action)];
}

bool stops_by_signal(const RunFacts& facts) {
  const bool has_process = facts.trainer == Trainer::here || facts.trainer == Trainer::elsewhere;
  const bool is_at_end = is_in(facts, Phase::saving);
  return has_process && (is_at_end ? facts.waits_for_room : !facts.has_socket);
}

AllowedActions allowed_actions(const RunFacts& facts) {
  AllowedActions allowed;
  const auto refuse = [&](RunAction action, std::string_view why) {
    allowed.why_not_[static_cast<size_t>(action)] = why;
  };
  const std::string_view deaf = why_deaf(facts);
  const bool is_paused = is_in(facts, Phase::paused);
  refuse(RunAction::pause, deaf.empty() && is_paused ? "it is paused already" : deaf);
  refuse(RunAction::resume, deaf.empty() && !is_paused ? "it is not paused" : deaf);
  refuse(RunAction::save_now, deaf);
  refuse(RunAction::sample_now, why_not_sample(facts));
  refuse(RunAction::stop, deaf);
  refuse(RunAction::stop_without_saving, why_not_stop_unsaved(facts));
  refuse(RunAction::force_quit, why_not_force(facts));
  refuse(RunAction::change_settings, deaf);
  refuse(RunAction::resume_run, why_not_resume_run(facts));
  refuse(RunAction::extend_run, why_not_extend(facts));
  refuse(RunAction::delete_run, why_not_delete(facts));
  return allowed;
}

}  // namespace ferry::service
