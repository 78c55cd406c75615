// Samples, Export, Settings, and the picker of runs.

#include <time.h>
#include <unistd.h>

#include <QAbstractSpinBox>
#include <QAccessible>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalSpy>
#include <QTableView>
#include <QTextEdit>
#include <QTimeEdit>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gui/pages/export/export_page.h"
#include "gui/pages/samples/samples_page.h"
#include "gui/pages/settings/settings_page.h"
#include "gui/pages/start/start_page.h"
#include "gui/pages/try_it/try_it_page.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/runs/run_picker.h"
#include "src/files/gguf/gguf.h"
#include "tests/gui/pages/page_test.h"
#include "tests/gui/run_files.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

namespace fs = std::filesystem;

// --- Samples -----------------------------------------------------------------------------------

TEST(SamplesPage, ShowsTheGridAndTwoStepsBesideEachOther) {
  PageHome surroundings;
  const fs::path run = surroundings.home / "runs/play";
  make_run(run, {.phase = "training", .more = {{"pid", 1}, {"host", "elsewhere"}}});
  write_file(run / "samples/step-000000.jsonl",
             sample_line(0, "ROMEO:", " s, h2C:s) In this code: displayTextInList") +
                 sample_line(0, "JULIET:", " I would love to get started with the work"));
  write_file(run / "samples/step-000030.jsonl",
             sample_line(30, "ROMEO:", " What light through yonder window breaks?") +
                 sample_line(30, "JULIET:", " Ay me! I would love to speak"));
  SamplesPage page(surroundings.shared);
  show_page(page);
  page.show_run(run);
  auto& grid = part<QTableView>(page, "grid");
  ASSERT_TRUE(wait_until([&] { return page.grid().n_steps() == 2; }));
  EXPECT_TRUE(grid.isVisible());
  EXPECT_EQ(part<QLabel>(page, "sample_title").text(), "After 30 steps");  // the newest
  EXPECT_TRUE(part<QTextEdit>(page, "sample_text").toPlainText().startsWith("ROMEO: What light"));
  EXPECT_TRUE(part<QTextEdit>(page, "other_text").toPlainText().contains("h2C"));
  EXPECT_TRUE(part<QLabel>(page, "sample_settings").text().contains("Temperature 0.8"));

  grid.setCurrentIndex(page.grid().index(1, 1));
  EXPECT_TRUE(part<QTextEdit>(page, "sample_text").toPlainText().startsWith("JULIET: Ay me!"));
  picture(page, "samples");

  // The run goes on; what is chosen stays.
  write_file(run / "samples/step-000060.jsonl", sample_line(60, "JULIET:", " O Romeo"));
  ASSERT_TRUE(wait_until([&] { return page.grid().n_steps() == 3; }));
  EXPECT_EQ(part<QLabel>(page, "sample_title").text(), "After 30 steps");
  auto& other = part<QComboBox>(page, "compare_with");
  EXPECT_EQ(other.currentText(), "Step 0");
  other.setCurrentIndex(other.findText("Step 60"));
  emit other.activated(other.currentIndex());
  EXPECT_EQ(part<QTextEdit>(page, "other_text").toPlainText(), "JULIET: O Romeo");
  part<QPushButton>(page, "copy_button").click();
  EXPECT_TRUE(QApplication::clipboard()->text().startsWith("JULIET: Ay me!"));
}

