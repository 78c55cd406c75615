#include "gui/pages/new_run/new_run_page.h"

#include <gtest/gtest.h>

#include <QTest>
#include <QtWidgets>

#include "gui/models/process/ferry_command.h"
#include "gui/models/settings/settings_file.h"
#include "gui/models/text.h"
#include "gui/widgets/data/hub_box.h"
#include "gui/widgets/forms/option_field.h"
#include "gui/widgets/look.h"
#include "tests/files/hub/fake_hub.h"
#include "tests/gui/gui_test.h"
#include "tests/gui/pages/page_test.h"

namespace ferry::gui {
namespace {

namespace fs = std::filesystem;

/** The page in a window, with what it works on in a directory of its own. */
class NewRun : public testing::Test {
 protected:
  void SetUp() override {
    settings_.set_runs_directory(home_.runs());
    write("texts.csv", "text,label\ngood,1\nbad,0\n");
    QDir().mkpath(home_.file("models/tiny"));
    // A model that has all but weights that fit: enough for what the page looks at.
    write("models/tiny/config.json",
          R"({"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 2,
              "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32,
              "max_position_embeddings": 64})");
    write("models/tiny/model.safetensors", QByteArray("\x08\0\0\0\0\0\0\0{}      ", 16));
    write("models/tiny/tokenizer.json", "{}");
    page_.resize(1060, 720);
    page_.show();
    page_.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&page_));
  }

  void write(const QString& name, const QByteArray& text) {
    QFile file(home_.file(name));
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(text);
  }
  template <typename T>
  T* child(const char* name) {
    return page_.findChild<T*>(name);
  }
  /** Waits until it is so. */
  static bool until(const std::function<bool()>& is_so, int ms = 20000) {
    return wait_until(is_so, ms);
  }
  void give_valid() {
    page_.settings().set_text("model_name_or_path", "tiny");
    page_.settings().set_text("dataset", home_.file("texts.csv"));
  }
  QPushButton* start() { return child<QPushButton>("start_button"); }
  SettingsModel& settings() { return page_.settings(); }

  TestHome home_;
  WithVariable models_{"FERRY_MODELS", (home_ / "models").c_str()};
  WithVariable ferry_{"FERRY", qgetenv("FERRY")};
  AppSettings settings_{home_.file("app.ini")};
  Launcher launcher_;
  Navigator navigator_;
  RunListModel run_list_{settings_, launcher_};
  RunQueue queue_{settings_, launcher_, run_list_};
  Shared shared_{settings_, launcher_, navigator_, run_list_, queue_};
  NewRunPage page_{shared_};
};

TEST_F(NewRun, EverySettingHasAFieldAtItsStep) {
  settings_.set_shows_all_options(true);
  for (int step = 0; step < NewRunPage::n_steps; ++step)
    page_.show_step(static_cast<NewRunPage::Step>(step));
  for (int row = 0; row < settings().rowCount(); ++row) {
    const QString key = to_text(settings().option(row).key);
    page_.show_field(key);
    auto* const editor = page_.findChild<QWidget*>("field_" + key);
    ASSERT_TRUE(editor) << key.toStdString();
    EXPECT_TRUE(editor->isVisible()) << key.toStdString();
    EXPECT_TRUE(editor->hasFocus()) << key.toStdString();
    EXPECT_TRUE(child<QTextBrowser>("help_line")->toPlainText().size() > 10);
  }
}

TEST_F(NewRun, AWrongValueKeepsStartAwayAndIsNamed) {
  give_valid();
  EXPECT_TRUE(start()->isEnabled());
  page_.show_field("learning_rate");
  auto* const field = child<QLineEdit>("field_learning_rate");
  QTest::keyClicks(field, "5");
  EXPECT_FALSE(start()->isEnabled());
  EXPECT_TRUE(child<QLabel>("state")->text().contains("Learning rate"));
  EXPECT_TRUE(start()->toolTip().contains("too large"));
  auto* const steps = child<QListWidget>("steps");
  EXPECT_TRUE(steps->item(NewRunPage::method_step)
                  ->data(Qt::AccessibleTextRole)
                  .toString()
                  .contains("to fix"));
  // The list of the review goes to the field.
  page_.show_step(NewRunPage::review_step);
  auto* const problems = child<QListWidget>("review_problems");
  ASSERT_EQ(problems->count(), 1);
  QTest::mouseClick(problems->viewport(), Qt::LeftButton, {},
                    problems->visualItemRect(problems->item(0)).center());
  EXPECT_EQ(page_.step(), NewRunPage::method_step);
  EXPECT_TRUE(field->hasFocus());
  QTest::keyClick(field, Qt::Key_Home);
  QTest::keyClicks(field, "0.0000");
  EXPECT_TRUE(start()->isEnabled());
  EXPECT_EQ(child<QListWidget>("review_problems")->count(), 0);
}

