// Every option of the table, by machine: a value of each kind through TOML, flag, key=value and
// environment; bad values refused from each; no name twice; nothing left out of --help or
// config.toml.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <set>
#include <sstream>

#include "src/base/nearest_name.h"
#include "src/base/version.h"
#include "src/config/options/option.h"
#include "tests/config/config_fixture.h"

namespace ferry::config {

void PrintTo(const Option& option, std::ostream* out) {
  *out << option.key;
}

namespace {

/** A value that an option of the type takes, and one that it must refuse; empty: it takes any. */
struct Sample {
  Type type;
  const char *other, *bad;
};
constexpr Sample kSamples[] = {
    {Type::text, "column7", ""},
    {Type::path, "some/where", ""},
    {Type::boolean, "true", "maybe"},
    {Type::choice, "", "nonsense"},
    {Type::integer, "7", "seven"},
    {Type::number, "0.125", "0.1.2"},
    {Type::bytes, "11GiB", "11 elephants"},
    {Type::steps, "0.25", "1.5"},
    {Type::interval, "45min", "8 elephants"},
    {Type::duration, "90s", "8 elephants"},
    {Type::list, "bert.embeddings.*,*.bias", "a,,b"},
    {Type::groups, "classifier.*:lr=0.0001,decay=0", "classifier.*"},
};

const Sample& sample_of(const Option& option) {
  return *std::ranges::find(kSamples, option.type, &Sample::type);
}

/** A value the option takes that is not its built-in one, as typed by a user. */
std::string other_value(const Option& option) {
  // A run to resume is read at once: its settings are among the sources.
  if (option.key == "resume_from_checkpoint") {
    const std::string run = ::testing::TempDir() + "config_test_run";
    std::filesystem::create_directories(run);
    std::ofstream(run + "/config.toml") << "# all built-in\n";
    return run;
  }
  if (option.type == Type::boolean) return option.value == "true" ? "false" : "true";
  for (std::string_view choice : option.choices)
    if (choice != option.value) return std::string(choice);
  if (option.type == Type::choice) return std::string(option.value);  // a choice of one
  return sample_of(option).other;
}

bool is_number(const Option& option) {
  return option.type == Type::integer || option.type == Type::number ||
         option.type == Type::bytes || option.type == Type::steps ||
         option.type == Type::interval || option.type == Type::duration;
}

std::string in_toml(const Option& option, const std::string& text) {
  bool is_bare = option.type == Type::boolean || option.type == Type::integer ||
                 option.type == Type::number || option.type == Type::steps;
  return std::string(option.key) + " = " + (is_bare ? text : '"' + text + '"') + "\n";
}

const char* verb_for(const Option& option) {
  return option.verbs & kTrain      ? "train"
         : option.verbs & kPlan     ? "plan"
         : option.verbs & kPredict  ? "predict"
         : option.verbs & kGenerate ? "generate"
         : option.verbs & kChat     ? "chat"
         : option.verbs & kServe    ? "serve"
                                    : "export";
}

std::string dashed(std::string_view key) {
  std::string result(key);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

/** The option that has to be given too, for the other to mean anything. */
std::string_view companion_of(const Option& option) {
  const bool is_of_drives = option.key == "nvme_memory" || option.key == "nvme_endurance";
  return is_of_drives ? "nvme_path" : "";
}

std::string upper(std::string_view key) {
  std::string result = "FERRY_";
  for (char c : key)
    result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

class EveryOption : public testing::TestWithParam<Option> {};
INSTANTIATE_TEST_SUITE_P(Table,
                         EveryOption,
                         testing::ValuesIn(option_table()),
                         [](const auto& info) { return std::string(info.param.key); });

TEST_P(EveryOption, IsSetTheSameWayFromEverySource) {
  const Option& option = GetParam();
  const std::string text = other_value(option);
  const Value expected = value_from_text(option, text).value();
  const std::string key(option.key);

  TemporaryDirectory directory;
  auto file = directory.write("c.toml", "# head\n" + in_toml(option, text));
  struct Case {
    std::vector<std::string> arguments;
    Environment environment;
    Source source;
    std::string where;
  };
  const Case cases[] = {
      {{"--config", file.string()}, {}, Source::file, file.string() + ":2"},
      {{"--preset", file.string()}, {}, Source::preset, file.string() + ":2"},
      {{}, {{upper(key), text}}, Source::environment, upper(key)},
      {{"--" + dashed(key), text}, {}, Source::command_line, "--" + dashed(key)},
      {{"--" + key, text}, {}, Source::command_line, "--" + key},
      {{"--" + dashed(key) + "=" + text}, {}, Source::command_line, "--" + dashed(key)},
      {{key + "=" + text}, {}, Source::command_line, key + "=" + text},
  };
  const std::string companion(companion_of(option));
  for (Case each : cases) {
    if (!companion.empty()) each.arguments.push_back("--" + companion + "=some/where");
    CommandLine command = parse(verb_for(option), each.arguments, each.environment);
    EXPECT_EQ(command.config.value(key), expected);
    EXPECT_EQ(command.config.origin(key).source, each.source);
    EXPECT_EQ(command.config.origin(key).where, each.where);
    EXPECT_TRUE(command.config.is_set(key));
    for (const Option& other : option_table()) {
      if (other.key == option.key || other.key == companion) continue;
      const Source source =
          command.config.origin(other.key).source;  // what follows from it is "chosen"
      EXPECT_TRUE(source == Source::built_in || source == Source::chosen) << other.key;
    }
  }
}

TEST_P(EveryOption, RefusesABadValueNamingKeyValueExpectationAndOrigin) {
  const Option& option = GetParam();
  const std::string text = sample_of(option).bad, key(option.key);
  TemporaryDirectory directory;
  if (text.empty()) {  // takes any text; TOML can still hold what is none
    auto file = directory.write("c.toml", key + " = [1, 2]\n");
    std::string message = refusal(verb_for(option), {"--config", file.string()});
    EXPECT_CONTAINS(message, key);
    EXPECT_CONTAINS(message, file.string() + ":1");
    return;
  }
  auto file = directory.write("c.toml", key + " = \"" + text + "\"\n");
  const std::pair<std::vector<std::string>, Environment> cases[] = {
      {{"--config", file.string()}, {}},
      {{"--" + key + "=" + text}, {}},
      {{}, {{upper(key), text}}},
  };
  const std::string wheres[] = {file.string() + ":1", "--" + key, upper(key)};
  for (size_t i = 0; i < 3; ++i) {
    std::string message = refusal(verb_for(option), cases[i].first, cases[i].second);
    EXPECT_CONTAINS(message, key);
    EXPECT_CONTAINS(message, text);
    EXPECT_CONTAINS(message, wheres[i]);
    EXPECT_CONTAINS(message, expectation(option));
  }
}

std::vector<Option> bounded_options() {
  std::vector<Option> options;
  for (const Option& option : option_table())
    if (option.type == Type::integer || option.type == Type::number || option.type == Type::bytes ||
        option.type == Type::duration)
      options.push_back(option);
  return options;
}

class BoundedOption : public testing::TestWithParam<Option> {};
INSTANTIATE_TEST_SUITE_P(Table,
                         BoundedOption,
                         testing::ValuesIn(bounded_options()),
                         [](const auto& info) { return std::string(info.param.key); });

TEST_P(BoundedOption, KeepsItsBounds) {
  const Option& option = GetParam();
  auto takes = [&](double value) {
    Value typed = option.type == Type::number ? Value(value) : Value(static_cast<int64_t>(value));
    return value_from_typed(option, typed).has_value();
  };
  EXPECT_TRUE(takes(option.range.min));
  EXPECT_FALSE(
      takes(option.type == Type::number ? option.range.min - 0.001 : option.range.min - 1));
  EXPECT_EQ(takes(option.range.max), !option.range.is_below_max);
  EXPECT_FALSE(takes(option.range.max * 1.001 + 1));
  for (const char* text : {"nan", "inf", "-inf", "", " ", "0x10", "1e999", "99999999999999999999"})
    EXPECT_FALSE(value_from_text(option, text)) << text;
}

TEST_P(EveryOption, TakesAutoOnlyWhereItMeansSomething) {
  const Option& option = GetParam();
  bool is_choice =
      std::find(option.choices.begin(), option.choices.end(), "auto") != option.choices.end();
  if (option.type == Type::text || option.type == Type::path || option.type == Type::list)
    return;  // any text is a value
  EXPECT_EQ(value_from_text(option, "auto").has_value(), option.can_be_auto || is_choice);
  EXPECT_EQ(value_from_typed(option, Value(std::string("auto"))).has_value(),
            option.can_be_auto || is_choice);
}

TEST_P(EveryOption, OtherNamesOfChoicesMeanThem) {
  const Option& option = GetParam();
  const std::string key(option.key);
  for (const auto& [typed, choice, said] : option.choice_aliases) {
    EXPECT_EQ(std::ranges::find(option.choices, typed), option.choices.end()) << typed;
    const std::string word = "--" + dashed(key) + "=" + dashed(std::string(typed));
    if (choice.empty()) {
      EXPECT_CONTAINS(refusal(verb_for(option), {word}), said);
      continue;
    }
    EXPECT_NE(std::ranges::find(option.choices, choice), option.choices.end()) << typed;
    const Value means = Value(std::string(choice));
    const CommandLine flag = parse(verb_for(option), {word});
    EXPECT_EQ(flag.config.value(key), means) << typed;
    TemporaryDirectory directory;
    const auto file = directory.write("c.toml", in_toml(option, std::string(typed)));
    EXPECT_EQ(parse(verb_for(option), {"--config", file.string()}).config.value(key), means)
        << typed;
    EXPECT_EQ(flag.notes.size(), said.empty() ? 0u : 1u) << typed;
  }
}

TEST_P(EveryOption, AliasesSetIt) {
  const Option& option = GetParam();
  for (const Alias& alias : option.aliases) {
    std::string text = alias.means_value.empty() ? other_value(option) : "true";
    std::string means = alias.means_value.empty() ? text : std::string(alias.means_value);
    const std::string name(alias.name);
    CommandLine by_flag = parse(verb_for(option), {"--" + dashed(name) + "=" + text});
    EXPECT_EQ(by_flag.config.value(option.key), value_from_text(option, means)) << name;
    EXPECT_EQ(by_flag.notes.empty(), alias.is_silent) << name;
    if (!alias.is_silent) {
      EXPECT_CONTAINS(by_flag.notes.front(), "using " + std::string(option.key) + " = ");
      EXPECT_CONTAINS(by_flag.notes.front(), " (from --" + dashed(name) + ")");
    }
    TemporaryDirectory directory;
    const bool is_bare = !alias.means_value.empty();
    const std::string line =
        is_bare ? name + " = true\n" : name + in_toml(option, text).substr(option.key.size());
    CommandLine by_file =
        parse(verb_for(option), {"--config", directory.write("c.toml", line).string()});
    EXPECT_EQ(by_file.config.value(option.key), value_from_text(option, means)) << name;
    CommandLine by_environment = parse(verb_for(option), {}, {{upper(name), text}});
    EXPECT_EQ(by_environment.config.value(option.key), value_from_text(option, means)) << name;
  }
}

TEST_P(EveryOption, IsDescribed) {
  const Option& option = GetParam();
  EXPECT_GE(option.help.size(), 20u);
  EXPECT_TRUE(option.help.ends_with('.')) << option.help;
  EXPECT_FALSE(option.group.empty());
  EXPECT_NE(option.verbs, 0);
  for (const Verb& verb : verb_table()) {
    std::string help = help_text(verb);
    EXPECT_EQ(contains(help, "--" + dashed(option.key) + " "), (option.verbs & verb.mask) != 0)
        << verb.name;
  }
}

TEST(OptionTable, HasNoNameTwice) {
  std::set<std::string_view> names = {"help", "json", "dry_run", "preset", "config"};
  std::set<std::string> variables = {"FERRY_SIMD",    "FERRY_HOST_WAITS", "FERRY_WATCHDOG_S",
                                     "FERRY_TRAINER", "FERRY_MODELS",     "FERRY_SHARED"};
  for (const Option& option : option_table()) {
    EXPECT_TRUE(names.insert(option.key).second) << option.key;
    EXPECT_TRUE(variables.insert(upper(option.key)).second) << option.key;
    EXPECT_EQ(normalized_name(option.key), option.key);
    EXPECT_FALSE(option.key.starts_with("no_"));
    for (const Alias& alias : option.aliases) {
      EXPECT_TRUE(names.insert(alias.name).second) << alias.name;
      EXPECT_TRUE(variables.insert(upper(alias.name)).second) << alias.name;
      EXPECT_EQ(normalized_name(alias.name), alias.name);
      if (!alias.means_value.empty()) {
        EXPECT_TRUE(value_from_text(option, alias.means_value)) << alias.name;
      }
    }
  }
}

/** An option that nobody reads promises what does not happen. */
TEST(OptionTable, EveryOptionIsReadBySomebody) {
  const std::set<std::string_view> settled = {
      "gradient_accumulation_steps",  // Config::settle turns it into the micro-batch
  };
  namespace fs = std::filesystem;
  const fs::path source = fs::path(FERRY_SOURCE_ROOT) / "src";
  if (!fs::exists(source)) GTEST_SKIP() << "no source tree at " << source;
  std::string readers, settle;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    if (entry.path().extension() != ".cpp") continue;
    const bool is_here = contains(entry.path().string(), "/src/config/");
    if (is_here && entry.path().filename() != "config.cpp") continue;
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);)  // a comment reads nothing
      (is_here ? settle : readers) += line.substr(0, line.find("//")) + "\n";
  }
  for (const Option& option : option_table()) {
    if (option.choices.size() == 1) continue;  // nothing to decide
    const std::string quoted = '"' + std::string(option.key) + '"';
    EXPECT_TRUE(contains(settled.contains(option.key) ? settle : readers, quoted))
        << option.key << " is read nowhere";
  }
}

TEST_P(EveryOption, TypeRangeUnitAndChoicesAgree) {
  const Option& option = GetParam();
  EXPECT_TRUE(value_from_text(option, option.value)) << "built-in: " << option.value;
  EXPECT_EQ(option.type == Type::choice, !option.choices.empty());
  EXPECT_EQ(std::set(option.choices.begin(), option.choices.end()).size(), option.choices.size());
  EXPECT_EQ(std::isfinite(option.range.min), is_number(option));
  EXPECT_EQ(std::isfinite(option.range.max), is_number(option));
  EXPECT_LT(option.range.min, option.range.max);
  if (option.type == Type::bytes || option.type == Type::steps || option.type == Type::interval ||
      option.type == Type::duration) {
    EXPECT_FALSE(option.unit.empty());
  } else if (!is_number(option)) {
    EXPECT_TRUE(option.unit.empty()) << option.unit;
  }
  if (option.type == Type::choice) {
    EXPECT_FALSE(option.can_be_auto) << "auto is one of the choices";
  }
  if (option.type == Type::interval) {
    EXPECT_EQ(value_from_text(option, "90min"), Value(Seconds{5400}));
    EXPECT_FALSE(value_from_text(option, "0min") || value_from_text(option, "-5s"));
  }
  if (option.type == Type::steps || option.type == Type::interval) {
    EXPECT_TRUE(value_from_text(option, "0") && value_from_text(option, "0.5"));
    EXPECT_FALSE(value_from_text(option, "-1") || value_from_text(option, "1.5"));
  }
}

/** After what a setting does comes what more or less of it costs: a second clause. */
TEST_P(EveryOption, HelpSaysTheTradeOff) {
  const Option& option = GetParam();
  if (option.type == Type::text || option.type == Type::path) return;  // names, nothing to weigh
  size_t end = option.help.find_first_of(".;:");
  while (end != std::string_view::npos && end + 1 < option.help.size() &&
         option.help[end + 1] != ' ')
    end = option.help.find_first_of(".;:", end + 1);  // inside of 0.95 or config.json
  ASSERT_NE(end, std::string_view::npos);
  EXPECT_GE(option.help.size() - end, 15u) << option.help;
}

/** "0.10" -> {0, 10} */
std::pair<int, int> version_of(std::string_view text) {
  std::pair<int, int> version = {-1, -1};
  char rest = 0;
  if (std::sscanf(std::string(text).c_str(), "%d.%d%c", &version.first, &version.second, &rest) < 2)
    ADD_FAILURE() << text << " is no version";
  return version;
}

TEST_P(EveryOption, HasWhatAFormShows) {
  const Option& option = GetParam();
  ASSERT_FALSE(option.label.empty());
  EXPECT_TRUE(std::isupper(static_cast<unsigned char>(option.label.front()))) << option.label;
  EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(option.label.back())) ||
              option.label.back() == ')')
      << option.label;
  EXPECT_LE(option.label.size(), 32u);
  EXPECT_EQ(is_number(option), !option.unit.empty()) << "'" << option.unit << "'";
  EXPECT_LE(version_of(option.since), version_of(ferry_version()));
  EXPECT_GE(version_of(option.since), std::pair(0, 1));
}

