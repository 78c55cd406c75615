// Chats on the page Try it, by events: against the real program, and against one that plays its
// server for what a small model is too quick for.

#include "gui/pages/try_it/chat_panel.h"

#include <QCheckBox>
#include <QClipboard>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTabBar>
#include <QTest>
#include <QTextEdit>

#include "gui/models/process/ferry_process.h"
#include "gui/pages/try_it/try_it_page.h"
#include "gui/widgets/notice.h"
#include "tests/gui/pages/page_test.h"
#include "tests/gui/run_files.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

constexpr int kPatience_ms = 120000;

class ChatTest : public testing::Test {
 protected:
  const std::filesystem::path& home() const { return surroundings.home.path(); }
  void show(const std::filesystem::path& model) {
    show_page(page);
    page.show_run(model);
    ASSERT_TRUE(wait_until([&] { return !page.form().directory.empty(); }));
    ASSERT_TRUE(wait_until([&] { return page.is_chat(); })) << page.form().trouble.toStdString();
  }
  void send(const QString& message) {
    QTest::keyClicks(&input, message);
    QTest::keyClick(&input, Qt::Key_Return);
  }
  bool wait_for_answer() {
    return wait_until([&] { return !stop.isVisible(); }, kPatience_ms);
  }
  bool has_said(const QTextEdit& text, const QString& words) {
    return wait_until([&] { return text.toPlainText().contains(words); }, kPatience_ms);
  }
  /** A program that plays `ferry serve`. */
  QByteArray slow_server() const {
    return "exec ${FERRY_TEST_PYTHON:-python3} " FERRY_SOURCE_ROOT
           "/tests/gui/pages/slow_server.py " +
           QByteArray::fromStdString(home().string()) + " \"$@\"\n";
  }
  QStringList log() const {
    QFile file(path_text(home() / "log"));
    return file.open(QIODevice::ReadOnly)
               ? QString::fromUtf8(file.readAll()).split('\n', Qt::SkipEmptyParts)
               : QStringList();
  }
  /** A model that was tuned from another one; the played server reads no weights. */
  void write_tuned_run() {
    test::write_tiny_chat_model(home() / "origin");
    make_run(home() / "runs/tuned");
    test::write_tiny_chat_model(home() / "runs/tuned/final");
    write_file(home() / "runs/tuned/config.toml",
               "task = \"causal-lm\"\nmodel_name_or_path = \"" +
                   QByteArray::fromStdString((home() / "origin").string()) + "\"\n");
  }

  PageHome surroundings;
  TryItPage page{surroundings.shared};
  QPlainTextEdit& input = part<QPlainTextEdit>(page, "chat_input");
  QPushButton& stop = part<QPushButton>(page, "chat_stop");
  QPushButton& again = part<QPushButton>(page, "chat_again");
  QPushButton& reset = part<QPushButton>(page, "chat_reset");
  QCheckBox& compare = part<QCheckBox>(page, "chat_compare");
  QTextEdit& tuned = part<QTextEdit>(page, "chat_text_tuned");
  QTextEdit& base = part<QTextEdit>(page, "chat_text_base");
  QLabel& doing = part<QLabel>(page, "chat_doing_tuned");
  ChatPanel& panel = *page.findChild<ChatPanel*>();
};

// --- The real program --------------------------------------------------------------------------

TEST_F(ChatTest, ARealModelAnswersInTurns) {
  NEEDS_TRAINER();
  test::write_tiny_chat_model(home() / "model");
  show(home() / "model");
  EXPECT_FALSE(compare.isEnabled());  // nobody knows what it was trained from
  part<QSpinBox>(page, "chat_length").setValue(6);
  part<QDoubleSpinBox>(page, "chat_temperature").setValue(0);
  part<QLineEdit>(page, "chat_system").setText("old car");
  EXPECT_EQ(doing.text(), "Loaded with the next message");
  send("the red house");
  EXPECT_TRUE(input.toPlainText().isEmpty());
  EXPECT_TRUE(stop.isVisible());
  ASSERT_TRUE(wait_for_answer());
  EXPECT_EQ(part<Notice>(page, "chat_message_tuned").text(), "");
  const auto& exchanges = panel.chats().tuned().exchanges();
  ASSERT_EQ(exchanges.size(), 1u);
  const QString first = exchanges[0].answer;
  EXPECT_FALSE(first.isEmpty() && exchanges[0].note.isEmpty());
  EXPECT_TRUE(tuned.toPlainText().startsWith("You\nthe red house\nModel\n"));
  EXPECT_EQ(doing.text(), "Loaded");
  // The likeliest words are the same each time.
  again.click();
  ASSERT_TRUE(wait_for_answer());
  ASSERT_EQ(exchanges.size(), 1u);
  EXPECT_EQ(exchanges[0].answer, first);
  send("a bird");
  ASSERT_TRUE(wait_for_answer());
  ASSERT_EQ(exchanges.size(), 2u);
  EXPECT_TRUE(tuned.toPlainText().contains("a bird"));
  picture(page, "try_it_chat");
  reset.click();
  EXPECT_TRUE(tuned.toPlainText().isEmpty());
  EXPECT_FALSE(again.isEnabled());
  EXPECT_EQ(doing.text(), "Loaded");
  page.set_active(false);  // its memory is for others then
  EXPECT_EQ(doing.text(), "Loaded with the next message");
}

