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
  return name;
}

std::string value_for(const ForeignFlag& flag) {
  if (!flag.harmless.empty()) return std::string(flag.harmless);
  return flag.is_boolean ? "false" : "4";
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
  const std::string defaults = parse("train", {}).config.to_toml();
  for (const ForeignFlag& flag : foreign_flags()) {
    for (const std::string_view pattern : flag.names) {
      const std::string name = example_of(pattern), value = value_for(flag);
      std::vector<std::vector<std::string>> forms = {
          {"--" + name, value}, {"--" + name + "=" + value}, {name + "=" + value}};
      if (flag.is_boolean && flag.harmless != "false") forms.push_back({"--" + name});
      for (const std::vector<std::string>& form : forms) {
        if (flag.is_refused) {
          EXPECT_CONTAINS(usage_error([&] { parse("train", form); }), flag.reason);
          continue;
        }
        const CommandLine command = parse("train", form);
        EXPECT_EQ(command.config.to_toml(), defaults) << name;
        ASSERT_EQ(command.notes.size(), 1u) << name;
        EXPECT_CONTAINS(command.notes[0], name);
        EXPECT_CONTAINS(command.notes[0], flag.reason);
      }
      if (flag.harmless.empty()) continue;
      const std::string other = flag.harmless == "true" ? "false" : "true";
      EXPECT_CONTAINS(usage_error([&] { parse("train", {"--" + name + "=" + other}); }),
                      flag.reason);
    }
  }
}

TEST(ForeignFlags, InAFileAreSaidWithTheirLine) {
  TemporaryDirectory directory;
  const auto file = directory.write("c.toml", "seed = 1\ndo_train = true\n").string();
  const CommandLine command = parse("train", {"--config", file});
  EXPECT_CONTAINS(command.notes.at(0), "do_train (" + file + ":2) changes nothing");
  const auto lora = directory.write("l.toml", "lora_r = 8\n").string();
  EXPECT_CONTAINS(usage_error([&] { parse("train", {"--config", lora}); }), "all weights");
}

/** A hint that names another option would change the training of who follows it. */
TEST(ForeignFlags, AnEvaluationSizeIsNotTakenForTheTrainingSize) {
  const CommandLine command = parse("train", {"--per_device_eval_batch_size", "16"});
  EXPECT_TRUE(command.config.is_auto("per_device_train_batch_size"));
  EXPECT_EQ(command.config.integer("train_batch_size"), 32);
}

/** Arguments that `run_glue.py` and others are called with. */
TEST(ForeignFlags, ACommandLineOfTransformersExamplesIsTaken) {
  const CommandLine command = parse("train", {"--model_name_or_path",
                                              "bert",
                                              "--do_train",
                                              "--do_eval",
                                              "--train_file",
                                              "t.csv",
                                              "--validation_file",
                                              "v.csv",
                                              "--max_seq_length",
                                              "128",
                                              "--per_device_train_batch_size",
                                              "16",
                                              "--per_device_eval_batch_size",
                                              "32",
                                              "--learning_rate",
                                              "2e-5",
                                              "--num_train_epochs",
                                              "3",
                                              "--output_dir",
                                              "out",
                                              "--overwrite_output_dir",
                                              "--report_to",
                                              "wandb",
                                              "--fp16",
                                              "--ddp_timeout",
                                              "1800",
                                              "--dataloader_num_workers",
                                              "4",
                                              "--remove_unused_columns",
                                              "False",
                                              "--group_by_length",
                                              "--tf32",
                                              "True"});
  EXPECT_EQ(command.config.integer("train_batch_size"), 16);
  EXPECT_EQ(command.config.text("report_to"), "tensorboard");
  const bool says_report = std::ranges::any_of(
      command.notes, [](const std::string& note) { return contains(note, "report_to = wandb"); });
  EXPECT_TRUE(says_report);
}

}  // namespace
}  // namespace ferry::config
