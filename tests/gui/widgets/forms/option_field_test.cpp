#include "gui/widgets/forms/option_field.h"

#include <gtest/gtest.h>

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QScrollBar>
#include <QSlider>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/models/settings/settings_model.h"
#include "gui/models/text.h"
#include "gui/widgets/forms/option_form.h"
#include "gui/widgets/forms/wheel_guard.h"
#include "gui/widgets/look.h"

namespace ferry::gui {
namespace {

void wheel_over(QWidget* widget) {
  const QPointF at(widget->rect().center());
  QWheelEvent event(at, widget->mapToGlobal(at), {}, {0, -120}, Qt::NoButton, Qt::NoModifier,
                    Qt::NoScrollPhase, false);
  QSpontaneKeyEvent::setSpontaneous(&event);  // as from the window system: it goes up to parents
  qApp->notify(widget, &event);
}

TEST(WheelGuard, AWheelOverAClosedComboScrollsThePage) {
  QScrollArea area;
  auto* const content = new QWidget;
  auto* const layout = new QVBoxLayout(content);
  auto* const combo = new QComboBox;
  combo->addItems({"a", "b", "c"});
  auto* const spin = new QSpinBox;
  auto* const slider = new QSlider;
  for (QWidget* widget : std::initializer_list<QWidget*>{combo, spin, slider}) {
    layout->addWidget(widget);
    guard_wheel(widget);
  }
  auto* const tall = new QWidget;
  tall->setFixedHeight(3000);
  layout->addWidget(tall);
  area.setWidget(content);
  area.resize(300, 200);
  area.show();
  area.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&area));
  area.setFocus();

  slider->setValue(50);
  for (QWidget* widget : std::initializer_list<QWidget*>{combo, spin, slider}) {
    const int before = area.verticalScrollBar()->value();
    wheel_over(widget);
    EXPECT_GT(area.verticalScrollBar()->value(), before) << widget->metaObject()->className();
    EXPECT_FALSE(widget->hasFocus());
  }
  EXPECT_EQ(combo->currentIndex(), 0);
  EXPECT_EQ(spin->value(), 0);
  EXPECT_EQ(slider->value(), 50);

  // Also what was used a moment ago: the wheel goes on with the page.
  for (QWidget* widget : std::initializer_list<QWidget*>{combo, spin, slider}) {
    area.verticalScrollBar()->setValue(0);
    widget->setFocus();
    wheel_over(widget);
    EXPECT_GT(area.verticalScrollBar()->value(), 0) << widget->metaObject()->className();
  }
  EXPECT_EQ(combo->currentIndex(), 0);
  EXPECT_EQ(spin->value(), 0);
  EXPECT_EQ(slider->value(), 50);
}

