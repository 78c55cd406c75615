#include "src/train/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/family.h"
#include "src/base/error.h"
#include "src/base/json_reader.h"
#include "src/base/out_of_memory.h"
#include "src/base/print.h"
#include "src/base/version.h"
#include "src/files/mapped_file.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/write/atomic_file.h"
#include "src/plan/nvme.h"
#include "src/runs/store/pin_record.h"
#include "src/runs/store/pins.h"
#include "src/train/checkpoint/final_model.h"
#include "src/train/checkpoint/identity.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

using Clock = std::chrono::steady_clock;

constexpr int kFormat_version = 1;

ordered_json json_of(const SessionState& state, const Identity& identity) {
  ordered_json out;
  out["format_version"] = kFormat_version;
  out["n_steps"] = state.n_steps;
  out["n_updates"] = state.optimizer.n_updates;
  out["n_skipped_in_a_row"] = state.optimizer.n_skipped_in_a_row;
  out["loss_scale"] = state.optimizer.loss_scale.scale;
  out["n_good_steps"] = state.optimizer.loss_scale.n_good_steps;
  out["identity"] = *identity.bits;
  out["settings"] = *identity.settings;
  return out;
}

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

JsonReader read_json(const fs::path& file) {
  return JsonReader::parse(
      read_text_file(file),
      {file.string(), "checkpoint.read", "resume from an earlier checkpoint, and check the disk"});
}

SessionState session_state_in(const JsonReader& json) {
  constexpr int64_t kMost = INT64_MAX;
  const int64_t version = json.integer("format_version", 0, kMost, 0);
  if (version != kFormat_version) {
    const auto identity = json.find("identity");
    throw Error(Fault::data, "checkpoint.read",
                fmt::format("'{}' has format_version {} (written by Ferry {}); this is Ferry {}, "
                            "which reads {}",
                            json.file(), version, identity ? identity->text("ferry", "?") : "?",
                            ferry_version(), kFormat_version),
                "resume with the Ferry that wrote it");
  }
  SessionState state;
  state.n_steps = json.integer("n_steps", 0, kMost);
  state.optimizer.n_updates = json.integer("n_updates", 0, kMost);
  state.optimizer.n_skipped_in_a_row = json.integer("n_skipped_in_a_row", 0, kMost);
  state.optimizer.loss_scale.scale =
      static_cast<float>(json.number("loss_scale", 0, std::numeric_limits<float>::max()));
  state.optimizer.loss_scale.n_good_steps = json.integer("n_good_steps", 0, kMost);
  return state;
}

}  // namespace

namespace {

/** Null where checkpoints hold all states themselves. */
ExtentStore* store_to_pin(Session& session, const config::Config& config) {
  StateStore* states = session.drive_store();
  if (!states || config.flag("save_weights")) return nullptr;
  return states->extents().layout().n_kept() > 1 ? &states->extents() : nullptr;
}

}  // namespace

