#include "src/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/config/command_line/foreign_flags.h"
#include "src/config/param_groups.h"

namespace ferry::config {

Config::Config() {
  for (const Option& option : option_table()) {
    std::optional<Value> value = value_from_text(option, option.value);
    FERRY_CHECK(value, "built-in value '{}' of {} is not {}", option.value, option.key,
                expectation(option));
    settings_.push_back({*value, {}});
  }
}

size_t Config::index_of(std::string_view key) const {
  const std::vector<Option>& table = option_table();
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].key == key) return i;
  FERRY_CHECK(false, "no option '{}'", key);
  return 0;
}

namespace {

/** Words for gradient checkpointing by other means, all of which save what recomputing saves. */
bool is_recomputing(std::string_view word) {
  return word == "unsloth" || word == "offload" || word == "offload_disk" || word == "legacy";
}

/** A number of 1 or more. */
bool is_count(std::string_view text) {
  const auto number = value_from_text(Option{.type = Type::number}, text);
  return number && std::get<double>(*number) >= 1;
}

/** The value as a user would write it. */
std::string shown_value(const Option& option, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : std::holds_alternative<Auto>(value) ? "auto" : to_toml(option, value);
}

/** The nearest name of a choice, or all names that others have for them. */
std::string hint_of_choice(const Option& option, std::string_view word) {
  std::vector<std::string_view> names = option.choices;
  std::string others;
  for (const ChoiceAlias& alias : option.choice_aliases) {
    if (alias.choice.empty()) continue;
    names.push_back(alias.typed);
    others += fmt::format("{}{}", others.empty() ? "" : ", ", alias.typed);
  }
  if (const std::string nearest = nearest_name(word, names, 2); !nearest.empty() && word.size() > 3)
    return fmt::format("did you mean '{}'?", nearest);
  if (!others.empty()) return fmt::format("these are taken, too: {}", others);
  return fmt::format("the built-in value is {}", option.value);
}

/** The option that takes this word, which was given to another one ("--task regression"). */
const Option* option_with_choice(std::string_view word) {
  if (word == "auto") return nullptr;
  for (const Option& option : option_table())
    if (option.type == Type::choice &&
        std::ranges::find(option.choices, word) != option.choices.end())
      return &option;
  return nullptr;
}

/** LLaMA-Factory's template writes chats; OpenPrompt's, or a file of some, asks for a word. */
bool asks_for_a_word(std::string_view name, std::string_view value) {
  if (normalized_name(name) != "template") return false;
  const size_t number = value.find_last_of(':');
  const std::string_view file =
      number != value.npos && value.find_first_not_of("0123456789", number + 1) == value.npos
          ? value.substr(0, number)
          : value;
  return value.find('{') != value.npos || file.ends_with(".txt");
}

}  // namespace

void Config::set(std::string_view name, std::string_view text, const Origin& origin) {
  set(name, Value(std::string(text)), text, origin);
}

