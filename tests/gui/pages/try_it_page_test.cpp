#include "gui/pages/try_it/try_it_page.h"

#include <QClipboard>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableWidget>
#include <QTextEdit>

#include "gui/models/process/ferry_process.h"
#include "gui/widgets/notice.h"
#include "tests/gui/pages/page_test.h"
#include "tests/gui/run_files.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

void write_model(const std::filesystem::path& model, const QByteArray& architecture) {
  write_file(model / "config.json", "{\"architectures\": [\"" + architecture +
                                        "\"], \"model_type\": \"bert\", "
                                        "\"id2label\": {\"0\": \"O\", \"1\": \"B-PER\"}}");
}

class TryIt : public testing::Test {
 protected:
  void show(const std::filesystem::path& model) {
    show_page(page);
    page.show_run(model);
    ASSERT_TRUE(wait_until(
        [&] { return !page.form().directory.empty() || !page.form().trouble.isEmpty(); }));
  }
  void type(const char* field, const QString& text) {
    part<QPlainTextEdit>(page, field).setPlainText(text);
  }
  bool ask_and_wait() {
    ask.click();
    return wait_until([&] { return !cancel.isVisible(); });
  }

  PageHome surroundings;
  TryItPage page{surroundings.shared};
  QPushButton& ask = part<QPushButton>(page, "ask_button");
  QPushButton& cancel = part<QPushButton>(page, "cancel_button");
  QLabel& summary = part<QLabel>(page, "summary");
  Notice& message = part<Notice>(page, "message");
  QListWidget& history = part<QListWidget>(page, "history");
};

TEST_F(TryIt, ShowsClassesAsBarsWithNumbers) {
  make_run(surroundings.home / "runs/news");
  write_classifier_config(surroundings.home / "runs/news/final");
  PlayedFerry ferry(surroundings.home,
                    "for last; do :; done\necho 'ferry: max_length = 128' >&2\n"
                    "printf '{\"text\":\"%s\",\"labels\":[\"good\"],\"scores\":{\"schlecht\":0.125,"
                    "\"good\":0.875}}\\n' \"$last\"\n");
  show(surroundings.home / "runs/news");
  EXPECT_FALSE(ask.isEnabled());
  // Nothing is bare before the first answer.
  const auto& no_answer = part<QLabel>(page, "no_answer");
  EXPECT_TRUE(no_answer.isVisible());
  EXPECT_FALSE(page.form().labels.isEmpty());
  for (const QString& label : page.form().labels)
    EXPECT_TRUE(no_answer.text().contains(label)) << no_answer.text().toStdString();
  EXPECT_TRUE(part<QLabel>(page, "no_history").isVisible());
  type("text", "The minister said taxes would fall next year.");
  EXPECT_TRUE(ask.isEnabled());
  ASSERT_TRUE(ask_and_wait());
  EXPECT_EQ(message.text(), "");
  EXPECT_EQ(summary.text(), "good (0.88)");
  auto& scores = part<QTableWidget>(page, "scores");
  ASSERT_EQ(scores.rowCount(), 2);
  EXPECT_EQ(scores.item(0, 0)->text(), "good (chosen)");
  EXPECT_EQ(scores.item(1, 1)->text(), "12.5 %");
  EXPECT_EQ(history.count(), 1);
  EXPECT_TRUE(history.isVisible());
  EXPECT_FALSE(part<QLabel>(page, "no_history").isVisible() || no_answer.isVisible());
  EXPECT_TRUE(part<QLabel>(page, "told").text().contains("max_length = 128"));
  part<QPushButton>(page, "copy_button").click();
  EXPECT_TRUE(QApplication::clipboard()->text().contains("schlecht (0.13)"))
      << QApplication::clipboard()->text().toStdString();
  picture(page, "try_it_classes");
}

