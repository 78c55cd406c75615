// ferry train: checks what can be checked without LibTorch, then becomes the trainer.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "src/base/data_output.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/inputs.h"
#include "src/cli/restarts.h"
#include "src/cli/settings.h"
#include "src/comm/rank_environment.h"
#include "src/files/paths.h"
#include "src/inputs/given_data.h"
#include "src/inputs/prompts.h"
#include "src/request/ranks.h"
#include "src/runs/directory/run_directory.h"
#include "src/service/machine/smaller_machine.h"
#include "src/service/train_check.h"

namespace ferry::cli {

namespace {

void print_settings(const config::CommandLine& command) {
  if (!command.wants_json) return print(command.config.to_toml(/*with_origins=*/true));
  nlohmann::ordered_json settings;
  for (const config::Option& option : config::option_table())
    settings[std::string(option.key)] = {{"value", json_of(command.config.value(option.key))},
                                         {"origin", command.config.origin(option.key).where}};
  print(settings.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

/** Says what is wrong, and where a run is resumed how to report it; the exit code. */
int fail_training(const Error& error, const std::string& resumed_from, bool wants_json) {
  if (wants_json) print(json_of_error(error.what(), error.exit_code()) + "\n");
  log_line(fmt::format("ferry: {}", error.what()));
  if (!resumed_from.empty() && error.exit_code() >= runs::kFirstReportedExit)
    log_line(runs::report_advice(run_of_checkpoint(resumed_from)));
  return error.exit_code();
}

/** A launcher starts this command for each rank, and the first one leads the others. */
bool is_launched_to_follow() {
  const auto its = read_rank_environment(std::getenv);
  return its && its->rank > 0;
}

/** Model and data are for the host that leads: the others look at neither. */
bool follows_other_host(Arguments arguments) {
  const config::CommandLine command = config::parse_command_line("train", arguments);
  return !command.wants_help && ranks_to_start(command.config).follows();
}

/** This process becomes the trainer, or watches it where it may be started anew. */
int start_trainer(std::string_view verb, Arguments arguments) {
  const config::CommandLine command = config::parse_command_line("train", arguments);
  // The other hosts get the same program.
  if (!command.config.list("hosts").empty())
    ::setenv("FERRY", std::filesystem::read_symlink("/proc/self/exe").c_str(), 1);
  const auto n_restarts = static_cast<int>(command.config.integer("max_restarts"));
  if (n_restarts > 0) return train_with_restarts(verb, arguments, n_restarts);
  become_trainer(verb, arguments);
}

}  // namespace

int run_train(Arguments arguments) {
  if (is_launched_to_follow()) become_trainer("follow", {});
  if (follows_other_host(arguments)) return start_trainer("follow", arguments);
  auto command = read_settings("train", arguments);
  if (!command) return 0;
  if (const std::string note = service::note_of_smaller_machine(*command); !note.empty())
    log_line(fmt::format("ferry: {}", note));
  if (command->config.text("resume_from_checkpoint").empty())
    provide_inputs(
        command->config,
        command->wants_dry_run ? service::ModelNeed::tokens : service::ModelNeed::weights,
        /*must_fit=*/true);
  service::check_patterns(command->config);
  if (command->wants_dry_run) {
    // For people at once: what is wrong is said after them. Programs get one object, this or an
    // error.
    if (!command->wants_json) print_settings(*command);
    service::check_training(command->config, log_line);
    if (command->wants_json) print_settings(*command);
    log_line(
        "dry run: settings, model, data and output directory are in order; nothing was written");
    return 0;
  }
  try {
    service::check_model(command->config);
    check_data_exists(command->config, "dataset");
    check_data_exists(command->config, "eval_dataset");
    sample_texts(command->config);
  } catch (const Error& error) {
    return fail_training(error, command->config.text("resume_from_checkpoint"),
                         command->wants_json);
  }
  return start_trainer("train", arguments);
}

}  // namespace ferry::cli