TEST(OptionTable, LabelsTellOptionsApart) {
  std::set<std::string_view> labels;
  for (const Option& option : option_table())
    EXPECT_TRUE(labels.insert(option.label).second) << option.label;
}

TEST(OptionTable, AFewOptionsAreBasic) {
  std::set<std::string_view> basic;
  for (const Option& option : option_table())
    if (option.level == Level::basic) basic.insert(option.key);
  EXPECT_LE(basic.size(), option_table().size() / 3);
  // No run without them.
  for (const char* key : {"model_name_or_path", "task", "dataset", "output_dir", "learning_rate",
                          "train_batch_size", "num_train_epochs", "max_length", "gpu_memory"})
    EXPECT_TRUE(basic.contains(key)) << key;
  for (const Option& option : option_table())
    if (option.help.starts_with("For experiments")) {
      EXPECT_EQ(option.level, Level::all) << option.key;
    }
}

TEST(OptionTable, ANumberThatIsNoneToPeopleHasAWord) {
  size_t n_words = 0;
  for (const Option& option : option_table()) {
    const SpecialValue& special = option.special;
    if (option.value == "-1" || option.value == "0") {
      EXPECT_EQ(special.value, option.value) << option.key;
    }
    EXPECT_EQ(special.value.empty(), special.word.empty()) << option.key;
    if (special.value.empty()) continue;
    ++n_words;
    EXPECT_TRUE(value_from_text(option, special.value)) << option.key;
    if (special.value == option.value) {
      EXPECT_CONTAINS(options_markdown(), "| `" + std::string(option.value) + "` (" +
                                              std::string(special.word) + ") |");
    }
  }
  EXPECT_GT(n_words, 0u);
}