TEST_F(TryIt, MarksEntitiesWithWords) {
  write_model(surroundings.home / "ner", "BertForTokenClassification");
  PlayedFerry ferry(
      surroundings.home,
      "echo '{\"entities\":[{\"text\":\"Angela Merkel\",\"label\":\"PER\",\"start\":0,"
      "\"end\":13,\"score\":0.99},{\"text\":\"Berlin\",\"label\":\"LOC\",\"start\":23,"
      "\"end\":29,\"score\":0.98}],\"words\":[],\"tags\":[]}'\n");
  show(surroundings.home / "ner");
  EXPECT_EQ(page.form().kind, FormKind::tokens);
  type("text", "Angela Merkel lives in Berlin.");
  ASSERT_TRUE(ask_and_wait());
  EXPECT_EQ(part<QTextEdit>(page, "marked").toPlainText(),
            "Angela Merkel [PER 0.99] lives in Berlin [LOC 0.98].");
  EXPECT_EQ(summary.text(), "2 found");
  picture(page, "try_it_entities");
}

TEST_F(TryIt, FindsTheAnswerInItsContext) {
  write_model(surroundings.home / "qa", "BertForQuestionAnswering");
  PlayedFerry ferry(surroundings.home,
                    "case \"$*\" in *--pairs*--*Who*Ann*) ;; *) exit 2;; esac\n"
                    "echo '{\"answer\":\"Ann\",\"score\":0.8,\"start\":0,\"end\":3}'\n");
  show(surroundings.home / "qa");
  type("text", "Who found it?");
  EXPECT_FALSE(ask.isEnabled());  // both are needed
  type("context", "Ann found it.");
  ASSERT_TRUE(ask_and_wait());
  EXPECT_EQ(message.text(), "");
  EXPECT_EQ(part<QTextEdit>(page, "marked").toPlainText(), "Ann [answer 0.80] found it.");
  EXPECT_EQ(summary.text(), "Ann (0.80)");
  picture(page, "try_it_answer");
}

TEST_F(TryIt, AsksNothingWithTheFormerModelsForm) {
  write_model(surroundings.home / "qa", "BertForQuestionAnswering");
  write_classifier_config(surroundings.home / "classes");
  show(surroundings.home / "classes");
  type("text", "Who found it?");
  EXPECT_TRUE(ask.isEnabled());
  page.show_run(surroundings.home / "qa");  // it is read in a thread
  EXPECT_FALSE(ask.isEnabled());
  EXPECT_EQ(ask.toolTip(), "The model is being read.");
  ASSERT_TRUE(wait_until([&] { return page.form().kind == FormKind::question; }));
  EXPECT_EQ(ask.toolTip(), "Both texts are needed.");
  type("context", "Ann found it.");
  EXPECT_TRUE(ask.isEnabled());
}

TEST_F(TryIt, StreamsAContinuationAndCancelsIt) {
  write_file(surroundings.home / "lm/config.json",
             R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})");
  PlayedFerry ferry(surroundings.home,
                    "printf ' upon'\nsleep 0.1\nprintf ' a time'\n"
                    "case \"$*\" in *'-- Twice') exec sleep 30;; esac\necho\n");
  show(surroundings.home / "lm");
  EXPECT_EQ(page.form().kind, FormKind::generation);
  auto& text = part<QTextEdit>(page, "marked");
  type("text", "Once");
  ASSERT_TRUE(ask_and_wait());
  EXPECT_EQ(text.toPlainText(), "Once upon a time");
  type("text", "Twice");
  ask.click();
  EXPECT_FALSE(ask.isEnabled());
  ASSERT_TRUE(wait_until([&] { return text.toPlainText() == "Twice upon a time"; }));
  picture(page, "try_it_streams");
  cancel.click();
  EXPECT_TRUE(ask.isEnabled());
  EXPECT_EQ(history.count(), 2);
  history.setCurrentRow(1);
  EXPECT_EQ(text.toPlainText(), "Once upon a time");
  part<QPushButton>(page, "again_button").click();
  EXPECT_EQ(part<QPlainTextEdit>(page, "text").toPlainText(), "Once");
}

