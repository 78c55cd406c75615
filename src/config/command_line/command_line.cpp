#include "src/config/command_line/command_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/config/command_line/foreign_flags.h"
#include "src/config/launch.h"
#include "src/config/named_places.h"
#include "src/config/preset.h"
#include "src/files/paths.h"

namespace ferry::config {

Environment process_environment() {
  Environment variables;
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view text(*entry);
    size_t equals = text.find('=');
    if (equals != std::string_view::npos && text.starts_with("FERRY_"))
      variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

namespace {

/** FERRY_ variables that are no options: read by simd/, offload/, the start of the trainer, the
 * search of models, the watcher of a trainer, tests. */
constexpr std::array<std::string_view, 8> kOtherVariables = {
    "FERRY_SIMD",   "FERRY_HOST_WAITS", "FERRY_WATCHDOG_S", "FERRY_TRAINER",
    "FERRY_MODELS", "FERRY_SHARED",     "FERRY_SUPERVISOR", "FERRY_RESTART"};
constexpr std::array<std::string_view, 5> kSwitches = {"help", "json", "dry_run", "preset",
                                                       "config"};

struct Assignment {
  std::string name, value, where;
};

/** Walks the arguments; knows spellings, not meanings. */
class Reader {
 public:
  Reader(const Verb& verb, std::span<const std::string> arguments, CommandLine& command)
      : verb_(verb), arguments_(arguments), command_(command) {}

  void read() {
    for (; at_ < arguments_.size(); ++at_) {
      const std::string& argument = arguments_[at_];
      if (!only_words_ && argument == "--")
        only_words_ = true;
      else if (!only_words_ && argument == "-h")
        command_.wants_help = true;
      else if (!only_words_ && argument.size() > 2 && argument.starts_with("--"))
        read_flag(argument);
      else if (!only_words_ && is_assignment(argument))
        read_assignment(argument);
      else
        read_word(argument);
    }
  }

  std::vector<Assignment> assignments;
  std::string preset, config_file;
  std::string data_file;       // a word that is one, not a text
  std::string standard_input;  // a word that stands for it

 private:
  void read_flag(const std::string& argument) {
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    std::string name = flag.substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    auto takes_nothing = [&](bool& wish) {
      if (equals != std::string::npos)
        throw Error(Fault::usage, "cli.switch", fmt::format("{} takes no value", flag),
                    "write it alone");
      wish = true;
    };
    if (name == "help") return takes_nothing(command_.wants_help);
    if (name == "json") return takes_nothing(command_.wants_json);
    if (name == "dry_run" && verb_.takes_dry_run) return takes_nothing(command_.wants_dry_run);
    if (name == "verbose" && verb_.takes_verbose) return takes_nothing(command_.is_verbose);
    if (name == "preset") return void(preset = name_of_file(flag, argument, equals));
    if (name == "config") return void(config_file = name_of_file(flag, argument, equals));

    NameMatch match = find_option(name);
    if (!match.option && name.starts_with("no_") && equals == std::string::npos) {
      NameMatch denied = find_option(name.substr(3));
      if (denied.option && is_boolean(denied)) {
        check_verb(denied, flag);
        assignments.push_back({name.substr(3), "false", flag});
        return;
      }
    }
    if (!match.option && find_foreign_flag(name))
      return read_foreign(*find_foreign_flag(name), name, flag, argument, equals);
    if (!match.option) throw unknown(flag);
    check_verb(match, flag);
    if (is_boolean(match) &&
        equals == std::string::npos) {  // --deterministic, or --deterministic false
      assignments.push_back({name, has_boolean_next() ? arguments_[++at_] : "true", flag});
      return;
    }
    assignments.push_back({name, value_of(flag, argument, equals), flag});
  }

  /** The next argument is the value of a boolean; where no words are taken, a wrong one too. */
  bool has_boolean_next() const {
    if (at_ + 1 >= arguments_.size()) return false;
    const std::string& next = arguments_[at_ + 1];
    if (parse_boolean(next)) return true;
    return !verb_.takes_words && !next.starts_with("-") && next.find('=') == std::string::npos;
  }

  /** A flag of another trainer: refused at once, before its values are taken for stray words,
   * unless the next word switches it off (--load_in_4bit false). */
  void read_foreign(const ForeignFlag& foreign,
                    const std::string& name,
                    const std::string& flag,
                    const std::string& argument,
                    size_t equals) {
    const bool has_next = at_ + 1 < arguments_.size() && !arguments_[at_ + 1].starts_with("--");
    const bool stands_alone =
        equals == std::string::npos && (foreign.is_boolean ? !has_boolean_next() : !has_next);
    if (foreign.is_refused && stands_alone) accept_foreign_flag(foreign, flag, "true", flag);
    const std::string value =
        stands_alone && foreign.is_boolean ? "true" : value_of(flag, argument, equals);
    if (foreign.is_refused && !meaning_of(foreign, value))
      accept_foreign_flag(foreign, flag, value, flag);
    assignments.push_back({name, value, flag});
  }

  std::string value_of(const std::string& flag, const std::string& argument, size_t equals) {
    if (equals != std::string::npos) return argument.substr(equals + 1);
    if (at_ + 1 >= arguments_.size() || arguments_[at_ + 1].starts_with("--"))
      throw Error(Fault::usage, "cli.option", fmt::format("{} has no value", flag),
                  fmt::format("write {} VALUE, or {}=VALUE", flag, flag));
    return arguments_[++at_];
  }

  /** The value of --preset or --config, which a shell variable that is not set leaves empty. */
  std::string name_of_file(const std::string& flag, const std::string& argument, size_t equals) {
    std::string name = value_of(flag, argument, equals);
    if (name.empty())
      throw Error(Fault::usage, "cli.option", fmt::format("{} is empty", flag),
                  "give a name or a file, or leave it out");
    return name;
  }

  /** key=value with a key that could be one; where words are texts, only a key that is one. */
  bool is_assignment(const std::string& argument) const {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) return false;
    const std::string name = argument.substr(0, equals);
    if (verb_.takes_words) return find_option(name).option != nullptr;
    return std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-';
    });
  }

