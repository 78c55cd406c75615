// The texts of a run in the app: sample by sample, lengths, the first batch, and what is wrong.

#include "gui/widgets/data/data_preview.h"

#include <gtest/gtest.h>

#include <QtWidgets>

#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "gui/widgets/charts/length_chart.h"
#include "gui/widgets/data/token_view.h"
#include "gui/widgets/notice.h"
#include "src/config/models/models.h"
#include "tests/files/test_files.h"
#include "tests/gui/waiting.h"
#include "tests/request/settings.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

class DataPreviews : public testing::Test {
 protected:
  DataPreviews() {
    ferry::test::write_tiny_model(directory_ / "model");
    view_.resize(1180, 780);
    QObject::connect(&view_, &DataPreview::shown, &view_, [this] { ++n_shown_; });
  }
  config::Config settings(const std::filesystem::path& data, const Settings& more = {}) const {
    Settings all = {{"model", (directory_ / "model").string()},
                    {"dataset", data.string()},
                    {"token_cache", "off"}};
    all.insert(all.end(), more.begin(), more.end());
    return config_of(all);
  }
  void read(const config::Config& config) {
    view_.set_settings(config);
    ASSERT_TRUE(wait_until([&] { return !view_.is_reading(); }));
  }
  QString text_of(const char* name) {
    const auto* label = view_.findChild<QLabel*>(name);
    EXPECT_TRUE(label) << name;
    return label ? label->text() : QString();
  }
  template <typename T>
  T* find(const char* name) {
    T* const found = view_.findChild<T*>(name);
    EXPECT_TRUE(found) << name;
    return found;
  }
  /** The words of a view that are underlined. */
  QStringList underlined(const char* name) {
    QStringList all;
    const QTextDocument* document = find<TokenView>(name)->document();
    for (QTextBlock block = document->begin(); block.isValid(); block = block.next())
      for (auto it = block.begin(); !it.atEnd(); ++it)
        if (it.fragment().charFormat().fontUnderline()) {
          EXPECT_NE(it.fragment().charFormat().background().style(), Qt::NoBrush)
              << "highlighted, too";
          all << it.fragment().text();
        }
    return all;
  }
  ferry::test::TempDir directory_;
  DataPreview view_;
  int n_shown_ = 0;
};

TEST_F(DataPreviews, GoesFromTextToTextByButtonsAndKeys) {
  ferry::test::write_tiny_data(directory_ / "x.tsv", 40, 3);
  read(settings(directory_ / "x.tsv"));
  ASSERT_TRUE(view_.preview());
  EXPECT_TRUE(view_.preview()->is_of_all);
  EXPECT_FALSE(find<QPushButton>("preview_previous")->isEnabled());
  EXPECT_TRUE(text_of("preview_place").startsWith("Text 1 of"));
  find<QPushButton>("preview_next")->click();
  EXPECT_TRUE(text_of("preview_place").startsWith("Text 2 of"));
  const auto& sample = view_.preview()->samples[1];
  EXPECT_TRUE(text_of("preview_learnt").contains(to_text(sample.answer)));
  EXPECT_TRUE(find<TokenView>("preview_text")->toPlainText().contains(to_text(sample.text)));
  EXPECT_TRUE(find<TokenView>("preview_tokens")->toPlainText().startsWith("[CLS]"));
  EXPECT_EQ(find<QTableWidget>("preview_fields")->item(0, 1)->text(), to_text(sample.text));
  QStringList keys;
  for (const QShortcut* shortcut : view_.findChildren<QShortcut*>())
    keys << shortcut->key().toString();
  keys.sort();
  EXPECT_EQ(keys, (QStringList{"PgDown", "PgUp"}));
  for (int i = 0; i < 100; ++i)
    find<QPushButton>("preview_next")->click();
  EXPECT_TRUE(text_of("preview_place").startsWith("Text 40 of"));
}

TEST_F(DataPreviews, WhatIsTrainedOnIsHighlightedAndUnderlined) {
  const auto data = directory_.write(
      "x.jsonl", R"({"tokens": ["red", "bird", "was"], "ner_tags": ["B", "I", "O"]})"
                 "\n");
  read(settings(data, {{"task", "ner"}}));
  EXPECT_EQ(underlined("preview_tokens"), (QStringList{"red", "bird", "was"}));
  EXPECT_EQ(underlined("preview_text"), (QStringList{"red", "bird", "was"}));
  EXPECT_TRUE(find<TokenView>("preview_tokens")->toPlainText().contains("red \u2192 B"));
}