void Config::set(std::string_view name,
                 const Value& typed,
                 std::string_view shown,
                 const Origin& origin) {
  if (asks_for_a_word(name, shown)) name = "prompt_template";
  NameMatch match = find_option(name);
  if (!match.option && find_foreign_flag(name)) {
    const auto* given = std::get_if<std::string>(&typed);
    return set_foreign(name, given ? std::string_view(*given) : shown, origin);
  }
  if (!match.option) {
    std::string nearest = nearest_name(name, option_names(0xff));
    throw Error(Fault::usage, "config.option",
                fmt::format("unknown option '{}' ({})", name, origin.where),
                nearest.empty() ? "ferry help train lists all options"
                                : fmt::format("did you mean '{}'?", nearest));
  }
  const Option& option = *match.option;

  // Text from a flag or the environment spells any type; TOML has types of its own and keeps them.
  const auto* text = std::get_if<std::string>(&typed);
  bool is_spelled =
      text && (origin.is_spelled || origin.source == Source::command_line ||
               origin.source == Source::environment || origin.source == Source::chosen);
  auto read = [&](const Option& as) {
    return is_spelled ? value_from_text(as, *text) : value_from_typed(as, typed);
  };
  auto refuse = [&](std::string_view expected, const std::string& hint) {
    std::string what =
        fmt::format("{} = {} ({}), expected {}", name, shown, origin.where, expected);
    throw Error(Fault::usage, "config.value", what, hint);
  };

  // Scripts and recipes write what Python calls nothing in place of a path.
  if (option.type == Type::path && option.value.empty() && text && !text->empty() &&
      (is_null(*text) || (option.key == "resume_from_checkpoint" && *text == "false"))) {
    settings_[index_of(option.key)] = {std::string(), origin};
    notes_.push_back(fmt::format("{} = {} ({}) means none", option.key, *text, origin.where));
    return;
  }

  // A file may say "" for no evaluation data, but never for auto. On a command line "" is a shell
  // variable that was not set.
  if (option.type == Type::path && text && text->empty() &&
      (origin.source == Source::command_line || option.can_be_auto))
    throw Error(
        Fault::usage, "config.value",
        fmt::format("{} is empty ({}), expected {}", option.key, origin.where, expectation(option)),
        "give a path, or leave it out");

  std::optional<Value> value;
  if (match.alias && !match.alias->means_value.empty() && text &&
      normalized_name(*text) == "auto") {
    value = value_from_text(option, "auto");  // bf16 = auto
  } else if (match.alias && !match.alias->means_value.empty()) {
    Option boolean = option;
    boolean.type = Type::boolean;
    std::optional<Value> is_on = read(boolean);
    if (text && is_recomputing(*text) && match.alias->means_value == "recompute") is_on = true;
    if (!is_on || !std::holds_alternative<bool>(*is_on))
      refuse("true or false",
             fmt::format("it stands for {} = {}", option.key, match.alias->means_value));
    if (!std::get<bool>(*is_on)) {
      notes_.push_back(fmt::format("{} = false changes nothing: {} has the last word ({})", name,
                                   option.key, origin.where));
      return;
    }
    value = value_from_text(option, match.alias->means_value);
  } else {
    value = read(option);
  }
  if (!value && text)
    for (const ChoiceAlias& other : option.choice_aliases)
      if (other.choice.empty() && normalized_name(*text) == normalized_name(other.typed))
        throw Error(Fault::usage, "config.value",
                    fmt::format("there is no {} = {} ({})", option.key, shown, origin.where),
                    std::string(other.said));
  if (!value) {
    std::string hint = text && !is_spelled && value_from_text(option, *text)
                           ? "write it without quotes"
                           : fmt::format("the built-in value is {}",
                                         option.value.empty() ? "empty" : option.value);
    if (option.type == Type::choice) hint = hint_of_choice(option, text ? *text : shown);
    if (option.key == "eval_fraction" && is_count(shown))
      hint = "a number of samples is not taken: give their share of the data, as 0.1";
    if (text && option.type == Type::groups) hint = parse_param_groups(*text).problem;
    if (const Option* other = text ? option_with_choice(*text) : nullptr)
      hint = fmt::format("{} = {} is an option of its own", other->key, *text);
    refuse(expectation(option), hint);
  }
  if (text)
    for (const ChoiceAlias& other : option.choice_aliases)
      if (!other.said.empty() && normalized_name(*text) == normalized_name(other.typed))
        notes_.push_back(fmt::format("{} = {} ({}) is taken for {}: {}", option.key, other.typed,
                                     origin.where, other.choice, other.said));
  settings_[index_of(option.key)] = {std::move(*value), origin};
  if (match.alias && !match.alias->is_silent)
    notes_.push_back(fmt::format("using {} = {} (from {})", option.key,
                                 shown_value(option, settings_[index_of(option.key)].value),
                                 origin.where));
}

void Config::set_foreign(std::string_view name, std::string_view shown, const Origin& origin) {
  const ForeignFlag& flag = *find_foreign_flag(name);
  if (!flag.steps_key.empty() && !is_null(shown)) {
    const auto times = value_from_text(Option{.type = Type::integer, .range = {0, 1e6}}, shown);
    if (!times)
      throw Error(Fault::usage, "config.value",
                  fmt::format("{} = {} ({})", name, shown, origin.where), std::string(flag.reason));
    if (const int64_t n = std::get<int64_t>(*times))
      times_per_epoch_.push_back({std::string(name), flag.steps_key, n, origin});
    return;
  }
  if (const ForeignMeaning* meaning = meaning_of(flag, shown)) {
    if (this->origin(meaning->key).source >= origin.source) return;
    set(meaning->key, Value(std::string(meaning->means)), meaning->means, origin);
    notes_.push_back(fmt::format("using {} = {} (from {} = {}, {})", meaning->key, meaning->means,
                                 name, shown, origin.where));
    return;
  }
  // A flag is called as it was written ("--do-train"), a key of a file by its name.
  const bool is_flag = origin.where.starts_with("--");
  notes_.push_back(accept_foreign_flag(flag, is_flag ? origin.where : name, shown, origin.where));
}

