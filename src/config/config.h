#pragma once
// Config: the settings of one run, read by key, each with its origin. Filled by command_line.h (and
// by the trainer, which replaces every "auto" by what was chosen), read by everybody, written as
// config.toml. Later sources win: built-in < preset < file < FERRY_* < command line < chosen by
// Ferry.
//
//   Config config;
//   config.set("lr", "5e-5", {Source::command_line, "--lr"});
//   double rate = config.number("learning_rate");
//   config.choose("per_device_train_batch_size", "8", "planner");

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/config/options/option.h"
#include "src/config/options/value.h"
#include "src/config/preset.h"

namespace ferry::config {

enum class Source : uint8_t { built_in, preset, file, environment, command_line, chosen };

/** Where a value came from: the kind, and the place as a user would look it up
 *  ("presets/minilm-classify.toml:4", "FERRY_SEED", "--lr"). */
struct Origin {
  Source source = Source::built_in;
  std::string where = "built-in";
  /** Texts spell values of any type, as on a command line; TOML has types of its own. */
  bool is_spelled = false;
};

class Config {
 public:
  /** Every option at its built-in value. */
  Config();

  /** Sets an option by key or alias. Throws Error(usage) on an unknown name (with the nearest one)
   * and on a value of the wrong type or out of range, naming key, value, expectation and origin. */
  void set(std::string_view name, std::string_view text, const Origin& origin);
  /** The same for a value that already has a type; `shown` is how the user wrote it. */
  void set(std::string_view name, const Value& typed, std::string_view shown, const Origin& origin);
  /** Sets what Ferry decided in place of "auto"; `by` says who. A value the option does not take is
   * our own bug. */
  void choose(std::string_view key, std::string_view text, std::string_view by);
  /** The same value in other words, such as a whole path: its origin stays. */
  void respell(std::string_view key, std::string_view text);
  /** Back to the built-in value. */
  void forget(std::string_view key);

  // Reading. The key must be one of the table and of that type, else FERRY_CHECK. The plain readers
  // want a value that is not "auto"; the maybe_ ones give nullopt for it. A choice named "auto" is
  // plain text.
  const std::string& text(std::string_view key) const;  // text, path, choice, groups
  std::vector<std::string> list(std::string_view key) const;
  bool flag(std::string_view key) const;
  int64_t integer(std::string_view key) const;  // integer, bytes, duration
  double number(std::string_view key) const;
  std::optional<std::string> maybe_text(std::string_view key) const;
  std::optional<int64_t> maybe_integer(std::string_view key) const;
  std::optional<double> maybe_number(std::string_view key) const;
  /** An option of type steps as a count: its steps, or its share of total_steps rounded up. */
  int64_t steps(std::string_view key, int64_t total_steps) const;
  /** The value of an option of type interval, where it is a time. */
  std::optional<Seconds> maybe_time(std::string_view key) const;
  bool is_auto(std::string_view key) const;

  const Value& value(std::string_view key) const;
  const Origin& origin(std::string_view key) const;
  /** True if somebody other than the built-in value decided. */
  bool is_set(std::string_view key) const { return origin(key).source != Source::built_in; }

  /** One line for each alias that was used: "using learning_rate (from --lr)". */
  const std::vector<std::string>& notes() const { return notes_; }
  void note(std::string line) { notes_.push_back(std::move(line)); }

  /** Rules between training options: times in an epoch become shares of all steps, a model is read
   * or drawn, batch sizes must multiply, eval_dataset takes the place of eval_fraction, a budget of
   * drives needs a drive. A value from a weaker source yields; throws Error(usage) when two equally
   * strong ones contradict. */
  void settle();

  /** Every option as TOML, by group; with_origins adds `# from ...` to each line. */
  std::string to_toml(bool with_origins = false) const;

 private:
  struct Setting {
    Value value;
    Origin origin;
  };
  size_t index_of(std::string_view key) const;
  /** A foreign flag such as saves_per_epoch, until the number of epochs is known. */
  struct TimesPerEpoch {
    std::string name;            // "saves_per_epoch"
    std::string_view steps_key;  // "save_steps"
    int64_t times = 0;
    Origin origin;
  };
  /** A flag of another trainer: its note, or the option that it stands for. */
  void set_foreign(std::string_view name, std::string_view shown, const Origin& origin);
  void settle_schedule();
  void settle_times_per_epoch();
  void settle_model();
  void settle_batch();
  void settle_evaluation();
  void settle_nvme();

  std::vector<Setting> settings_;  // parallel to option_table()
  std::vector<TimesPerEpoch> times_per_epoch_;
  std::vector<std::string> notes_;
};

/** The first lines of a run's config.toml: which form it has, and which Ferry wrote it. */
std::string format_lines();

/** Reads a TOML file of `key = value` lines into config; gives back its keys preset.*, which are no
 * settings. Throws Error(usage) naming file and line: of a newer form (naming both versions), not
 * readable, not TOML, another table, an unknown key, a key given twice (also by alias), a value of
 * the wrong type or range. */
PresetHead read_toml_file(Config& config, const std::filesystem::path& file, Source source);

/** A file of settings that a user names: TOML as above, or a YAML recipe (recipes/recipe.h). */
PresetHead read_config_file(Config& config, const std::filesystem::path& file);

}  // namespace ferry::config
