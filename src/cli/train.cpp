// ferry train: checks what can be checked without LibTorch, then becomes the trainer.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/settings.h"
#include "src/config/models/models.h"
#include "src/config/paths.h"
#include "src/data/run_dataset.h"
#include "src/files/hf/hf_directory.h"
#include "src/plan/param_groups.h"
#include "src/plan/run_plan.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/output_directory.h"
#include "src/runs/directory/run_directory.h"
#include "src/service/machine/smaller_machine.h"
#include "src/service/texts/data.h"
#include "src/service/texts/given_data.h"
#include "src/service/texts/model_files.h"
#include "src/service/texts/prompts.h"

namespace ferry::cli {

namespace {

void print_settings(const config::CommandLine& command) {
  if (!command.wants_json) {
    print(
        command.config.to_toml(/*with_origins=*/true));  // at once: what is wrong is said after it
    return;
  }
  nlohmann::ordered_json settings;
  for (const config::Option& option : config::option_table())
    settings[std::string(option.key)] = {{"value", json_of(command.config.value(option.key))},
                                         {"origin", command.config.origin(option.key).where}};
  print(settings.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

/** Says what is wrong, and where a run is resumed how to report it; the exit code. */
int fail_training(const Error& error, const std::string& resumed_from) {
  log_line(fmt::format("ferry: {}", error.what()));
  if (!resumed_from.empty() && error.exit_code() >= runs::kFirstReportedExit)
    log_line(runs::report_advice(config::run_of_checkpoint(resumed_from)));
  return error.exit_code();
}

/** The checkpoint that a run goes on from; empty for one that begins. */
std::filesystem::path checkpoint_of(const config::Config& config) {
  if (const std::string& from = config.text("resume_from_checkpoint"); !from.empty())
    if (const auto resumed = runs::find_resume_point(from); resumed.checkpoint)
      return resumed.checkpoint->path;
  return {};
}

/** The model's files: of a run that goes on its checkpoint's, whatever became of the model that it
 * began with. Throws Error(data) where there is neither. */
HfDirectory open_run_model(const config::Config& config) {
  const auto checkpoint = checkpoint_of(config);
  return checkpoint.empty() ? open_model(config) : HfDirectory::open(checkpoint);
}

/** Throws Error(data) where there is no model to begin with. */
void find_run_model(const config::Config& config) {
  if (draws_weights(config))
    open_model(config);
  else
    config::find_model(config.text("model_name_or_path"));
}

/** A pattern that names nothing shows here, before any data is read. */
void check_patterns(const config::Config& config) {
  if (config.text("freeze").empty() && config.text("param_groups").empty()) return;
  const HfDirectory directory = open_run_model(config);
  ModelTable model = make_model_table(config, directory.config(), task_kind_of(config).head,
                                      n_labels_without_data(directory.config()), {});
  apply_param_options(config, model);
}

/** Reads all of it, and says what was taken for what. */
void check_dataset(const DatasetOptions& options) {
  const auto reader = open_dataset(options);
  const auto examples = reader->examples();
  for (Example example; examples->next(example);) {
  }
  for (const std::string& note : examples->notes())
    log_line(note);
}

/** Finds, without LibTorch, what the trainer would stumble over: a model or a tokenizer that is
 * missing or of another family, data that cannot be read, a directory in use. */
void check_run(const config::Config& config) {
  const HfDirectory model = open_run_model(config);
  const ModelTable table = make_model_table(config, model.config(), task_kind_of(config).head,
                                            n_labels_without_data(model.config()), {});
  check_vocabulary(model, Tokenizer::open(model.path()), table);
  const auto setting = [&](std::string_view key) { return config.maybe_text(key); };
  const RowNeed rows = task_kind_of(config).rows;
  for (const char* key : {"dataset", "eval_dataset"}) {
    check_data_exists(config, key);
    if (const std::string& data = config.text(key); !data.empty())
      check_dataset(dataset_options(setting, data, rows));
  }
  sample_texts(config);
  const auto output = config.maybe_text("output_dir");
  if (!output) return;
  if (config.text("resume_from_checkpoint").empty()) return runs::check_unused(*output);
  if (runs::has_trainer(*output))
    throw Error(Fault::usage, "runs.lock",
                fmt::format("another process is training in '{}'", *output),
                "wait for it, or `ferry runs stop` it");
}

}  // namespace

int run_train(Arguments arguments) {
  auto command = read_settings("train", arguments);
  if (!command) return 0;
  if (const std::string note = service::note_of_smaller_machine(*command); !note.empty())
    log_line(fmt::format("ferry: {}", note));
  check_patterns(command->config);
  if (command->wants_dry_run) {
    print_settings(*command);
    check_run(command->config);
    log_line(
        "dry run: settings, model, data and output directory are in order; nothing was written");
    return 0;
  }
  try {
    if (checkpoint_of(command->config).empty()) find_run_model(command->config);
    check_data_exists(command->config, "dataset");
    check_data_exists(command->config, "eval_dataset");
    sample_texts(command->config);
  } catch (const Error& error) {
    return fail_training(error, command->config.text("resume_from_checkpoint"));
  }
  become_trainer("train", arguments);
}

}  // namespace ferry::cli