runs::PinRecord pin_record_of(const Job& job, const std::string& pin, int64_t generation) {
  return {.store = job.store,
          .pin = pin,
          .generation = generation,
          .head = std::string(name_of(job.model.table.head)),
          .n_labels = job.model.table.n_labels,
          .states = stored_states_of(job.model.table, job.plan.shape)};
}

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
      store_(store_to_pin(session, job.config)),
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
  write_model_files(job_.model, *job_.data.task, directory);
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
  writing_->run_state = json_of(state, job_.identity);
  writing_->trainer_state = trainer_state(state, job_);
  writing_->wanted = std::move(wanted);
  const auto note_end = [this] {
    writing_->outcome.seconds =
        std::chrono::duration<double>(Clock::now() - writing_->start).count();
  };
  session_.executor().save(
      [this](BlockStates& block) {
        keep_failure([&] {
          if (!writing_->states) {
            writing_->directory.emplace(run_, writing_->outcome.step);
            make_directories(writing_->directory->path() / "state");
            writing_->states.emplace(job_.model.table, job_.plan.shape, session_.frozen_weights(),
                                     writing_->directory->path(), kShard_bytes_max, behind_,
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

/** The state of the run in state/, and the part of it that the session takes. */
struct RunState {
  JsonReader all;
  SessionState session;
};
RunState run_state_of(const runs::Checkpoint& checkpoint) {
  const JsonReader all = read_json(checkpoint.path / "state" / runs::kRunStateName);
  return {.all = all, .session = session_state_in(all)};
}

}  // namespace

namespace {

constexpr const char* kReport = "report";

ordered_json json_of(const StepReport& report) {
  return {{"loss", report.loss},
          {"grad_norm", report.grad_norm},
          {"learning_rate", report.learning_rate},
          {"loss_scale", report.loss_scale},
          {"skipped", report.skipped},
          {"clipped", report.clipped},
          {"n_skipped_in_a_row", report.n_skipped_in_a_row}};
}

/** JSON has no number that is not finite: null. */
double number_in(const JsonReader& json, std::string_view key) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return json.number(key, -kMost, kMost, std::numeric_limits<double>::quiet_NaN());
}

StepReport report_in(const JsonReader& json) {
  return {.loss = number_in(json, "loss"),
          .grad_norm = number_in(json, "grad_norm"),
          .learning_rate = number_in(json, "learning_rate"),
          .loss_scale = static_cast<float>(number_in(json, "loss_scale")),
          .skipped = json.flag("skipped"),
          .clipped = json.flag("clipped"),
          .n_skipped_in_a_row = json.integer("n_skipped_in_a_row", 0, INT64_MAX)};
}

/** `from`: a checkpoint, or the run whose last step it is. */
void check_same(const JsonReader& state, const fs::path& from, const Job& job) {
  const JsonReader then = state.at("identity");
  const std::string optim = then.text("optim", "adamw"), now = job.config.text("optim");
  if (optim != now)
    throw Error(Fault::usage, "resume.optim",
                fmt::format("the states of '{}' are those of optim = {}, not of {}", from.string(),
                            optim, now),
                fmt::format("set it back, or start a new run from the weights: --model '{}'",
                            from.string()));
  if (!job.config.flag("new_identity"))
    check_identity(then.value(), *job.identity.bits, job.config);
}

ordered_json changes_since(const JsonReader& state, const Identity& identity) {
  const auto part = [&](const char* key) {
    const auto found = state.find(key);
    return found ? found->value() : ordered_json::object();
  };
  ordered_json changed = differences(part("settings"), *identity.settings);
  changed.update(differences(part("identity"), *identity.bits));
  return changed;
}

}  // namespace

std::string metadata_of(const SessionState& state, const StepReport* report, const Job& job) {
  ordered_json out = json_of(state, job.identity);
  if (report) out[kReport] = json_of(*report);
  return out.dump();
}

void check_same(const runs::Checkpoint& checkpoint, const Job& job) {
  check_same(run_state_of(checkpoint).all, checkpoint.path, job);
}

void check_same(const runs::LastStep& last, const Job& job) {
  check_same(last.state, last.record.store.files.front().path, job);
}

ordered_json changes_since(const runs::Checkpoint& checkpoint, const Identity& identity) {
  return changes_since(run_state_of(checkpoint).all, identity);
}

ordered_json changes_since(const runs::LastStep& last, const Identity& identity) {
  return changes_since(last.state, identity);
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
    load_states(job.model.table, job.plan.shape, checkpoint.path, checksums, which, segments,
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
  load(checkpoint, kSavedSegments, job, session);
  const RunState state = run_state_of(checkpoint);
  session.restore(state.session);
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
    load_states(job.model.table, job.plan.shape, {}, {}, kSavedSegments, segments, &drive);
  }
  session.restore(session_state_in(last.state));
  if (!is_own) session.commit_states();
  const auto report = last.state.find(kReport);
  return report ? std::optional(report_in(*report)) : std::nullopt;
}

void load_model(const runs::Checkpoint& checkpoint, const Job& job, Session& session) {
  constexpr std::array kMaster = {Segment::master};
  load(checkpoint, kMaster, job, session);
}

}  // namespace ferry
