#include "src/train/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/out_of_memory.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/write/atomic_file.h"
#include "src/request/nvme.h"
#include "src/runs/store/found_stores.h"
#include "src/train/checkpoint/final_model.h"
#include "src/train/prepare/run_state.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

using Clock = std::chrono::steady_clock;

/** The part of transformers' TrainerState that does not depend on its trainer. */
ordered_json trainer_state(const SessionState& state, const Job& job) {
  ordered_json out;
  out["global_step"] = state.n_steps;
  out["epoch"] = job.steps.epochs(state.n_steps);
  out["max_steps"] = job.steps.total;
  out["num_train_epochs"] = job.config.number("num_train_epochs");
  out["train_batch_size"] = job.data.split.train_batch_size;
  return out;
}

/** Null where checkpoints hold all states themselves. */
ExtentStore* store_to_pin(Session& session, const Job& job) {
  StateStore* states = session.drive_store();
  if (!states || job.config.flag("save_weights") || job.model.table.has_deltas) return nullptr;
  return states->extents().layout().n_kept() > 1 ? &states->extents() : nullptr;
}

}  // namespace

/** One checkpoint on its way. Made by the training thread; then only the save queue touches it,
 * until its end. */
struct CheckpointSaver::Writing {
  Outcome outcome;
  ordered_json run_state, trainer_state;
  std::vector<int64_t> wanted;
  std::string pin;  ///< of this checkpoint; empty: none
  int64_t generation = 0;
  Clock::time_point start = Clock::now();
  std::optional<runs::NewCheckpoint> directory;
  std::optional<StateWriter> states;
};

CheckpointSaver::CheckpointSaver(Session& session,
                                 const Job& job,
                                 fs::path run,
                                 std::function<void()> before_end)
    : session_(session),
      job_(job),
      run_(std::move(run)),
      before_end_(std::move(before_end)),
      store_(store_to_pin(session, job)),
      behind_(session.executor().save_buffer()) {
  const int64_t limit = job.config.integer("save_total_limit");
  if (most_kept() < limit)
    log_line(
        fmt::format("the run's store on the drive was made with room for {} checkpoints: as "
                    "many are kept, not {}",
                    most_kept(), limit));
}

CheckpointSaver::~CheckpointSaver() {
  try {
    session_.executor().await_saving();
  } catch (...) {  // the step that failed has said why
  }
}

/** The first failure; what follows it is skipped, steps go on. */
void CheckpointSaver::keep_failure(const std::function<void()>& work) {
  if (writing_->outcome.failure) return;
  try {
    work();
  } catch (...) {
    writing_->outcome.failure = std::current_exception();
    writing_->states.reset();
    writing_->directory.reset();  // removes what is there
    unpin_removed();
  }
}

/** Files that were removed or moved go with this process, and so would what is pinned there. */
void CheckpointSaver::look_for_store() {
  std::string why = "they were moved or removed";
  try {
    if (!store_ || runs::is_where_it_was(job_.store)) return;
  } catch (const Error& error) {
    why = error.what();
  }
  store_ = nullptr;
  log_line(fmt::format(
      "the states on the drive are not in '{}' any more ({}): training goes on with the open "
      "files, checkpoints hold all states themselves from now on, and earlier ones need the files",
      job_.store.files.front().path.string(), why));
}

void CheckpointSaver::pin() {
  runs::make_room_for_pin(run_, *store_);
  const std::string name = runs::name_of_pin(writing_->outcome.step, *store_);
  store_->pin(name);
  writing_->pin = name;
  writing_->generation = store_->pinned(name).number;
}

/** A store that failed is left as it is: the next start looks through its pins. */
void CheckpointSaver::unpin_removed() {
  try {
    if (StateStore* store = session_.drive_store()) runs::unpin_unused(run_, store->extents());
  } catch (const std::exception& error) {
    log_line(fmt::format("no room on the drive is given back: {}", error.what()));
  }
}

/** A pin is for one checkpoint, and one is being made. */
int64_t CheckpointSaver::most_kept() const {
  const int64_t limit = job_.config.integer("save_total_limit");
  return store_ ? std::min<int64_t>(limit, store_->layout().n_kept() - 1) : limit;
}

void CheckpointSaver::write_files() {
  const fs::path directory = writing_->directory->path();
  const runs::StoredChecksums& checksums = writing_->states->finish();
  writing_->outcome.n_bytes = writing_->states->n_bytes();
  write_model_files(job_.config, job_.model, *job_.data.task, directory);
  write_json_file(directory / "trainer_state.json", writing_->trainer_state);
  if (store_)
    runs::write_pin_record(directory, pin_record_of(job_, writing_->pin, writing_->generation));
  runs::write_checksums(directory, checksums, writing_->run_state.dump(2) + "\n");
}

