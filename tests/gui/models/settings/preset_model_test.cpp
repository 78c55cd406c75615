#include "gui/models/settings/preset_model.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QDir>
#include <QEventLoop>
#include <QFile>
#include <QProcess>
#include <QTimer>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "gui/models/inputs/model_facts.h"
#include "gui/models/process/ferry_command.h"
#include "gui/models/settings/settings_model.h"
#include "gui/models/text.h"
#include "tests/gui/gui_test.h"

namespace ferry::gui {
namespace {

class Presets : public testing::Test {
 protected:
  void wait_for(PresetModel& presets, void (PresetModel::*signal)()) {
    QEventLoop loop;
    QObject::connect(&presets, signal, &loop, &QEventLoop::quit);
    QTimer::singleShot(60000, &loop, [&] {
      ADD_FAILURE() << "no answer";
      loop.quit();
    });
    loop.exec();
  }
  void load(PresetModel& presets) {
    presets.reload();
    wait_for(presets, &PresetModel::loaded);
  }
  QString own(const QString& name) const {
    return home_.file("config/ferry/presets/" + name + ".toml");
  }

  TestHome home_;
};

TEST_F(Presets, AreReadAndPlanned) {
  PresetModel presets;
  QAbstractItemModelTester tester(&presets, QAbstractItemModelTester::FailureReportingMode::Fatal);
  load(presets);
  const int row = presets.row_of("llama-3-8b-lm-4090-24g");
  ASSERT_GE(row, 0);
  const QModelIndex index = presets.index(row);
  EXPECT_EQ(index.data(PresetModel::task_role).toString(), "causal-lm");
  EXPECT_EQ(index.data(PresetModel::card_role).toString(), "4090-24g");
  EXPECT_FALSE(index.data(PresetModel::is_users_role).toBool());
  EXPECT_FALSE(index.data(PresetModel::purpose_role).toString().isEmpty());
  EXPECT_EQ(index.data(PresetModel::problem_role).toString(), "");
  // Plans come after; the machine of a test has no such card.
  QEventLoop loop;
  QObject::connect(&presets, &QAbstractItemModel::dataChanged, &loop, &QEventLoop::quit);
  QTimer::singleShot(120000, &loop, &QEventLoop::quit);
  loop.exec();
  EXPECT_TRUE(index.data(PresetModel::plan_role).toString().contains("of GPU and "))
      << index.data(PresetModel::plan_role).toString().toStdString();
}

/** The form makes the same settings of a preset as `ferry train --preset`. A fourth of the presets;
 * FERRY_LONG=1: all. */
TEST_F(Presets, GiveTheSettingsThatTheProgramTakes) {
  PresetModel presets;
  load(presets);
  ASSERT_GT(presets.rowCount(), 25);
  const auto ferry = find_ferry();
  ASSERT_TRUE(ferry);
  const int step = std::getenv("FERRY_LONG") ? 1 : 4;
  for (int row = 0; row < presets.rowCount(); row += step) {
    const QString name = presets.index(row).data(PresetModel::name_role).toString();
    ASSERT_TRUE(presets.settings(row)) << name.toStdString();
    SettingsModel settings;
    settings.load(*presets.settings(row));
    settings.set_text("dataset", "no-such-data.csv");
    const auto config = settings.config();
    ASSERT_TRUE(config) << name.toStdString() << settings.problems()[0].text.toStdString();

    const auto said_by_program = [&](const QStringList& words) {
      QProcess process;
      process.start(path_text(*ferry), QStringList{"train"} + words + QStringList{"--dry-run"});
      EXPECT_TRUE(process.waitForFinished(60000));
      // "key = value  # from ...": people get them before the fault of data that are not there.
      std::map<std::string, std::string> settings_of_program;
      std::istringstream text(process.readAllStandardOutput().toStdString());
      for (std::string line; std::getline(text, line);)
        if (const size_t end = line.rfind("  # from "), equals = line.find(" = ");
            end != line.npos && equals < end)
          settings_of_program[line.substr(0, equals)] =
              QString::fromStdString(line.substr(equals + 3, end - equals - 3))
                  .trimmed()
                  .toStdString();
      return settings_of_program;
    };
    // A run of several hosts says which of them this one is.
    const QStringList host = config->integer("nnodes") > 1
                                 ? QStringList{"--node-rank", "0", "--master-addr", "localhost"}
                                 : QStringList();
    const auto expected =
        said_by_program(QStringList{"--preset", name, "--dataset", "no-such-data.csv"} + host);
    const auto got = said_by_program(arguments_of(*config, config::kTrain) + host);
    ASSERT_GT(expected.size(), 90u) << name.toStdString();
    EXPECT_EQ(got, expected) << name.toStdString();
  }
}

TEST_F(Presets, OfTheUsersOwnAreSavedRenamedCopiedAndDeleted) {
  PresetModel presets;
  load(presets);
  SettingsModel settings;
  settings.set_text("model_name_or_path", "/modelle/größe");
  settings.set_text("dataset", "texts.csv");
  settings.set_text("learning_rate", "5e-5");
  EXPECT_EQ(presets.save("meine Größe", *settings.config(), "meine Größe").toStdString(), "");
  wait_for(presets, &PresetModel::loaded);
  const int row = presets.row_of("meine Größe");
  ASSERT_GE(row, 0);
  EXPECT_TRUE(presets.index(row).data(PresetModel::is_users_role).toBool());
  ASSERT_TRUE(presets.settings(row));
  EXPECT_EQ(presets.settings(row)->number("learning_rate"), 5e-5);
  EXPECT_EQ(presets.settings(row)->text("model_name_or_path"), "/modelle/größe");
  EXPECT_FALSE(presets.settings(row)->is_set("seed"));

  EXPECT_NE(presets.save("meine Größe", *settings.config(), ""), "");  // it is there already
  EXPECT_NE(presets.save("a/b", *settings.config(), ""), "");
  EXPECT_NE(presets.save("  ", *settings.config(), ""), "");
  settings.set_text("learning_rate", "4e-5");
  EXPECT_EQ(presets.save("meine Größe", *settings.config(), "t", /*replaces=*/true), "");
  wait_for(presets, &PresetModel::loaded);
  EXPECT_EQ(presets.settings(presets.row_of("meine Größe"))->number("learning_rate"), 4e-5);
  EXPECT_EQ(presets.index(presets.row_of("meine Größe")).data(PresetModel::title_role).toString(),
            "meine Größe")
      << "what is replaced stays what it is for";

  EXPECT_EQ(presets.rename("meine Größe", "other"), "");
  wait_for(presets, &PresetModel::loaded);
  EXPECT_EQ(presets.row_of("meine Größe"), -1);
  EXPECT_GE(presets.row_of("other"), 0);

  EXPECT_EQ(presets.copy("minilm-classify", "mine"), "");
  wait_for(presets, &PresetModel::loaded);
  const int copy = presets.row_of("mine");
  ASSERT_TRUE(presets.settings(copy));
  EXPECT_TRUE(presets.index(copy).data(PresetModel::is_users_role).toBool());
  EXPECT_EQ(presets.settings(copy)->to_toml(),
            presets.settings(presets.row_of("minilm-classify"))->to_toml());

  EXPECT_EQ(presets.remove("other"), "");
  wait_for(presets, &PresetModel::loaded);
  EXPECT_EQ(presets.row_of("other"), -1);
  EXPECT_FALSE(QFile::exists(own("other")));
}

TEST_F(Presets, ThatComeWithFerryStayAsTheyAre) {
  PresetModel presets;
  load(presets);
  const QString file =
      presets.index(presets.row_of("minilm-classify")).data(Qt::ToolTipRole).toString();
  ASSERT_TRUE(QFile::exists(file));
  EXPECT_NE(presets.remove("minilm-classify"), "");
  EXPECT_NE(presets.rename("minilm-classify", "mine"), "");
  EXPECT_TRUE(QFile::exists(file));
}

TEST_F(Presets, SayThatTheDirectoryCannotBeWritten) {
  // Also root may not write below a file.
  QFile blocks(home_.file("config/ferry"));
  ASSERT_TRUE(blocks.open(QIODevice::WriteOnly));
  PresetModel presets;
  load(presets);
  EXPECT_TRUE(presets.save("mine", config::Config(), "").contains("cannot be written"));
  EXPECT_NE(presets.copy("minilm-classify", "mine"), "");
  EXPECT_EQ(presets.row_of("mine"), -1);
}

TEST_F(Presets, AFileThatIsNoneSaysWhy) {
  QDir().mkpath(home_.file("config/ferry/presets"));
  QFile file(own("broken"));
  ASSERT_TRUE(file.open(QIODevice::WriteOnly));
  file.write("learning_rate = fast\n");
  file.close();
  PresetModel presets;
  load(presets);
  const int row = presets.row_of("broken");
  ASSERT_GE(row, 0);
  EXPECT_FALSE(presets.settings(row));
  EXPECT_FALSE(presets.index(row).data(PresetModel::problem_role).toString().isEmpty());
}

config::Config config_of(std::initializer_list<std::pair<const char*, const char*>> values) {
  config::Config config;
  for (const auto& [key, value] : values)
    config.set(key, value, {config::Source::command_line, "test"});
  return config;
}

TEST(ModelFacts, OfAKnownNameThatIsNotHere) {
  const ModelFacts facts = read_model_facts(config_of({{"model", "bert-large-uncased"}}));
  EXPECT_EQ(facts.family, "bert");
  EXPECT_EQ(facts.n_layers, 24);
  EXPECT_NEAR(static_cast<double>(facts.n_params), 335e6, 3e6);
  EXPECT_TRUE(facts.tasks.contains("question-answering"));
  EXPECT_FALSE(facts.is_decoder);
  EXPECT_TRUE(facts.defaults.isEmpty());
  if (facts.directory.isEmpty()) {
    EXPECT_TRUE(facts.problem.contains("not on this machine")) << facts.problem.toStdString();
    EXPECT_EQ(facts.hub_name, "google-bert/bert-large-uncased");
    EXPECT_FALSE(facts.problem.contains("ferry fetch")) << facts.problem.toStdString();
  }
}

TEST(ModelFacts, OfADecoderHaveItsDefaultsAndTasks) {
  const ModelFacts facts = read_model_facts(config_of({{"model", "gpt2"}, {"task", "mlm"}}));
  EXPECT_TRUE(facts.is_decoder);
  EXPECT_EQ(facts.defaults["learning_rate"], "1e-5");
  EXPECT_EQ(facts.defaults["train_batch_size"], "16");
  EXPECT_FALSE(facts.tasks.contains("mlm"));
  EXPECT_TRUE(facts.task_problem.contains("causal-lm")) << facts.task_problem.toStdString();
}

TEST(ModelFacts, NameWhatIsWrong) {
  EXPECT_TRUE(read_model_facts(config::Config()).problem.isEmpty());  // nothing was chosen yet
  EXPECT_TRUE(read_model_facts(config_of({{"model", "/no/such"}})).problem.contains("/no/such"));
  const ModelFacts drawn = read_model_facts(config_of({{"from_config", "gpt2"}}));
  EXPECT_EQ(drawn.key, "config_name");
  EXPECT_EQ(drawn.defaults["learning_rate"], "0.0003");
  EXPECT_EQ(drawn.n_layers, 12);
  EXPECT_TRUE(drawn.problem.contains("tokenizer")) << drawn.problem.toStdString();
}

}  // namespace
}  // namespace ferry::gui