void Config::choose(std::string_view key, std::string_view text, std::string_view by) {
  const size_t index = index_of(key);
  std::optional<Value> value = value_from_text(option_table()[index], text);
  FERRY_CHECK(value, "{} chose {} = '{}', expected {}", by, key, text,
              expectation(option_table()[index]));
  settings_[index] = {std::move(*value), {Source::chosen, std::string(by)}};
}

void Config::respell(std::string_view key, std::string_view text) {
  const Origin before = origin(key);
  choose(key, text, before.where);
  settings_[index_of(key)].origin = before;
}

void Config::forget(std::string_view key) {
  const size_t index = index_of(key);
  settings_[index] = Config().settings_[index];
}

const Value& Config::value(std::string_view key) const {
  return settings_[index_of(key)].value;
}
const Origin& Config::origin(std::string_view key) const {
  return settings_[index_of(key)].origin;
}
bool Config::is_auto(std::string_view key) const {
  const Value& held = value(key);
  if (const auto* text = std::get_if<std::string>(&held))
    return *text == "auto" && option_table()[index_of(key)].type == Type::choice;
  return std::holds_alternative<Auto>(held);
}

const std::string& Config::text(std::string_view key) const {
  const auto* held = std::get_if<std::string>(&value(key));
  FERRY_CHECK(held, "{} is not text, or is auto", key);
  return *held;
}

std::vector<std::string> Config::list(std::string_view key) const {
  auto items = parse_list(text(key));
  FERRY_CHECK(items, "{} is not a list", key);
  return std::move(*items);
}

bool Config::flag(std::string_view key) const {
  const auto* held = std::get_if<bool>(&value(key));
  FERRY_CHECK(held, "{} is not true or false", key);
  return *held;
}

int64_t Config::integer(std::string_view key) const {
  const auto* held = std::get_if<int64_t>(&value(key));
  FERRY_CHECK(held, "{} is not an integer, or is auto", key);
  return *held;
}

double Config::number(std::string_view key) const {
  const auto* held = std::get_if<double>(&value(key));
  FERRY_CHECK(held, "{} is not a number, or is auto", key);
  return *held;
}

std::optional<std::string> Config::maybe_text(std::string_view key) const {
  return is_auto(key) ? std::nullopt : std::optional(text(key));
}
std::optional<int64_t> Config::maybe_integer(std::string_view key) const {
  return is_auto(key) ? std::nullopt : std::optional(integer(key));
}
std::optional<double> Config::maybe_number(std::string_view key) const {
  return is_auto(key) ? std::nullopt : std::optional(number(key));
}

std::optional<Seconds> Config::maybe_time(std::string_view key) const {
  const auto* held = std::get_if<Seconds>(&value(key));
  return held ? std::optional(*held) : std::nullopt;
}

int64_t Config::steps(std::string_view key, int64_t total_steps) const {
  const Value& held = value(key);
  if (const auto* count = std::get_if<int64_t>(&held)) return *count;
  const auto* share = std::get_if<double>(&held);
  FERRY_CHECK(share, "{} is not a number of steps", key);
  return static_cast<int64_t>(std::ceil(*share * static_cast<double>(total_steps)));
}

