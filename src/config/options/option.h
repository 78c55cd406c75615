#pragma once
// The one table of options: everything a user can set, once. The TOML reader, the flags, FERRY_*
// variables, --help, forms and the resolved config.toml are all made from it. Keys are
// Hugging Face's TrainingArguments names where those exist; other trainers' names are aliases.
// Knows nobody but src/base.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::config {

/** How an option's value is read, checked and written. */
enum class Type : uint8_t {
  text,
  path,
  choice,  // one of Option::choices
  boolean,
  integer,
  number,
  bytes,     // "11GiB", "512 MiB", or plain bytes
  steps,     // a whole number of steps, or a share of all steps in [0, 1)
  interval,  // steps, or a time such as "30min"
  duration,  // "30min", "8h", "90s", or plain seconds
  list,      // "a,b": text items; in TOML also ["a", "b"]
  groups,    // src/config/param_groups.h; in TOML also an array of tables
};

/** Bit set of the verbs that act on an option; the others refuse it on their command line. */
using VerbMask = uint8_t;
inline constexpr VerbMask kTrain = 1, kEval = 2, kPredict = 4, kExport = 8, kPlan = 16,
                          kGenerate = 32, kChat = 64, kServe = 128;
/** `ferry plan` takes whatever `ferry train` takes, so that one command line serves both. */
inline constexpr VerbMask kTraining = kTrain | kPlan;
/** The verbs that read a data set, those that talk with somebody, and all that run a model. */
inline constexpr VerbMask kReading = kTraining | kEval | kPredict | kGenerate;
inline constexpr VerbMask kTalking = kChat | kServe;
inline constexpr VerbMask kRunning = kReading | kTalking;

/** Another trainer's name for an option. */
struct Alias {
  std::string_view name;
  /** Not empty: the alias is a boolean and `true` means this value ("bf16" -> dtype = bf16). */
  std::string_view means_value = {};
  /** An everyday short form (--model): used without the note "using KEY (from --ALIAS)". */
  bool is_silent = false;
};

/** The effect of a changed value on a run that goes on. */
enum class Effect : uint8_t {
  free,              // where and when things happen, what is told: never the bits of a step
  fixes_bits,        // refused without new_identity
  changes_training,  // allowed, said, and kept in run.json
};

struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool is_below_max = false;  // max itself is not allowed
};

/** Another way to write a choice, as other trainers do. */
struct ChoiceAlias {
  /** An empty choice: Ferry has none such, and `said` is what to take in its place. */
  std::string_view typed, choice;
  /** Not empty: it is not quite the same, and this note says why. */
  std::string_view said = {};
};

/** `basic`: what most runs set; a form shows these first, and all on request. */
enum class Level : uint8_t { all, basic };

/** A number that is none to people: of max_steps -1 is "by epochs". */
struct SpecialValue {
  std::string_view value;  ///< as a user would write it; empty: the option has none
  std::string_view word;   ///< what forms and pages show
};

struct Option {
  std::string_view key;
  std::string_view label;  // its name in a form: "Learning rate"
  Type type = Type::text;
  std::string_view group;  // heading in --help, section of config.toml
  Level level = Level::all;
  Effect effect = Effect::free;
  std::string_view value;          // built-in value, as a user would write it
  std::string_view unit = {};      // of a number: "tokens"
  SpecialValue special = {};       // often the built-in value
  std::string_view since = "0.1";  // the first Ferry that has it
  bool can_be_auto = false;        // "auto" stands for "Ferry chooses"; choices list it themselves
  Range range = {};
  std::vector<std::string_view> choices = {};
  std::vector<ChoiceAlias> choice_aliases = {};
  std::vector<Alias> aliases = {};
  VerbMask verbs = kTraining;
  std::string_view help;  // what it does, then what a larger or smaller value costs
};

/** "fixes the bits", "changes training" or "free": as --help and the page of options say it. */
std::string_view name_of(Effect effect);

/** All options, in the order of --help and config.toml. */
const std::vector<Option>& option_table();

/** The option that a name as typed ("--learning-rate", "lr", "BF16" is none) stands for. */
struct NameMatch {
  const Option* option = nullptr;  // null: unknown
  const Alias* alias = nullptr;    // null: the key itself
};

/** '-' counts as '_'. O(options); called once per name that the user wrote. */
NameMatch find_option(std::string_view name);

/** The tables of src/config/options.md, in Markdown: one for each group, a line for each option. */
std::string options_markdown();

/** Keys and aliases that `verbs` act on: the candidates for a misspelt option. */
std::vector<std::string_view> option_names(VerbMask verbs);

}  // namespace ferry::config