TEST_F(TryIt, SaysWhatWentWrongInThePage) {
  write_classifier_config(surroundings.home / "model");
  show(surroundings.home / "model");
  type("text", "a text");
  {
    PlayedFerry ferry(surroundings.home, "echo 'ferry: [gpu] no room' >&2\nexit 3\n");
    ASSERT_TRUE(ask_and_wait());
    EXPECT_EQ(message.text(), "No room");  // without where it was found
    EXPECT_TRUE(message.isVisible());
  }
  PlayedFerry ferry(surroundings.home, "echo '{\"text\":\"t\"}'\n");
  ASSERT_TRUE(ask_and_wait());
  EXPECT_TRUE(message.text().contains("not understood")) << message.text().toStdString();
  EXPECT_TRUE(ask.isEnabled());
  EXPECT_EQ(history.count(), 0);
  type("text", QString(200'000, 'x'));
  EXPECT_FALSE(ask.isEnabled());
}

TEST_F(TryIt, AnUnfinishedRunIsAskedByItsCheckpointOrSaysThatItHasNone) {
  make_run(surroundings.home / "runs/half", {.phase = "stopped"});
  write_classifier_config(surroundings.home / "runs/half/checkpoint-20");
  write_file(surroundings.home / "runs/half/checkpoint-20/COMPLETE", "");
  make_run(surroundings.home / "runs/new", {.phase = "failed"});
  show(surroundings.home / "runs/half");
  EXPECT_EQ(page.form().directory.filename(), "checkpoint-20");
  EXPECT_EQ(page.form().trouble, "");
  page.show_run(surroundings.home / "runs/new");
  ASSERT_TRUE(wait_until([&] { return !page.form().trouble.isEmpty(); }));
  auto& model_message = part<Notice>(page, "model_message");
  EXPECT_TRUE(model_message.text().contains("no checkpoint")) << model_message.text().toStdString();
  type("text", "a text");
  EXPECT_FALSE(ask.isEnabled());
  picture(page, "try_it_no_model");
}

// The real program: a language model goes on, a classifier is trained and asked.

TEST_F(TryIt, ARealLanguageModelGoesOn) {
  NEEDS_TRAINER();
  test::write_tiny_language_model(surroundings.home / "lm");
  show(surroundings.home / "lm");
  part<QPlainTextEdit>(page, "text").setPlainText("the old car");
  ask.click();
  ASSERT_TRUE(wait_until([&] { return !cancel.isVisible(); }, 120000));
  EXPECT_EQ(message.text(), "");
  const QString text = part<QTextEdit>(page, "marked").toPlainText();
  EXPECT_TRUE(text.startsWith("the old car") && text.size() > 12) << text.toStdString();
}

TEST_F(TryIt, ARealClassifierAnswers) {
  NEEDS_TRAINER();
  const auto& home = surroundings.home;
  test::write_tiny_model(home / "model");
  test::write_tiny_data(home / "data.tsv", 40, 1);
  FerryProcess training;
  QString trouble;
  bool is_over = false;
  QObject::connect(&training, &FerryProcess::finished, [&] { is_over = true; });
  QObject::connect(&training, &FerryProcess::failed, [&](const QString& said) {
    trouble = said;
    is_over = true;
  });
  training.start(
      {"train", "--model=" + path_text(home / "model"), "--dataset=" + path_text(home / "data.tsv"),
       "--device=cpu", "--max-steps=2", "--output-dir=" + path_text(home / "runs/colours")},
      FerryProcess::Output::text);
  ASSERT_TRUE(wait_until([&] { return is_over; }, 120000));
  ASSERT_EQ(trouble, "");
  show(home / "runs/colours");
  type("text", "the house was -- red \"and\" very old\nbird");
  ask.click();
  ASSERT_TRUE(wait_until([&] { return !cancel.isVisible(); }, 120000));
  EXPECT_EQ(message.text(), "");
  EXPECT_EQ(part<QTableWidget>(page, "scores").rowCount(), 3);
}

}  // namespace
}  // namespace ferry::gui