TEST_F(NewRun, WhatIsStillToComeIsNoError) {
  page_.show_step(NewRunPage::model_step);
  EXPECT_FALSE(start()->isEnabled());
  EXPECT_FALSE(child<ErrorLabel>("error_model_name_or_path")->isVisible());
  EXPECT_EQ(child<QLineEdit>("field_model_name_or_path")->placeholderText(), "Choose a model.");
  EXPECT_TRUE(child<QLabel>("state")->text().startsWith("○ To do: "));
  // The words go to the field.
  emit child<QLabel>("state")->linkActivated("dataset");
  EXPECT_TRUE(child<QWidget>("field_dataset")->hasFocus());
}

TEST_F(NewRun, TellsOthersOfValidSettingsOnce) {
  std::vector<config::Config> told, drafts;
  QObject::connect(&page_, &NewRunPage::settings_changed,
                   [&](const config::Config& config) { told.push_back(config); });
  QObject::connect(&page_, &NewRunPage::draft_changed,
                   [&](const config::Config& config) { drafts.push_back(config); });
  settings().set_text("dataset", "no-such.csv");
  ASSERT_TRUE(until([&] { return !drafts.empty(); }));
  EXPECT_TRUE(told.empty());  // there is no model
  give_valid();
  settings().set_text("per_device_train_batch_size", "8");
  ASSERT_TRUE(until([&] { return !told.empty(); }));
  EXPECT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].text("model_name_or_path"), "tiny");
  EXPECT_EQ(told[0].integer("train_batch_size"), 8);  // settled as ferry train has it
}

TEST_F(NewRun, DataThatAreNotThereAreAProblem) {
  give_valid();
  settings().set_text("dataset", "/no/such/größe.csv");
  ASSERT_TRUE(until([&] { return !settings().problem("dataset").isEmpty(); }));
  EXPECT_TRUE(settings().problem("dataset").contains("/no/such/größe.csv"));
  EXPECT_FALSE(start()->isEnabled());
}

TEST_F(NewRun, ShowsWhatTheModelIs) {
  give_valid();
  auto* const facts = child<QLabel>("model_facts");
  ASSERT_TRUE(until([&] { return facts->text().contains("2 layer"); }))
      << facts->text().toStdString();
  EXPECT_TRUE(facts->text().contains("bert"));
  auto* const models = child<QTreeWidget>("models_here");
  ASSERT_TRUE(until([&] { return models->topLevelItemCount() > 0; }));
  settings().reset("model_name_or_path");
  QTest::mouseClick(models->viewport(), Qt::LeftButton, {},
                    models->visualItemRect(models->topLevelItem(0)).center());
  EXPECT_EQ(settings().text("model_name_or_path"), "tiny");
}

TEST_F(NewRun, AModelOfTheHubThatIsNotHereCanBeDownloaded) {
  settings().set_text("model_name_or_path", "openai-community/gpt2");
  auto* const box = child<HubBox>("hub_box");
  ASSERT_TRUE(until([&] { return box->isVisible(); }));
  EXPECT_EQ(box->download().name(), "openai-community/gpt2");
  EXPECT_FALSE(settings().problem("model_name_or_path").isEmpty());
  // A decoder's own defaults are those that the form shows; tasks that it has not cannot be taken.
  EXPECT_EQ(settings().default_text("learning_rate"), "1e-5");
  auto* const task = child<QComboBox>("field_task");
  const auto* const items = qobject_cast<QStandardItemModel*>(task->model());
  EXPECT_FALSE(items->item(task->findData("mlm"))->isEnabled());
  EXPECT_TRUE(items->item(task->findData("causal-lm"))->isEnabled());
  settings().set_text("task", "mlm");
  ASSERT_TRUE(until([&] { return !settings().problem("task").isEmpty(); }));
  settings().set_text("task", "causal-lm");
  ASSERT_TRUE(until([&] { return settings().problem("task").isEmpty(); }));
}