TEST(SamplesPage, SaysHowToGetSomeAndWhatIsDamaged) {
  PageHome surroundings;
  make_run(surroundings.home / "runs/none");
  make_run(surroundings.home / "runs/bad");
  write_file(surroundings.home / "runs/bad/samples/step-000001.jsonl",
             sample_line(1, "p", " t") + "{half");
  SamplesPage page(surroundings.shared);
  show_page(page);
  page.show_run(surroundings.home / "runs/none");
  auto& title = part<QLabel>(page, "empty_title");
  ASSERT_TRUE(wait_until([&] { return title.text() == "This run has no samples"; }));
  EXPECT_TRUE(part<QLabel>(page, "empty_text").text().contains("sample_prompts"));
  picture(page, "samples_none");
  QSignalSpy pages(&surroundings.navigator, &Navigator::page_wanted);
  part<QPushButton>(page, "new_run_button").click();
  EXPECT_EQ(pages.count(), 1);
  page.show_run(surroundings.home / "runs/bad");
  ASSERT_TRUE(wait_until([&] { return page.grid().n_steps() == 1; }));
  EXPECT_TRUE(part<Notice>(page, "message").text().contains("1 line"));
}

// --- Export ------------------------------------------------------------------------------------

class Export : public testing::Test {
 protected:
  void show(const fs::path& run) {
    show_page(page);
    page.show_run(run);
    ASSERT_TRUE(wait_until([&] { return page.check().has_value(); }));
  }
  void aim_at(const fs::path& where) {
    target.setText(path_text(where));
    ASSERT_TRUE(wait_until([&] { return page.check().has_value(); }));
  }
  bool wait_for_end(int patience_ms = 20000) {
    return wait_until([&] { return !cancel.isVisible() && page.check().has_value(); }, patience_ms);
  }

  PageHome surroundings;
  const TestHome& home = surroundings.home;
  ExportPage page{surroundings.shared};
  QLineEdit& target = part<QLineEdit>(page, "target");
  QPushButton& go = part<QPushButton>(page, "export_button");
  QPushButton& cancel = part<QPushButton>(page, "cancel_button");
  Notice& trouble = part<Notice>(page, "target_trouble");
  Notice& message = part<Notice>(page, "message");
};

