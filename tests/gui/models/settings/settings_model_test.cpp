#include "gui/models/settings/settings_model.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QDir>
#include <QTemporaryDir>

#include "gui/models/process/ferry_command.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/settings/settings_file.h"
#include "gui/models/text.h"
#include "src/config/command_line/command_line.h"

namespace ferry::gui {
namespace {

using config::Option;
using config::Type;

/** A value of the option that is not the built-in one. */
QString value_for(const Option& option) {
  switch (option.type) {
    case Type::boolean:
      return option.value == "true" ? "false" : "true";
    case Type::choice:
      for (std::string_view choice : option.choices)
        if (choice != option.value) return to_text(choice);
      return {};
    case Type::number:
      return option.range.min > 0.5 ? "1" : option.range.max < 1 ? "0.25" : "0.5";
    case Type::integer:
      return QString::number(std::max<int64_t>(static_cast<int64_t>(option.range.min), 7));
    case Type::bytes:
      return "11GiB";
    case Type::steps:
      return "0.25";
    case Type::interval:
      return "30min";
    case Type::duration:
      return "90s";
    case Type::list:
      return "bert.embeddings.*,*.bias";
    case Type::groups:
      return "classifier.*:lr=0.0001";
    case Type::path:
      return "/daten/größe/数据 1.csv";
    case Type::text:
      return option.key == "token_sizes" ? "64,448,512" : "שדה 2";
  }
  return {};
}

void give_needed(SettingsModel& settings) {
  settings.set_text("model_name_or_path", "a model");
  settings.set_text("dataset", "texts.csv");
}

TEST(SettingsModel, AFaultOfTheDataStandsWhereItCanBeMendedUntilOthersAreChosen) {
  SettingsModel settings;
  give_needed(settings);
  ASSERT_TRUE(settings.config());
  settings.set_data_problem(
      "[data.columns] 'texts.csv' has the columns a, b, and none is plainly the text - name it "
      "with text_column = NAME, or by its number from 0");
  EXPECT_FALSE(settings.config());
  EXPECT_TRUE(settings.settled()) << "so that the data are read again";
  EXPECT_TRUE(settings.problem("text_column").contains("columns a, b"));
  EXPECT_FALSE(settings.problem("text_column").contains("NAME")) << "in the app's words";
  settings.set_data_problem("[data.open] '/a/b.csv' cannot be read");
  EXPECT_EQ(settings.problem("text_column"), "");
  EXPECT_FALSE(settings.problem("dataset").isEmpty());
  settings.set_text("dataset", "others.csv");
  EXPECT_TRUE(settings.config());
}

TEST(SettingsModel, ADefaultThatIsChosenIsNoChange) {
  SettingsModel settings;
  settings.choose("gpu_memory", "8GiB");
  EXPECT_TRUE(settings.is_changed("gpu_memory"));
  settings.choose("gpu_memory", "auto");
  EXPECT_FALSE(settings.is_changed("gpu_memory"));
}

TEST(SettingsModel, EveryOptionOfATrainingRoundTrips) {
  int n_options = 0;
  for (const Option& option : config::option_table()) {
    if (!(option.verbs & config::kTrain)) continue;
    ++n_options;
    SettingsModel settings;
    give_needed(settings);
    const QString key = to_text(option.key), text = value_for(option);
    settings.set_text(key, text);
    EXPECT_EQ(settings.text(key), text);
    const config::Config config = settings.valid_part();
    EXPECT_TRUE(config.is_set(option.key)) << option.key;
    EXPECT_EQ(config.value(option.key), *config::value_from_text(option, text.toStdString()))
        << option.key;
    // By a command line, and by a file.
    SettingsModel again;
    again.load(config);
    EXPECT_EQ(again.valid_part().value(option.key), config.value(option.key)) << option.key;
    QTemporaryDir directory;
    const auto file = to_path(directory.filePath("f.toml"));
    EXPECT_EQ(write_settings_file(file, config).toStdString(), "");
    EXPECT_EQ(read_settings_file(file).value(option.key), config.value(option.key)) << option.key;
    // Taken back.
    settings.reset(key);
    EXPECT_FALSE(settings.is_changed(key));
    EXPECT_FALSE(settings.valid_part().is_set(option.key));
  }
  SettingsModel settings;
  EXPECT_EQ(settings.rowCount(), n_options);
  EXPECT_GT(n_options, 70);
}

TEST(SettingsModel, IsAProperModel) {
  SettingsModel settings;
  SettingsFilter filter;
  filter.setSourceModel(&settings);
  QAbstractItemModelTester of_model(&settings,
                                    QAbstractItemModelTester::FailureReportingMode::Fatal);
  QAbstractItemModelTester of_filter(&filter,
                                     QAbstractItemModelTester::FailureReportingMode::Fatal);
  give_needed(settings);
  settings.set_text("learning_rate", "fast");
  filter.set_shows_all(true);
  filter.set_search("memory");
  settings.reset_all();
  filter.set_search({});
  settings.load(settings.valid_part());
}

TEST(SettingsModel, HasWhatFormsShow) {
  SettingsModel settings;
  const int row = settings.row_of("learning_rate");
  const auto at = [&](int column, int role = Qt::DisplayRole) {
    return settings.data(settings.index(row, column), role);
  };
  EXPECT_EQ(at(SettingsModel::label_column).toString(), "Learning rate");
  EXPECT_EQ(at(SettingsModel::default_column).toString(), "2e-5");
  EXPECT_EQ(at(SettingsModel::unit_column).toString(), "") << "it would say nothing";
  const int batch = settings.row_of("train_batch_size");
  EXPECT_EQ(settings.index(batch, SettingsModel::unit_column).data().toString(), "samples");
  EXPECT_EQ(at(SettingsModel::group_column).toString(), "Batch and schedule");
  EXPECT_EQ(at(0, SettingsModel::aliases_role).toStringList(), QStringList{"lr"});
  EXPECT_FALSE(at(0, SettingsModel::is_changed_role).toBool());
  EXPECT_TRUE(settings.setData(settings.index(row, SettingsModel::value_column), "5e-5"));
  EXPECT_TRUE(at(0, SettingsModel::is_changed_role).toBool());
  EXPECT_EQ(at(SettingsModel::changed_column).toString(), "changed");
  settings.set_default("learning_rate", "1e-5");
  EXPECT_EQ(at(SettingsModel::default_column).toString(), "1e-5");
  const QModelIndex length = settings.index(settings.row_of("max_length"), 0);
  EXPECT_TRUE(settings.data(length, SettingsModel::is_auto_role).toBool());
  settings.set_text("max_length", "128");
  EXPECT_FALSE(settings.data(length, SettingsModel::is_auto_role).toBool());
  EXPECT_EQ(settings.row_of("machine"), -1);  // of ferry plan alone
}

TEST(SettingsModel, WhatIsMissingIsSaid) {
  SettingsModel settings;
  ASSERT_EQ(settings.problems().size(), 2u);
  EXPECT_EQ(settings.problems()[0].key, "model_name_or_path");
  EXPECT_EQ(settings.problems()[1].key, "dataset");
  EXPECT_FALSE(settings.config());
  give_needed(settings);
  EXPECT_TRUE(settings.problems().empty());
  EXPECT_TRUE(settings.config());
  // A model from scratch is one, too.
  settings.reset("model_name_or_path");
  settings.set_text("config_name", "gpt2");
  EXPECT_TRUE(settings.config());
}

struct Wrong {
  const char *key, *text, *said;
};

TEST(SettingsModel, AWrongValueStaysAndSaysWhatIsMeant) {
  SettingsModel settings;
  give_needed(settings);
  for (const Wrong& wrong : {
           Wrong{"learning_rate", "5",
                 "5 is too large. Expected a number of at least 0 and at most "
                 "1. Too large diverges, too small learns nothing"},
           {"learning_rate", "fast", "Expected a number"},
           {"learning_rate", "0,5", "Write 0.5, with a point"},
           {"eval_fraction", "20%", "Write 0.2, with a point"},
           {"eval_fraction", "1", "below 1"},
           {"train_batch_size", "0", "0 is too small. Expected an integer of at least 1"},
           {"train_batch_size", "1.5", "Expected an integer"},
           {"gpu_memory", "much", "Expected a size such as 11GiB"},
           {"gpu_memory", "1KiB", "1KiB is too small"},
           {"max_time", "soon", "Expected a time such as 90s"},
           {"save_steps", "30 minutes", "Expected a whole number of steps"},
           {"warmup_steps", "1.5", "Expected a whole number of steps"},
           {"lr_scheduler_type", "cosin", "Did you mean cosine?"},
           {"freeze", "a,,b", "Expected items"},
           {"param_groups", "classifier", "Expected groups"},
           {"deterministic", "maybe", "Expected true or false"},
       }) {
    settings.set_text(wrong.key, wrong.text);
    EXPECT_EQ(settings.text(wrong.key), wrong.text);
    EXPECT_TRUE(settings.problem(wrong.key).contains(wrong.said))
        << wrong.key << ": " << settings.problem(wrong.key).toStdString();
    EXPECT_FALSE(settings.config()) << wrong.key;
    EXPECT_FALSE(settings.settled());
    ASSERT_EQ(settings.problems().size(), 1u) << wrong.key;
    EXPECT_EQ(settings.problems()[0].key, wrong.key);
    settings.reset(wrong.key);
    EXPECT_TRUE(settings.config()) << wrong.key;
  }
}

TEST(SettingsModel, AContradictionIsShownAtBothSettings) {
  SettingsModel settings;
  give_needed(settings);
  settings.set_text("eval_dataset", "more.csv");
  settings.set_text("eval_fraction", "0.1");
  EXPECT_EQ(settings.problem("eval_dataset").toStdString(),
            "Both “Evaluation data” and “Held-out share” are given - leave one out");
  EXPECT_EQ(settings.problem("eval_fraction"), settings.problem("eval_dataset"));
  settings.reset("eval_fraction");
  EXPECT_TRUE(settings.problems().empty());

  settings.set_text("train_batch_size", "32");
  settings.set_text("per_device_train_batch_size", "8");
  settings.set_text("gradient_accumulation_steps", "2");
  for (const char* key :
       {"train_batch_size", "per_device_train_batch_size", "gradient_accumulation_steps"})
    EXPECT_FALSE(settings.problem(key).isEmpty()) << key;
  settings.set_text("gradient_accumulation_steps", "4");
  EXPECT_TRUE(settings.problems().empty());
  EXPECT_EQ(settings.settled()->integer("train_batch_size"), 32);

  settings.set_text("tokenizer_name", "gpt2");
  EXPECT_FALSE(settings.problem("tokenizer_name").isEmpty());
}

TEST(SettingsModel, TheEmptyTextAndTheBuiltInChoiceTakeASettingBack) {
  SettingsModel settings;
  settings.set_text("deterministic", "false");
  EXPECT_TRUE(settings.is_changed("deterministic"));
  settings.set_text("deterministic", "true");
  EXPECT_FALSE(settings.is_changed("deterministic"));
  settings.set_text("learning_rate", "2e-5");  // given: a decoder's own would be another
  EXPECT_TRUE(settings.is_changed("learning_rate"));
  settings.set_text("learning_rate", "");
  EXPECT_FALSE(settings.is_changed("learning_rate"));
}

TEST(SettingsModel, AFoundProblemGoesWithItsSetting) {
  SettingsModel settings;
  give_needed(settings);
  settings.set_found_problem("dataset", "It is not there.");
  EXPECT_FALSE(settings.config());
  EXPECT_EQ(settings.problem("dataset"), "It is not there.");
  settings.set_text("dataset", "other.csv");
  EXPECT_TRUE(settings.config());
}

TEST(SettingsModel, PathsAreWhatWasTyped) {
  SettingsModel settings;
  give_needed(settings);
  const QString long_path = "/" + QString(3000, 'x') + "/данные/قاعدة.csv";
  settings.set_text("dataset", long_path);
  EXPECT_EQ(settings.config()->text("dataset"), long_path.toStdString());
  EXPECT_EQ(settings.settled()->text("dataset"), long_path.toStdString());
  settings.set_text("dataset", "~/texts.csv");
  EXPECT_EQ(settings.config()->text("dataset"), QDir::home().filePath("texts.csv").toStdString());
  EXPECT_EQ(settings.text("dataset"), "~/texts.csv");
}

TEST(SettingsModel, ARunThatGoesOnNeedsNeitherModelNorData) {
  QTemporaryDir run;
  SettingsModel settings;
  settings.set_text("resume_from_checkpoint", run.path());
  EXPECT_TRUE(settings.problem("resume_from_checkpoint").contains("not the directory of a run"))
      << settings.problem("resume_from_checkpoint").toStdString();
  SettingsModel first;
  give_needed(first);
  ASSERT_EQ(write_settings_file(to_path(run.filePath("config.toml")), *first.config()), "");
  settings.set_text("resume_from_checkpoint", run.path() + "/");
  EXPECT_TRUE(settings.config()) << settings.problems()[0].text.toStdString();
  EXPECT_EQ(settings.settled()->text("dataset"), "texts.csv");
}

TEST(SettingsFilter, FindsByLabelKeyAliasGroupAndHelp) {
  SettingsModel settings;
  SettingsFilter filter;
  filter.setSourceModel(&settings);
  const int n_basic = filter.rowCount();
  EXPECT_GT(n_basic, 10);
  EXPECT_LT(n_basic, 30);
  const auto keys = [&](const char* words) {
    filter.set_search(words);
    QStringList keys;
    for (int row = 0; row < filter.rowCount(); ++row)
      keys << filter.index(row, 0).data(SettingsModel::key_role).toString();
    return keys;
  };
  EXPECT_TRUE(keys("lr").contains("learning_rate"));
  EXPECT_TRUE(keys("grad-accum").contains("gradient_accumulation_steps"));
  EXPECT_TRUE(keys("LEARNING rate").contains("lr_scheduler_type"));  // an option of level all
  EXPECT_TRUE(keys("regularisation").contains("label_smoothing_factor"));
  EXPECT_TRUE(keys("overconfident").contains("label_smoothing_factor"));
  EXPECT_TRUE(keys("no such words").isEmpty());
  EXPECT_EQ(keys("").size(), n_basic);
  filter.set_shows_all(true);
  EXPECT_EQ(filter.rowCount(), settings.rowCount());
}

}  // namespace
}  // namespace ferry::gui
