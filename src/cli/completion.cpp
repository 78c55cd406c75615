// ferry completion bash | zsh | fish: prints a script for the shell. For each line that is typed,
// the script asks `ferry completion --offer WORD...` what may stand in the place of the last word.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/commands.h"
#include "src/config/command_line/verb.h"
#include "src/config/preset.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry::cli {

namespace {

constexpr std::string_view kCompletionHelp =
    "ferry completion - a script that completes ferry's command lines\n\n"
    "usage: ferry completion bash | zsh | fish\n\n"
    "Completes verbs, flags, values of choices, files and names of presets. To have it in every "
    "shell:\n"
    "  bash   echo 'source <(ferry completion bash)' >> ~/.bashrc\n"
    "  zsh    echo 'source <(ferry completion zsh)' >> ~/.zshrc      (after compinit)\n"
    "  fish   ferry completion fish > ~/.config/fish/completions/ferry.fish\n";

constexpr std::string_view kBash = R"(# Completion of ferry for bash, made by: ferry completion bash

_ferry() {
  local typed=${COMP_WORDS[COMP_CWORD]} before= kind= word
  COMPREPLY=()
  # --seed=1 and seed=1: readline may have broken the word at its '='.
  if [[ $typed == '=' ]]; then
    typed=
  elif [[ $typed == *=* ]]; then
    before=${typed%%=*}= typed=${typed#*=}
  fi
  {
    read -r kind
    while IFS=$'\t' read -r word _; do
      if [[ $word == "$typed"* ]]; then
        printf -v word %q "$word"
        COMPREPLY+=("$before$word")
      fi
    done
  } < <("${COMP_WORDS[0]}" completion --offer "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ $kind == files ]]; then
    # Quotes of names are readline's work; outside of a completion compopt has nothing to say.
    compopt -o filenames -o default 2>/dev/null
    while IFS= read -r word; do COMPREPLY+=("$before$word"); done < <(compgen -f -- "$typed")
  fi
}

complete -F _ferry ferry
)";

constexpr std::string_view kZsh = R"(#compdef ferry
# Completion of ferry for zsh, made by: ferry completion zsh

_ferry() {
  local -a offered
  offered=("${(@f)$(${(Q)words[1]} completion --offer "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  # --seed=1 and seed=1: what is before the '=' stays as it is.
  if [[ $PREFIX == *=* ]]; then compset -P 1 '*='; fi
  if [[ $offered[1] == files ]]; then
    _files
    return
  fi
  shift offered
  # _describe takes each apart at its first colon.
  offered=("${(@)offered//\\/\\\\}")
  offered=("${(@)offered//:/\\:}")
  offered=("${(@)offered/$'\t'/:}")
  _describe ferry offered
}

# A file of $fpath is run at the first completion; a script that is sourced only says who does it.
if [[ $funcstack[1] == _ferry ]]; then _ferry "$@"; else compdef _ferry ferry; fi
)";

constexpr std::string_view kFish = R"(# Completion of ferry for fish, made by: ferry completion fish

function __ferry_offer
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    $words[1] completion --offer $words[2..-1] "$typed" 2>/dev/null
end

function __ferry_takes_files
    set -l offered (__ferry_offer)
    test "$offered[1]" = files
end

# --seed=1 and seed=1: fish wants the whole word back.
function __ferry_words
    set -l typed (commandline -ct)
    set -l before (string match -r '^.*?=' -- $typed; or echo)
    set -l offered (__ferry_offer)
    set -e offered[1]
    # fish itself would look for what is typed in the help texts, too.
    string match -r -- '^[^\t]*'(string escape --style=regex -- $typed)'.*' $before$offered
end

complete -c ferry -f -n 'not __ferry_takes_files' -a '(__ferry_words)'
complete -c ferry -F -n __ferry_takes_files
)";

struct Shell {
  std::string_view name, script;
};
constexpr Shell kShells[] = {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};

/** The kind of word that stands after a flag, or in a place without a flag. */
enum class Takes { nothing, text, file, preset, task, card };

/** A flag that is no option of the table. */
struct Flag {
  std::string_view verbs;  ///< with blanks between; "*": all that take settings
  std::string_view name, help;
  Takes takes = Takes::nothing;
};
constexpr Flag kFlags[] = {
    {"*", "help", "What the verb does, and its options"},
    {"*", "json", "Results as JSON"},
    {"*", "preset", "Settings that belong together", Takes::preset},
    {"*", "config", "Settings from a TOML file", Takes::file},
    {"presets doctor bench runs gui completion", "help", "What the verb does"},
    {"presets doctor bench runs", "json", "Results as JSON"},
    {"presets", "task", "The presets of a task", Takes::task},
    {"presets", "card", "The presets made for a card", Takes::card},
    {"presets", "here", "The presets made for no more than this machine has"},
    {"doctor", "no-measure", "Look only; figures are those of the last time"},
    {"doctor", "nvme-path", "Directories on the drives to measure", Takes::file},
    {"doctor bench", "seconds", "About how long measuring may take", Takes::text},
    {"bench", "output", "The file to write, of bench card or bench all", Takes::file},
    {"runs", "output", "The file that runs report writes", Takes::file},
    {"runs", "no-save", "runs stop writes no checkpoint"},
    {"runs", "yes", "runs delete removes what it names"},
    {"bench", "directory", "Whose drive bench disk measures", Takes::file},
    {"bench", "request-bytes", "A request of bench disk to the drive", Takes::text},
    {"bench", "depth", "Requests of bench disk under way at once", Takes::text},
    {"bench", "file-bytes", "The file of bench disk", Takes::text},
    {"bench", "window-bytes", "Memory that transfers of bench disk go through", Takes::text},
    {"bench", "gpus", "How many ranks bench nccl measures, or which GPUs", Takes::text},
    {"bench", "device", "cpu: bench nccl measures between processes", Takes::text},
    {"bench", "message-bytes", "The largest size of bench nccl", Takes::text},
    {"bench", "turns", "Turns of each pattern of bench disk", Takes::text},
};

/** The words that may stand in a place of a command line. */
struct Offer {
  bool takes_files = false;
  std::vector<std::string> words;  ///< with a tab and a help text, where there is one