TEST_F(ChatTest, TheRealBaseOfAnAdapterAnswersBesideIt) {
  NEEDS_TRAINER();
  test::write_tiny_chat_model(home() / "origin");
  std::string chats;
  for (int i = 0; i < 16; ++i)
    chats += R"({"messages": [{"role": "user", "content": "the old car"},)"
             R"( {"role": "assistant", "content": "red house"}]})"
             "\n";
  write_file(home() / "chats.jsonl", QByteArray::fromStdString(chats));
  FerryProcess training;
  QString trouble;
  bool is_over = false;
  QObject::connect(&training, &FerryProcess::finished, [&] { is_over = true; });
  QObject::connect(&training, &FerryProcess::failed, [&](const QString& said) {
    trouble = said;
    is_over = true;
  });
  training.start({"train", "--model=" + path_text(home() / "origin"),
                  "--dataset=" + path_text(home() / "chats.jsonl"), "--task=causal-lm",
                  "--tuning=lora", "--learning-rate=0.05", "--device=cpu", "--max-steps=30",
                  "--output-dir=" + path_text(home() / "runs/tuned")},
                 FerryProcess::Output::text);
  ASSERT_TRUE(wait_until([&] { return is_over; }, kPatience_ms));
  ASSERT_EQ(trouble, "");
  show(home() / "runs/tuned");
  EXPECT_FALSE(base.isVisible());
  ASSERT_TRUE(compare.isEnabled());
  compare.click();
  EXPECT_TRUE(base.isVisible());
  EXPECT_EQ(part<QLabel>(page, "chat_title_base").text(), "Base: origin");
  part<QSpinBox>(page, "chat_length").setValue(6);
  part<QDoubleSpinBox>(page, "chat_temperature").setValue(0);
  send("the old car");
  ASSERT_TRUE(wait_for_answer());
  EXPECT_EQ(part<Notice>(page, "chat_message_tuned").text(), "");
  EXPECT_EQ(part<Notice>(page, "chat_message_base").text(), "");
  const auto& of_tuned = panel.chats().tuned().exchanges();
  const auto& of_base = panel.chats().base().exchanges();
  ASSERT_EQ(of_tuned.size(), 1u);
  ASSERT_EQ(of_base.size(), 1u);
  EXPECT_TRUE(of_tuned[0].answer.contains("house")) << of_tuned[0].answer.toStdString();
  EXPECT_NE(of_tuned[0].answer, of_base[0].answer);
  picture(page, "try_it_side_by_side");
}

// --- What takes time ---------------------------------------------------------------------------

TEST_F(ChatTest, StopEndsTheAnswerAndKeepsWhatCame) {
  test::write_tiny_chat_model(home() / "model");
  PlayedFerry ferry(surroundings.home, slow_server());
  show(home() / "model");
  send("slow please");
  ASSERT_TRUE(has_said(tuned, "word word"));
  EXPECT_EQ(doing.text(), "The model answers...");
  EXPECT_FALSE(again.isVisible());
  picture(page, "try_it_chat_streams");
  page.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&page));
  QTest::keyClick(&input, Qt::Key_Escape);
  ASSERT_TRUE(wait_for_answer());
  EXPECT_TRUE(tuned.toPlainText().endsWith("Stopped."));
  EXPECT_TRUE(wait_until([&] { return log().contains("unheard"); }));
  // Words that came are told to the model with the next message.
  send("go on");
  ASSERT_TRUE(wait_for_answer());
  EXPECT_TRUE(tuned.toPlainText().endsWith("3 messages: user,assistant,user"))
      << tuned.toPlainText().toStdString();
  EXPECT_EQ(log().count("loaded model"), 1) << log().join('|').toStdString();
}

TEST_F(ChatTest, WhatTheContextHasNoRoomForIsLeftOutAndSaid) {
  test::write_tiny_chat_model(home() / "model");
  PlayedFerry ferry(surroundings.home, slow_server());
  show(home() / "model");
  for (const char* message : {"one", "two", "three"}) {
    send(message);
    ASSERT_TRUE(wait_for_answer());
  }
  EXPECT_EQ(panel.chats().tuned().exchanges().back().answer, "3 messages: user,assistant,user");
  EXPECT_TRUE(tuned.toPlainText().contains("no room for the first"))
      << tuned.toPlainText().toStdString();
  part<QSpinBox>(page, "chat_length").setValue(2);
  again.click();
  ASSERT_TRUE(wait_for_answer());
  EXPECT_TRUE(tuned.toPlainText().contains("Cut here")) << tuned.toPlainText().toStdString();
}