  void read_assignment(const std::string& argument) {
    const std::string name = argument.substr(0, argument.find('='));
    NameMatch match = find_option(name);
    if (!match.option && !find_foreign_flag(name)) throw unknown(name);
    if (match.option) check_verb(match, name);
    assignments.push_back({name, argument.substr(argument.find('=') + 1), argument});
  }

  void read_word(const std::string& argument) {
    if (!only_words_ && (verb_.mask & kTraining) != 0 && names_config_file(argument)) {
      if (!config_file.empty())
        throw Error(Fault::usage, "cli.argument",
                    fmt::format("'{}' and '{}' are both files of settings", config_file, argument),
                    "give one");
      config_file = argument;
      return;
    }
    if (!verb_.takes_words)
      throw Error(Fault::usage, "cli.argument", fmt::format("unexpected argument '{}'", argument),
                  hint_of_word(argument));
    if (!only_words_ && (argument == "-" || argument == "/dev/stdin")) {
      standard_input = argument;
      return;
    }
    if (!only_words_ && names_data_file(argument)) data_file = argument;
    command_.words.push_back(argument);
  }

  /** A file of settings that is there: `ferry train recipe.yaml` is --config recipe.yaml. */
  static bool names_config_file(const std::string& word) {
    std::error_code error;
    const std::filesystem::path path(word);
    const std::string ending = path.extension().string();
    return (ending == ".toml" || ending == ".yaml" || ending == ".yml") &&
           std::filesystem::is_regular_file(path, error);
  }

