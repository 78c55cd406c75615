#pragma once
// The actions that a run allows: one function decides, and every button, menu and command asks it.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::service {

/** The process that trains in the run's directory. */
enum class Trainer : uint8_t {
  none,
  here,       ///< signals reach it
  elsewhere,  ///< on another machine, or in a container
  unknown,    ///< of another machine, on a file system without locks, and not heard of yet
};

/** The facts that decide, from its directory and from who asked it to stop. */
struct RunFacts {
  /** As run.json says, `lost` or `unstarted` where the trainer is gone; "unreadable" where run.json
   * is missing or damaged. */
  std::string phase = "unreadable";
  Trainer trainer = Trainer::none;
  bool has_socket = false;      ///< the run takes requests
  bool has_prompts = false;     ///< for samples
  bool waits_for_room = false;  ///< its end does not fit the disk
  bool has_checkpoint = false;
  bool is_writable = true;       ///< files may be made in its directory
  bool is_removable = true;      ///< and the directory may be removed
  bool is_stop_overdue = false;  ///< it was asked to stop, and neither saves nor ends

  bool operator==(const RunFacts&) const = default;
};

enum class RunAction : uint8_t {
  pause,
  resume,
  save_now,
  sample_now,  ///< it goes on with its prompts, and trains on
  stop,        ///< a checkpoint, and the end
  stop_without_saving,
  force_quit,       ///< SIGKILL
  change_settings,  ///< learning rate and the like, while it trains
  resume_run,       ///< a new process goes on from the last checkpoint
  extend_run,       ///< the same with more steps than it had
  delete_run,
};
inline constexpr size_t kRunActions = 11;
/** "pause", "save now", ... */
std::string_view name_of(RunAction action);

class AllowedActions {
 public:
  bool allows(RunAction action) const { return why_not(action).empty(); }
  /** One clause for the user; empty where the action is allowed. */
  std::string_view why_not(RunAction action) const { return why_not_[static_cast<size_t>(action)]; }

 private:
  friend AllowedActions allowed_actions(const RunFacts& facts);
  std::array<std::string_view, kRunActions> why_not_{};
};

AllowedActions allowed_actions(const RunFacts& facts);

/** True where stop_without_saving goes by SIGINT: the run takes no requests yet, or any more. */
bool stops_by_signal(const RunFacts& facts);

}  // namespace ferry::service
