// ferry completion bash | zsh | fish: prints a script for the shell.

#include "src/config/command_line/completion.h"

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/config/options/option.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry::cli {

namespace {

using config::CompletedProgram;
using config::CompletedVerb;
using config::Completes;

struct ShellName {
  std::string_view name;
  config::Shell shell;
};
constexpr ShellName kShells[] = {
    {"bash", config::Shell::bash}, {"zsh", config::Shell::zsh}, {"fish", config::Shell::fish}};

constexpr std::string_view kCompletionHelp =
    "ferry completion - a script that completes ferry's command lines\n\n"
    "usage: ferry completion bash | zsh | fish\n\n"
    "Completes verbs, flags, values of choices, files and names of presets. To have it in every "
    "shell:\n"
    "  bash   echo 'source <(ferry completion bash)' >> ~/.bashrc\n"
    "  zsh    echo 'source <(ferry completion zsh)' >> ~/.zshrc      (after compinit)\n"
    "  fish   ferry completion fish > ~/.config/fish/completions/ferry.fish\n";

std::vector<std::string> choices_of(std::string_view key) {
  const config::Option& option = *config::find_option(key).option;
  return {option.choices.begin(), option.choices.end()};
}

/** Every verb: those with settings from their table, the others from what follows them. */
CompletedProgram whole_program() {
  const CompletedProgram settings = config::completed_settings();
  CompletedProgram program{.flags = settings.flags};
  for (const Command& command : commands()) {
    CompletedVerb verb{std::string(command.name), std::string(command.summary)};
    if (command.name == "presets")
      verb.words = {
          {"ls"}, {"show", {Completes::preset}}, {"cp", {Completes::preset, Completes::file}}};
    if (command.name == "bench")
      for (const std::string_view part : bench_parts())
        verb.words.push_back({std::string(part)});
    if (command.name == "completion")
      for (const ShellName& shell : kShells)
        verb.words.push_back({std::string(shell.name)});
    if (command.name == "help")
      for (const Command& other : commands())
        verb.words.push_back({std::string(other.name)});
    program.verbs.push_back(std::move(verb));
  }
  program.flags.push_back({.names = {"help"},
                           .verbs = {"presets", "doctor", "bench", "runs", "gui", "completion"},
                           .help = "What the verb does",
                           .takes_value = false});
  program.flags.push_back({.names = {"json"},
                           .verbs = {"presets", "doctor", "bench", "runs"},
                           .help = "Results as JSON",
                           .takes_value = false});
  program.flags.push_back({.names = {"task"},
                           .verbs = {"presets"},
                           .help = "The presets of a task",
                           .completes = Completes::words,
                           .values = choices_of("task")});
  program.flags.push_back({.names = {"card"},
                           .verbs = {"presets"},
                           .help = "The presets made for a card",
                           .completes = Completes::words,
                           .values = list_machine_presets()});
  program.flags.push_back({.names = {"here"},
                           .verbs = {"presets"},
                           .help = "The presets made for no more than this machine has",
                           .takes_value = false});
  program.flags.push_back({.names = {"no-measure"},
                           .verbs = {"doctor"},
                           .help = "Look only; figures are those of the last time",
                           .takes_value = false});
  program.flags.push_back({.names = {"nvme-path"},
                           .verbs = {"doctor"},
                           .help = "Directories on the drives to measure",
                           .completes = Completes::file});
  program.flags.push_back({.names = {"seconds"},
                           .verbs = {"doctor", "bench"},
                           .help = "About how long measuring may take"});
  program.flags.push_back({.names = {"output"},
                           .verbs = {"bench"},
                           .help = "The file to write, of bench card or bench all",
                           .completes = Completes::file});
  program.flags.push_back({.names = {"output"},
                           .verbs = {"runs"},
                           .help = "The file that runs report writes",
                           .completes = Completes::file});
  program.flags.push_back({.names = {"no-save"},
                           .verbs = {"runs"},
                           .help = "runs stop writes no checkpoint",
                           .takes_value = false});
  program.flags.push_back({.names = {"yes"},
                           .verbs = {"runs"},
                           .help = "runs delete removes what it names",
                           .takes_value = false});
  program.flags.push_back({.names = {"directory"},
                           .verbs = {"bench"},
                           .help = "Whose drive bench disk measures",
                           .completes = Completes::file});
  for (const auto& [name, help] :
       {std::pair{"request-bytes", "A request of bench disk to the drive"},
        {"depth", "Requests of bench disk under way at once"},
        {"file-bytes", "The file of bench disk"},
        {"window-bytes", "Memory that transfers of bench disk go through"},
        {"turns", "Turns of each pattern of bench disk"}})
    program.flags.push_back({.names = {name}, .verbs = {"bench"}, .help = help});
  return program;
}

}  // namespace

int run_completion(Arguments arguments) {
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    fmt::print("{}", kCompletionHelp);
    return 0;
  }
  if (arguments.size() == 1) {
    for (const ShellName& known : kShells) {
      if (known.name != arguments[0]) continue;
      fmt::print("{}", config::completion_script(known.shell, whole_program()));
      return 0;
    }
  }
  throw Error(Fault::usage, "cli.completion",
              fmt::format("'ferry completion {}'", fmt::join(arguments, " ")),
              "usage: ferry completion bash | zsh | fish");
}

}  // namespace ferry::cli