  /** A file of data that is there: nobody means its name as a text. */
  static bool names_data_file(const std::string& word) {
    constexpr std::string_view kEndings[] = {
        ".csv",     ".tsv", ".tab",  ".jsonl", ".ndjson", ".json", ".parquet", ".arrow",
        ".feather", ".txt", ".text", ".md",    ".conll",  ".bio",  ".iob",     ".iob2"};
    std::error_code error;
    const std::filesystem::path path(word);
    return std::ranges::find(kEndings, path.extension().string()) != std::end(kEndings) &&
           std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error);
  }

  /** Where a word that no option precedes may have been meant to go. */
  std::string hint_of_word(const std::string& word) const {
    const std::filesystem::path path(word);
    const std::string ending = path.extension().string();
    const auto is_one_of = [&](std::initializer_list<std::string_view> endings) {
      return std::ranges::find(endings, ending) != endings.end();
    };
    std::error_code error;
    if (is_one_of({".toml", ".yaml", ".yml"}))
      return fmt::format("use --config {}, and check that the file is there", word);
    if (is_one_of(
            {".csv", ".tsv", ".jsonl", ".json", ".parquet", ".arrow", ".conll", ".txt", ".md"}))
      return fmt::format("use --dataset {}", word);
    if (std::filesystem::exists(path / "config.json", error) ||
        std::filesystem::exists(path / "config.toml", error))
      return fmt::format("use --model {}", word);
    return "options are written --key value, or key=value";
  }

  static bool is_boolean(const NameMatch& match) {
    return match.alias && !match.alias->means_value.empty() ? true
                                                            : match.option->type == Type::boolean;
  }

  void check_verb(const NameMatch& match, const std::string& written) const {
    if ((match.option->verbs & verb_.mask) != 0) return;
    std::string others;
    for (const Verb& other : verb_table())
      if ((match.option->verbs & other.mask) != 0)
        others += fmt::format("{}{}", others.empty() ? "" : ", ", other.name);
    throw Error(Fault::usage, "cli.option",
                fmt::format("'{}' does nothing in ferry {}: it is an option of {}", written,
                            verb_.name, others),
                "leave it out");
  }

  Error unknown(const std::string& written) const {
    std::vector<std::string_view> candidates = option_names(verb_.mask);
    candidates.insert(candidates.end(), kSwitches.begin(), kSwitches.end());
    const bool is_flag = written.starts_with("--");
    std::string nearest = nearest_name(is_flag ? written.substr(2) : written, candidates);
    if (is_flag) {
      std::replace(nearest.begin(), nearest.end(), '_', '-');
      if (!nearest.empty()) nearest = "--" + nearest;
    }
    return Error(Fault::usage, "cli.option", fmt::format("unknown option '{}'", written),
                 nearest.empty() ? fmt::format("ferry help {} lists them", verb_.name)
                                 : fmt::format("did you mean '{}'?", nearest));
  }

  const Verb& verb_;
  std::span<const std::string> arguments_;
  CommandLine& command_;
  size_t at_ = 0;
  bool only_words_ = false;  // after --
};

/** FERRY_LEARNING_RATE=... ; a name that is almost an option gets a note, others are not ours to
 * judge. */