TEST_F(ChatTest, ARefusedMessageIsToldBesideItsModelAndForgotten) {
  test::write_tiny_chat_model(home() / "model");
  PlayedFerry ferry(surroundings.home, slow_server());
  show(home() / "model");
  send("refused");
  ASSERT_TRUE(wait_for_answer());
  auto& message = part<Notice>(page, "chat_message_tuned");
  EXPECT_EQ(message.text(), "The template refuses it");
  EXPECT_TRUE(message.isVisible());
  picture(page, "try_it_chat_refused");
  send("another");
  EXPECT_FALSE(message.isVisible());
  ASSERT_TRUE(wait_for_answer());
  EXPECT_TRUE(tuned.toPlainText().endsWith("1 messages: user"))
      << tuned.toPlainText().toStdString();
}

TEST_F(ChatTest, WhereMemoryHoldsOneModelTheyAnswerOneAfterTheOther) {
  write_tuned_run();
  write_file(home() / "one", "");
  PlayedFerry ferry(surroundings.home, slow_server());
  show(home() / "runs/tuned");
  EXPECT_EQ(page.form().base, home() / "origin");
  compare.click();
  auto& note = part<QLabel>(page, "chat_one_at_a_time");
  EXPECT_EQ(note.text(), "");
  send("hello");
  ASSERT_TRUE(wait_for_answer());
  EXPECT_TRUE(note.text().contains("one after the other"));
  for (const char* name : {"chat_message_tuned", "chat_message_base"})
    EXPECT_EQ(part<Notice>(page, name).text(), "");
  EXPECT_TRUE(tuned.toPlainText().endsWith("1 messages: user"));
  EXPECT_TRUE(base.toPlainText().endsWith("1 messages: user"));
  EXPECT_EQ(log(), QStringList({"loaded tuned", "no room origin", "loaded origin"}));
  // The model that is there answers first.
  send("and now?");
  ASSERT_TRUE(wait_for_answer());
  EXPECT_TRUE(tuned.toPlainText().endsWith("3 messages: user,assistant,user"));
  EXPECT_TRUE(base.toPlainText().endsWith("3 messages: user,assistant,user"));
  EXPECT_EQ(log().size(), 4) << log().join('|').toStdString();
  EXPECT_EQ(log().back(), "loaded tuned");
  picture(page, "try_it_one_after_the_other");
}

TEST_F(ChatTest, AComparisonBeginsWithWhatWasSaid) {
  write_tuned_run();
  PlayedFerry ferry(surroundings.home, slow_server());
  show(home() / "runs/tuned");
  send("first");
  ASSERT_TRUE(wait_for_answer());
  compare.click();
  EXPECT_EQ(base.toPlainText(), tuned.toPlainText());
  send("second");
  ASSERT_TRUE(wait_for_answer());
  EXPECT_TRUE(base.toPlainText().endsWith("3 messages: user,assistant,user"));
  compare.click();
  EXPECT_FALSE(base.isVisible());
  EXPECT_TRUE(panel.chats().base().exchanges().empty());
  EXPECT_TRUE(wait_until([&] { return !panel.chats().base().is_unloading(); }));
}

TEST_F(ChatTest, AModelThatDoesNotLoadIsSaidAndAnotherOneBeginsAnew) {
  test::write_tiny_chat_model(home() / "model");
  test::write_tiny_chat_model(home() / "other");
  show(home() / "model");
  {
    PlayedFerry ferry(surroundings.home, "echo 'ferry: [gpu] no room' >&2\nexit 3\n");
    send("hello");
    ASSERT_TRUE(wait_for_answer());
  }
  auto& message = part<Notice>(page, "chat_message_tuned");
  EXPECT_EQ(message.text(), "No room");
  PlayedFerry ferry(surroundings.home, slow_server());
  again.click();
  EXPECT_FALSE(message.isVisible());
  ASSERT_TRUE(wait_for_answer());
  EXPECT_EQ(panel.last_answer(), "1 messages: user");
  page.show_run(home() / "other");
  ASSERT_TRUE(wait_until([&] { return page.form().directory == home() / "other"; }));
  EXPECT_TRUE(tuned.toPlainText().isEmpty());
  EXPECT_EQ(doing.text(), "Loaded with the next message");
}

TEST_F(ChatTest, AChatModelContinuesTextsToo) {
  test::write_tiny_chat_model(home() / "model");
  show(home() / "model");
  auto& ways = part<QTabBar>(page, "ways");
  EXPECT_TRUE(input.isVisible());
  ways.setCurrentIndex(1);
  EXPECT_FALSE(page.is_chat() || input.isVisible());
  EXPECT_TRUE(part<QPlainTextEdit>(page, "text").isVisible());
  // A model without a template has no chat.
  test::write_tiny_language_model(home() / "plain");
  ways.setCurrentIndex(0);
  page.show_run(home() / "plain");
  ASSERT_TRUE(wait_until([&] { return page.form().directory == home() / "plain"; }));
  EXPECT_FALSE(ways.isVisible() || input.isVisible());
}

}  // namespace
}  // namespace ferry::gui
