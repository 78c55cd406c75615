#include "src/cli/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/argument_pointers.h"
#include "src/base/process/threads.h"
#include "src/files/paths.h"
#include "src/inputs/chosen_task.h"
#include "src/service/trainer_program.h"
#include "src/term/terminal.h"

namespace ferry::cli {

namespace fs = std::filesystem;

std::optional<config::CommandLine> read_settings(std::string_view verb, Arguments arguments) {
  config::CommandLine command = config::parse_command_line(verb, arguments);
  if (command.wants_help) {
    fmt::print("{}", config::help_text(*command.verb, term::detect_terminal(1).width));
    return std::nullopt;
  }
  for (const std::string& note : command.notes)
    log_line(fmt::format("ferry: {}", note));
  config::check_required(command);
  if ((command.verb->mask & config::kTraining) != 0)
    if (const std::string note = choose_task(command.config); !note.empty())
      log_line(fmt::format("ferry: {}", note));
  return command;
}

nlohmann::ordered_json json_of(const config::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* time = std::get_if<config::Seconds>(&value)) return to_text(*time);
  return "auto";
}

void become(std::vector<std::string> words, std::string_view where) {
  std::vector<char*> pointers = argument_pointers(words);
  std::fflush(nullptr);
  execv(pointers.front(), pointers.data());
  throw Error(Fault::machine, where,
              fmt::format("cannot start '{}': {}", words.front(), std::strerror(errno)));
}

std::string trainer_path() {
  std::optional<fs::path> trainer = service::find_trainer();
  if (!trainer)
    throw Error(
        Fault::machine, "cli.trainer",
        fmt::format("ferry-trainer is not beside ferry in {}", program_directory().string()),
        "build it (scripts/setup, then ninja), or set FERRY_TRAINER to its path");
  return trainer->string();
}

void become_trainer(std::string_view verb, Arguments arguments) {
  std::vector<std::string> words = {trainer_path(), std::string(verb)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  limit_spinning_of_children();
  become(std::move(words), "cli.trainer");
}

}  // namespace ferry::cli
