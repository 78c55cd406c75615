// ferry train: checks what can be checked without LibTorch, then becomes the trainer.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/settings.h"
#include "src/config/models.h"
#include "src/config/paths.h"
#include "src/plan/param_groups.h"
#include "src/plan/run_plan.h"
#include "src/runs/run_directory.h"

namespace ferry::cli {

namespace {

nlohmann::ordered_json json_of(const config::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* time = std::get_if<config::Seconds>(&value)) return to_text(*time);
  return "auto";
}

void print_settings(const config::CommandLine& command) {
  if (!command.wants_json) {
    fmt::print("{}", command.config.to_toml(/*with_origins=*/true));
    return;
  }
  nlohmann::ordered_json settings;
  for (const config::Option& option : config::option_table())
    settings[std::string(option.key)] = {{"value", json_of(command.config.value(option.key))},
                                         {"origin", command.config.origin(option.key).where}};
  fmt::print("{}\n",
             settings.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

/** Says what is wrong, and where a run is resumed how to report it; the exit code. */
int fail_training(const Error& error, const std::string& resumed_from) {
  log_line(fmt::format("ferry: {}", error.what()));
  if (!resumed_from.empty() && error.exit_code() >= runs::kFirstReportedExit)
    log_line(runs::report_advice(config::run_of_checkpoint(resumed_from)));
  return error.exit_code();
}

/** A pattern that names nothing shows here, before any data is read. */
void check_patterns(const config::Config& config) {
  if (config.text("freeze").empty() && config.text("param_groups").empty()) return;
  constexpr int64_t kAnyLabels = 2;
  const auto directory = config::find_model(config.text("model_name_or_path"));
  ModelTable model =
      make_model_table(config, HfConfig::load(directory / "config.json"), kAnyLabels, {});
  apply_param_options(config, model);
}

}  // namespace

int run_train(Arguments arguments) {
  auto command = read_settings("train", arguments);
  if (!command) return 0;
  check_patterns(command->config);
  if (command->wants_dry_run) {
    print_settings(*command);
    return 0;
  }
  try {
    config::find_model(command->config.text("model_name_or_path"));
    check_data_exists(command->config, "dataset");
    check_data_exists(command->config, "eval_dataset");
  } catch (const Error& error) {
    return fail_training(error, command->config.text("resume_from_checkpoint"));
  }
  become_trainer("train", arguments);
}

}  // namespace ferry::cli