constexpr std::string_view kOptionsBegin = "<!-- options ", kOptionsEnd = "<!-- end of options -->";

TEST(OptionsPage, HasTheOptionsOfTheTable) {
  std::ifstream stream(FERRY_SOURCE_ROOT "/src/config/options.md");
  if (!stream) GTEST_SKIP() << "no source tree at " << FERRY_SOURCE_ROOT;
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  const size_t begin = page.find('\n', page.find(kOptionsBegin)), end = page.find(kOptionsEnd);
  ASSERT_LT(begin, end);
  ASSERT_NE(end, std::string::npos);
  EXPECT_TRUE(page.substr(begin + 1, end - begin - 1) == options_markdown())
      << "src/config/options.md is older than the option table; renew it: scripts/renew_options "
         "BUILD_DIRECTORY/src/cli/ferry";
}

TEST(OptionsPage, GivesEachOptionOneLineOfSixCells) {
  std::istringstream text(options_markdown());
  size_t n_options = 0;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("| `")) continue;
    ASSERT_LT(n_options, option_table().size());
    const Option& option = option_table()[n_options++];
    EXPECT_TRUE(line.starts_with("| `" + std::string(option.key) + "` | ")) << line;
    size_t n_bars = 0;
    for (size_t i = 0; i < line.size(); ++i)
      n_bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    EXPECT_EQ(n_bars, 7u) << line;
    for (const Alias& alias : option.aliases)
      EXPECT_CONTAINS(line, "`" + std::string(alias.name) + "`");
    for (std::string_view choice : option.choices)
      EXPECT_CONTAINS(line, choice);
  }
  EXPECT_EQ(n_options, option_table().size());
}

