#pragma once
// Presets as people choose them: what one is for, where its model comes from, which machine it was
// made for, what it takes there, and what another machine lacks for it. The commands and the app
// show these; no torch, no device is touched.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/config/preset.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry::service {

struct PresetFacts {
  config::Preset preset;
  config::PresetHead head;
  config::Config settings;  ///< the preset's over the built-in ones
  /** As the settings name them. The model may be empty in a user's own; of a new model it is the
   * shape's name. */
  std::string model, task;
  bool is_new = false;  ///< a model from scratch (config_name)
  std::string hub_id;   ///< of the Hugging Face hub; empty: it has none that is known by this name
};

/** Reads the preset's file: a millisecond. Throws Error(usage) that names file and line where it is
 * no preset. */
PresetFacts read_preset(const config::Preset& preset);

/** Host memory of the machine that a preset was made for; nullopt: it names neither card nor
 * memory. Throws Error(usage) where its card is not known. */
std::optional<int64_t> host_memory_bytes(const config::PresetHead& head);

/** A plan of a preset's training, every text as long as max_length. Planned, never measured. */
struct PresetPlan {
  bool has_gpu = false;
  int n_gpus = 1;                                ///< memory is that of each
  std::string refusal;                           ///< why it does not fit; empty: it fits
  std::string why;                               ///< one line: where things lie
  int64_t train_batch_size = 0, max_length = 0;  ///< samples of a step, tokens of a sample
  int64_t gpu_bytes = 0, gpu_budget_bytes = 0;   ///< with a GPU
  int64_t host_bytes = 0, host_budget_bytes = 0;
  int64_t host_limit_bytes = 0;  ///< the host's budget as the option host_memory counts it
  int64_t disk_bytes = 0;        ///< checkpoints and the result

  struct Time {
    double step_s = 0;
    double samples_per_s = 0, tokens_per_s = 0;
    std::optional<double> least_samples_per_s;  ///< where published figures of the card disagree
    std::string binding;                        ///< the resource that a step waits for: "compute"
  };
  std::optional<Time> time;  ///< nullopt: the machine's abilities are not known
};

/** Plans the preset for its card and its host memory; without a card for a CPU with the figures in
 * `own`, if any. Throws Error(usage) for a card that is not known or a preset without a model, and
 * Error(data) for a model that is neither known by its name nor on this machine. */
PresetPlan plan_preset(const PresetFacts& facts, const std::optional<MachineProfile>& own = {});

/** The same of several, each in a thread of its own, without figures of this machine. */
std::vector<PresetPlan> plan_presets(std::span<const PresetFacts> presets);

/** A machine that a preset may be used on. */
struct MachineHere {
  int64_t gpu_bytes = 0;  ///< of its GPU; 0: it has none
  int compute_capability = 0;
  int64_t host_bytes = 0;
  int n_gpus = 1;  ///< where it has a GPU
};

/** Phrases for what the machine has less of than the one that the preset was made for: "12.0 GiB of
 * GPU memory instead of 23.6 GiB". Empty: nothing. Throws Error(usage) for a card that is not
 * known. */
std::vector<std::string> lacks(const MachineHere& here, const config::PresetHead& head);

/** The presets that come with Ferry and that no preset of the user's hides. */
std::vector<PresetFacts> own_presets();

/** The tables of presets/presets.md, in Markdown: presets by task, with their plans. */
std::string presets_markdown(std::span<const PresetFacts> presets,
                             std::span<const PresetPlan> plans);

}  // namespace ferry::service