TEST_F(DataPreviews, CountsLengthsAndShowsTheFirstBatch) {
  ferry::test::write_tiny_data(directory_ / "x.tsv", 60, 3);
  read(settings(directory_ / "x.tsv", {{"max_length", "6"}, {"train_batch_size", "16"}}));
  const auto& numbers = view_.preview()->numbers;
  EXPECT_GT(numbers.n_truncated, 0);
  EXPECT_TRUE(text_of("preview_numbers").contains(QString::number(numbers.n_truncated)));
  EXPECT_TRUE(text_of("preview_numbers").contains("\u26A0"));
  EXPECT_EQ(find<QTableWidget>("preview_batch")->rowCount(), 16);
  auto* chart = find<LengthChart>("preview_lengths");
  EXPECT_TRUE(chart->accessibleDescription().contains("60 texts"));
  QFocusEvent in(QEvent::FocusIn);
  QApplication::sendEvent(chart, &in);
  for (int i = 0; i < 10; ++i) {
    QKeyEvent right(QEvent::KeyPress, Qt::Key_Right, Qt::NoModifier);
    QApplication::sendEvent(chart, &right);
  }
  // The chart shows the lengths before the cut: who looks sees which max_length would do.
  ASSERT_TRUE(wait_until([&] { return !view_.is_reading(); }));
  EXPECT_TRUE(text_of("preview_numbers").contains("Before they are cut"))
      << text_of("preview_numbers").toStdString();
  EXPECT_TRUE(text_of("preview_numbers").contains("that holds 95 % of them whole: "));
  EXPECT_FALSE(chart->accessibleDescription().contains("the longest of 6 tokens"))
      << chart->accessibleDescription().toStdString();
}

TEST_F(DataPreviews, SaysWhichLongestTextWouldDo) {
  // 100 texts: 94 of 3 tokens with the ends, 4 of 4, 1 of 6 and 1 of 8.
  std::string rows = "text\tlabel\n";
  const auto add = [&](int n_texts, int n_words) {
    for (int i = 0; i < n_texts; ++i) {
      for (int w = 0; w < n_words; ++w)
        rows += w > 0 ? " red" : "red";
      rows += i % 2 ? "\ta\n" : "\tb\n";
    }
  };
  add(94, 1);
  add(4, 2);
  add(1, 4);
  add(1, 6);
  const auto file = directory_.write("x.tsv", rows);
  for (const char* max_length : {"5", "20"}) {
    read(settings(file, {{"max_length", max_length}}));
    ASSERT_TRUE(wait_until([&] { return !view_.is_reading(); }));
    EXPECT_TRUE(
        text_of("preview_numbers").contains("that holds 95 % of them whole: 4; 99 %: 6; all: 8."))
        << max_length << ": " << text_of("preview_numbers").toStdString();
  }
}

TEST_F(DataPreviews, CountsTheLabelsMostFirst) {
  QByteArray rows = "text\tlabel\n";
  for (int n = 0; n < 12; ++n)
    rows += n % 4 ? "the red bird\tbirds\n" : "the old car\tcars\n";
  read(settings(directory_.write("x.tsv", rows.toStdString())));
  auto* labels = find<QTableWidget>("preview_label_counts");
  ASSERT_EQ(labels->rowCount(), 2);
  EXPECT_EQ(labels->item(0, 0)->text(), "birds");
  EXPECT_EQ(labels->item(0, 1)->text().toStdString(), "9 (75.0 %)");
  EXPECT_EQ(labels->item(1, 1)->text().toStdString(), "3 (25.0 %)");
}

TEST_F(DataPreviews, FaultsAreSaidInline) {
  const auto data = directory_.write("x.tsv", "headline\ttopic\nred car\ta\nblue\tb\n");
  read(settings(data, {{"text_column", "sentence"}}));
  EXPECT_FALSE(view_.preview());
  EXPECT_TRUE(text_of("preview_error").contains("headline")) << "what the file has";
  read(config_of({{"model", (directory_ / "model").string()}}));
  EXPECT_TRUE(text_of("preview_error").contains("no data"));
  read(settings("/no/such.tsv"));
  EXPECT_TRUE(text_of("preview_error").contains("/no/such.tsv"));
  read(settings(data, {{"text_column", "headline"}}));
  EXPECT_TRUE(view_.preview());
  EXPECT_FALSE(find<QLabel>("preview_error")->isVisibleTo(&view_));
}