TEST_F(NewRun, DraftsOfTwoAppsAreBothKept) {
  AppSettings other_settings(home_.file("app.ini"));
  Shared other_shared{other_settings, launcher_, navigator_, run_list_, queue_};
  NewRunPage other(other_shared);
  other.show();
  other.settings().set_text("dataset", home_.file("other.csv"));
  other.set_active(false);  // stored
  other_settings.read_again();
  // A form that is empty takes no draft's place; another draft keeps it.
  page_.set_active(false);
  settings_.read_again();
  EXPECT_EQ(settings_.value("new_run/texts").toMap().size(), 1);
  settings().set_text("dataset", home_.file("mine.csv"));
  page_.set_active(false);
  page_.set_active(true);
  auto* const action = page_.findChild<QAction*>("action_other_draft");
  ASSERT_TRUE(action && action->isEnabled());
  action->trigger();
  EXPECT_EQ(settings().text("dataset"), home_.file("other.csv"));
  action->trigger();
  EXPECT_EQ(settings().text("dataset"), home_.file("mine.csv"));
}

TEST_F(NewRun, DataOfTheHubThatAreNotHereAreDownloaded) {
  test::FakeHub& hub = test::FakeHub::fresh();
  const WithVariable endpoint("HF_ENDPOINT", hub.url().c_str());
  const WithVariable offline("HF_HUB_OFFLINE", "0");
  std::string rows = "text,label\n";
  for (int n = 0; n < 40; ++n)
    rows += n % 2 ? "the old car was near the house,cars\n" : "the bird is very red,birds\n";
  hub.put("datasets/tiny-org/things/main/train.csv", rows);
  give_valid();
  settings().set_text("dataset", "tiny-org/things");
  page_.show_step(NewRunPage::data_step);
  ASSERT_TRUE(until([&] { return !settings().problem("dataset").isEmpty(); }));
  EXPECT_FALSE(settings().problem("dataset").contains("ferry fetch"));
  auto* const box = child<HubBox>("hub_data");
  ASSERT_TRUE(box && box->isVisible());
  box->findChild<QPushButton*>("hub_act")->click();
  ASSERT_TRUE(until([&] { return box->download().state() == HubDownload::State::offered; }))
      << box->download().trouble().toStdString();
  EXPECT_TRUE(box->download().summary().contains("split train"));
  box->findChild<QPushButton*>("hub_act")->click();
  ASSERT_TRUE(until([&] { return settings().problem("dataset").isEmpty(); }));
  EXPECT_FALSE(box->isVisible());
}

TEST_F(NewRun, APresetIsChosenByKeysAndLeavesTheDataAlone) {
  ASSERT_TRUE(until([&] { return page_.presets().is_loaded(); }));
  settings().set_text("dataset", home_.file("texts.csv"));
  QTest::mouseClick(child<QPushButton>("preset_button"), Qt::LeftButton);
  auto* const search = child<QLineEdit>("preset_search");
  ASSERT_TRUE(search->isVisible());
  QTest::keyClicks(search, "minilm");
  QTest::keyClick(search, Qt::Key_Return);
  EXPECT_FALSE(search->isVisible());
  EXPECT_EQ(settings().text("model_name_or_path"), "all-MiniLM-L6-v2");
  EXPECT_EQ(settings().text("learning_rate"), "5e-5");
  EXPECT_EQ(settings().text("dataset"), home_.file("texts.csv"));
  auto* const button = child<QPushButton>("preset_button");
  EXPECT_TRUE(button->text().contains("MiniLM classifies texts")) << button->text().toStdString();
  EXPECT_FALSE(button->text().contains("changed"));
  settings().set_text("learning_rate", "3e-5");
  EXPECT_TRUE(button->text().contains("changed"));
  // Data for evaluation take the place of the preset's share.
  settings().set_text("eval_dataset", home_.file("texts.csv"));
  page_.choose_preset("minilm-classify");
  EXPECT_EQ(settings().text("eval_fraction"), "");
  EXPECT_EQ(settings().problem("eval_dataset"), "");
}