TEST_F(Export, RefusesWhatIsThereAndWhatCannotBeWritten) {
  test::write_tiny_model(home / "model");
  EXPECT_FALSE(go.isEnabled());
  show(home / "model");
  EXPECT_TRUE(go.isEnabled()) << trouble.text().toStdString();  // a target is suggested
  EXPECT_TRUE(part<QLabel>(page, "room").text().contains("free"));
  picture(page, "export");
  write_file(home / "full/file", "mine");
  aim_at(home / "full");
  EXPECT_FALSE(go.isEnabled());
  EXPECT_TRUE(trouble.isVisible());
  EXPECT_TRUE(trouble.text().contains("Nothing is overwritten"));
  picture(page, "export_refused");
  fs::create_directory(home / "locked");
  fs::permissions(home / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  if (geteuid() != 0) {  // root may write anywhere
    aim_at(home / "locked/new");
    EXPECT_FALSE(go.isEnabled());
    EXPECT_TRUE(trouble.text().contains("may be written"));
  }
  aim_at(home / "new");
  EXPECT_TRUE(go.isEnabled());
  EXPECT_FALSE(trouble.isVisible());
}

TEST_F(Export, WhatTheProgramSaysOfAFailureIsShown) {
  test::write_tiny_model(home / "model");
  PlayedFerry ferry(home,
                    "echo \"ferry: [files.write] 'x' cannot be written: No space left\" >&2\n"
                    "exit 5\n");
  show(home / "model");
  go.click();
  ASSERT_TRUE(wait_for_end());
  EXPECT_TRUE(message.text().contains("No space left")) << message.text().toStdString();
  EXPECT_TRUE(message.is_error());
  EXPECT_TRUE(go.isEnabled());
}

TEST_F(Export, CancelledItLeavesNothing) {
  test::write_tiny_model(home / "model");
  PlayedFerry ferry(home,
                    "for word; do case $word in --output=*) d=${word#--output=};; esac; done\n"
                    "mkdir -p \"$d.partial\"\necho x > \"$d.partial/model.safetensors\"\n"
                    "exec sleep 30\n");
  show(home / "model");
  aim_at(home / "new");
  go.click();
  EXPECT_FALSE(go.isEnabled());
  ASSERT_TRUE(wait_until([&] { return fs::exists(home / "new.partial/model.safetensors"); }));
  cancel.click();
  ASSERT_TRUE(wait_until([&] { return !fs::exists(home / "new.partial"); }));
  EXPECT_TRUE(message.text().contains("cancelled"));
  ASSERT_TRUE(wait_for_end());
  EXPECT_TRUE(go.isEnabled());
}

TEST_F(Export, VerifiesARun) {
  make_run(home / "runs/one");
  write_classifier_config(home / "runs/one/final");
  show(home / "runs/one");
  {
    PlayedFerry ferry(home, "[ \"$1 $2\" = 'runs check' ] && echo \"$3: checkpoint-4 is whole\"\n");
    part<QPushButton>(page, "verify_button").click();
    ASSERT_TRUE(wait_for_end());
    EXPECT_TRUE(message.text().contains("checkpoint-4 is whole")) << message.text().toStdString();
    EXPECT_FALSE(message.is_error());
  }
  PlayedFerry ferry(home, "echo 'ferry: [checkpoint] damaged' >&2\nexit 4\n");
  part<QPushButton>(page, "verify_button").click();
  ASSERT_TRUE(wait_for_end());
  EXPECT_TRUE(message.is_error());
}

TEST_F(Export, OptionsOfTheResultAreOnTheCommandLine) {
  auto* const type = page.findChild<QComboBox*>("export_dtype");
  const bool takes_it = config::find_option("dtype").option->verbs & config::kExport;
  ASSERT_EQ(type != nullptr, takes_it);
  if (!takes_it) GTEST_SKIP() << "ferry export takes no number type in this version";
  test::write_tiny_model(home / "model");
  PlayedFerry ferry(home, "echo \"ferry: $*\" >&2\nexit 2\n");
  show(home / "model");
  type->setCurrentIndex(type->findData("fp16"));
  go.click();
  ASSERT_TRUE(wait_for_end());
  EXPECT_TRUE(message.text().contains(": fp16”")) << message.text().toStdString();
}

TEST_F(Export, AGgufFileHasATypeAndAName) {
  test::write_tiny_language_model(home / "model");
  auto& form = part<QComboBox>(page, "export_form");
  auto& type = part<QComboBox>(page, "export_gguf_type");
  PlayedFerry ferry(home, "echo \"ferry: $*\" >&2\nexit 2\n");
  show(home / "model");
  EXPECT_TRUE(part<QComboBox>(page, "export_dtype").isVisible());
  EXPECT_FALSE(type.isVisible());
  const QString folder = target.text();
  form.setCurrentIndex(1);
  ASSERT_TRUE(wait_until([&] { return page.check().has_value(); }));
  EXPECT_FALSE(part<QComboBox>(page, "export_dtype").isVisible());
  EXPECT_TRUE(type.isVisible());
  EXPECT_EQ(target.text(), folder + ".gguf");
  EXPECT_TRUE(go.isEnabled()) << trouble.text().toStdString();
  EXPECT_TRUE(part<QPlainTextEdit>(page, "loading")
                  .toPlainText()
                  .startsWith("llama-cli -m " + target.text()))
      << part<QPlainTextEdit>(page, "loading").toPlainText().toStdString();
  // Fewer bits are fewer bytes.
  type.setCurrentIndex(type.findData("f32"));
  ASSERT_TRUE(wait_until([&] { return page.check().has_value(); }));
  const int64_t whole = page.check()->needed_bytes;
  type.setCurrentIndex(type.findData("q8_0"));
  ASSERT_TRUE(wait_until([&] { return page.check().has_value(); }));
  EXPECT_LT(page.check()->needed_bytes, whole / 3);
  picture(page, "export_gguf");
  go.click();
  ASSERT_TRUE(wait_for_end());
  for (const QString& word : {QStringLiteral("gguf"), QStringLiteral("q8_0")})
    EXPECT_TRUE(message.text().contains(word)) << message.text().toStdString();
  aim_at(home / "folder");
  EXPECT_FALSE(go.isEnabled());
  EXPECT_TRUE(trouble.text().contains("ends in .gguf")) << trouble.text().toStdString();
  write_file(home / "mine.gguf", "mine");
  aim_at(home / "mine.gguf");
  EXPECT_TRUE(trouble.text().contains("Nothing is overwritten")) << trouble.text().toStdString();
  form.setCurrentIndex(0);
  ASSERT_TRUE(wait_until([&] { return page.check().has_value(); }));
  EXPECT_TRUE(trouble.text().contains("name of a GGUF file")) << trouble.text().toStdString();
}

TEST_F(Export, AClassifierIsNoGgufFile) {
  test::write_tiny_model(home / "model");
  show(home / "model");
  part<QComboBox>(page, "export_form").setCurrentIndex(1);
  ASSERT_TRUE(wait_until([&] { return page.check().has_value(); }));
  EXPECT_FALSE(go.isEnabled());
  EXPECT_TRUE(trouble.text().contains("language model")) << trouble.text().toStdString();
}

TEST_F(Export, ACancelledGgufFileLeavesNothing) {
  test::write_tiny_language_model(home / "model");
  PlayedFerry ferry(home,
                    "for word; do case $word in --output=*) f=${word#--output=};; esac; done\n"
                    "d=${f%/*} n=${f##*/}\nmkdir -p \"$d\"\n"
                    "echo x > \"$d/.$n.partial.tmp-$$-0\"\nexec sleep 30\n");
  show(home / "model");
  part<QComboBox>(page, "export_form").setCurrentIndex(1);
  fs::create_directories(home / "out");
  aim_at(home / "out/new.gguf");
  go.click();
  ASSERT_TRUE(wait_until([&] { return !fs::is_empty(home / "out"); }));
  cancel.click();
  ASSERT_TRUE(wait_until([&] { return fs::is_empty(home / "out"); }));
  ASSERT_TRUE(wait_for_end());
  EXPECT_TRUE(go.isEnabled());
}

/** The tiny language model with letters in place of words: llama.cpp has no tokenizer of words. */
void write_model_of_letters(const fs::path& model) {
  test::write_tiny_language_model(model);
  std::ifstream config_file(model / "config.json");
  const auto n_tokens = nlohmann::json::parse(config_file).at("vocab_size").get<int>();
  nlohmann::json vocab = {{"[UNK]", 0}, {"[BOS]", 1}, {"[EOS]", 2}};
  for (char letter = 'a'; static_cast<int>(vocab.size()) < n_tokens; ++letter) {
    const auto id = static_cast<int>(vocab.size());
    vocab[std::string(1, letter)] = id;
  }
  const nlohmann::json byte_level = {{"type", "ByteLevel"},
                                     {"add_prefix_space", false},
                                     {"trim_offsets", true},
                                     {"use_regex", true}};
  const nlohmann::json tokenizer = {
      {"version", "1.0"},
      {"added_tokens", nlohmann::json::array()},
      {"pre_tokenizer", byte_level},
      {"decoder", byte_level},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
  std::ofstream(model / "tokenizer.json") << tokenizer.dump();
}

TEST_F(Export, TheRealProgramWritesAGgufFile) {
  NEEDS_TRAINER();
  write_model_of_letters(home / "model");
  show(home / "model");
  part<QComboBox>(page, "export_form").setCurrentIndex(1);
  auto& type = part<QComboBox>(page, "export_gguf_type");
  type.setCurrentIndex(type.findData("f16"));
  aim_at(home / "out/my model.gguf");
  go.click();
  ASSERT_TRUE(wait_for_end(120000));
  ASSERT_TRUE(message.text().isEmpty()) << message.text().toStdString();
  auto& result = part<QLabel>(page, "result_text");
  ASSERT_TRUE(wait_until([&] { return result.isVisible(); }));
  EXPECT_TRUE(result.text().contains("my model.gguf"));
  EXPECT_FALSE(part<QPushButton>(page, "try_button").isVisible());
  const GgufFile file = GgufFile::open(home / "out/my model.gguf");
  EXPECT_FALSE(file.tensors().empty());
  EXPECT_EQ(std::get<std::string>(find_key(file.keys(), "general.architecture")->content), "llama");
  EXPECT_FALSE(go.isEnabled());
  picture(page, "export_gguf_done");
}

TEST_F(Export, WhatWasWrittenIsNotWrittenAgain) {
  test::write_tiny_model(home / "model");
  PlayedFerry ferry(home,
                    "for word; do case $word in --output=*) d=${word#--output=};; esac; done\n"
                    "mkdir -p \"$d\"\necho x > \"$d/model.safetensors\"\n");
  show(home / "model");
  const QString suggested = target.text();
  go.click();
  auto& result = part<QLabel>(page, "result_text");
  ASSERT_TRUE(wait_until([&] { return result.isVisible(); }));
  EXPECT_EQ(target.text(), suggested);
  EXPECT_FALSE(go.isEnabled());
  EXPECT_TRUE(part<QPlainTextEdit>(page, "loading").toPlainText().contains(suggested));
  target.setText(suggested + "-again");
  EXPECT_TRUE(wait_until([&] { return go.isEnabled(); })) << "another folder is another export";
}

TEST_F(Export, TheRealProgramWritesAModel) {
  NEEDS_TRAINER();
  test::write_tiny_language_model(home / "model");
  show(home / "model");
  aim_at(home / "exported model");
  go.click();
  ASSERT_TRUE(wait_for_end(120000));
  EXPECT_EQ(message.text(), "");
  EXPECT_TRUE(fs::exists(home / "exported model/model.safetensors"));
  auto& result = part<QLabel>(page, "result_text");
  ASSERT_TRUE(wait_until([&] { return result.isVisible(); }));
  EXPECT_TRUE(result.text().contains("exported model"));
  picture(page, "export_done");
  // A second click writes no second copy, and what is told of loading is of what is there.
  EXPECT_FALSE(go.isEnabled());
  EXPECT_EQ(target.text(), path_text(home / "exported model"));
  EXPECT_TRUE(part<QPlainTextEdit>(page, "loading").toPlainText().contains("/exported model\""));
  QSignalSpy tries(&surroundings.navigator, &Navigator::try_wanted);
  part<QPushButton>(page, "try_button").click();
  EXPECT_EQ(tries.count(), 1);
}

// --- Settings ----------------------------------------------------------------------------------

TEST(SettingsPage, ChangesAreKeptAtOnce) {
  PageHome surroundings;
  AppSettings& settings = surroundings.settings;
  SettingsPage page(surroundings.shared);
  show_page(page);
  EXPECT_EQ(part<QLineEdit>(page, "field_runs_directory").text(),
            path_text(surroundings.home / "runs"));
  auto& theme = part<QComboBox>(page, "field_theme");
  theme.setCurrentIndex(2);
  emit theme.activated(2);
  EXPECT_EQ(settings.theme(), Theme::dark);
  auto& language = part<QComboBox>(page, "field_language");
  auto& note = part<QLabel>(page, "language_note");
  EXPECT_FALSE(note.text().startsWith("Changed"));
  language.setCurrentIndex(1);
  emit language.activated(1);
  EXPECT_EQ(settings.language(), "en");
  EXPECT_TRUE(note.text().startsWith("Changed"));
  part<QCheckBox>(page, "field_run_hours").click();
  EXPECT_TRUE(settings.has_run_hours());
  part<QTimeEdit>(page, "field_run_from").setTime(QTime(21, 30));
  EXPECT_EQ(settings.run_from(), QTime(21, 30));
  EXPECT_TRUE(part<QLabel>(page, "hours_note").text().contains("of the next day"));
  part<QTimeEdit>(page, "field_run_until").setTime(QTime(21, 30));
  EXPECT_TRUE(part<QLabel>(page, "hours_note").text().contains("any hour"));
  part<QCheckBox>(page, "field_yields").click();
  EXPECT_TRUE(settings.yields());
  part<QCheckBox>(page, "field_queue").click();
  EXPECT_TRUE(settings.is_queue_on());
  part<QCheckBox>(page, "field_notifications").click();
  EXPECT_FALSE(settings.notifies());
  picture(page, "settings");
  // Another page's change is shown.
  settings.set_queue_on(false);
  EXPECT_FALSE(part<QCheckBox>(page, "field_queue").isChecked());
}

TEST(SettingsPage, ARunsFolderThatIsNoneIsSaid) {
  PageHome surroundings;
  write_file(surroundings.home / "file", "x");
  SettingsPage page(surroundings.shared);
  show_page(page);
  auto& field = part<QLineEdit>(page, "field_runs_directory");
  auto& trouble = part<Notice>(page, "runs_trouble");
  field.setText("relative/runs");
  emit field.editingFinished();
  EXPECT_TRUE(trouble.text().contains("whole path"));
  EXPECT_EQ(surroundings.settings.runs_directory(), surroundings.home / "runs");
  field.setText(path_text(surroundings.home / "file/runs"));
  emit field.editingFinished();
  ASSERT_TRUE(wait_until([&] { return trouble.text().contains("no folder"); }))
      << trouble.text().toStdString();
  field.setText(path_text(surroundings.home / "other"));
  emit field.editingFinished();
  ASSERT_TRUE(wait_until([&] { return !trouble.isVisible(); }));
  EXPECT_EQ(surroundings.settings.runs_directory(), surroundings.home / "other");
}

// --- Keys and names ----------------------------------------------------------------------------

/** Each widget that can be reached by Tab has a name for a screen reader: its own, its text, or its
 * label's. */
void check_names(const QWidget& page, const char* page_name) {
  for (const QWidget* widget : page.findChildren<QWidget*>()) {
    if (!(widget->focusPolicy() & Qt::TabFocus) || !widget->isVisibleTo(&page)) continue;
    // Their content has the names, and the box around a line.
    if (qobject_cast<const QScrollArea*>(widget) ||
        qobject_cast<const QAbstractSpinBox*>(widget->parent()))
      continue;
    QAccessibleInterface* const seen =
        QAccessible::queryAccessibleInterface(const_cast<QWidget*>(widget));
    ASSERT_TRUE(seen);
    EXPECT_FALSE(seen->text(QAccessible::Name).isEmpty())
        << page_name << ": " << widget->metaObject()->className() << " "
        << widget->objectName().toStdString();
  }
}

TEST(RestPages, HaveKeysAndNames) {
  PageHome surroundings;
  Shared& shared = surroundings.shared;
  write_file(surroundings.home / "lm/config.json",
             R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})");
  write_file(surroundings.home / "qa/config.json",
             R"({"architectures": ["BertForQuestionAnswering"], "model_type": "bert"})");
  make_run(surroundings.home / "runs/play");
  write_file(surroundings.home / "runs/play/samples/step-000001.jsonl", sample_line(1, "p", " t"));
  const auto check = [](Page& page, const char* name) {
    check_mnemonics(page, name);
    check_names(page, name);
  };
  StartPage start(shared);
  show_page(start);
  start.choose(StartKind::own_data);
  ASSERT_TRUE(wait_until([&] { return part<QPushButton>(start, "choose_file").isVisible(); }));
  check(start, "Start");
  SamplesPage samples(shared);
  show_page(samples);
  check(samples, "Samples, none");
  samples.show_run(surroundings.home / "runs/play");
  ASSERT_TRUE(wait_until([&] { return samples.grid().n_steps() == 1; }));
  check(samples, "Samples");
  TryItPage tries(shared);
  show_page(tries);
  for (const auto& [model, kind] :
       {std::pair{"lm", FormKind::generation}, {"qa", FormKind::question}}) {
    tries.show_run(surroundings.home / model);
    ASSERT_TRUE(wait_until([&] { return tries.form().kind == kind; }));
    check(tries, model);
  }
  ExportPage exports(shared);
  show_page(exports);
  exports.show_run(surroundings.home / "lm");
  ASSERT_TRUE(wait_until([&] { return exports.check().has_value(); }));
  check(exports, "Export");
  SettingsPage settings(shared);
  show_page(settings);
  check(settings, "Settings");
}

// --- The picker --------------------------------------------------------------------------------

/** CPU time of this thread. */
double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

TEST(RunPicker, IsSearchedByTypingAndShowsCheckpoints) {
  PageHome surroundings;
  const TestHome& home = surroundings.home;
  for (const char* name : {"alpha", "beta_news", "gamma"})
    make_run(home / "runs" / name);
  write_classifier_config(home / "runs/beta_news/final");
  write_file(home / "runs/beta_news/checkpoint-20/COMPLETE", "");
  write_classifier_config(home / "runs/beta_news/checkpoint-20");
  RunPicker picker(surroundings.run_list, surroundings.settings, RunPicker::For::model);
  QSignalSpy chosen(&picker, &RunPicker::chosen);
  picker.show();
  picker.refresh();
  ASSERT_TRUE(wait_until([&] { return picker.has_read(); }));
  EXPECT_EQ(picker.n_runs(), 3);
  EXPECT_TRUE(picker.run().empty());

  QLineEdit* const line = picker.run_field()->lineEdit();
  line->selectAll();
  line->insert("news");
  emit line->editingFinished();
  EXPECT_EQ(picker.run(), home / "runs/beta_news");
  EXPECT_EQ(chosen.count(), 1);
  QComboBox* const models = picker.model_field();
  ASSERT_EQ(models->count(), 2);
  EXPECT_EQ(models->itemText(0), "Finished model");
  models->setCurrentIndex(1);
  emit models->activated(1);
  EXPECT_EQ(picker.model(), home / "runs/beta_news/checkpoint-20");

  line->selectAll();
  line->insert("nothing like it");
  emit line->editingFinished();
  EXPECT_EQ(picker.run(), home / "runs/beta_news");  // the choice stays
  EXPECT_TRUE(line->text().startsWith("beta_news"));

  picker.choose(home / "elsewhere/checkpoint-3");
  EXPECT_TRUE(picker.run().empty());  // no run is there
  EXPECT_EQ(picker.model(), home / "elsewhere/checkpoint-3");
  picker.choose(home / "runs/beta_news/checkpoint-20/");
  EXPECT_EQ(picker.run(), home / "runs/beta_news");
  EXPECT_EQ(models->currentText(), "Checkpoint after 20 steps");
}

TEST(RunPicker, FiveHundredRunsAreReadInAThread) {
  PageHome surroundings;
  for (int n = 0; n < 500; ++n)
    make_run(surroundings.home / "runs" / ("run-" + std::to_string(n)));
  RunPicker picker(surroundings.run_list, surroundings.settings, RunPicker::For::run);
  QElapsedTimer clock;
  clock.start();
  picker.refresh();
  EXPECT_FALSE(picker.has_read());
  // Its list is filled within one turn of the event loop, which stays short.
  double longest_ms = 0;
  while (!picker.has_read() && clock.elapsed() < 60000) {
    const double before = thread_ms();
    QCoreApplication::processEvents();
    longest_ms = std::max(longest_ms, thread_ms() - before);
    QThread::msleep(2);
  }
  EXPECT_EQ(picker.n_runs(), 500);
  tell_time("the longest turn while 500 runs are read", longest_ms, 16);
}

}  // namespace
}  // namespace ferry::gui