  void add(std::string_view word, std::string_view help = {}) {
    // The first sentence: a line has no room for more.
    help = help.substr(0, help.find(". "));
    if (help.ends_with('.')) help.remove_suffix(1);
    words.push_back(fmt::format("{}{}{}", word, help.empty() ? "" : "\t", help));
  }
  void add_all(const auto& all) {
    for (const auto& word : all)
      add(word);
  }
};

std::string dashed(std::string_view name) {
  std::string result(name);
  std::ranges::replace(result, '_', '-');
  return result;
}

bool has(const Flag& flag, std::string_view verb) {
  if (flag.verbs == "*") return config::find_verb(verb);
  return fmt::format(" {} ", flag.verbs).find(fmt::format(" {} ", verb)) != std::string::npos;
}

void add_words(Offer& offer, Takes takes) {
  if (takes == Takes::file) offer.takes_files = true;
  if (takes == Takes::task) offer.add_all(config::find_option("task").option->choices);
  if (takes == Takes::card) offer.add_all(list_machine_presets());
  if (takes != Takes::preset) return;
  for (const config::Preset& preset : config::list_presets())
    if (preset.name.find_first_of("\n\t") == std::string::npos) offer.add(preset.name);
}

/** The values of a flag, "--dtype" or "dtype"; true where one has to follow it. */
bool add_values(Offer& offer, std::string_view verb, std::string_view flag_name) {
  const std::string name = dashed(flag_name.substr(flag_name.starts_with("--") ? 2 : 0));
  for (const Flag& flag : kFlags)
    if (has(flag, verb) && flag.name == name) {
      add_words(offer, flag.takes);
      return flag.takes != Takes::nothing;
    }
  const auto [option, alias] = config::find_option(name);
  if (!option || (alias && !alias->means_value.empty())) return false;
  const bool is_switch = option->type == config::Type::boolean;
  if (option->type == config::Type::path) offer.takes_files = true;
  if (is_switch) offer.add_all(std::array{"true", "false"});
  offer.add_all(option->choices);
  if (option->can_be_auto) offer.add("auto");
  return !is_switch;
}

/** Adds the words for a place after the verb. words[0] is the verb, and the last is typed. */
void add_free_words(Offer& offer, Arguments words) {
  const std::string& verb = words[0];
  if (verb == "presets") {
    if (words.size() == 2)
      offer.add_all(std::array{"ls", "show", "cp"});
    else if (words.size() == 3 && (words[1] == "show" || words[1] == "cp"))
      add_words(offer, Takes::preset);
    else if (words.size() == 4 && words[1] == "cp")
      offer.takes_files = true;
  }
  if (words.size() != 2) return;
  if (verb == "bench") offer.add_all(bench_parts());
  for (const Shell& shell : kShells)
    if (verb == "completion") offer.add(shell.name);
  for (const Command& command : commands())
    if (verb == "help") offer.add(command.name);
}

void add_flags(Offer& offer, std::string_view verb_name) {
  for (const Flag& flag : kFlags)
    if (has(flag, verb_name)) offer.add(fmt::format("--{}", flag.name), flag.help);
  const config::Verb* const verb = config::find_verb(verb_name);
  if (!verb) return;
  if (verb->takes_dry_run)
    offer.add("--dry-run", "Print every setting and where it comes from, and stop");
  if (verb->takes_verbose) offer.add("--verbose", "Also what the figures of the machine assume");
  for (const config::Option& option : config::option_table()) {
    if ((option.verbs & verb->mask) == 0) continue;
    offer.add("--" + dashed(option.key), option.help);
    for (const config::Alias& alias : option.aliases)
      if (alias.is_silent) offer.add("--" + dashed(alias.name), option.help);
    if (option.type == config::Type::boolean)
      offer.add("--no-" + dashed(option.key), fmt::format("{} = false", option.key));
  }
}

/** `words` are those after "ferry"; the last one is being typed, and may be empty. */
Offer offer_for(Arguments words) {
  Offer offer;
  const size_t n = words.size();
  if (n < 2) {
    for (const Command& command : commands())
      offer.add(command.name, command.summary);
    offer.add("--help", "The list of verbs");
    offer.add("--version", "The version of ferry");
    return offer;
  }
  const std::string &verb = words[0], &typed = words[n - 1], &before = words[n - 2];
  const bool may_be_flag = typed.starts_with('-');
  std::string flag;  // whose value is typed
  bool is_assigned = true;
  if (typed == "=")  // readline makes three words of --seed=1
    flag = before;
  else if (before == "=" && n > 3)
    flag = words[n - 3];
  else if (typed.find('=') != std::string::npos)
    flag = typed.substr(0, typed.find('='));
  else
    is_assigned = false;
  if (!is_assigned && before.starts_with("--") && !typed.starts_with("--")) flag = before;
  // A flag that may stand alone is followed by a value or by anything else.
  const bool is_value = !flag.empty() && add_values(offer, verb, flag);
  if (is_value || is_assigned) return offer;
  if (!may_be_flag) add_free_words(offer, words);
  if (may_be_flag || (offer.words.empty() && !offer.takes_files)) add_flags(offer, verb);
  return offer;
}

void print_offer(Arguments words) {
  const Offer offer = offer_for(words);
  ferry::print(offer.takes_files ? "files\n" : "words\n");
  for (const std::string& word : offer.words)
    ferry::print(word + "\n");
}

}  // namespace

int run_completion(Arguments arguments) {
  if (!arguments.empty() && arguments[0] == "--offer") {
    print_offer(arguments.subspan(1));
    return 0;
  }
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    fmt::print("{}", kCompletionHelp);
    return 0;
  }
  for (const Shell& shell : kShells) {
    if (arguments.size() != 1 || arguments[0] != shell.name) continue;
    fmt::print("{}", shell.script);
    return 0;
  }
  throw Error(Fault::usage, "cli.completion",
              fmt::format("'ferry completion {}'", fmt::join(arguments, " ")),
              "usage: ferry completion bash | zsh | fish");
}

}  // namespace ferry::cli