TEST_F(NewRun, ABuiltInPresetIsNotRenamedAndACopyIs) {
  ASSERT_TRUE(until([&] { return page_.presets().is_loaded(); }));
  page_.choose_preset("minilm-classify");
  EXPECT_FALSE(child<QAction>("preset_rename")->isEnabled());
  EXPECT_FALSE(child<QAction>("preset_delete")->isEnabled());
  child<QAction>("preset_copy")->trigger();
  auto* const name = child<QLineEdit>("preset_name");
  ASSERT_TRUE(name);
  name->setText("a/b");
  QTest::keyClick(name, Qt::Key_Return);
  EXPECT_FALSE(child<ErrorLabel>("preset_name_error")->error().isEmpty());
  name->setText("mine");
  QTest::keyClick(name, Qt::Key_Return);
  ASSERT_TRUE(until([&] { return page_.presets().row_of("mine") >= 0; }));
  EXPECT_TRUE(child<QPushButton>("preset_button")->text().contains("mine")) << "it is chosen";
  EXPECT_TRUE(child<QAction>("preset_rename")->isEnabled());
  child<QAction>("preset_delete")->trigger();
  ASSERT_TRUE(until([&] { return page_.presets().row_of("mine") < 0; }));
  EXPECT_EQ(settings().text("learning_rate"), "5e-5");  // the form keeps them
}

TEST_F(NewRun, SearchShowsSettingsOfEveryGroup) {
  page_.show_step(NewRunPage::model_step);
  QTest::keyClick(&page_, Qt::Key_F, Qt::ControlModifier);
  auto* const search = child<QLineEdit>("option_search");
  ASSERT_TRUE(search->hasFocus());
  QTest::keyClicks(search, "seed");
  ASSERT_TRUE(until([&] { return child<QWidget>("hit_seed") != nullptr; }));
  EXPECT_TRUE(child<QWidget>("hit_seed")->isVisible());
  EXPECT_TRUE(child<QWidget>("hit_eval_fraction")->isVisible());  // its help has the word
  QTest::keyClicks(child<QWidget>("hit_seed"), "7");
  EXPECT_EQ(settings().text("seed"), "7");
  search->clear();
  ASSERT_TRUE(until([&] { return child<QWidget>("field_task")->isVisible(); }));
}

TEST_F(NewRun, BasicHidesWhatFewNeed) {
  page_.show_step(NewRunPage::method_step);
  EXPECT_FALSE(child<QWidget>("field_adam_beta1"));
  QTest::mouseClick(child<QPushButton>("all_button"), Qt::LeftButton);
  EXPECT_FALSE(child<QWidget>("field_adam_beta1")) << "many fields take more than a frame";
  ASSERT_TRUE(until([&] { return child<QWidget>("field_adam_beta1"); }));
  ASSERT_TRUE(has_all_fields(page_));
  EXPECT_TRUE(child<QWidget>("field_adam_beta1")->isVisible());
  EXPECT_TRUE(settings_.shows_all_options());
  QTest::mouseClick(child<QPushButton>("basic_button"), Qt::LeftButton);
  EXPECT_FALSE(child<QWidget>("field_adam_beta1")->isVisible());
}

