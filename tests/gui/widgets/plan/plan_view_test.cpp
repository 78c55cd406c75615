// The live memory plan: its controls ask for changes, its bars and words follow.

#include "gui/widgets/plan/plan_view.h"

#include <gtest/gtest.h>

#include <QtWidgets>

#include "gui/app/palette.h"
#include "gui/widgets/charts/stacked_bars.h"
#include "tests/files/test_files.h"
#include "tests/gui/waiting.h"
#include "tests/request/settings.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {
namespace {

config::Config large(const Settings& more = {}) {
  Settings all = {{"model", "bert-large-uncased"}, {"machine", "2080ti-11g"}};
  all.insert(all.end(), more.begin(), more.end());
  return config_of(all);
}

/** A view beside a form that does as it says. */
class PlanViews : public testing::Test {
 protected:
  PlanViews() {
    view_.resize(1180, 780);
    QObject::connect(&view_, &PlanView::change_wanted, &view_,
                     [this](const QString& key, const QString& value) {
                       wishes_ << key + "=" + value;
                       config_.set(key.toStdString(), value.toStdString(),
                                   {config::Source::command_line, "the form"});
                       view_.set_settings(config_);
                     });
  }
  void plan(const config::Config& config) {
    config_ = config;
    view_.set_settings(config);
    wait();
  }
  void wait() {
    ASSERT_TRUE(wait_until([&] { return !view_.is_planning(); }));
  }
  template <typename T>
  T* find(const char* name) {
    T* const found = view_.findChild<T*>(name);
    EXPECT_TRUE(found) << name;
    return found;
  }
  void press(QWidget* widget, int key) {
    QKeyEvent down(QEvent::KeyPress, key, Qt::NoModifier);
    QApplication::sendEvent(widget, &down);
  }
  config::Config config_;
  PlanView view_;
  QStringList wishes_;
};

TEST_F(PlanViews, WithoutAModelSayWhyThereIsNoPlan) {
  view_.show();
  view_.show_missing("Choose a model.");
  EXPECT_EQ(find<QLabel>("plan_verdict_word")->text(), "No plan yet");
  EXPECT_EQ(find<QLabel>("plan_why")->text(), "Choose a model.");
  EXPECT_TRUE(find<QLabel>("plan_why")->isVisible());
  for (auto* const box : view_.findChildren<QSpinBox*>())
    EXPECT_FALSE(box->isEnabled()) << box->objectName().toStdString();
  EXPECT_FALSE(find<QSlider>("plan_host_memory_slider")->isEnabled());
  plan(large());
  EXPECT_NE(find<QLabel>("plan_verdict_word")->text(), "No plan yet");
  for (auto* const box : view_.findChildren<QSpinBox*>())
    EXPECT_TRUE(box->isEnabled()) << box->objectName().toStdString();
}

TEST_F(PlanViews, SlidersFieldsAndCardPlanAgain) {
  plan(large());
  ASSERT_TRUE(view_.answer());
  const int64_t before = view_.answer()->request.gpu_budget_bytes;
  auto* slider = find<QSlider>("plan_gpu_memory_slider");
  EXPECT_EQ(slider->maximum(), 44) << "11 GiB in quarters";
  slider->setValue(16);
  EXPECT_EQ(wishes_, QStringList{"gpu_memory=4GiB"});
  wait();
  EXPECT_LT(view_.answer()->request.gpu_budget_bytes, before);
  EXPECT_EQ(find<QLineEdit>("plan_gpu_memory")->text(), "4GiB");

  wishes_.clear();
  auto* field = find<QLineEdit>("plan_host_memory");
  field->setText("20GiB");
  field->setModified(true);
  emit field->editingFinished();
  EXPECT_EQ(wishes_, QStringList{"host_memory=20GiB"});
  wait();
  EXPECT_EQ(find<QSlider>("plan_host_memory_slider")->value(), 80);

  wishes_.clear();
  find<QToolButton>("plan_gpu_memory_auto")->click();
  find<QSpinBox>("plan_batch")->setValue(8);
  find<QSpinBox>("plan_length")->setValue(256);
  EXPECT_EQ(wishes_, (QStringList{"gpu_memory=auto", "train_batch_size=8", "max_length=256"}));
  wait();
  EXPECT_EQ(view_.answer()->request.train_batch_size, 8);
  EXPECT_EQ(view_.answer()->request.max_length, 256);

  auto* card = find<QComboBox>("plan_card");
  card->setCurrentIndex(card->findData("h100-80g"));
  emit card->activated(card->currentIndex());
  wait();
  EXPECT_NE(view_.answer()->machine.name.find("h100-80g"), std::string::npos);
}

TEST_F(PlanViews, ADriveIsAThirdPlace) {
  plan(large({{"placement", "auto"}}));
  auto* path = find<QLineEdit>("plan_nvme_path");
  auto* space = find<QLineEdit>("plan_nvme_memory");
  EXPECT_FALSE(space->isEnabled()) << "it is space on a drive";
  const auto type = [](QLineEdit* field, const QString& text) {
    field->setText(text);
    field->setModified(true);
    emit field->editingFinished();
  };
  type(path, "/mnt/nvme");
  EXPECT_EQ(wishes_, QStringList{"nvme_path=/mnt/nvme"});
  wait();
  ASSERT_TRUE(view_.answer() && view_.answer()->nvme);
  EXPECT_TRUE(space->isEnabled());
  EXPECT_TRUE(view_.summary().contains("NVMe")) << view_.summary().toStdString();

  wishes_.clear();
  type(space, "much");
  EXPECT_TRUE(wishes_.isEmpty());
  EXPECT_TRUE(find<QLabel>("plan_field_error")->text().contains("much"));
  type(space, "400GiB");
  wait();
  EXPECT_EQ(view_.answer()->request.nvme_budget_bytes, 400ll << 30);
  EXPECT_EQ(space->text(), "400GiB");

  // Without a drive there is no space on one.
  wishes_.clear();
  type(path, "");
  EXPECT_EQ(wishes_, (QStringList{"nvme_memory=auto", "nvme_path="}));
  wait();
  ASSERT_TRUE(view_.answer());
  EXPECT_FALSE(view_.answer()->nvme);
}

TEST_F(PlanViews, AnAmountThatIsNoneIsSaidBesideTheField) {
  plan(large());
  auto* field = find<QLineEdit>("plan_gpu_memory");
  field->setText("much");
  field->setModified(true);
  emit field->editingFinished();
  EXPECT_TRUE(wishes_.isEmpty());
  EXPECT_TRUE(find<QLabel>("plan_field_error")->text().contains("“GPU memory: much”"))
      << "by the name of its field";
}

TEST_F(PlanViews, AChangeThatHelpsIsAButton) {
  plan(large({{"gpu_memory", "1500MiB"}, {"host_memory", "3GiB"}}));
  EXPECT_TRUE(find<QLabel>("plan_verdict_word")->text().startsWith("Does not fit"));
  EXPECT_TRUE(find<QLabel>("plan_why")->text().contains("largest"));
  auto* button = find<QPushButton>("plan_change_0");
  button->click();
  wait();
  EXPECT_TRUE(view_.answer()->fits()) << view_.summary().toStdString();
  EXPECT_FALSE(find<QLabel>("plan_verdict_word")->text().startsWith("Does not fit"));
}

TEST_F(PlanViews, AFaultIsSaidInPlaceOfBars) {
  plan(config_of({{"model", "/no/model"}}));
  EXPECT_FALSE(view_.answer());
  EXPECT_TRUE(find<QLabel>("plan_why")->text().contains("/no/model"));
  plan(large());
  EXPECT_TRUE(view_.answer());
}

TEST_F(PlanViews, BarsAreReadOutByKeysAndHaveNames) {
  plan(large());
  auto* bars = find<StackedBars>("plan_memory");
  bars->setFocus();
  QFocusEvent in(QEvent::FocusIn);
  QApplication::sendEvent(bars, &in);
  EXPECT_TRUE(bars->read_out().startsWith("GPU memory: weights")) << bars->read_out().toStdString();
  press(bars, Qt::Key_Down);
  press(bars, Qt::Key_Right);
  const QString said = bars->read_out();
  EXPECT_TRUE(said.startsWith("Host memory: ")) << said.toStdString();
  EXPECT_EQ(find<QLabel>("plan_read_out")->text(), said);
  EXPECT_TRUE(bars->accessibleDescription().contains("activations"));
  for (QWidget* widget : view_.findChildren<QWidget*>()) {
    const bool is_ours = widget->objectName().startsWith("plan_");
    if (!is_ours || widget->focusPolicy() == Qt::NoFocus || qobject_cast<QLabel*>(widget)) continue;
    EXPECT_FALSE(widget->accessibleName().isEmpty()) << widget->objectName().toStdString();
  }
  EXPECT_TRUE(view_.summary().contains("GPU memory")) << view_.summary().toStdString();
}

TEST_F(PlanViews, TheWindowTurnsWhileAPlanIsMade) {
  plan(large({{"gpu_memory", "3GiB"}}));
  view_.grab();
  constexpr int kTimes = 20;
  const double begin = cpu_ms();
  for (int i = 0; i < kTimes; ++i)
    find<StackedBars>("plan_memory")->grab();
  const double each = (cpu_ms() - begin) / kTimes;
  tell_time("bars are drawn", each, 16);
  config_ = large({{"gpu_memory", "5GiB"}});
  view_.set_settings(config_);
  const Turns turns = turns_until([&] { return !view_.is_planning(); });
  EXPECT_GT(turns.n, 1) << "the window waits for the plan";
  EXPECT_FALSE(view_.is_planning());
  tell_time("the longest turn while a plan is made", turns.longest_ms, 16);
}

TEST_F(PlanViews, Pictures) {
  const QByteArray directory = qgetenv("FERRY_PICTURES");
  if (directory.isEmpty()) GTEST_SKIP() << "FERRY_PICTURES names no directory";
  for (const auto theme : {Theme::light, Theme::dark}) {
    apply_theme(theme);
    const QString name = theme == Theme::light ? "light" : "dark";
    int n = 0;
    for (const config::Config& config :
         {large({{"gpu_memory", "3GiB"}, {"max_steps", "1000"}}),
          large({{"gpu_memory", "1500MiB"}, {"host_memory", "3GiB"}}),
          config_of({{"model", "bert-large-uncased"}}),
          config_of({{"model", "meta-llama/Llama-3.2-1B"},
                     {"task", "causal-lm"},
                     {"machine", "3060-12g"},
                     {"max_steps", "500"}}),
          config_of({{"model", "/no/model"}})}) {
      plan(config);
      view_.layout()->setContentsMargins(16, 16, 16, 16);
      view_.setAutoFillBackground(true);
      view_.grab().save(QString("%1/plan_%2_%3.png").arg(QString(directory), name).arg(n++));
    }
  }
  apply_theme(Theme::light);
}

}  // namespace
}  // namespace ferry::gui