void read_environment(CommandLine& command, const Environment& environment) {
  for (const auto& [name, value] : environment) {
    if (!name.starts_with("FERRY_") || value.empty()) continue;
    if (std::find(kOtherVariables.begin(), kOtherVariables.end(), name) != kOtherVariables.end())
      continue;
    const std::string key = normalized_name(name.substr(6));
    if (find_option(key).option) {
      command.config.set(key, value, {Source::environment, name});
      continue;
    }
    std::string nearest = nearest_name(key, option_names(0xff));
    if (nearest.empty()) continue;
    std::transform(nearest.begin(), nearest.end(), nearest.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    command.notes.push_back(
        fmt::format("{} is no option and was ignored - did you mean FERRY_{}?", name, nearest));
  }
}

/** config.toml of the run that is resumed: below everything else that the user gives. */
std::filesystem::path settings_of_run(const std::string& given) {
  const std::filesystem::path run = run_of_checkpoint(given);
  std::error_code error;
  if (!std::filesystem::exists(run / "config.toml", error))
    throw Error(
        Fault::data, "cli.resume",
        fmt::format("'{}' is not the directory of a run: it has no config.toml", run.string()),
        "give a directory under runs/, or one of its checkpoint-N");
  return run / "config.toml";
}

/** The run that a model is of: the model itself, or a directory in it (final/, checkpoint-N). Empty
 * where there is none. */
std::filesystem::path run_of_model(const std::filesystem::path& model) {
  const std::filesystem::path path = model.has_filename() ? model : model.parent_path();
  std::error_code error;
  for (const auto& run : {path, path.has_parent_path() ? path.parent_path() : "."})
    if (std::filesystem::exists(run / "run.json", error) &&
        std::filesystem::exists(run / "config.toml", error))
      return run;
  return {};
}

/** Pairs of answers are measured by the run's loss, beside the model that it began with. */
void take_preference_of_run(CommandLine& command, const Config& of_run, const std::string& file) {
  const std::string& task = of_run.text("task");
  if (task != "preference" && task != "kto") return;
  command.first_model = of_run.text("model_name_or_path");
  command.config.choose("task", task, file);
  command.config.choose("preference_loss", of_run.text("preference_loss"), file);
  for (const char* key : {"preference_beta", "preference_margin", "preference_sft",
                          "kto_good_weight", "kto_bad_weight", "label_smoothing_factor"})
    if (const auto value = of_run.maybe_number(key))
      command.config.choose(key, fmt::format("{}", *value), file);
}

/** Texts are cut, masked and answered as they were when the model was trained: other lengths, or
 * for masks seeds and micro-batches (for KTO these too), give other figures than the run's own
 * report. */
void take_settings_of_run(CommandLine& command) {
  constexpr std::string_view kLength = "max_length", kModel = "model_name_or_path";
  if (command.config.is_auto(kModel)) return;
  const std::filesystem::path run = run_of_model(command.config.text(kModel));
  if (run.empty()) return;
  Config of_run;
  const std::filesystem::path file = run / "config.toml";
  read_toml_file(of_run, file, Source::file);
  for (const char* key : {"seed", "doc_stride", "max_answer_length"})
    if (!command.config.is_set(key))
      command.config.choose(key, fmt::format("{}", of_run.integer(key)), file.string());
  if (command.verb->mask & kEval) take_preference_of_run(command, of_run, file.string());
  constexpr std::string_view kMicroBatch = "per_device_train_batch_size";
  const auto micro_batch = of_run.maybe_integer(kMicroBatch);
  const std::string& task = of_run.text("task");
  if ((task == "mlm" || task == "kto") && micro_batch && !command.config.is_set(kMicroBatch))
    command.config.choose(kMicroBatch, fmt::format("{}", *micro_batch), file.string());
  const auto length = of_run.maybe_integer(kLength);
  if (!length || command.config.is_set(kLength)) return;
  command.config.choose(kLength, fmt::format("{}", *length), file.string());
  command.notes.push_back(
      fmt::format("max_length = {}, as the run trained with ({})", *length, file.string()));
}

/** A run goes on where it lies. */
void refuse_other_directory(const Config& config, const std::filesystem::path& run) {
  if (config.origin("output_dir").source != Source::command_line) return;
  const std::string& given = config.text("output_dir");
  std::error_code error;
  if (std::filesystem::weakly_canonical(given, error) ==
      std::filesystem::weakly_canonical(run.empty() ? "." : run, error))
    return;
  throw Error(Fault::usage, "cli.resume",
              fmt::format("a resumed run goes on in its own directory, '{}', and {} names '{}'",
                          run.string(), config.origin("output_dir").where, given),
              fmt::format("leave it out; to keep this state, copy the run first (cp -r) and resume "
                          "the copy; a new run begins with --model CHECKPOINT and no --resume"));
}

/** Settings of a run, which may be somebody else's: nothing is written to what they alone name, and
 * no host is asked. */
void take_back_paths(CommandLine& command) {
  forget_launch(command.config);
  for (std::string& note : take_back_places(command.config))
    command.notes.push_back(std::move(note));
}

/** A preset that is a file may be somebody else's: where it has something written is said. */
void tell_places_of_preset(CommandLine& command, const std::string& preset) {
  if (!preset.ends_with(".toml")) return;
  for (const char* key : {"output_dir", "trace", "token_cache", "nvme_path"})
    if (const Origin& origin = command.config.origin(key); origin.source == Source::preset)
      command.notes.push_back(fmt::format("{} is set by {}", key, origin.where));
}

/** Everything the user gave, the weakest first; `run_settings` of the run that is resumed, if one
 * is. */
void read_sources(CommandLine& command,
                  const Reader& reader,
                  const Environment& environment,
                  const std::filesystem::path& run_settings) {
  command.config = Config();
  command.head = {};
  command.notes.clear();
  if (!reader.preset.empty())
    command.head = read_toml_file(command.config, find_preset(reader.preset).file, Source::preset);
  if (!run_settings.empty()) {
    command.head = read_toml_file(command.config, run_settings, Source::file);
    take_back_paths(command);
  }
  if (!reader.config_file.empty()) {
    const PresetHead head = read_config_file(command.config, reader.config_file);
    if (!head.is_empty()) command.head = head;
    if (is_settings_of_run(reader.config_file)) take_back_paths(command);
  }
  read_environment(command, environment);
  std::map<std::string_view, std::string> before;  // key -> value
  for (const Assignment& given : reader.assignments) {
    command.config.set(given.name, given.value, {Source::command_line, given.where});
    const NameMatch match = find_option(given.name);
    if (!match.option) continue;  // of another trainer
    const auto [earlier, is_new] = before.try_emplace(match.option->key, given.value);
    if (!is_new && earlier->second != given.value)
      command.notes.push_back(fmt::format("{} is given twice: '{}' and then '{}', which counts",
                                          match.option->key, earlier->second, given.value));
    earlier->second = given.value;
  }
  tell_places_of_preset(command, reader.preset);
}

/** A data file among the texts becomes the dataset. */
void take_data_file(CommandLine& command, const std::string& file) {
  if (file.empty()) return;
  const bool has_dataset = command.config.origin("dataset").source == Source::command_line;
  if (command.words.size() > 1 || has_dataset)
    throw Error(Fault::usage, "cli.argument",
                fmt::format("'{}' is a file of data, and there is more to label", file),
                "give one file alone; a text that is called like a file comes after --");
  command.words.clear();
  command.config.set("dataset", file, {Source::command_line, file});
  command.notes.push_back(
      fmt::format("'{0}' is a file: the texts in it are labelled (for the "
                  "text itself write -- '{0}')",
                  file));
}

/** Standard input is read where no text is given. */
void check_standard_input(const CommandLine& command, const std::string& word) {
  if (word.empty() || command.words.empty()) return;
  throw Error(Fault::usage, "cli.argument",
              fmt::format("'{}' is standard input, and there is more to label", word),
              fmt::format("leave one out; the text '{0}' itself is -- '{0}'", word));
}

/** The first host alone has to have the run's directory. */
bool is_run_elsewhere(const Config& config) {
  std::error_code error;
  return config.maybe_integer("node_rank").value_or(0) > 0 &&
         !std::filesystem::exists(config.text("resume_from_checkpoint"), error);
}

}  // namespace