TEST_F(NewRun, LoraShowsItsSettingsTogether) {
  const char* const of_lora[] = {"lora_r",          "lora_alpha",   "lora_dropout",
                                 "use_rslora",      "use_dora",     "lora_targets",
                                 "modules_to_save", "quantization", "loraplus_lr_ratio"};
  give_valid();
  page_.show_step(NewRunPage::method_step);
  ASSERT_TRUE(has_all_fields(page_));
  const auto is_shown = [&](const char* key) {
    auto* const field = page_.findChild<QWidget*>("field_" + QString::fromLatin1(key));
    return field && field->isVisible();
  };
  for (const char* key : of_lora)
    EXPECT_FALSE(is_shown(key)) << key;
  auto& tuning = *child<QComboBox>("field_tuning");
  const int lora = tuning.findData("lora");
  ASSERT_GE(lora, 0);
  tuning.setCurrentIndex(lora);
  ASSERT_TRUE(has_all_fields(page_));
  for (const char* key : of_lora)
    EXPECT_TRUE(is_shown(key)) << key;
  EXPECT_EQ(settings().text("tuning"), "lora");
  // The rate that such a run takes where none is given.
  EXPECT_TRUE(wait_until([&] { return settings().default_text("learning_rate") == "2e-4"; }));
  const auto config = settings().config();
  ASSERT_TRUE(config);
  EXPECT_TRUE(arguments_of(*config, config::kTrain).contains("--tuning=lora"));
  picture(page_, "new_run_lora");
  for (const char* key : {"adapter_size", "adapter_scale", "compacter_division"})
    EXPECT_FALSE(is_shown(key)) << key;
  tuning.setCurrentIndex(tuning.findData("compacter"));
  ASSERT_TRUE(has_all_fields(page_));
  for (const char* key : {"adapter_size", "compacter_division", "modules_to_save", "quantization"})
    EXPECT_TRUE(is_shown(key)) << key;
  for (const char* key : {"adapter_scale", "lora_r", "use_dora"})
    EXPECT_FALSE(is_shown(key)) << key;
  tuning.setCurrentIndex(tuning.findData("full"));
  ASSERT_TRUE(has_all_fields(page_));
  for (const char* key : of_lora)
    EXPECT_FALSE(is_shown(key)) << key;
  EXPECT_TRUE(wait_until([&] { return settings().default_text("learning_rate") != "2e-4"; }));
}

TEST_F(NewRun, SettingsGoToAFileAndComeBack) {
  give_valid();
  settings().set_text("learning_rate", "3e-5");
  settings().set_text("param_groups", "classifier.*:lr=0.0001");
  settings().set_text("freeze", "bert.embeddings.*,*.bias");
  const auto before = settings().texts();
  const fs::path file = to_path(home_.file("größe 设置/" + QString(150, 'x') + ".toml"));
  page_.save_settings(file);
  EXPECT_FALSE(child<QWidget>("start_message")->isVisible());
  settings().reset_all();
  page_.load_settings(file);
  EXPECT_EQ(settings().texts(), before);
  EXPECT_EQ(page_.step(), NewRunPage::review_step);  // nothing is left to do
  write("broken.toml", "learning_rate = fast\n");
  page_.load_settings(to_path(home_.file("broken.toml")));
  EXPECT_TRUE(child<QWidget>("start_message")->isVisible());
  EXPECT_EQ(settings().texts(), before);
  // Also root may not write below a file.
  page_.save_settings(to_path(home_.file("broken.toml/x.toml")));
  EXPECT_TRUE(child<ErrorLabel>("start_failed")->error().contains("cannot be written"));
}

TEST_F(NewRun, BeginsAtWhatIsToBeDone) {
  config::Config config;
  config.set("model", "tiny", {config::Source::command_line, "test"});
  page_.begin(config);
  EXPECT_EQ(page_.step(), NewRunPage::data_step);
  EXPECT_TRUE(child<QWidget>("data_preview_place")->isVisible());
  page_.show_step(NewRunPage::memory_step);
  EXPECT_TRUE(child<QWidget>("plan_view_place")->isVisible());
  auto* const preview = new QLabel("preview");
  page_.set_preview(preview);
  EXPECT_EQ(preview->parentWidget(), child<QWidget>("data_preview_place"));
}

TEST_F(NewRun, SettingsOutliveThePage) {
  settings().set_text("learning_rate", "fast");  // also what is no value yet
  page_.set_active(false);
  NewRunPage again(shared_);
  EXPECT_EQ(again.settings().text("learning_rate"), "fast");
}

TEST_F(NewRun, TheReviewSaysTheCommandAndLooksAtTheFiles) {
  give_valid();
  page_.show_step(NewRunPage::review_step);
  const QString command = child<QPlainTextEdit>("command")->toPlainText();
  EXPECT_TRUE(command.contains(" train --model-name-or-path=tiny --dataset="))
      << command.toStdString();
  QTest::mouseClick(child<QPushButton>("copy_command"), Qt::LeftButton);
  EXPECT_EQ(QApplication::clipboard()->text(), command);
  // The tokenizer of this model is none.
  auto* const error = child<ErrorLabel>("check_error");
  ASSERT_TRUE(until([&] { return !error->error().isEmpty(); }));
  EXPECT_TRUE(error->error().contains("tokenizer")) << error->error().toStdString();
}