/** Options that a resumed run may change, and those that it may not. */
TEST(OptionTable, SaysWhatAChangeMeansForAResumedRun) {
  const std::vector<std::string> bits = words_of(
      "model_name_or_path config_name tokenizer_name task problem_type dataset eval_fraction "
      "dataset_format dataset_encoding dataset_header dataset_delimiter dataset_quoting "
      "text_column text_pair_column label_column label_names dataset_shares long_prompts "
      "chat_template chat_template_kwargs chat_date train_on_turns "
      "prompt_template verbalizer verbalizer_type multi_token_handler num_virtual_tokens "
      "prompt_tuning_init prompt_tuning_init_text "
      "max_train_samples max_length doc_stride packing train_batch_size "
      "per_device_train_batch_size token_sizes gradient_accumulation_steps optim master reduction "
      "freeze tuning lora_r lora_alpha use_rslora use_dora lora_targets adapter_size "
      "adapter_scale compacter_division modules_to_save quantization "
      "double_quantization "
      "preference_loss dtype "
      "seed "
      "data_seed deterministic device intra_op_threads");
  const std::vector<std::string> training = words_of(
      "num_train_epochs max_steps max_time learning_rate lr_scheduler_type min_lr_rate "
      "lr_num_cycles lr_power lr_gamma lr_decay_steps warmup_steps weight_decay adam_beta1 "
      "adam_beta2 adam_epsilon momentum nesterov max_grad_norm param_groups "
      "layerwise_lr_decay lora_dropout loraplus_lr_ratio hidden_dropout attention_dropout "
      "preference_beta preference_margin preference_sft kto_good_weight "
      "kto_bad_weight label_smoothing_factor "
      "class_weights load_best_model_at_end metric_for_best_model greater_is_better "
      "early_stopping_patience early_stopping_threshold max_answer_length");
  const std::string help = help_text(*find_verb("train"), 120),
                    eval = help_text(*find_verb("eval"));
  for (const Option& option : option_table()) {
    const auto is_in = [&](const auto& all) {
      return std::ranges::find(all, option.key) != all.end();
    };
    const Effect expected = is_in(bits)       ? Effect::fixes_bits
                            : is_in(training) ? Effect::changes_training
                                              : Effect::free;
    EXPECT_EQ(option.effect, expected) << option.key << " is " << name_of(option.effect);
  }
  EXPECT_CONTAINS(help, "[fixes the bits]");
  EXPECT_CONTAINS(help, "[changes training]");
  EXPECT_FALSE(contains(eval, "[fixes")) << "eval resumes nothing";
}