/** The first texts are shown, and what is wrong further down the file is said beside them. */
TEST_F(DataPreviews, AFaultFurtherDownStandsBesideTheFirstTexts) {
  std::string rows;
  for (int i = 0; i < 300; ++i)
    rows += "{\"text\": \"the red bird\"}\n";
  read(settings(directory_.write("x.jsonl", rows + "{\"text\": 5}\n"), {{"task", "mlm"}}));
  ASSERT_TRUE(view_.preview());
  EXPECT_FALSE(view_.preview()->is_of_all);
  EXPECT_EQ(view_.preview()->samples.size(), 200u);
  EXPECT_TRUE(find<TokenView>("preview_text")->toPlainText().contains("the red bird"));
  EXPECT_TRUE(find<QLabel>("preview_error")->isVisibleTo(&view_));
  EXPECT_TRUE(text_of("preview_error").contains("x.jsonl:301"))
      << text_of("preview_error").toStdString();
  EXPECT_FALSE(find<QTabWidget>("preview_tabs")->isTabEnabled(2)) << "there is no first batch";
  read(settings(directory_.write("x.jsonl", rows), {{"task", "mlm"}}));
  EXPECT_TRUE(view_.preview()->is_of_all);
  EXPECT_FALSE(find<QLabel>("preview_error")->isVisibleTo(&view_));
}

/** Chats in which answers are empty, and most are there before. */
std::string chats_with_faults() {
  std::string rows;
  for (int i = 0; i < 40; ++i) {
    const char* const answer = i % 8 == 3 ? "" : i % 2 ? "red house" : "old car";
    rows += R"({"messages": [{"role": "system", "content": "the bird"},)"
            R"( {"role": "user", "content": "the old house"}, {"role": "assistant", "content": ")" +
            std::string(answer) +
            R"("}, {"role": "user", "content": "a bird"},)"
            R"( {"role": "assistant", "content": "the red car"}]})"
            "\n";
  }
  return rows;
}

TEST_F(DataPreviews, AChatsAnswersAreMarkedAndItsFaultsStandAboveTheTabs) {
  ferry::test::write_tiny_chat_model(directory_ / "chat");
  const auto data = directory_.write("chats.jsonl", chats_with_faults());
  const Settings chat = {{"model", (directory_ / "chat").string()}, {"task", "causal-lm"}};
  read(settings(data, chat));
  ASSERT_TRUE(view_.preview() && view_.preview()->is_of_all);
  const QString marked = underlined("preview_text").join('|');
  EXPECT_TRUE(marked.contains("old car") && marked.contains("the red car"))
      << marked.toStdString() << marked.toStdString();
  EXPECT_FALSE(marked.contains("house") || marked.contains("bird")) << marked.toStdString();
  // The row is its turns.
  const auto* fields = find<QTableWidget>("preview_fields");
  ASSERT_EQ(fields->rowCount(), 5);
  EXPECT_EQ(fields->item(0, 0)->text() + ": " + fields->item(0, 1)->text(), "system: the bird");
  EXPECT_EQ(fields->item(2, 0)->text() + ": " + fields->item(2, 1)->text(), "assistant: old car");
  const auto* findings = find<QWidget>("preview_findings");
  EXPECT_TRUE(findings->isVisibleTo(&view_));
  const auto notices = findings->findChildren<Notice*>();
  ASSERT_EQ(static_cast<size_t>(notices.size()), view_.preview()->findings.size());
  QStringList said;
  for (const Notice* notice : notices)
    said << notice->text();
  EXPECT_TRUE(said.join('|').contains("answers are empty")) << said.join('|').toStdString();
  EXPECT_TRUE(said.join('|').contains("are there before")) << said.join('|').toStdString();
  // Data without faults have no list.
  read(settings(
      directory_.write("one.jsonl", R"({"messages": [{"role": "user", "content": "a bird"},)"
                                    R"( {"role": "assistant", "content": "red car"}]})"
                                    "\n"),
      chat));
  EXPECT_FALSE(findings->isVisibleTo(&view_)) << said.join('|').toStdString();
}

TEST_F(DataPreviews, AQuestionThatIsTooLongIsLeftOut) {
  std::string rows;
  for (int i = 0; i < 300; ++i)
    rows +=
        R"({"question": "old car", "context": "the red car", "answers": {"text": ["red"], "answer_start": [4]}})"
        "\n";
  std::string long_question = "red";
  for (int i = 0; i < 40; ++i)
    long_question += " red";
  rows += R"({"question": ")" + long_question +
          R"(", "context": "the red car", "answers": {"text": ["red"], "answer_start": [4]}})"
          "\n";
  const auto data = directory_.write("x.jsonl", rows);
  read(settings(data, {{"task", "qa"}}));
  ASSERT_TRUE(view_.preview());
  EXPECT_TRUE(view_.preview()->is_of_all);
  EXPECT_FALSE(find<QLabel>("preview_error")->isVisibleTo(&view_));
  EXPECT_TRUE(find<QTabWidget>("preview_tabs")->isTabEnabled(2));
}