TEST_F(NewRun, APlanThatDoesNotFitMakesItStartAnyway) {
  give_valid();
  page_.set_plan_verdict(false, "It does not fit: 3 GiB are missing.");
  EXPECT_TRUE(start()->text().contains("anyway"));
  EXPECT_TRUE(start()->isEnabled());
  EXPECT_TRUE(child<QLabel>("state")->text().contains("3 GiB"));
  settings().set_text("max_length", "32");
  EXPECT_TRUE(start()->text().contains("anyway")) << "until a plan says that it fits now";
  page_.set_plan_verdict(true, "It fits.");
  EXPECT_FALSE(start()->text().contains("anyway"));
}

/** A program in ferry's place that notes each start: "good" ones write run.json. */
QByteArray program_that_counts(const TestHome& home, const char* then) {
  const QString path = home.file("ferry");
  QFile file(path);
  EXPECT_TRUE(file.open(QIODevice::WriteOnly));
  file.write(
      "#!/bin/sh\necho \"$@\" >> '" + QFile::encodeName(home.file("starts")) +
      "'\nfor word; do case $word in --output-dir=*) run=${word#--output-dir=};; esac; done\n" +
      then + "\n");
  file.close();
  file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  return QFile::encodeName(path);
}
int n_starts(const TestHome& home) {
  QFile file(home.file("starts"));
  return file.open(QIODevice::ReadOnly) ? static_cast<int>(file.readAll().count('\n')) : 0;
}

TEST_F(NewRun, ADoubleClickStartsOneRunAndGoesToIt) {
  qputenv("FERRY", program_that_counts(
                       home_, "sleep 0.3; mkdir -p \"$run\"; echo '{}' > \"$run/run.json\""));
  give_valid();
  std::vector<fs::path> shown;
  QObject::connect(&navigator_, &Navigator::live_wanted,
                   [&](const fs::path& run) { shown.push_back(run); });
  QTest::mouseClick(start(), Qt::LeftButton);
  QTest::mouseClick(start(), Qt::LeftButton);
  QTest::mouseDClick(start(), Qt::LeftButton);
  QTest::keyClick(&page_, Qt::Key_R, Qt::ControlModifier);
  EXPECT_FALSE(start()->isEnabled());
  ASSERT_TRUE(until([&] { return !shown.empty(); }));
  EXPECT_EQ(shown.size(), 1u);
  EXPECT_EQ(n_starts(home_), 1);
  EXPECT_EQ(QDir(home_.file("runs")).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 1);
  EXPECT_TRUE(start()->isEnabled());
  // Again is another one.
  QTest::keyClick(&page_, Qt::Key_R, Qt::ControlModifier);
  ASSERT_TRUE(until([&] { return shown.size() == 2; }));
  EXPECT_NE(shown[0], shown[1]);
}

TEST_F(NewRun, AStartThatFailsSaysWhyWithItsCommand) {
  give_valid();
  settings().set_text("dataset", home_.file("models"));  // the real program refuses it
  QTest::mouseClick(start(), Qt::LeftButton);
  auto* const failed = child<ErrorLabel>("start_failed");
  ASSERT_TRUE(until([&] { return failed->isVisible(); }, 60000));
  EXPECT_TRUE(failed->error().contains("did not start"));
  EXPECT_GT(failed->error().size(), 40) << failed->error().toStdString();
  EXPECT_TRUE(child<QPlainTextEdit>("start_failed_command")->toPlainText().contains("--dataset="));
  EXPECT_TRUE(start()->isEnabled());
}

TEST_F(NewRun, WithoutTheProgramItSaysSo) {
  qputenv("FERRY", "/no/such/ferry");
  give_valid();
  QTest::mouseClick(start(), Qt::LeftButton);
  ASSERT_TRUE(until([&] { return child<ErrorLabel>("start_failed")->isVisible(); }));
  EXPECT_TRUE(start()->isEnabled());
}