void Config::settle() {
  settle_times_per_epoch();
  if (integer("max_steps") == 0)
    throw Error(
        Fault::usage, "config.value",
        fmt::format("max_steps = 0 ({}), expected at least 1, or -1 to go by num_train_epochs",
                    origin("max_steps").where));
  if (integer("max_steps") < 0 && number("num_train_epochs") <= 0)
    throw Error(Fault::usage, "config.value",
                fmt::format("num_train_epochs = 0 ({}), expected more than 0",
                            origin("num_train_epochs").where),
                "or give max_steps");
  if (!maybe_time("eval_steps") && steps("eval_steps", 1) == 0)
    throw Error(Fault::usage, "config.value",
                fmt::format("eval_steps = 0 ({}), expected at least 1, or a share above 0",
                            origin("eval_steps").where),
                "eval_strategy = no evaluates at the end only");
  if (!is_auto("save_steps") && !maybe_time("save_steps") && steps("save_steps", 1) == 0)
    throw Error(Fault::usage, "config.value",
                fmt::format("save_steps = 0 ({}), expected at least 1, or a share above 0",
                            origin("save_steps").where),
                "save_strategy = no writes no checkpoints");
  if (!maybe_time("sample_steps") && steps("sample_steps", 1) == 0)
    throw Error(Fault::usage, "config.value",
                fmt::format("sample_steps = 0 ({}), expected at least 1, or a share above 0",
                            origin("sample_steps").where),
                "leave sample_prompts out for no samples");
  settle_schedule();
  settle_model();
  settle_batch();
  settle_evaluation();
  settle_nvme();
}

/** A cosine with a lowest rate has a name of its own. */
void Config::settle_schedule() {
  constexpr std::string_view kSchedule = "lr_scheduler_type", kLowest = "min_lr_rate";
  if (text(kSchedule) != "cosine" || number(kLowest) == 0) return;
  choose(kSchedule, "cosine_with_min_lr", kLowest);
  notes_.push_back(fmt::format("using {} = cosine_with_min_lr: {} is given ({})", kSchedule,
                               kLowest, origin(kLowest).where));
}

void Config::settle_times_per_epoch() {
  for (const TimesPerEpoch& given : times_per_epoch_) {
    const std::string_view steps_key = given.steps_key;
    const std::string_view strategy = steps_key == "save_steps" ? "save_strategy" : "eval_strategy";
    for (const std::string_view key : {steps_key, strategy})
      if (origin(key).source == given.origin.source)
        throw Error(Fault::usage, "config.value",
                    fmt::format("both {} ({}) and {} ({}) are given", given.name,
                                given.origin.where, key, origin(key).where),
                    "leave one out");
    if (std::max(origin(steps_key).source, origin(strategy).source) > given.origin.source) continue;
    const double share = 1 / (static_cast<double>(given.times) * number("num_train_epochs"));
    const bool by_epoch = given.times == 1 || !(share < 1);
    const std::string by = fmt::format("{} = {} ({})", given.name, given.times, given.origin.where);
    choose(strategy, by_epoch ? "epoch" : "steps", by);
    if (!by_epoch) choose(steps_key, fmt::format("{}", share), by);
    notes_.push_back(
        by_epoch ? fmt::format("using {} = epoch (from {})", strategy, by)
                 : fmt::format("using {} = {:.3g} of all steps (from {})", steps_key, share, by));
  }
  times_per_epoch_.clear();
}

void Config::settle_model() {
  constexpr std::string_view kModel = "model_name_or_path", kScratch = "config_name",
                             kTokenizer = "tokenizer_name";
  if (text(kModel).empty() || text(kScratch).empty()) return;
  const Origin &model = origin(kModel), &scratch = origin(kScratch);
  if (model.source == scratch.source)
    throw Error(Fault::usage, "config.model",
                fmt::format("both {} ({}) and {} ({}) are given", kModel, model.where, kScratch,
                            scratch.where),
                "leave one out: the first goes on with its weights, the second draws new ones");
  const bool draws = scratch.source > model.source;
  choose(draws ? kModel : kScratch, "", draws ? kScratch : kModel);
  if (!draws) choose(kTokenizer, "", kModel);
}