TEST(OptionTable, GroupsStandTogether) {
  std::set<std::string_view> closed;
  std::string_view group;
  for (const Option& option : option_table()) {
    if (option.group == group) continue;
    EXPECT_TRUE(closed.insert(option.group).second)
        << option.group << " is opened twice at " << option.key;
    group = option.group;
  }
}

TEST(OptionTable, BuiltInValuesAreThoseOfTheDesign) {
  Config config;
  EXPECT_EQ(config.integer("train_batch_size"), 32);
  EXPECT_EQ(config.number("learning_rate"), 2e-5);
  EXPECT_EQ(config.number("adam_beta2"), 0.999);
  EXPECT_EQ(config.number("max_grad_norm"), 1.0);
  EXPECT_EQ(config.integer("seed"), 42);
  EXPECT_TRUE(config.flag("deterministic"));
  EXPECT_TRUE(config.is_auto("dtype"));
  EXPECT_TRUE(config.is_auto("max_length"));
  EXPECT_EQ(config.maybe_integer("gpu_memory"), std::nullopt);
  EXPECT_EQ(config.steps("warmup_steps", 1001), 31);  // 3 %, rounded up
}

TEST(OptionTable, NobodyHasThatManyThreads) {
  for (const char* key : {"worker_threads", "intra_op_threads"}) {
    const std::string flag = std::string("--") + key;
    EXPECT_EQ(parse("train", {flag, "1024"}).config.integer(key), 1024);
    for (const char* absurd : {"1025", "4096", "100000"})
      EXPECT_CONTAINS(refusal("train", {flag, absurd}), "at most 1024");
  }
}

TEST(NearestName, FindsTheMeantAndNotTheFarFetched) {
  auto nearest = [](std::string_view typed) { return nearest_name(typed, option_names(0xff)); };
  EXPECT_EQ(nearest("lerning_rate"), "learning_rate");
  EXPECT_EQ(nearest("learning-rat"), "learning_rate");
  EXPECT_EQ(nearest("Learning_Rate"), "learning_rate");
  EXPECT_EQ(nearest("sede"), "seed");
  EXPECT_EQ(nearest("warmup"), "warmup_steps");
  EXPECT_EQ(nearest("bathc_size"), "batch_size");
  EXPECT_EQ(nearest("quantum_flux_capacitor"), "");
  EXPECT_EQ(nearest("x"), "");
  EXPECT_EQ(nearest(""), "");
}

}  // namespace
}  // namespace ferry::config