CommandLine parse_command_line(std::string_view verb_name,
                               std::span<const std::string> arguments,
                               const Environment& environment) {
  CommandLine command;
  command.verb = find_verb(verb_name);
  if (!command.verb)
    throw Error(Fault::usage, "cli.verb", fmt::format("'{}' takes no settings", verb_name),
                "see ferry --help");

  for (const std::string& argument : arguments) {  // help is given however wrong the rest is
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h") command.wants_help = true;
  }
  if (command.wants_help) return command;

  Reader reader(*command.verb, arguments, command);
  reader.read();
  read_sources(command, reader, environment, {});
  // Whoever says it, the run's own settings come in below.
  if (const std::string resumed = command.config.text("resume_from_checkpoint");
      !resumed.empty() && !is_run_elsewhere(command.config)) {
    const auto settings = settings_of_run(resumed);
    read_sources(command, reader, environment, settings);
    refuse_other_directory(command.config, settings.parent_path());
    command.config.choose("output_dir", settings.parent_path().string(), "resume_from_checkpoint");
    if (!reader.preset.empty())
      command.notes.push_back("the run's own settings take the place of the preset's");
  }
  if (command.verb->mask & (kEval | kPredict)) take_settings_of_run(command);
  check_standard_input(command, reader.standard_input);
  take_data_file(command, reader.data_file);
  if (command.verb->mask & kTraining) command.config.settle();
  command.notes.insert(command.notes.end(), command.config.notes().begin(),
                       command.config.notes().end());
  return command;
}

void check_required(const CommandLine& command) {
  const Config& config = command.config;
  for (std::string_view key : command.verb->required) {
    if (!config.is_auto(key) && !config.text(key).empty()) continue;
    const bool may_draw = (command.verb->mask & kTraining) != 0;
    if (may_draw && key == "model_name_or_path" && !config.text("config_name").empty()) continue;
    std::string flag;
    for (const Option& option : option_table()) {
      if (option.key != key) continue;
      flag = option.key;
      for (const Alias& alias : option.aliases)
        if (alias.is_silent && alias.name.size() < flag.size()) flag = alias.name;
    }
    throw Error(Fault::usage, "cli.required",
                fmt::format("ferry {} needs --{}", command.verb->name, flag),
                fmt::format("usage: ferry {} {}", command.verb->name, command.verb->usage));
  }
  if (config.text("config_name").empty() && !config.text("tokenizer_name").empty())
    throw Error(Fault::usage, "cli.required",
                fmt::format("tokenizer_name ({}) is given without config_name",
                            config.origin("tokenizer_name").where),
                "leave it out: a model that has weights has its tokenizer in the same directory");
}

}  // namespace ferry::config