TEST_F(NewRun, ARunThatGoesOnKeepsItsDirectory) {
  qputenv("FERRY", program_that_counts(home_, "exit 3"));
  QDir().mkpath(home_.file("old"));
  give_valid();
  ASSERT_EQ(write_settings_file(to_path(home_.file("old/config.toml")), *settings().config()), "");
  settings().reset_all();
  settings().set_text("resume_from_checkpoint", home_.file("old"));
  settings().set_text("max_steps", "200");
  ASSERT_TRUE(start()->isEnabled()) << start()->toolTip().toStdString();
  start()->click();
  ASSERT_TRUE(until([&] { return child<ErrorLabel>("start_failed")->isVisible(); }));
  QFile starts(home_.file("starts"));
  ASSERT_TRUE(starts.open(QIODevice::ReadOnly));
  EXPECT_EQ(starts.readAll().trimmed(),
            "train --resume=" + QFile::encodeName(home_.file("old")) + " --max-steps=200");
}

TEST_F(NewRun, TheQueueGetsWhatIsSet) {
  give_valid();
  std::vector<config::Config> queued;
  QObject::connect(&page_, &NewRunPage::queue_wanted,
                   [&](const config::Config& config) { queued.push_back(config); });
  child<QPushButton>("queue_button")->click();
  ASSERT_EQ(queued.size(), 1u);
  EXPECT_EQ(arguments_of(queued[0], config::kTrain).size(), 2);
}

TEST_F(NewRun, EveryButtonAndFieldHasAName) {
  settings_.set_shows_all_options(true);
  for (int step = 0; step < NewRunPage::n_steps; ++step)
    page_.show_step(static_cast<NewRunPage::Step>(step));
  ASSERT_TRUE(has_all_fields(page_));
  for (const QWidget* widget : page_.findChildren<QWidget*>()) {
    if (widget->focusPolicy() == Qt::NoFocus || qobject_cast<const QScrollArea*>(widget)) continue;
    if (QString(widget->objectName()).startsWith("qt_")) continue;
    const auto* const button = qobject_cast<const QAbstractButton*>(widget);
    const bool is_named =
        !widget->accessibleName().isEmpty() || (button && !button->text().isEmpty());
    const bool is_label = qobject_cast<const QLabel*>(widget);
    EXPECT_TRUE(is_named || is_label)
        << widget->metaObject()->className() << " " << widget->objectName().toStdString();
  }
}

/** The tab key goes through the step as the eye does, and then to the buttons below. */
TEST_F(NewRun, TheTabKeyGoesAsTheEyeDoes) {
  page_.set_preview(new QLineEdit);
  for (int step = 0; step < NewRunPage::n_steps; ++step) {
    settings_.set_shows_all_options(false);
    page_.show_step(static_cast<NewRunPage::Step>(step));
    ASSERT_TRUE(has_all_fields(page_));
    settings_.set_shows_all_options(true);  // fields that come between others
    ASSERT_TRUE(has_all_fields(page_));
    QApplication::processEvents();
    QWidget* const area = child<QStackedWidget>("step_stack")->currentWidget();
    QPoint before(-1, -1);
    int n_stops = 0;
    bool is_left = false;
    for (QWidget* at = child<QWidget>("steps")->nextInFocusChain(); at->objectName() != "steps";
         at = at->nextInFocusChain()) {
      if (!at->isVisible() || !(at->focusPolicy() & Qt::TabFocus) || !at->isEnabled()) continue;
      if (at->objectName() == "back_button" || at->objectName() == "next_button") is_left = true;
      if (at == area || !area->isAncestorOf(at)) continue;
      EXPECT_FALSE(is_left) << at->objectName().toStdString();
      const QPoint centre = at->mapTo(area, at->rect().center());
      const bool is_below = centre.y() > before.y() + 4;
      const bool is_beside = centre.x() > before.x() && std::abs(centre.y() - before.y()) < 12;
      EXPECT_TRUE(is_below || is_beside) << step << " " << at->objectName().toStdString();
      before = centre;
      ++n_stops;
    }
    EXPECT_GT(n_stops, 4) << step;
    EXPECT_TRUE(is_left);
  }
}

}  // namespace
}  // namespace ferry::gui
