#include "src/train/checkpoint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/files/atomic_file.h"
#include "src/files/mapped_file.h"
#include "src/files/safetensors_writer.h"
#include "src/train/final_model.h"
#include "src/train/identity.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kFormat_version = 1;
constexpr const char* kWeightsKey = "model";

ordered_json json_of(const SessionState& state, const Job& job) {
  ordered_json out;
  out["format_version"] = kFormat_version;
  out["n_steps"] = state.n_steps;
  out["n_updates"] = state.optimizer.n_updates;
  out["n_skipped_in_a_row"] = state.optimizer.n_skipped_in_a_row;
  out["loss_scale"] = state.optimizer.loss_scale.scale;
  out["n_good_steps"] = state.optimizer.loss_scale.n_good_steps;
  out["identity"] = identity_of(job);
  return out;
}

/** Of transformers' TrainerState what does not depend on its trainer. */
ordered_json trainer_state(const SessionState& state, const Job& job) {
  ordered_json out;
  out["global_step"] = state.n_steps;
  out["epoch"] = static_cast<double>(state.n_steps) / static_cast<double>(job.steps_per_epoch);
  out["max_steps"] = job.n_steps;
  out["num_train_epochs"] = job.config.number("num_train_epochs");
  out["train_batch_size"] = job.split.train_batch_size;
  return out;
}

ordered_json read_json(const fs::path& file) {
  auto json = ordered_json::parse(read_text_file(file), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    throw Error(Fault::data, "checkpoint.read", fmt::format("'{}' is damaged", file.string()),
                "resume from an earlier checkpoint, and check the disk");
  return json;
}

TensorChecksums checksums_in(const ordered_json& all, const std::string& of, const fs::path& file) {
  try {
    return all.at(of).get<TensorChecksums>();
  } catch (const nlohmann::json::exception&) {
    throw Error(Fault::data, "checkpoint.read",
                fmt::format("'{}' has no checksums of '{}'", file.string(), of),
                "resume from an earlier checkpoint");
  }
}

SessionState session_state_in(const ordered_json& json, const fs::path& file) {
  const int version = json.value("format_version", 0);
  if (version != kFormat_version)
    throw Error(Fault::data, "checkpoint.read",
                fmt::format("'{}' has format_version {}, this Ferry reads {}", file.string(),
                            version, kFormat_version),
                "resume with the Ferry that wrote it");
  try {
    SessionState state;
    state.n_steps = json.at("n_steps").get<int64_t>();
    state.optimizer.n_updates = json.at("n_updates").get<int64_t>();
    state.optimizer.n_skipped_in_a_row = json.at("n_skipped_in_a_row").get<int64_t>();
    state.optimizer.loss_scale.scale = json.at("loss_scale").get<float>();
    state.optimizer.loss_scale.n_good_steps = json.at("n_good_steps").get<int64_t>();
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw Error(Fault::data, "checkpoint.read",
                fmt::format("'{}' is damaged: {}", file.string(), error.what()),
                "resume from an earlier checkpoint");
  }
}

}  // namespace

runs::Checkpoint save_checkpoint(Session& session, const Job& job, const fs::path& run) {
  const SessionState state = session.state();
  runs::NewCheckpoint checkpoint(run, state.n_steps);
  const Segments& segments = session.segments();
  ordered_json checksums;
  checksums[kWeightsKey] =
      save_weights(job.model, segments, checkpoint.path(), DType::f32, kShard_bytes_max);
  for (Segment segment : {Segment::adam_m, Segment::adam_v})
    checksums[std::string(name_of(segment))] =
        save_states(job.model, segments, segment, checkpoint.path() / "state", kShard_bytes_max);
  write_model_files(job, checkpoint.path());
  write_json_file(checkpoint.path() / "trainer_state.json", trainer_state(state, job));
  write_json_file(checkpoint.path() / "state" / "checksums.json", checksums);
  write_json_file(checkpoint.path() / "state" / "run_state.json", json_of(state, job));
  return checkpoint.commit();
}

void load_checkpoint(const runs::Checkpoint& checkpoint, const Job& job, Session& session) {
  const fs::path state = checkpoint.path / "state";
  const ordered_json run_state = read_json(state / "run_state.json");
  const SessionState restored = session_state_in(run_state, state / "run_state.json");
  if (!job.config.flag("new_identity"))
    check_identity(run_state.value("identity", ordered_json::object()), identity_of(job));

  const fs::path checksums_file = state / "checksums.json";
  const ordered_json checksums = read_json(checksums_file);
  const auto weights = CheckpointReader::open(checkpoint.path);
  check_checksums(weights, checksums_in(checksums, kWeightsKey, checksums_file));
  Segments& segments = session.segments();
  load_weights(job.model, weights, 0, segments);
  for (Segment segment : {Segment::adam_m, Segment::adam_v}) {
    const std::string name(name_of(segment));
    load_states(job.model, state, segment, checksums_in(checksums, name, checksums_file), segments);
  }
  session.restore(restored);
}

}  // namespace ferry
