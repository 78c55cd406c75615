// The completion scripts in real shells: each script is loaded by the shell it is for, and asked
// what it would offer for a line that is being typed.

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

using Words = std::vector<std::string>;
using Offered = std::set<std::string>;

/** Prints "==" after what is offered for each line. In bash a line is the words of COMP_WORDS. */
constexpr std::string_view kAskBash = R"(
source "$1"
shift
[[ $(complete -p ferry) == *'-F _ferry '* ]] || echo 'ferry has no completion' >&2
for line; do
  read -ra COMP_WORDS <<<"$line"
  if [[ $line == *' ' ]]; then COMP_WORDS+=(''); fi
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _ferry "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
  if ((${#COMPREPLY[@]})); then printf '%s\n' "${COMPREPLY[@]}"; fi
  echo ==
done
)";

/** zsh completes inside its line editor only: an interactive one gets the lines typed, each with a
 * tab and a key that ends it, and writes down what reaches compadd. */
constexpr std::string_view kAskZsh = R"(
zmodload zsh/zpty
directory=$1 script=$2
shift 2
cat >$directory/start.zsh <<START
PS1= out=$directory/offered
autoload -Uz compinit && compinit -D -u
source $script 2>>$directory/errors
setopt no_beep no_auto_list no_auto_menu extended_glob
compadd() {
  local -a own=(\${argv[1,(i)(-|--)]}) found
  if [[ -n \${(M)own:#-[a-zA-Z]#[OAD]} ]]; then builtin compadd "\$@"; return; fi
  builtin compadd -O found "\$@"
  if ((\$#found)); then print -rl -- \$found >>\$out; fi
  builtin compadd "\$@"
}
end_line() { print -- '==' >>\$out; BUFFER=; }
leave() { exit; }
zle -N end_line
zle -N leave
bindkey '^I' complete-word '^G' end_line '^O' leave
print READY
START
: >$directory/offered
zpty inner "TERM=dumb zsh -f -i"
zpty -w inner "source $directory/start.zsh"
zpty -r inner seen '*READY*'
for line; do
  zpty -w -n inner "$line"$'\t\a'
done
zpty -w -n inner $'\x0f'
while zpty -r inner seen; do :; done
cat $directory/errors >&2
cat $directory/offered
)";

constexpr std::string_view kAskFish = R"(
source $argv[1]
for line in $argv[2..]
  complete --do-complete $line
  echo ==
end
)";

std::string flag_of(std::string_view name) {
  std::string flag(name);
  std::ranges::replace(flag, '_', '-');
  return "--" + flag;
}

/** By the name of the shell. */
class Completion : public FerryTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    FerryTest::SetUp();
    if (IsSkipped()) return;
    if (shell("-c", {"exit 0"}).exit_code != 0) GTEST_SKIP() << GetParam() << " is not here";
  }

  /** Runs the shell on its options and words, in the test's directory, with ferry in PATH. */
  Outcome shell(const std::string& option, const Words& words) const {
    Words arguments = {is("bash") ? "--norc" : is("zsh") ? "-f" : "--no-config", option};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const std::string home = directory_.path().string();
    return run_ferry({.arguments = arguments,
                      .environment = {{"PATH", programs_ + ":" + getenv("PATH")},
                                      {"HOME", home},
                                      {"XDG_CONFIG_HOME", home},
                                      {"XDG_DATA_HOME", home},
                                      {"LC_ALL", "C.UTF-8"}},
                      .directory = home,
                      .program = GetParam()});
  }

  /** The words that the script offers for each line; the cursor is at its end. */
  std::vector<Offered> ask(const Words& lines) const {
    const std::string script =
        directory_.write("script", run_ferry({{"completion", GetParam()}}).out).string();
    const std::string_view text = is("zsh") ? kAskZsh : is("bash") ? kAskBash : kAskFish;
    Words words = {script};
    if (is("zsh")) words.insert(words.begin(), directory_.path().string());
    words.insert(words.end(), lines.begin(), lines.end());
    const Outcome outcome = shell(directory_.write("ask", std::string(text)).string(), words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    std::vector<Offered> answers(1);
    std::istringstream out(outcome.out);
    for (std::string line; std::getline(out, line);) {
      if (line == "==") {
        answers.emplace_back();
        continue;
      }
      answers.back().insert(line.substr(0, line.find('\t')));  // fish: the description follows
    }
    answers.pop_back();
    EXPECT_EQ(answers.size(), lines.size()) << outcome.out;
    answers.resize(lines.size());
    return answers;
  }

  struct Case {
    std::string line;
    Offered offered;
  };
  void expect(const std::vector<Case>& cases) const {
    Words lines;
    for (const Case& each : cases)
      lines.push_back(each.line);
    const std::vector<Offered> answers = ask(lines);
    for (size_t i = 0; i < cases.size(); ++i)
      EXPECT_EQ(answers[i], cases[i].offered) << cases[i].line;
  }

  static bool is(std::string_view shell) { return GetParam() == shell; }

  /** The directory of ferry. */
  std::string programs_ = std::filesystem::path(ferry_binary()).parent_path().string();
};

INSTANTIATE_TEST_SUITE_P(Shells,
                         Completion,
                         testing::Values("bash", "zsh", "fish"),
                         [](const auto& info) { return info.param; });

TEST_P(Completion, VerbsAndTheirWords) {
  expect(
      {{"ferry t", {"train"}},
       {"ferry e", {"eval", "export"}},
       {"ferry tarin", {}},
       {"ferry presets s", {"show"}},
       {"ferry presets show min", {"minilm-classify"}},
       {"ferry presets ls --task question", {"question-answering"}},
       {"ferry presets ls --card 3060", {"3060-12g"}},
       {"ferry completion ", {"bash", "zsh", "fish"}},
       {"ferry help tr", {"train"}},
       {"ferry help train tr", {}},
       {"ferry doctor --j", {"--json"}},
       {"ferry doctor --no", {"--no-measure"}},
       {"ferry bench a", {"adamw", "attention", "all"}},
       {"ferry bench gemm --",
        {"--help", "--json", "--seconds", "--output", "--directory", "--request-bytes", "--depth",
         "--file-bytes", "--turns", "--window-bytes", "--gpus", "--device", "--message-bytes"}}});
}

/** Every flag of every verb, from the tables. */
TEST_P(Completion, FlagsAreThoseOfTheVerb) {
  std::vector<Case> cases;
  for (const config::Verb& verb : config::verb_table()) {
    Offered flags = {"--help", "--json", "--preset", "--config"};
    if (verb.takes_dry_run) flags.insert("--dry-run");
    if (verb.takes_verbose) flags.insert("--verbose");
    for (const config::Option& option : config::option_table()) {
      if ((option.verbs & verb.mask) == 0) continue;
      flags.insert(flag_of(option.key));
      if (option.type == config::Type::boolean)
        flags.insert(flag_of("no_" + std::string(option.key)));
      for (const config::Alias& alias : option.aliases)
        if (alias.is_silent) flags.insert(flag_of(alias.name));
    }
    cases.push_back({"ferry " + std::string(verb.name) + " --", flags});
  }
  expect(cases);
  expect({{"ferry train --learning", {"--learning-rate"}},
          {"ferry eval --learning", {}},
          {"ferry predict train --learning", {}},  // a text, no verb
          {"ferry train --seed 1 --data-s", {"--data-seed"}}});
}

TEST_P(Completion, ValuesOfChoices) {
  std::vector<Case> cases = {
      {"ferry train --dtype b", {"bf16"}},
      {"ferry train --optim ", {"adamw", "adamw_bf16", "adamw_8bit", "lion", "sgd"}},
      {"ferry train --max-length ", {"auto"}},
      {"ferry train --seed ", {}},
      {"ferry train --no-det", {"--no-deterministic"}},
  };
  for (const config::Option& option : config::option_table()) {
    if (option.choices.empty()) continue;
    cases.push_back({"ferry train " + flag_of(option.key) + " ",
                     Offered(option.choices.begin(), option.choices.end())});
  }
  expect(cases);
}

/** Where the value stands in the flag's own word, shells differ in what they give back. */
TEST_P(Completion, ValuesAfterAnEqualsSign) {
  const std::vector<Offered> answers =
      ask({"ferry train --dtype=b", "ferry train --deterministic=t", "ferry train --preset=mini"});
  auto whole = [&](const std::string& flag, const std::string& value) {
    return Offered{is("zsh") ? value : flag + value};
  };
  EXPECT_EQ(answers[0], whole("--dtype=", "bf16"));
  EXPECT_EQ(answers[1], whole("--deterministic=", "true"));
  EXPECT_EQ(answers[2], whole("--preset=", "minilm-classify"));
  if (is("bash"))  // readline makes '=' a word of its own
    expect({{"ferry train --dtype = b", {"bf16"}},
            {"ferry train dtype = b", {"bf16"}},
            {"ferry train --optim =", {"adamw", "adamw_bf16", "adamw_8bit", "lion", "sgd"}},
            {"ferry train --seed = ", {}}});
  if (!is("fish")) {
    EXPECT_EQ(ask({"ferry train dtype=b"})[0], whole("dtype=", "bf16"));
  }
}

TEST_P(Completion, FilesForPaths) {
  directory_.write("news.tsv", "");
  expect({{"ferry train --dataset ne", {"news.tsv"}},
          {"ferry train --model ne", {"news.tsv"}},
          {"ferry train --config ne", {"news.tsv"}},
          {"ferry train --seed ne", {}}});
}

/** A preset's name is a file's name, and that may be anything. */
TEST_P(Completion, PresetsOfAnyName) {
  directory_.write("ferry/presets/own $(touch hit) `touch hit` it's.toml", "# Mine\nseed = 1\n");
  directory_.write("ferry/presets/-x.toml", "# Mine\nseed = 1\n");
  const std::string name = is("bash") ? R"(own\ \$\(touch\ hit\)\ \`touch\ hit\`\ it\'s)"
                                      : "own $(touch hit) `touch hit` it's";
  expect({{"ferry train --preset o", {name}}, {"ferry train --preset min", {"minilm-classify"}}});
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "hit"));
}

/** Help texts are free text: quotes, expansions and comments of any shell in them are text. */
TEST_P(Completion, AnyHelpTextStaysText) {
  directory_.write("answer",
                   "words\n"
                   "--first\tit's 5 % of \"$HOME\" `touch hit` $(touch hit) ${x:?y} \\ \\' a:b "
                   "[c] {d,e} *? ~ ! # ; & | <f> (g) %F{red} \t'; touch hit; \x1b[31m "
                   "\xc3\xa4 \\\n"
                   "--last\tends in \\\n"
                   "--none\n");
  programs_ = directory_.path().string();
  const auto ferry = directory_.write("ferry", "#!/bin/sh\ncat ~/answer\n");
  std::filesystem::permissions(ferry, std::filesystem::perms::owner_all);
  expect({{"ferry train --", {"--first", "--last", "--none"}}});
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "hit"));
}

}  // namespace

using CompletionVerb = FerryTest;

TEST_F(CompletionVerb, HelpSaysHowToInstallAndOtherWordsAreRefused) {
  const Outcome help = run("completion --help");
  for (const char* line : {"source <(ferry completion bash)", "source <(ferry completion zsh)",
                           "ferry completion fish > ~/.config/fish/completions/ferry.fish"})
    EXPECT_CONTAINS(help.out, line);
  for (const char* line : {"completion", "completion csh", "completion bash zsh"}) {
    expect_refused(line, 2, "usage: ferry completion bash | zsh | fish");
    EXPECT_EQ(run(line).out, "");
  }
}

}  // namespace ferry::cli
