#include "src/train/prepare/run_state.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/family.h"
#include "src/base/error.h"
#include "src/base/version.h"
#include "src/engine/state/state_files.h"
#include "src/files/mapped_file.h"
#include "src/request/run_plan.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kFormat_version = 1;
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

/** `from`: a checkpoint, or the run whose last step it is. */
void check_same(const JsonReader& state, const fs::path& from, const Job& job) {
  const JsonReader then = state.at("identity");
  const std::string optim = then.text("optim", "adamw");
  const std::string_view now = simd::spec_of(choose_optim(job.config)).name;
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

ordered_json run_state_json(const SessionState& state, const Identity& identity) {
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

JsonReader run_state_of(const runs::Checkpoint& checkpoint) {
  const fs::path file = checkpoint.path / "state" / runs::kRunStateName;
  JsonReader state = JsonReader::parse(
      read_text_file(file),
      {file.string(), "checkpoint.read", "resume from an earlier checkpoint, and check the disk"});
  session_state_in(state);  // one of another format is refused before anything of it is believed
  return state;
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

std::optional<StepReport> report_in(const JsonReader& state) {
  const auto found = state.find(kReport);
  if (!found) return std::nullopt;
  const JsonReader& json = *found;
  return StepReport{.loss = number_in(json, "loss"),
                    .grad_norm = number_in(json, "grad_norm"),
                    .learning_rate = number_in(json, "learning_rate"),
                    .loss_scale = static_cast<float>(number_in(json, "loss_scale")),
                    .skipped = json.flag("skipped"),
                    .clipped = json.flag("clipped"),
                    .n_skipped_in_a_row = json.integer("n_skipped_in_a_row", 0, INT64_MAX)};
}

runs::PinRecord pin_record_of(const Job& job, const std::string& pin, int64_t generation) {
  return {.store = job.store,
          .pin = pin,
          .generation = generation,
          .head = std::string(name_of(job.model.table.head)),
          .n_labels = job.model.table.n_labels,
          .states = stored_states_of(job.model.table, job.plan.shape)};
}

std::string metadata_of(const SessionState& state, const StepReport* report, const Job& job) {
  ordered_json out = run_state_json(state, job.identity);
  if (report) out[kReport] = json_of(*report);
  return out.dump();
}

void check_same(const runs::Checkpoint& checkpoint, const Job& job) {
  check_same(run_state_of(checkpoint), checkpoint.path, job);
}

void check_same(const runs::LastStep& last, const Job& job) {
  check_same(last.state, last.record.store.files.front().path, job);
}

ordered_json changes_since(const runs::Checkpoint& checkpoint, const Identity& identity) {
  return changes_since(run_state_of(checkpoint), identity);
}

ordered_json changes_since(const runs::LastStep& last, const Identity& identity) {
  return changes_since(last.state, identity);
}

}  // namespace ferry