void Config::settle_batch() {
  constexpr std::string_view kBatch = "train_batch_size", kMicro = "per_device_train_batch_size",
                             kAccumulation = "gradient_accumulation_steps";
  const auto micro = maybe_integer(kMicro), accumulation = maybe_integer(kAccumulation);
  const int64_t batch = integer(kBatch);
  const Source batch_source = origin(kBatch).source;
  auto refuse = [&](const std::string& what, std::string_view hint) {
    throw Error(Fault::usage, "config.batch", what, hint);
  };
  auto shown = [&](std::string_view key) {
    return fmt::format("{} {} ({})", key, integer(key), origin(key).where);
  };

  // 20 samples are 7 micro-batches of 3, the last one smaller.
  if (micro && accumulation && (batch + *micro - 1) / *micro != *accumulation) {
    // All three are given and do not match: the weakest source yields, and if all are equally
    // strong nobody can.
    const Source micro_source = origin(kMicro).source,
                 accumulation_source = origin(kAccumulation).source;
    const Source weakest = std::min({batch_source, micro_source, accumulation_source});
    if (batch_source == micro_source && batch_source == accumulation_source)
      refuse(fmt::format("{} x {} is {}, but {}", shown(kMicro), shown(kAccumulation),
                         *micro * *accumulation, shown(kBatch)),
             "leave one of the three out");
    if (accumulation_source == weakest)
      choose(kAccumulation, fmt::format("{}", (batch + *micro - 1) / *micro), kBatch);
    else if (micro_source == weakest)
      choose(kMicro, fmt::format("{}", (batch + *accumulation - 1) / *accumulation), kBatch);
    else
      choose(kBatch, fmt::format("{}", *micro * *accumulation),
             "per_device_train_batch_size x gradient_accumulation_steps");
  } else if (micro && !accumulation && batch_source == Source::built_in) {
    // Nobody asked for a batch: a step is one micro-batch, as in transformers' Trainer.
    choose(kBatch, fmt::format("{}", *micro), kMicro);
    choose(kAccumulation, "1", kMicro);
    notes_.push_back(
        fmt::format("a step has {} sample{} ({}), as Trainer counts; with {} = N too, "
                    "it has N in micro-batches of {}",
                    *micro, *micro == 1 ? "" : "s", kMicro, kBatch, *micro));
  } else if (micro && !accumulation && *micro > batch) {
    if (batch_source >= origin(kMicro).source)
      refuse(fmt::format("{} is more than {}", shown(kMicro), shown(kBatch)),
             "make the micro-batch smaller or the batch larger");
    choose(kBatch, fmt::format("{}", *micro), kMicro);
  } else if (!micro && accumulation) {
    int64_t samples = batch;
    if (*accumulation > batch) {
      if (batch_source >= origin(kAccumulation).source)
        refuse(fmt::format("{} is more than {}", shown(kAccumulation), shown(kBatch)),
               "each micro-batch needs a sample");
      choose(kBatch, fmt::format("{}", *accumulation), kAccumulation);
      samples = *accumulation;
    }
    const int64_t size = (samples + *accumulation - 1) / *accumulation;
    choose(kMicro, fmt::format("{}", size), kAccumulation);
    if ((samples + size - 1) / size != *accumulation)  // 20 samples in 8 are 7 of 3
      choose(kAccumulation, fmt::format("{}", (samples + size - 1) / size), kBatch);
  }
}

void Config::settle_evaluation() {
  if (text("eval_dataset").empty() || number("eval_fraction") == 0) return;
  const Origin &dataset = origin("eval_dataset"), &fraction = origin("eval_fraction");
  if (fraction.source >= dataset.source)  // asked for at the same place: no telling which is meant
    throw Error(Fault::usage, "config.evaluation",
                fmt::format("both eval_dataset ({}) and eval_fraction ({}) are given",
                            dataset.where, fraction.where),
                "leave one out");
  choose("eval_fraction", "0", "eval_dataset");
}

void Config::settle_nvme() {
  constexpr std::string_view kPath = "nvme_path";
  if (!list(kPath).empty()) return;
  for (const std::string_view key : {"nvme_memory", "nvme_endurance"}) {
    if (is_auto(key)) continue;
    // A run that leaves its drive keeps the other settings in its config.toml.
    if (origin(key).source >= origin(kPath).source)
      throw Error(
          Fault::usage, "config.nvme",
          fmt::format("{} is given ({}), but {} names no directory", key, origin(key).where, kPath),
          fmt::format("give the drive's directory, as --nvme-path DIR, or leave {} out", key));
    choose(key, "auto", kPath);
  }
}

std::string Config::to_toml(bool with_origins) const {
  std::string result, group;
  const std::vector<Option>& table = option_table();
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].group != group) {
      group = table[i].group;
      result += fmt::format("{}# {}\n", result.empty() ? "" : "\n", group);
    }
    std::string line =
        fmt::format("{} = {}", table[i].key, config::to_toml(table[i], settings_[i].value));
    if (with_origins) line = fmt::format("{:<44}  # from {}", line, settings_[i].origin.where);
    result += line + '\n';
  }
  return result;
}

}  // namespace ferry::config
