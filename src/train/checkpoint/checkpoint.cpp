#include "src/train/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_reader.h"
#include "src/base/version.h"
#include "src/files/mapped_file.h"
#include "src/files/safetensors/safetensors_writer.h"
#include "src/files/write/atomic_file.h"
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

/** One checkpoint on its way. Made by the training thread; then only the save queue touches it,
 * until its end. */
struct CheckpointSaver::Writing {
  Outcome outcome;
  ordered_json run_state, trainer_state;
  std::vector<int64_t> wanted;
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
      behind_(session.executor().save_buffer()) {}

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
  }
}

void CheckpointSaver::begin(std::vector<int64_t> wanted) {
  session_.executor().await_saving();
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
            writing_->states.emplace(job_.model.table, job_.plan.shape, session_.frozen_weights(),
                                     writing_->directory->path(), kShard_bytes_max, behind_);
          }
          writing_->states->write(block);
        });
      },
      [this, note_end] {
        keep_failure([&] {
          const fs::path directory = writing_->directory->path();
          const runs::StoredChecksums& checksums = writing_->states->finish();
          write_model_files(job_.model, *job_.data.task, directory);
          write_json_file(directory / "trainer_state.json", writing_->trainer_state);
          runs::write_checksums(directory, checksums, writing_->run_state.dump(2) + "\n");
          before_end_();  // it has the lines of all its steps, whatever happens to the power
          writing_->directory->commit();
          note_end();  // before the others go, which takes a disk as long as it likes
          runs::remove_oldest(run_, job_.config.integer("save_total_limit"), writing_->wanted);
        });
        if (writing_->outcome.failure) note_end();
        writing_->outcome.n_bytes = checkpoint_bytes(job_.model.table, job_.plan.shape.states);
      });
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

void check_same(const runs::Checkpoint& checkpoint, const Job& job) {
  const JsonReader then = run_state_of(checkpoint).all.at("identity");
  const std::string optim = then.text("optim", "adamw"), now = job.config.text("optim");
  if (optim != now)
    throw Error(Fault::usage, "resume.optim",
                fmt::format("the states of '{}' are those of optim = {}, not of {}",
                            checkpoint.path.string(), optim, now),
                fmt::format("set it back, or start a new run from the weights: --model '{}'",
                            checkpoint.path.string()));
  if (!job.config.flag("new_identity"))
    check_identity(then.value(), *job.identity.bits, job.config.text("dataset"));
}

ordered_json changes_since(const runs::Checkpoint& checkpoint, const Identity& identity) {
  const RunState state = run_state_of(checkpoint);
  const auto part = [&](const char* key) {
    const auto found = state.all.find(key);
    return found ? found->value() : ordered_json::object();
  };
  ordered_json changed = differences(part("settings"), *identity.settings);
  changed.update(differences(part("identity"), *identity.bits));
  return changed;
}

void load_checkpoint(const runs::Checkpoint& checkpoint, const Job& job, Session& session) {
  const runs::StoredChecksums checksums = runs::read_checksums(checkpoint.path);
  check_same(checkpoint, job);
  load_states(job.model.table, job.plan.shape, checkpoint.path, checksums, kSavedSegments,
              session.segments());
  session.restore(run_state_of(checkpoint).session);
}

void load_model(const runs::Checkpoint& checkpoint, const Job& job, Session& session) {
  constexpr std::array kMaster = {Segment::master};
  load_states(job.model.table, job.plan.shape, checkpoint.path,
              runs::read_checksums(checkpoint.path), kMaster, session.segments());
}

}  // namespace ferry