TEST_F(DataPreviews, OtherSettingsAreNoNewQuestionAndTheLatestWins) {
  ferry::test::write_tiny_data(directory_ / "x.tsv", 40, 3);
  read(settings(directory_ / "x.tsv"));
  const int n = n_shown_;
  view_.set_settings(settings(directory_ / "x.tsv", {{"learning_rate", "3e-5"}}));
  EXPECT_FALSE(view_.is_reading());
  for (const char* length : {"8", "10", "12"})
    view_.set_settings(settings(directory_ / "x.tsv", {{"max_length", length}}));
  ASSERT_TRUE(wait_until([&] { return !view_.is_reading(); }));
  EXPECT_EQ(view_.preview()->max_length, 12);
  EXPECT_LE(n_shown_ - n, 2) << "nobody waits for the others";
}

TEST_F(DataPreviews, NothingWaitsWhileLargeDataAreRead) {
  ferry::test::write_tiny_data(directory_ / "x.tsv", 100000, 3);
  view_.show();
  view_.set_settings(settings(directory_ / "x.tsv", {{"train_batch_size", "256"}}));
  const Turns turns = turns_until([&] { return !view_.is_reading(); });
  EXPECT_GT(turns.n, 10) << "the window is held up";
  tell_time("the longest turn while data are read", turns.longest_ms, 100);
  ASSERT_TRUE(view_.preview() && view_.preview()->is_of_all);
  EXPECT_EQ(view_.preview()->numbers.n_sequences, 100000);
}

TEST_F(DataPreviews, Pictures) {
  const QByteArray directory = qgetenv("FERRY_PICTURES");
  if (directory.isEmpty()) GTEST_SKIP() << "FERRY_PICTURES names no directory";
  std::string rows = "text\tlabel\n";
  const char* kTopics[] = {"business", "sport", "politics"};
  for (int i = 0; i < 400; ++i) {
    rows += "Shares of the company fell on Monday after the board said that profits would be lower";
    for (int j = 0; j < i * 37 % 90; ++j)
      rows += j % 2 ? " and the match went on" : " until the Chancellor spoke";
    rows += std::string("\t") + kTopics[i % 3] + "\n";
  }
  directory_.write("news.tsv", rows);
  directory_.write(
      "ner.jsonl",
      R"({"tokens": ["Angela", "Merkel", "visited", "Wolfsburg", "."], "ner_tags": ["B-PER", "I-PER", "O", "B-LOC", "O"]})"
      "\n");
  bool has_model = true;
  try {
    config::find_model("all-MiniLM-L6-v2");
  } catch (const Error&) {
    has_model = false;
  }
  ferry::test::write_tiny_chat_model(directory_ / "chat");
  directory_.write("chats.jsonl", chats_with_faults());
  for (const auto theme : {Theme::light, Theme::dark}) {
    apply_theme(theme);
    read(settings(directory_ / "chats.jsonl",
                  {{"model", (directory_ / "chat").string()}, {"task", "causal-lm"}}));
    find<QTabWidget>("preview_tabs")->setCurrentIndex(0);
    view_.setAutoFillBackground(true);
    view_.grab();
    view_.grab().save(QString("%1/preview_%2_chats.png")
                          .arg(QString(directory), theme == Theme::light ? "light" : "dark"));
    for (const bool is_ner : {false, true}) {
      Settings more = {{"max_length", is_ner ? "32" : "128"}};
      if (!has_model) more = {};
      if (has_model) more.push_back({"model", "all-MiniLM-L6-v2"});
      if (is_ner) more.push_back({"task", "ner"});
      read(settings(directory_ / (is_ner ? "ner.jsonl" : "news.tsv"), more));
      view_.layout()->setContentsMargins(16, 16, 16, 16);
      view_.setAutoFillBackground(true);
      for (int tab = 0; tab < (is_ner ? 1 : 3); ++tab) {
        find<QTabWidget>("preview_tabs")->setCurrentIndex(tab);
        for (int i = 0; i < 5 && !is_ner; ++i)
          find<QPushButton>("preview_next")->click();
        view_.grab();
        view_.grab().save(QString("%1/preview_%2_%3_%4.png")
                              .arg(QString(directory), theme == Theme::light ? "light" : "dark",
                                   is_ner ? "ner" : "news")
                              .arg(tab));
      }
    }
  }
  apply_theme(Theme::light);
}

}  // namespace
}  // namespace ferry::gui
