// Flags of other trainers: each is accepted and said, or refused with what to do instead.

#include "src/config/command_line/foreign_flags.h"

#include <algorithm>
#include <set>

#include "tests/config/config_fixture.h"

namespace ferry::config {
namespace {

/** A name that the pattern stands for. */
std::string example_of(std::string_view pattern) {
  std::string name(pattern);
  if (name.ends_with('*')) name.back() = 'x';
  if (name.starts_with('*')) name.front() = 'x';
  return name;
}

std::string value_for(const ForeignFlag& flag) {
  if (flag.is_refused) return "4";
  if (!flag.harmless.empty()) return example_of(flag.harmless.front());
  return flag.is_boolean ? "false" : "4";
}

/** The flag stands for an option, for some value at least. */
bool is_translated(const ForeignFlag& flag) {
  return !flag.meanings.empty() || !flag.steps_key.empty();
}

TEST(ForeignFlags, AreNoOptionsAndStandOnce) {
  std::set<std::string_view> names;
  for (const ForeignFlag& flag : foreign_flags()) {
    EXPECT_GE(flag.reason.size(), 20u);
    EXPECT_FALSE(flag.reason.ends_with('.')) << flag.reason;
    for (const std::string_view name : flag.names) {
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_FALSE(find_option(name).option) << name;
      EXPECT_EQ(find_foreign_flag(example_of(name)), &flag) << name;
      for (const Option& option : option_table())
        EXPECT_FALSE(name.ends_with('*') && option.key.starts_with(name.substr(0, name.size() - 1)))
            << name << " hides " << option.key;
    }
  }
}

TEST(ForeignFlags, ChangeNothingAndAreSaidOrAreRefused) {
  const std::string defaults = parse("train").config.to_toml();
  for (const ForeignFlag& flag : foreign_flags()) {
    if (is_translated(flag)) continue;
    for (const std::string_view pattern : flag.names) {
      const std::string name = example_of(pattern), value = value_for(flag);
      std::vector<std::vector<std::string>> forms = {
          {"--" + name, value}, {"--" + name + "=" + value}, {name + "=" + value}};
      const bool is_harmless_alone =
          flag.harmless.empty() || std::ranges::find(flag.harmless, "true") != flag.harmless.end();
      if (flag.is_boolean && is_harmless_alone) forms.push_back({"--" + name});
      for (const std::vector<std::string>& form : forms) {
        if (flag.is_refused) {
          EXPECT_CONTAINS(refusal("train", form), flag.reason);
          continue;
        }
        const CommandLine command = parse("train", form);
        EXPECT_EQ(command.config.to_toml(), defaults) << name;
        ASSERT_EQ(command.notes.size(), 1u) << name;
        EXPECT_CONTAINS(command.notes[0], name);
        EXPECT_CONTAINS(command.notes[0], flag.reason);
      }
      if (flag.is_refused) {
        for (const char* off : {"false", "null", "0"})
          EXPECT_EQ(parse("train", {name + "=" + off}).config.to_toml(), defaults) << name;
      }
      if (flag.harmless.empty() || flag.is_refused) continue;
      const std::string other = flag.harmless.front() == "true" ? "false" : "true";
      EXPECT_CONTAINS(refusal("train", {"--" + name + "=" + other}), flag.reason);
    }
  }
}

TEST(ForeignFlags, InAFileAreSaidWithTheirLine) {
  TemporaryDirectory directory;
  const auto file = directory.write("c.toml", "seed = 1\ndo_train = true\n").string();
  const CommandLine command = parse("train", {"--config", file});
  EXPECT_CONTAINS(command.notes.at(0), "do_train (" + file + ":2) changes nothing");
  const auto lora = directory.write("l.toml", "gptq = true\n").string();
  EXPECT_CONTAINS(refusal("train", {"--config", lora}), "no such adapters");
}

/** The nearest name would lead astray: each of these is known, and no option is guessed for it. */
TEST(ForeignFlags, NamesOfOtherTrainersAreNeverTakenForMisspeltOptions) {
  for (const std::string& name :
       words_of("use_unsloth completion_only_loss assistant_only_loss train_on_inputs "
                "low_cpu_mem_usage chat_template rope_scaling resize_vocab use_badam dpo "
                "mix_strategy streaming rl type tokens datasets adapter template special_tokens "
                "plugins stage pure_bf16 mask_history roles_to_train pad_to_sequence_len "
                "dataset_prepared_path")) {
    std::string message;
    try {
      for (const std::string& note : parse("train", {"--" + name, "yes"}).notes)
        message += note;
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_FALSE(contains(message, "did you mean")) << message;
    EXPECT_FALSE(contains(message, "unknown option")) << message;
  }
}

TEST(ForeignFlags, LengthsOfOtherTrainersAreTheLongestText) {
  for (const char* name : {"block_size", "model_max_length", "sequence_len", "cutoff_len"}) {
    const CommandLine command = parse("train", {std::string("--") + name, "128"});
    EXPECT_EQ(command.config.integer("max_length"), 128) << name;
    EXPECT_EQ(command.config.integer("train_batch_size"), 32) << name;
    EXPECT_TRUE(says(command, "using max_length = 128 (from --"));
  }
}

TEST(ForeignFlags, QuantisationNamesWhatIsThereInPlaceOfIt) {
  for (const char* name : {"--use_badam", "--gptq"}) {
    const std::string message = refusal("train", {name, "8"});
    EXPECT_CONTAINS(message, "tuning = lora");
    EXPECT_CONTAINS(message, "adamw_8bit");
    EXPECT_FALSE(contains(message, "BERT"));
  }
  EXPECT_CONTAINS(refusal("train --default_system x"), "chat_template");
  EXPECT_EQ(parse("train --template llama3").config.text("chat_template"), "llama3");
  // OpenPrompt's template is another thing.
  EXPECT_EQ(parse("train", {"--template", R"({"mask"})"}).config.text("prompt_template"),
            R"({"mask"})");
  EXPECT_EQ(parse("train --template words.txt:2").config.text("prompt_template"), "words.txt:2");
  EXPECT_EQ(parse("train --mask_history true").config.text("train_on_turns"), "last");
  EXPECT_CONTAINS(refusal("train --rl ipo"), "--task preference");
  EXPECT_EQ(parse("train --load_in_4bit False").config.text("quantization"), "none");
  EXPECT_EQ(parse("train --load_in_4bit").config.text("quantization"), "nf4");
  EXPECT_EQ(parse("train --load_in_8bit true").config.text("quantization"), "int8");
  EXPECT_EQ(parse("train --quantization_bit 4 --quantization_method bnb --double_quantization true")
                .config.text("quantization"),
            "nf4");
  for (const char* name : {"double_quantization", "bnb_4bit_use_double_quant"})
    EXPECT_TRUE(parse(std::string("train --load_in_4bit --") + name + " true")
                    .config.flag("double_quantization"));
  EXPECT_CONTAINS(refusal("train --bnb_4bit_quant_type fp4"), "quantization says it");
  EXPECT_CONTAINS(refusal("train --tuning qlora"), "quantization = nf4");
}

TEST(ForeignFlags, AStageIsATask) {
  EXPECT_EQ(parse("train --stage pt").config.text("task"), "causal-lm");
  EXPECT_EQ(parse("train --stage=sft").config.text("task"), "causal-lm");
  EXPECT_EQ(parse("train --task mlm --stage sft").config.text("task"), "mlm");
  EXPECT_CONTAINS(refusal("train --stage ppo"), "--task preference");
}

TEST(ForeignFlags, NothingMeansNoRunAndNoData) {
  for (const char* none : {"null", "None", "false"}) {
    const CommandLine command = parse("train", {std::string("--resume_from_checkpoint=") + none});
    EXPECT_EQ(command.config.text("resume_from_checkpoint"), "") << none;
    EXPECT_TRUE(says(command, "means none"));
  }
  EXPECT_EQ(parse("train --eval_dataset null").config.text("eval_dataset"), "");
}

TEST(ForeignFlags, OtherOptimizersAreTakenWhereTheyAreTheSameAndElseNamed) {
  const CommandLine paged = parse("train --optim paged_adamw_8bit");
  EXPECT_EQ(paged.config.text("optim"), "adamw_8bit");
  EXPECT_TRUE(says(paged, "keeps states in host memory"));
  EXPECT_EQ(parse("train --optim lion_32bit").config.text("optim"), "lion");
  EXPECT_TRUE(says(parse("train --optim paged_lion_32bit"), "keeps states in host memory"));
  EXPECT_EQ(parse("train --optim sgd").config.text("optim"), "sgd");
  EXPECT_CONTAINS(refusal("train --optim lion_8bit"), "lion is the nearest");
  for (const char* name : {"adafactor", "came_pytorch", "galore_adamw"})
    EXPECT_CONTAINS(refusal("train", {"--optim", name}), "adamw_8bit is the nearest");
  EXPECT_CONTAINS(refusal("train --optim adamw_8bits"), "did you mean 'adamw_8bit'?");
  EXPECT_CONTAINS(refusal("train --optim zzzz"), "paged_adamw");
}

TEST(ForeignFlags, TasksOfOtherTrainersAreTakenOrNamed) {
  for (const char* name : {"text-generation", "sft", "clm", "chat"})
    EXPECT_EQ(parse("train", {"--task", name}).config.text("task"), "causal-lm") << name;
  EXPECT_EQ(parse("train --task dpo").config.text("task"), "preference");
  EXPECT_EQ(parse("train --task rm").config.text("task"), "reward");
  EXPECT_CONTAINS(refusal("train --task grpo"), "task = preference is the nearest");
  EXPECT_CONTAINS(refusal("train --task translation"), "task = causal-lm is the nearest");
  EXPECT_CONTAINS(refusal("train --task xyz"), "ner");
}

TEST(ForeignFlags, AnAutomaticTypeIsFerrysOwn) {
  EXPECT_EQ(parse("train --bf16 auto").config.text("dtype"), "auto");
  EXPECT_EQ(parse("train --bf16 true").config.text("dtype"), "bf16");
}

TEST(ForeignFlags, TimesInAnEpochBecomeShares) {
  const CommandLine command = parse("train --saves_per_epoch 4 --epochs 3");
  EXPECT_NEAR(std::get<double>(command.config.value("save_steps")), 1.0 / 12, 1e-9);
  EXPECT_EQ(command.config.text("save_strategy"), "steps");
  const CommandLine once = parse("train --evals_per_epoch 1 --saves_per_epoch null");
  EXPECT_EQ(once.config.text("eval_strategy"), "epoch");
  EXPECT_TRUE(once.config.is_auto("save_steps"));
  EXPECT_EQ(parse("train --evals_per_epoch 0").config.to_toml(), parse("train").config.to_toml());
  EXPECT_CONTAINS(refusal("train --saves_per_epoch 2 --save_steps 10"), "both saves_per_epoch");
  EXPECT_CONTAINS(refusal("train --saves_per_epoch often"), "whole number");
}

TEST(ForeignFlags, ACosineWithALowestRateHasItsName) {
  const CommandLine command = parse("train --lr_scheduler cosine --cosine_min_lr_ratio 0.1");
  EXPECT_EQ(command.config.text("lr_scheduler_type"), "cosine_with_min_lr");
  EXPECT_EQ(command.config.number("min_lr_rate"), 0.1);
}

TEST(ForeignFlags, ANumberOfHeldOutSamplesIsNamed) {
  EXPECT_EQ(parse("train --val_set_size 0.05").config.number("eval_fraction"), 0.05);
  EXPECT_CONTAINS(refusal("train --val_size 500"), "share of the data");
}

/** A hint that names another option would change the training of who follows it. */
TEST(ForeignFlags, AnEvaluationSizeIsNotTakenForTheTrainingSize) {
  const CommandLine command = parse("train --per_device_eval_batch_size 16");
  EXPECT_TRUE(command.config.is_auto("per_device_train_batch_size"));
  EXPECT_EQ(command.config.integer("train_batch_size"), 32);
}

/** Arguments that `run_glue.py` and others are called with. */
TEST(ForeignFlags, ACommandLineOfTransformersExamplesIsTaken) {
  const CommandLine command = parse(
      "train --model_name_or_path bert --do_train --do_eval --train_file t.csv --validation_file "
      "v.csv --max_seq_length 128 --per_device_train_batch_size 16 --per_device_eval_batch_size 32 "
      "--learning_rate 2e-5 --num_train_epochs 3 --output_dir out --overwrite_output_dir "
      "--report_to wandb --fp16 --ddp_timeout 1800 --dataloader_num_workers 4 "
      "--remove_unused_columns False --group_by_length --tf32 True");
  EXPECT_EQ(command.config.integer("train_batch_size"), 16);
  EXPECT_EQ(command.config.text("report_to"), "tensorboard");
  EXPECT_TRUE(says(command, "report_to = wandb"));
}

}  // namespace
}  // namespace ferry::config
