#include "gui/pages/start/start_page.h"

#include <QAbstractButton>
#include <QComboBox>
#include <QDropEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "tests/files/hub/fake_hub.h"
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
  auto& wrong = part<ErrorLabel>(page, "data_trouble");
  ASSERT_TRUE(wait_until([&] { return wrong.isVisible(); }));
  EXPECT_TRUE(wrong.error().contains("none.tsv")) << wrong.error().toStdString();
  EXPECT_EQ(trouble.text(), "") << "said once, beside the data";
}

/** A hub on loopback that has a small language model. */
struct HubWithModel {
  HubWithModel() { test::write_tiny_language_model(hub.root() / "models/tiny-org/story/main"); }

  test::FakeHub& hub = test::FakeHub::fresh();
  const WithVariable endpoint{"HF_ENDPOINT", hub.url().c_str()};
  const WithVariable offline{"HF_HUB_OFFLINE", "0"};
};

TEST_F(Start, WithoutALanguageModelItDownloadsOne) {
  const HubWithModel source;
  source.hub.set_rules({{{"in", "model.safetensors"}, {"status", 503}}});  // tried again and again
  show_page(page);
  part<QAbstractButton>(page, "card_go_on").click();
  auto& name = part<QLineEdit>(page, "hub_name");
  auto& words = part<QLabel>(page, "hub_words");
  auto& act = part<QPushButton>(page, "hub_act");
  auto& cancel = part<QPushButton>(page, "hub_cancel");
  ASSERT_TRUE(wait_until([&] { return name.isVisible() && !name.text().isEmpty(); }));
  EXPECT_FALSE(start.isEnabled());
  name.selectAll();
  QTest::keyClicks(&name, "tiny-org/story");
  act.click();
  ASSERT_TRUE(wait_until([&] { return words.text().contains(" free"); }))
      << words.text().toStdString();
  EXPECT_TRUE(words.text().contains("in 1 file")) << words.text().toStdString();
  picture(page, "start_no_model");
  act.click();
  auto& bar = part<QProgressBar>(page, "hub_progress");
  ASSERT_TRUE(wait_until([&] { return bar.isVisible(); }));
  EXPECT_FALSE(act.isVisible());
  picture(page, "start_download");
  cancel.click();
  EXPECT_FALSE(bar.isVisible());
  EXPECT_TRUE(act.isVisible());
  EXPECT_LT(model.findText("story", Qt::MatchContains), 0);
  source.hub.set_rules(nlohmann::json::array());
  act.click();
  ASSERT_TRUE(wait_until([&] { return model.currentText().contains("story"); }, 60000))
      << part<ErrorLabel>(page, "hub_trouble").error().toStdString();
  EXPECT_FALSE(name.isVisible());
}

TEST_F(Start, ADownloadThatFailsSaysWhyAndIsTriedAgain) {
  const HubWithModel source;
  show_page(page);
  part<QAbstractButton>(page, "wants_fetch").click();
  auto& name = part<QLineEdit>(page, "hub_name");
  ASSERT_TRUE(name.isVisible());
  name.selectAll();
  QTest::keyClicks(&name, "tiny-org/none");
  auto& act = part<QPushButton>(page, "hub_act");
  act.click();
  auto& wrong = part<ErrorLabel>(page, "hub_trouble");
  ASSERT_TRUE(wait_until([&] { return wrong.isVisible(); }));
  EXPECT_TRUE(wrong.error().contains("tiny-org/none")) << wrong.error().toStdString();
  test::write_tiny_model(source.hub.root() / "models/tiny-org/none/main");
  act.click();
  ASSERT_TRUE(wait_until([&] { return !wrong.isVisible() && act.isVisible(); }));
  act.click();
  ASSERT_TRUE(wait_until([&] { return model.currentText().contains("none"); }, 60000));
  EXPECT_TRUE(wait_for_plan());
  EXPECT_EQ(trouble.text(), "");
}

TEST_F(Start, TakesADroppedModelAndDroppedData) {
  test::write_tiny_model(surroundings.home / "elsewhere/dropped-bert");
  show_page(page);
  ASSERT_TRUE(wait_for_plan());
  const auto drop = [&](const std::filesystem::path& path) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(path_text(path))});
    QDragEnterEvent enter(QPoint(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&page, &enter);
    EXPECT_TRUE(enter.isAccepted());
    QDropEvent event(QPointF(5, 5), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(&page, &event);
  };
  drop(surroundings.home / "elsewhere/dropped-bert");
  EXPECT_EQ(model.currentText(), "dropped-bert");
  drop(surroundings.home / "data.tsv");
  EXPECT_TRUE(part<QAbstractButton>(page, "card_own_data").isChecked());
  ASSERT_TRUE(wait_until([&] { return model.findText("dropped-bert") >= 0; }));
  EXPECT_TRUE(part<QLabel>(page, "data").text().endsWith("data.tsv"));
}

TEST_F(Start, ColumnsWithOtherNamesAreChosen) {
  QByteArray rows = "complaint,department\n";
  for (int n = 0; n < 40; ++n)
    rows += n % 2 ? "the old car was near the house,cars\n" : "the bird is very red,birds\n";
  write_file(surroundings.home / "odd.csv", rows);
  show_page(page);
  part<QAbstractButton>(page, "card_own_data").click();
  ASSERT_TRUE(wait_until([&] { return model.findText("tiny-bert") >= 0; }));
  model.setCurrentIndex(model.findText("tiny-bert"));
  page.set_data(surroundings.home / "odd.csv");
  auto& text = part<QComboBox>(page, "field_text_column");
  auto& label = part<QComboBox>(page, "field_label_column");
  ASSERT_TRUE(wait_until([&] { return text.isVisible(); }));
  const auto choose = [](QComboBox& combo, const QString& name) {
    combo.setCurrentIndex(combo.findText(name));
    emit combo.activated(combo.currentIndex());
  };
  choose(text, "complaint");
  choose(label, "department");
  EXPECT_TRUE(wait_until([&] { return start.isEnabled(); }))
      << part<ErrorLabel>(page, "data_trouble").error().toStdString()
      << trouble.text().toStdString();
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
  EXPECT_TRUE(message.text().contains("It is full")) << message.text().toStdString();
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