/** Types as a keyboard does. */
void type(QWidget* widget, const QString& text) {
  widget->setFocus();
  QTest::keyClick(widget, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClick(widget, Qt::Key_Delete);
  for (const QChar letter : text) {
    QKeyEvent press(QEvent::KeyPress, 0, Qt::NoModifier, letter);
    QApplication::sendEvent(widget, &press);
  }
}

QString typed_for(const config::Option& option) {
  using config::Type;
  switch (option.type) {
    case Type::number:
      return option.range.max < 1 ? "0.25" : "0.5";
    case Type::integer:
      return "9";
    case Type::bytes:
      return "11GiB";
    case Type::steps:
      return "0.25";
    case Type::interval:
      return "30min";
    case Type::duration:
      return "8h";
    case Type::groups:
      return "classifier.*:lr=0.0001";
    default:
      return "some text";
  }
}

TEST(OptionField, EverySettingIsMadeByKeysAlone) {
  SettingsModel settings;
  settings.set_text("model_name_or_path", "m");
  settings.set_text("dataset", "d");
  for (int row = 0; row < settings.rowCount(); ++row) {
    const config::Option& option = settings.option(row);
    const QString key = to_text(option.key);
    OptionField field(settings, key);
    field.show();
    field.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&field)) << option.key;
    QWidget* const editor = field.editor();
    ASSERT_EQ(editor->objectName(), "field_" + key);
    EXPECT_EQ(field.label()->buddy(), editor);
    EXPECT_FALSE(editor->accessibleName().isEmpty());
    EXPECT_FALSE(editor->toolTip().isEmpty());
    EXPECT_FALSE(editor->whatsThis().isEmpty());
    const QString before = settings.text(key);
    QString expected;
    if (auto* const check = qobject_cast<QCheckBox*>(editor)) {
      expected = check->isChecked() ? "false" : "true";
      check->setFocus();
      QTest::keyClick(check, Qt::Key_Space);
    } else if (auto* const combo = qobject_cast<QComboBox*>(editor)) {
      combo->setFocus();
      const int at = combo->currentIndex();
      QTest::keyClick(combo, at + 1 < combo->count() ? Qt::Key_Down : Qt::Key_Up);
      EXPECT_NE(combo->currentIndex(), at) << option.key;
      expected = combo->currentData().toString();
    } else {
      expected = typed_for(option);
      type(editor, expected);
    }
    EXPECT_EQ(settings.text(key).toStdString(), expected.toStdString()) << option.key;
    // Three contradict a model that is given, or ask for a run, and two ask for a drive.
    if (key != "config_name" && key != "tokenizer_name" && key != "resume_from_checkpoint" &&
        key != "nvme_memory" && key != "nvme_endurance") {
      EXPECT_EQ(settings.problem(key).toStdString(), "") << option.key;
    }
    EXPECT_TRUE(editor->accessibleName().contains("changed")) << option.key;
    EXPECT_TRUE(field.findChild<QLabel*>("changed_" + key)->isVisible());
    auto* const reset = field.findChild<QToolButton*>("reset_" + key);
    ASSERT_TRUE(reset->isVisible());
    QTest::keyClick(reset, Qt::Key_Space);
    EXPECT_EQ(settings.text(key), "") << option.key;
    EXPECT_FALSE(reset->isVisible());
    settings.set_text(key, before);
  }
}

TEST(OptionField, ANumberIsTypedAlikeInEveryLanguage) {
  const QLocale before;
  QLocale::setDefault(QLocale(QLocale::German));
  SettingsModel settings;
  OptionField field(settings, "learning_rate");
  field.show();
  type(field.editor(), "5e-5");
  EXPECT_EQ(settings.text("learning_rate"), "5e-5");
  EXPECT_EQ(settings.problem("learning_rate"), "");
  QLocale::setDefault(before);
}

TEST(OptionField, SaysWhatIsWrongBelowIt) {
  SettingsModel settings;
  OptionField field(settings, "learning_rate");
  field.show();
  auto* const error = field.findChild<ErrorLabel*>("error_learning_rate");
  EXPECT_FALSE(error->isVisible());
  type(field.editor(), "5");
  EXPECT_TRUE(error->isVisible());
  EXPECT_TRUE(error->error().contains("too large")) << error->error().toStdString();
  EXPECT_TRUE(field.editor()->accessibleDescription().contains("too large"));
  EXPECT_EQ(field.line()->text(), "5");  // it stays
  EXPECT_TRUE(field.line()->placeholderText().contains("2e-5"));
  field.findChild<QToolButton*>("reset_learning_rate")->click();
  EXPECT_FALSE(error->isVisible());
  EXPECT_EQ(field.line()->text(), "");
}

TEST(OptionField, AWheelOverItsChoiceChangesNothing) {
  SettingsModel settings;
  OptionField field(settings, "task");
  field.show();
  wheel_over(field.editor());
  EXPECT_EQ(settings.text("task"), "");
}

TEST(OptionField, TakesTextFromRightToLeft) {
  SettingsModel settings;
  OptionField field(settings, "text_column");
  field.setLayoutDirection(Qt::RightToLeft);
  field.show();
  type(field.editor(), "עמודה");
  EXPECT_EQ(settings.text("text_column"), "עמודה");
}