void CheckpointSaver::begin(std::vector<int64_t> wanted) {
  session_.executor().await_saving();
  keep_memory_reserve();  // the checkpoint before may have failed for want of memory
  look_for_store();
  const SessionState state = session_.state();
  writing_ = std::make_unique<Writing>();
  writing_->outcome.step = state.n_steps;
  writing_->run_state = run_state_json(state, job_.identity);
  writing_->trainer_state = trainer_state(state, job_);
  writing_->wanted = std::move(wanted);
  const auto note_end = [this] {
    writing_->outcome.seconds =
        std::chrono::duration<double>(Clock::now() - writing_->start).count();
  };
  session_.save(
      [this](StateSource& block) {
        keep_failure([&] {
          if (!writing_->states) {
            writing_->directory.emplace(run_, writing_->outcome.step);
            make_directories(writing_->directory->path() / "state");
            writing_->states.emplace(job_.model.table, session_.whole_shape(),
                                     session_.frozen_weights(), writing_->directory->path(),
                                     kShard_bytes_max, behind_,
                                     store_ ? FilesHold::what_no_drive_has : FilesHold::all);
          }
          writing_->states->write(block);
        });
      },
      [this, note_end] {
        keep_failure([&] {
          write_files();
          before_end_();  // it has the lines of all its steps, whatever happens to the power
          writing_->directory->commit();
          note_end();  // before the others go, which takes a disk as long as it likes
          const auto stores = runs::stores_named_in(run_);
          runs::remove_oldest(run_, most_kept(), writing_->wanted);
          unpin_removed();
          runs::remove_left_stores(run_, stores, job_.store.uuid);
        });
        if (writing_->outcome.failure) note_end();
      },
      store_ ? [this] { keep_failure([&] { pin(); }); } : std::function<void()>());
}

std::optional<CheckpointSaver::Outcome> CheckpointSaver::outcome() {
  if (!writing_ || session_.executor().is_saving()) return {};
  const Outcome outcome = writing_->outcome;
  writing_.reset();
  return outcome;
}

std::optional<CheckpointSaver::Outcome> CheckpointSaver::await_outcome() {
  session_.executor().await_saving();
  return outcome();
}

namespace {

/** From the checkpoint's files, and from the generation that it pins: the run's own store may begin
 * with that. */
void load(const runs::Checkpoint& checkpoint,
          std::span<const Segment> which,
          const Job& job,
          Session& session) {
  const runs::StoredChecksums checksums = runs::read_checksums(checkpoint.path);
  Segments& segments = session.segments();
  const auto load_from = [&](const DriveSource* drive) {
    load_states(job.model.table, session.whole_shape(), checkpoint.path, checksums, which, segments,
                drive);
  };
  const auto pinned = runs::pin_record_of(checkpoint.path);
  if (!pinned) return load_from(nullptr);
  StateStore* own = session.drive_store();
  if (own && own->extents().identity().uuid == pinned->store.uuid) {
    own->extents().start_from(own->extents().pinned(pinned->pin));
    segments.restore_weights();
    const DriveSource in_place = {.about = &pinned->states};
    load_from(&in_place);
    segments.take_changed();  // nothing of the generation
    return;
  }
  runs::PinnedStates there(*pinned,
                           runs::find_store(pinned->store, nvme_settings(job.config).directories));
  const DriveSource drive = {.about = &there.about(), .reader = &there.reader()};
  load_from(&drive);
}

}  // namespace

void load_checkpoint(const runs::Checkpoint& checkpoint, const Job& job, Session& session) {
  check_same(checkpoint, job);
  load(checkpoint, saved_segments(job.plan.shape.optim), job, session);
  session.restore(session_state_in(run_state_of(checkpoint)));
  session.commit_states();
}

std::optional<StepReport> load_last_step(const runs::LastStep& last,
                                         const Job& job,
                                         Session& session) {
  Segments& segments = session.segments();
  StateStore* own = session.drive_store();
  const bool is_own = own && own->extents().identity().uuid == last.record.store.uuid;
  if (is_own) {
    own->extents().start_from(own->extents().committed());
    segments.restore_weights();
    segments.take_changed();  // nothing of the generation
  } else {
    runs::PinnedStates there(
        last.record, runs::find_store(last.record.store, nvme_settings(job.config).directories));
    const DriveSource drive = {.about = &there.about(), .reader = &there.reader()};
    load_states(job.model.table, session.whole_shape(), {}, {},
                saved_segments(job.plan.shape.optim), segments, &drive);
  }
  session.restore(session_state_in(last.state));
  if (!is_own) session.commit_states();
  return report_in(last.state);
}

void load_model(const runs::Checkpoint& checkpoint, const Job& job, Session& session) {
  constexpr std::array kMaster = {Segment::master};
  load(checkpoint, kMaster, job, session);
}

}  // namespace ferry
