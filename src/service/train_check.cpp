#include "src/service/train_check.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "src/base/error.h"
#include "src/config/models/models.h"
#include "src/data/read/dataset_files.h"
#include "src/data/run_dataset.h"
#include "src/files/hf/hf_directory.h"
#include "src/files/hub/model_files.h"
#include "src/inputs/data.h"
#include "src/inputs/given_data.h"
#include "src/inputs/model_files.h"
#include "src/inputs/prompts.h"
#include "src/request/param_groups.h"
#include "src/request/run_plan.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/output_directory.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/store/store_room.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;

/** The checkpoint that a run goes on from; empty for one that begins. */
fs::path checkpoint_of(const config::Config& config) {
  if (const std::string& from = config.text("resume_from_checkpoint"); !from.empty())
    if (const auto resumed = runs::find_resume_point(from); resumed.checkpoint)
      return resumed.checkpoint->path;
  return {};
}

/** The model's files: of a run that goes on its checkpoint's, whatever became of the model that it
 * began with. Throws Error(data) where there is neither. */
HfDirectory open_run_model(const config::Config& config) {
  const auto checkpoint = checkpoint_of(config);
  if (checkpoint.empty() && !draws_weights(config)) {
    // Of a hub's model only what is asked for is fetched before the training.
    const auto here = config::find_model(config.text("model_name_or_path"));
    if (config::commit_of_snapshot(here) && !hub::is_whole_model(here))
      return HfDirectory::open(here, /*needs_weights=*/false);
  }
  return checkpoint.empty()
             ? open_model(config)
             : open_checkpoint_directory(checkpoint, config.text("model_name_or_path"));
}

/** Reads all of it, and says what was taken for what. */
void check_dataset(const DatasetOptions& options, const Tell& tell) {
  const auto reader = open_dataset(options);
  const auto examples = reader->examples();
  for (Example example; examples->next(example);) {
  }
  for (const std::string& note : examples->notes())
    tell(note);
}

}  // namespace

void check_model(const config::Config& config) {
  if (!checkpoint_of(config).empty()) return;
  if (draws_weights(config))
    open_model(config);
  else
    config::find_model(config.text("model_name_or_path"));
}

void check_patterns(const config::Config& config) {
  const auto is_empty = [&](const char* key) { return config.text(key).empty(); };
  if (is_empty("freeze") && is_empty("param_groups") && is_empty("modules_to_save") &&
      config.text("lora_targets") == "all-linear")
    return;
  const HfDirectory directory = open_run_model(config);
  ModelTable model = make_model_table(config, directory.config(), task_kind_of(config).head,
                                      n_labels_without_data(directory.config()), {});
  apply_param_options(config, model);
}

void check_training(const config::Config& config, const Tell& tell) {
  const HfDirectory model = open_run_model(config);
  const ModelTable table = make_model_table(config, model.config(), task_kind_of(config).head,
                                            n_labels_without_data(model.config()), {});
  const Tokenizer tokenizer = Tokenizer::open(model.tokenizer());
  check_vocabulary(model, tokenizer, table);
  if (const std::string note = note_of_missing_end(config, tokenizer); !note.empty()) tell(note);
  // Each text of a language model ends with it.
  if (const int32_t end = tokenizer.special_ids().eos; end >= 0 && task_kind_of(config).generates())
    check_rows(std::span(&end, 1), tokenizer, table);
  const auto setting = [&](std::string_view key) { return config.maybe_text(key); };
  const RowNeed rows = task_kind_of(config).rows;
  for (const char* key : {"dataset", "eval_dataset"}) {
    check_data_exists(config, key);
    const std::string& data = config.text(key);
    if (data.empty()) continue;
    const bool is_mixed = key == std::string_view("dataset") &&
                          !dataset_shares(config.text("dataset_shares")).empty();
    for (const std::string& part : is_mixed ? dataset_parts(data) : std::vector<std::string>{data})
      check_dataset(dataset_options(setting, part, rows), tell);
  }
  sample_texts(config);
  runs::check_store_directories(nvme_settings(config).directories);
  const auto output = config.maybe_text("output_dir");
  if (!output) return;
  if (config.text("resume_from_checkpoint").empty()) return runs::check_unused(*output);
  if (runs::has_trainer(*output))
    throw Error(Fault::usage, "runs.lock",
                fmt::format("another process is training in '{}'", *output),
                "wait for it, or `ferry runs stop` it");
}

}  // namespace ferry::service
