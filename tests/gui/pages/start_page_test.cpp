#include "gui/pages/start/start_page.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>

#include "gui/widgets/notice.h"
#include "tests/gui/pages/page_test.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

class Start : public testing::Test {
 protected:
  Start() {
    test::write_tiny_model(surroundings.home / "models/tiny-bert");
    test::write_tiny_data(surroundings.home / "data.tsv", 40, 1);
  }
  bool wait_for_plan() {
    return wait_until([&] { return start.isEnabled() || trouble.isVisible(); }, 60000);
  }

  PageHome surroundings;
  // The page asks whether there is one; only a real run starts it.
  const bool has_trainer = !real_trainer().isEmpty();
  const WithVariable trainer{"FERRY_TRAINER",
                             has_trainer ? real_trainer() : QByteArray("/bin/true")};
  const WithVariable models{"FERRY_MODELS", (surroundings.home / "models").c_str()};
  StartPage page{surroundings.shared};
  QPushButton& start = part<QPushButton>(page, "start_button");
  Notice& trouble = part<Notice>(page, "plan_trouble");
  QLabel& verdict = part<QLabel>(page, "verdict");
  QComboBox& model = part<QComboBox>(page, "field_model");
};

TEST_F(Start, SaysWhatTheMachineIsAndThatTheRunFits) {
  EXPECT_FALSE(start.isEnabled());
  show_page(page);
  ASSERT_TRUE(wait_for_plan());
  EXPECT_EQ(trouble.text(), "");
  EXPECT_TRUE(verdict.text().startsWith("It ")) << verdict.text().toStdString();
  EXPECT_FALSE(part<QLabel>(page, "machine_memory").text().isEmpty());
  EXPECT_FALSE(part<QLabel>(page, "data").text().isEmpty());
  EXPECT_GE(model.findText("tiny-bert"), 0);
  picture(page, "start");
}

TEST_F(Start, OwnDataAreAskedForAndPlanned) {
  show_page(page);
  part<QAbstractButton>(page, "card_own_data").click();
  ASSERT_TRUE(wait_until([&] { return model.count() > 0 && model.isEnabled(); }));
  EXPECT_FALSE(start.isEnabled());
  picture(page, "start_own_data");
  model.setCurrentIndex(model.findText("tiny-bert"));
  page.set_data(surroundings.home / "data.tsv");
  ASSERT_TRUE(wait_for_plan());
  EXPECT_TRUE(start.isEnabled()) << trouble.text().toStdString();
  page.set_data(surroundings.home / "none.tsv");
  EXPECT_FALSE(start.isEnabled());
  ASSERT_TRUE(wait_until([&] { return trouble.isVisible(); }));
  EXPECT_TRUE(trouble.text().contains("none.tsv")) << trouble.text().toStdString();
}

TEST_F(Start, WithoutALanguageModelItSaysHowToGetOne) {
  show_page(page);
  part<QAbstractButton>(page, "card_go_on").click();
  ASSERT_TRUE(wait_until([&] { return trouble.isVisible(); }));
  EXPECT_TRUE(trouble.text().contains("hf download")) << trouble.text().toStdString();
  EXPECT_FALSE(start.isEnabled());
  picture(page, "start_no_model");
}

TEST_F(Start, ALanguageModelLearnsATextOfOnesOwn) {
  test::write_tiny_language_model(surroundings.home / "models/tiny-llama");
  QByteArray text;
  for (int n = 0; n < 400; ++n)
    text += "the old car was near the new house and the bird is very red ";
  write_file(surroundings.home / "mine.txt", text);
  show_page(page);
  part<QAbstractButton>(page, "card_go_on").click();
  ASSERT_TRUE(wait_until([&] { return model.findText("tiny-llama") >= 0; }));
  EXPECT_TRUE(part<QPushButton>(page, "choose_file").isVisible());
  page.set_data(surroundings.home / "mine.txt");
  EXPECT_TRUE(part<QLabel>(page, "data").text().endsWith("mine.txt"));
  ASSERT_TRUE(wait_for_plan());
  EXPECT_EQ(trouble.text(), "");
  EXPECT_TRUE(start.isEnabled());
  // Another choice has data of its own.
  part<QAbstractButton>(page, "card_classify").click();
  ASSERT_TRUE(wait_until([&] { return model.findText("tiny-bert") >= 0; }));
  EXPECT_FALSE(part<QLabel>(page, "data").text().endsWith("mine.txt"));
  EXPECT_FALSE(part<QPushButton>(page, "choose_file").isVisible());
}

TEST_F(Start, GoesToDoctorAndToAllSettings) {
  show_page(page);
  QSignalSpy pages(&surroundings.navigator, &Navigator::page_wanted);
  QSignalSpy new_runs(&surroundings.navigator, &Navigator::new_run_wanted);
  part<QPushButton>(page, "doctor_button").click();
  EXPECT_EQ(pages.count(), 1);
  ASSERT_TRUE(wait_for_plan());
  part<QPushButton>(page, "all_settings_button").click();
  EXPECT_EQ(new_runs.count(), 1);
}

TEST_F(Start, AStartThatFailsSaysWhyInThePage) {
  PlayedFerry ferry(surroundings.home, "echo 'ferry: [disk] it is full' >&2\nexit 5\n");
  show_page(page);
  ASSERT_TRUE(wait_for_plan());
  start.click();
  EXPECT_FALSE(start.isEnabled());
  auto& message = part<Notice>(page, "start_trouble");
  ASSERT_TRUE(wait_until([&] { return message.isVisible(); }));
  EXPECT_TRUE(message.text().contains("it is full")) << message.text().toStdString();
  EXPECT_TRUE(start.isEnabled());
  EXPECT_FALSE(surroundings.settings.has_seen_start());
}

TEST_F(Start, ThreeClicksStartARun) {
  if (!has_trainer) GTEST_SKIP() << "no ferry with a trainer: set FERRY to one";
  QSignalSpy live(&surroundings.navigator, &Navigator::live_wanted);
  show_page(page);
  part<QAbstractButton>(page, "card_own_data").click();
  ASSERT_TRUE(wait_until([&] { return model.findText("tiny-bert") >= 0; }));
  model.setCurrentIndex(model.findText("tiny-bert"));
  page.set_data(surroundings.home / "data.tsv");
  ASSERT_TRUE(wait_for_plan());
  start.click();
  start.click();
  ASSERT_TRUE(wait_until([&] { return live.count() > 0; }, 120000))
      << part<Notice>(page, "start_trouble").text().toStdString();
  EXPECT_TRUE(surroundings.settings.has_seen_start());
  const auto runs = std::filesystem::directory_iterator(surroundings.home / "runs");
  EXPECT_EQ(std::distance(begin(runs), end(runs)), 1);
  const auto run = live.front().front().value<std::filesystem::path>();
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(run / "final"); }, 120000));
}

}  // namespace
}  // namespace ferry::gui