TEST(OptionField, ANumberThatIsNoneToPeopleIsShownAsAWord) {
  SettingsModel settings;
  int n_words = 0;
  for (int row = 0; row < settings.rowCount(); ++row) {
    const config::Option& option = settings.option(row);
    if (option.special.value.empty()) continue;
    const QString key = to_text(option.key), word = to_text(option.special.word);
    const OptionField field(settings, key);
    ASSERT_TRUE(field.line()) << key.toStdString();
    if (option.special.value == option.value) {
      EXPECT_TRUE(field.line()->placeholderText().endsWith(word)) << key.toStdString();
    }
    const auto* const meaning = field.findChild<QLabel*>("meaning_" + key);
    ASSERT_TRUE(meaning) << key.toStdString();
    EXPECT_EQ(meaning->text(), "");
    settings.set_text(key, to_text(option.special.value));
    EXPECT_TRUE(meaning->text().endsWith(word)) << key.toStdString();
    EXPECT_EQ(settings.problem(key), "") << key.toStdString();
    settings.reset(key);
    ++n_words;
  }
  EXPECT_GT(n_words, 5);
}

TEST(OptionField, ATypedNumberStaysWhatItIs) {
  SettingsModel settings;
  const OptionField field(settings, "max_steps");
  EXPECT_EQ(field.line()->placeholderText().toStdString(), "default: by epochs");
  settings.set_text("max_steps", "-1");
  EXPECT_EQ(field.line()->text(), "-1");
  EXPECT_EQ(settings.problem("max_steps"), "");
  const QModelIndex cell =
      settings.index(settings.row_of("max_steps"), SettingsModel::value_column);
  EXPECT_EQ(cell.data().toString().toStdString(), "by epochs");
  EXPECT_EQ(cell.data(Qt::EditRole).toString(), "-1");
  settings.set_text("max_steps", "-2");
  EXPECT_NE(settings.problem("max_steps"), "");
}

TEST(OptionForm, ShowsTheBasicOnesAndThoseThatWereChanged) {
  SettingsModel settings;
  OptionForm form(settings);
  form.set_keys({"train_batch_size", "lr_scheduler_type", "min_lr_rate", "learning_rate"}, true);
  form.show();
  EXPECT_EQ(form.n_shown(), 2);
  EXPECT_FALSE(form.made_field("min_lr_rate"));
  settings.set_text("min_lr_rate", "0.1");
  EXPECT_EQ(form.n_shown(), 3);
  EXPECT_TRUE(form.made_field("min_lr_rate")->isVisible());
  ASSERT_TRUE(form.field("lr_scheduler_type"));  // asked for by name
  EXPECT_EQ(form.n_shown(), 4);
  form.set_shows_all(true);
  form.set_shows_all(false);
  EXPECT_EQ(form.n_shown(), 3);
  form.set_search("cosine");
  EXPECT_TRUE(form.made_field("lr_scheduler_type")->isVisible());
  EXPECT_FALSE(form.made_field("train_batch_size")->isVisible());
  // Fields stand in the order of the keys, whenever they were made, and each letter is of one.
  form.set_search({});
  form.set_shows_all(true);
  QString letters;
  int y = -1;
  for (const char* key :
       {"train_batch_size", "lr_scheduler_type", "min_lr_rate", "learning_rate"}) {
    QApplication::processEvents();
    OptionField* const field = form.made_field(key);
    const int top = field->mapTo(&form, QPoint()).y();
    EXPECT_GT(top, y) << key;
    y = top;
    const QString label = field->label()->text();
    ASSERT_TRUE(label.contains('&'));
    const QChar letter = label[label.indexOf('&') + 1].toLower();
    EXPECT_FALSE(letters.contains(letter)) << key;
    letters += letter;
  }
}

TEST(OptionForm, ShowsTheBasicOnesOfTheTask) {
  SettingsModel settings;
  OptionForm form(settings);
  form.set_keys({"label_column", "max_new_tokens", "learning_rate"}, true);
  form.show();
  EXPECT_TRUE(form.made_field("label_column")->isVisible());
  EXPECT_FALSE(form.made_field("max_new_tokens"));
  settings.set_text("task", "causal-lm");
  EXPECT_FALSE(form.made_field("label_column")->isVisible());
  EXPECT_TRUE(form.made_field("max_new_tokens")->isVisible());
  settings.reset("task");
  EXPECT_FALSE(form.made_field("max_new_tokens")->isVisible());
}

}  // namespace
}  // namespace ferry::gui
