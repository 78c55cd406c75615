#include "src/service/runs/run_watch.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/directory/run_place.h"
#include "src/runs/heartbeat.h"
#include "src/service/runs/trainer_process.h"

namespace ferry::service {

namespace fs = std::filesystem;
using runs::Phase;

namespace {

bool may_write(const fs::path& directory) {
  return ::access(directory.c_str(), W_OK | X_OK) == 0;
}

/** The directory above it, where "run" and "run/" are the same. */
fs::path above(const fs::path& run) {
  const fs::path path = run.has_filename() ? run : run.parent_path();
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

bool has_ended(const std::string& phase) {
  return phase == name_of(Phase::finished) || phase == name_of(Phase::stopped) ||
         phase == name_of(Phase::failed);
}

}  // namespace

void RunWatch::read_record(Clock::time_point now) {
  const auto stamp = file_stamp(run_ / "run.json");
  if (stamp && stamp == record_stamp_) return;
  record_stamp_ = stamp;
  const nlohmann::ordered_json before = std::move(*record_);
  *record_ = nullptr;
  trouble_.clear();
  try {
    *record_ = runs::read_record(run_);
  } catch (const Error& error) {
    trouble_ = error.what();
    return;
  }
  const auto beat_of = [](const nlohmann::ordered_json& record) {
    return record.is_object() ? record.value(runs::kHeartbeat, nlohmann::ordered_json())
                              : nlohmann::ordered_json();
  };
  if (before.is_object() && beat_of(before) != beat_of(*record_)) last_beat_ = now;
}

/** Where processes of the other machine cannot be seen its beats are counted. */
Trainer RunWatch::by_heartbeat(Clock::time_point now) const {
  const auto beat = record_->find(runs::kHeartbeat);
  if (beat == record_->end()) return Trainer::none;
  if (const auto is_alive = runs::is_process_alive(*beat))
    return *is_alive ? Trainer::here : Trainer::none;
  if (now - last_beat_.value_or(*first_look_) >= runs::kPatience) return Trainer::none;
  return last_beat_ ? Trainer::elsewhere : Trainer::unknown;
}

Trainer RunWatch::find_trainer(Clock::time_point now) {
  if (!record_->is_object()) {
    const auto is_locked = runs::RunPlace(run_).is_locked();
    return is_locked.value_or(false) && directory_stamp_ ? Trainer::elsewhere : Trainer::none;
  }
  if (has_ended(record_->value("phase", ""))) return Trainer::none;
  const auto is_locked = runs::RunPlace(run_).is_locked();
  if (!is_locked) return by_heartbeat(now);
  if (!*is_locked) return Trainer::none;
  return find_trainer_process(run_, *record_) ? Trainer::here : Trainer::elsewhere;
}

bool RunWatch::is_overdue(Clock::time_point now) {
  constexpr std::chrono::minutes kStop_patience{1};
  if (facts_.trainer == Trainer::none) stop_asked_.reset();
  if (stop_asked_ && facts_.phase == name_of(Phase::saving)) stop_asked_ = now;
  return stop_asked_ && now - *stop_asked_ >= kStop_patience;
}

const RunFacts& RunWatch::look(Clock::time_point now) {
  if (!first_look_) first_look_ = now;
  const auto directory_before = directory_stamp_;
  directory_stamp_ = file_stamp(run_);
  read_record(now);
  facts_.trainer = find_trainer(now);
  const bool is_known = record_->is_object();
  facts_.phase =
      is_known ? runs::concluded_phase(*record_, facts_.trainer != Trainer::none) : "unreadable";
  facts_.has_socket = is_known && record_->contains("control_socket");
  facts_.has_prompts = is_known && record_->contains(runs::kSamplesOnRequest);
  facts_.waits_for_room = is_known && record_->contains("waits_for");
  // Checkpoints come and go as entries of the directory; complete they are a moment later.
  if (directory_stamp_ != directory_before ||
      (!facts_.has_checkpoint && facts_.trainer != Trainer::none))
    facts_.has_checkpoint = !runs::complete_checkpoints(run_).empty();
  facts_.is_writable = may_write(run_);
  facts_.is_removable = directory_stamp_ && facts_.is_writable && may_write(above(run_));
  facts_.is_stop_overdue = is_overdue(now);
  return facts_;
}

}  // namespace ferry::service
