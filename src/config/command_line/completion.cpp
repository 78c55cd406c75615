#include "src/config/command_line/completion.h"

#include <fmt/format.h>

#include <algorithm>

namespace ferry::config {

namespace {

std::string dashed(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

std::vector<std::string> verbs_where(auto&& is_wanted) {
  std::vector<std::string> names;
  for (const Verb& verb : verb_table())
    if (is_wanted(verb)) names.emplace_back(verb.name);
  return names;
}

CompletedFlag switch_flag(std::string name, std::vector<std::string> verbs, std::string help) {
  return {.names = {std::move(name)},
          .verbs = std::move(verbs),
          .help = std::move(help),
          .takes_value = false};
}

CompletedFlag flag_of(const Option& option) {
  CompletedFlag flag{
      .names = {dashed(option.key)},
      .verbs = verbs_where([&](const Verb& verb) { return (option.verbs & verb.mask) != 0; }),
      .help = std::string(option.help)};
  for (const Alias& alias : option.aliases)
    if (alias.means_value.empty())
      (alias.is_silent ? flag.names : flag.aliases).push_back(dashed(alias.name));
  if (option.type == Type::path) {
    flag.completes = Completes::file;
  } else if (option.type == Type::boolean) {
    flag.values = {"true", "false"};
    flag.takes_value = false;
  } else {
    flag.values.assign(option.choices.begin(), option.choices.end());
    if (option.can_be_auto) flag.values.emplace_back("auto");
  }
  if (!flag.values.empty()) flag.completes = Completes::words;
  return flag;
}

}  // namespace

CompletedProgram completed_settings() {
  auto all = [](const Verb&) { return true; };
  CompletedProgram program;
  for (const Verb& verb : verb_table())
    program.verbs.push_back({std::string(verb.name), std::string(verb.summary)});
  program.flags = {
      switch_flag("help", verbs_where(all), "What the verb does, and its options"),
      switch_flag("json", verbs_where(all), "Results as JSON"),
      switch_flag("dry-run", verbs_where([](const Verb& verb) { return verb.takes_dry_run; }),
                  "Print every setting and where it comes from, and stop"),
      switch_flag("verbose", verbs_where([](const Verb& verb) { return verb.takes_verbose; }),
                  "Also what the figures of the machine assume"),
      {.names = {"preset"},
       .verbs = verbs_where(all),
       .help = "Settings that belong together",
       .completes = Completes::preset},
      {.names = {"config"},
       .verbs = verbs_where(all),
       .help = "Settings from a TOML file",
       .completes = Completes::file},
  };
  for (const Option& option : option_table()) {
    program.flags.push_back(flag_of(option));
    if (option.type == Type::boolean)
      program.flags.push_back(switch_flag("no-" + dashed(option.key), program.flags.back().verbs,
                                          fmt::format("{} = false", option.key)));
  }
  return program;
}

namespace {

/** The first sentence in one line: what there is room for beside a flag. */
std::string short_help(std::string_view help) {
  std::string line(help.substr(0, help.find(". ")));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  if (line.ends_with('.')) line.pop_back();
  return line;
}

/** The text with a backslash before each special character. */
std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/** One word of bash and zsh, whatever is in it. */
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string quoted_all(const std::vector<std::string>& words) {
  std::string result;
  for (const std::string& word : words)
    result += (result.empty() ? "" : " ") + shell_quoted(word);
  return result;
}

/** fish reads \\ and \' inside single quotes. */
std::string fish_quoted(std::string_view text) {
  return "'" + escaped(text, "\\'") + "'";
}

/** The text that zsh's _describe takes apart at the first colon. */
std::string zsh_described(std::string_view name, std::string_view help) {
  return shell_quoted(fmt::format("{}:{}", escaped(name, "\\:"), escaped(short_help(help), "\\")));
}

bool has_verb(const CompletedFlag& flag, const std::string& verb) {
  return std::find(flag.verbs.begin(), flag.verbs.end(), verb) != flag.verbs.end();
}

/** spell(flag, help) of every flag of the verb. */
std::vector<std::string> flags_of(const CompletedProgram& program,
                                  const std::string& verb,
                                  auto&& spell) {
  std::vector<std::string> result;
  for (const CompletedFlag& flag : program.flags)
    if (has_verb(flag, verb))
      for (const std::string& name : flag.names)
        result.push_back(spell("--" + name, flag.help));
  return result;
}

/** `case` arms of bash and zsh for what stands after a flag; `action` writes one's body. */
std::string value_cases(const CompletedProgram& program, auto&& action) {
  std::string text;
  for (const CompletedFlag& flag : program.flags) {
    if (flag.completes == Completes::nothing && !flag.takes_value) continue;
    std::vector<std::string> names = flag.names;
    names.insert(names.end(), flag.aliases.begin(), flag.aliases.end());
    text += fmt::format("    {})\n      {}\n", fmt::join(names, "|"),
                        action(flag.completes, flag.values));
    // A flag that may stand alone is followed by a value or by anything else.
    text += flag.takes_value ? "      return ;;\n" : "      ;;\n";
  }
  return text;
}

/** `case` arms for free words: "verb:word:place", the place counted from the word. */
std::string word_cases(const CompletedProgram& program, auto&& action) {
  std::string text;
  for (const CompletedVerb& verb : program.verbs)
    for (const CompletedWord& word : verb.words)
      for (size_t i = 0; i < word.then.size(); ++i)
        text += fmt::format("    {}:{}:{})\n      {} ;;\n", verb.name, word.name, i + 1,
                            action(word.then[i], std::vector<std::string>{}));
  return text;
}

std::vector<std::string> names_of(const std::vector<CompletedWord>& words) {
  std::vector<std::string> names;
  for (const CompletedWord& word : words)
    names.push_back(word.name);
  return names;
}

std::string bash_script(const CompletedProgram& program) {
  auto action = [](Completes completes, const std::vector<std::string>& values) -> std::string {
    switch (completes) {
      case Completes::words:
        return "_ferry_offer " + quoted_all(values);
      case Completes::file:
        return "_ferry_files";
      case Completes::preset:
        return "_ferry_presets";
      case Completes::nothing:
        break;
    }
    return ":";
  };
  std::vector<std::string> verbs;
  for (const CompletedVerb& verb : program.verbs)
    verbs.push_back(verb.name);

  std::string text = R"(# Completion of ferry for bash, made by: ferry completion bash

# Those of the words that go on from what is typed.
_ferry_offer() {
  local each
  for each in "$@"; do
    if [[ $each == "$typed"* ]]; then COMPREPLY+=("$before$each"); fi
  done
}

_ferry_files() {
  local each
  # Quotes of names are readline's work; outside of a completion compopt has nothing to say.
  compopt -o filenames -o default 2>/dev/null
  while IFS= read -r each; do COMPREPLY+=("$before$each"); done < <(compgen -f -- "$typed")
}

_ferry_presets() {
  local each
  while IFS= read -r each; do
    if [[ $each == "$typed"* ]]; then
      printf -v each %q "$each"
      COMPREPLY+=("$before$each")
    fi
  done < <("${COMP_WORDS[0]}" presets ls --names 2>/dev/null)
}

_ferry() {
  local typed=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} before= verb=${COMP_WORDS[1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _ferry_offer )" + quoted_all(verbs) +
                     R"( --help --version
    return
  fi
  # --seed=1 and seed=1: readline may have broken the word at its '='.
  if [[ $typed == '=' ]]; then
    typed=
  elif [[ $flag == '=' ]] && ((COMP_CWORD > 2)); then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $typed == *=* ]]; then
    flag=${typed%%=*} before=${typed%%=*}= typed=${typed#*=}
  elif [[ $flag != --* ]]; then
    flag=
  fi
  flag=${flag#--}
  if [[ $typed != --* ]]; then
    case ${flag//_/-} in
)" + value_cases(program, action) +
                     R"(    esac
  fi
  if [[ -n $before || ${#COMPREPLY[@]} -gt 0 ]]; then return; fi
  case $verb:${COMP_WORDS[2]}:$((COMP_CWORD - 2)) in
)" + word_cases(program, action) +
                     R"(  esac
  if [[ ${#COMPREPLY[@]} -gt 0 ]]; then return; fi
  case $verb in
)";
  for (const CompletedVerb& verb : program.verbs) {
    text += fmt::format("    {})\n", verb.name);
    if (!verb.words.empty())
      text += fmt::format(
          "      if [[ $COMP_CWORD == 2 && $typed != -* ]]; then\n        _ferry_offer {}\n"
          "        return\n      fi\n",
          quoted_all(names_of(verb.words)));
    text += fmt::format("      _ferry_offer {} ;;\n",
                        quoted_all(flags_of(program, verb.name,
                                            [](const std::string& flag, auto&&) { return flag; })));
  }
  return text + "  esac\n}\n\ncomplete -F _ferry ferry\n";
}

std::string zsh_script(const CompletedProgram& program) {
  auto action = [](Completes completes, const std::vector<std::string>& values) -> std::string {
    switch (completes) {
      case Completes::words:
        return "compadd -- " + quoted_all(values);
      case Completes::file:
        return "_files";
      case Completes::preset:
        return "compadd -- ${(f)\"$(${(Q)words[1]} presets ls --names 2>/dev/null)\"}";
      case Completes::nothing:
        break;
    }
    return ":";
  };
  std::string text = R"(#compdef ferry
# Completion of ferry for zsh, made by: ferry completion zsh

_ferry() {
  local flag= verb=$words[2]
  local -a offered
  if ((CURRENT == 2)); then
    offered=(
)";
  for (const CompletedVerb& verb : program.verbs)
    text += fmt::format("      {}\n", zsh_described(verb.name, verb.summary));
  text += R"(      '--help:The list of verbs'
      '--version:The version of ferry'
    )
    _describe verb offered
    return
  fi
  # --seed=1 and seed=1: what is before the '=' stays as it is.
  if [[ $PREFIX == *=* ]]; then
    flag=${PREFIX%%=*}
    compset -P 1 '*='
  elif [[ $words[CURRENT-1] == --* ]]; then
    flag=$words[CURRENT-1]
  fi
  flag=${${flag#--}//_/-}
  if [[ $PREFIX != --* ]]; then
    case $flag in
)" + value_cases(program, action) +
          R"(    esac
  fi
  if [[ $IPREFIX == *= ]]; then return; fi
  case $verb:$words[3]:$((CURRENT - 3)) in
)" + word_cases(program, action) +
          R"(  esac
  case $verb in
)";
  for (const CompletedVerb& verb : program.verbs) {
    text += fmt::format("    {})\n", verb.name);
    if (!verb.words.empty())
      text += fmt::format("      if ((CURRENT == 3)); then compadd -- {}; fi\n",
                          quoted_all(names_of(verb.words)));
    text += "      offered=(\n";
    for (const std::string& flag : flags_of(program, verb.name, zsh_described))
      text += fmt::format("        {}\n", flag);
    text += "      ) ;;\n";
  }
  return text + R"(  esac
  _describe -o option offered
}

# A file of $fpath is run at the first completion; a script that is sourced only says who does it.
if [[ $funcstack[1] == _ferry ]]; then _ferry "$@"; else compdef _ferry ferry; fi
)";
}

std::string fish_script(const CompletedProgram& program) {
  std::string text = R"(# Completion of ferry for fish, made by: ferry completion fish

function __ferry_first
    test (count (commandline -opc)) -eq 1
end

# The verb is one of the arguments.
function __ferry_verb
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

# VERB WORD PLACE: the cursor is so many places after the verb's free word.
function __ferry_place
    set -l words (commandline -opc)
    test (count $words) -eq (math $argv[3] + 2)
    and test "$words[2]" = $argv[1]
    and test "$argv[3]" -eq 0 -o "$words[3]" = "$argv[2]"
end

function __ferry_presets
    set -l words (commandline -opc)
    $words[1] presets ls --names 2>/dev/null
end

complete -c ferry -f
complete -c ferry -n '__ferry_first' -l help -d 'The list of verbs'
complete -c ferry -n '__ferry_first' -l version -d 'The version of ferry'
)";
  for (const CompletedVerb& verb : program.verbs) {
    text += fmt::format("complete -c ferry -n '__ferry_first' -a {} -d {}\n", verb.name,
                        fish_quoted(short_help(verb.summary)));
    for (const CompletedWord& word : verb.words) {
      text += fmt::format("complete -c ferry -n '__ferry_place {} - 0' -a {}\n", verb.name,
                          fish_quoted(word.name));
      for (size_t i = 0; i < word.then.size(); ++i)
        text +=
            fmt::format("complete -c ferry -n '__ferry_place {} {} {}' {}\n", verb.name, word.name,
                        i + 1, word.then[i] == Completes::preset ? "-a '(__ferry_presets)'" : "-F");
    }
  }
  for (const CompletedFlag& flag : program.flags) {
    std::string values = flag.takes_value ? " -x" : "";  // -x: a value follows that is no file
    if (flag.completes == Completes::words)
      values += fmt::format(" -a {}", fish_quoted(fmt::format("{}", fmt::join(flag.values, " "))));
    if (flag.completes == Completes::file) values = " -r -F";
    if (flag.completes == Completes::preset) values += " -a '(__ferry_presets)'";
    for (const std::string& name : flag.names)
      text +=
          fmt::format("complete -c ferry -n '__ferry_verb {}' -l {}{} -d {}\n",
                      fmt::join(flag.verbs, " "), name, values, fish_quoted(short_help(flag.help)));
  }
  return text;
}

}  // namespace

std::string completion_script(Shell shell, const CompletedProgram& program) {
  switch (shell) {
    case Shell::bash:
      return bash_script(program);
    case Shell::zsh:
      return zsh_script(program);
    case Shell::fish:
      return fish_script(program);
  }
  return {};
}

}  // namespace ferry::config
