#include "tests/gui/whole_run/driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <QAction>
#include <QElapsedTimer>
#include <QListWidget>
#include <QMenu>
#include <QScrollArea>
#include <QTest>
#include <QToolButton>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gui/models/text.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui::test {

namespace fs = std::filesystem;

Desk::Desk() : directory_(std::make_unique<QTemporaryDir>()), home_(to_path(directory_->path())) {
  ferry::test::write_tiny_model(home_ / "models" / "tiny");
  ferry::test::write_tiny_data(home_ / "colours.tsv", 400, 1);
  fs::create_directories(runs());
  write_preset(60);
  set_environment();
}

Desk::Desk(fs::path home) : home_(std::move(home)) {
  set_environment();
}

void Desk::set_environment() {
  qputenv("XDG_CONFIG_HOME", (home_ / "config").c_str());
  qputenv("XDG_DATA_HOME", (home_ / "data").c_str());
  qputenv("XDG_CACHE_HOME", (home_ / "cache").c_str());
  qputenv("FERRY_MODELS", (home_ / "models").c_str());
}

QString Desk::settings_file() const {
  return path_text(home_ / "app.ini");
}

void Desk::write_preset(int n_steps) {
  const fs::path directory = home() / "config" / "ferry" / "presets";
  fs::create_directories(directory);
  std::ofstream(directory / "tiny.toml") << fmt::format(
      "preset.title = \"A tiny BERT tells colours\"\n"
      "preset.purpose = \"For trying the app\"\n"
      "model_name_or_path = \"{}\"\ndataset = \"{}\"\ntask = \"classification\"\n"
      "max_steps = {}\ntrain_batch_size = 8\nlearning_rate = 1e-3\nmax_length = 16\n"
      "save_steps = 20\neval_steps = 20\n",
      (home() / "models" / "tiny").string(), (home() / "colours.tsv").string(), n_steps);
}

fs::path Desk::newest_run() const {
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(runs()))
    if (entry.is_directory() && (newest.empty() || entry.path().filename() > newest.filename()))
      newest = entry.path();
  return newest;
}

namespace {

/** The screen at a failure, for who wants to see it: $FERRY_PICTURES is a directory. */
void save_pictures() {
  const QString directory = qEnvironmentVariable("FERRY_PICTURES");
  if (directory.isEmpty()) return;
  int n = 0;
  for (QWidget* top : QApplication::topLevelWidgets())
    if (top->isVisible())
      top->grab().save(QStringLiteral("%1/failed-%2.png").arg(directory).arg(++n));
}

}  // namespace

QWidget* Hands::find_shown(const QString& name) {
  // Pages have widgets of the same name: the one that can be seen is meant.
  for (QWidget* widget : window_.findChildren<QWidget*>(name))
    if (widget->isVisible()) return widget;
  for (QWidget* top : QApplication::topLevelWidgets())
    for (QWidget* widget : top->findChildren<QWidget*>(name))
      if (widget->isVisible()) return widget;
  return nullptr;
}

QWidget* Hands::find_widget(const QString& name) {
  QWidget* widget = find_shown(name);
  if (!widget) ADD_FAILURE() << "nothing on the screen is called " << name.toStdString();
  return widget;
}

QWidget* Hands::wait_for(const QString& name, double seconds) {
  QWidget* widget = nullptr;
  wait_until(
      name.toUtf8(), [&] { return (widget = find_shown(name)) && widget->isEnabled(); }, seconds);
  return widget;
}

void Hands::press_shortcut_of(const QString& action, double seconds) {
  const QAction* its = nullptr;  // of the page that is shown
  const auto is_enabled = [&] {
    for (const QAction* const one : window_.findChildren<QAction*>(action)) {
      const auto* const bar = qobject_cast<QWidget*>(one->parent());
      if (bar && bar->isVisible() && one->isEnabled()) its = one;
    }
    return its != nullptr;
  };
  if (!wait_until(action.toUtf8(), is_enabled, seconds)) return;
  const QKeyCombination keys = its->shortcut()[0];
  press(keys.key(), keys.keyboardModifiers());
}

void Hands::click(QWidget& widget) {
  for (QWidget* parent = widget.parentWidget(); parent; parent = parent->parentWidget())
    if (auto* area = qobject_cast<QScrollArea*>(parent)) area->ensureWidgetVisible(&widget);
  QTest::mouseClick(&widget, Qt::LeftButton);
}

void Hands::click(const QString& name) {
  QWidget* widget = find_widget(name);
  if (!widget) return;
  EXPECT_TRUE(widget->isEnabled()) << name.toStdString() << ": " << widget->toolTip().toStdString();
  click(*widget);
}

void Hands::press(int key, Qt::KeyboardModifiers modifiers) {
  // There may be no window manager that gives it the focus back after a list was open.
  window_.activateWindow();
  EXPECT_TRUE(QTest::qWaitForWindowActive(&window_));
  QWidget* target = QApplication::focusWidget();
  QTest::keyClick(target ? target : &window_, static_cast<Qt::Key>(key), modifiers);
}

void Hands::type(const QString& name, const QString& text) {
  QWidget* widget = find_widget(name);
  if (!widget) return;
  click(*widget);
  QTest::keyClick(widget, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(widget, text);
}

void Hands::go_to(PageId page) {
  auto* list = find<QListWidget>("pages");
  if (!list) return;
  const QRect row = list->visualItemRect(list->item(static_cast<int>(page)));
  QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, row.center());
  EXPECT_EQ(window_.current_page(), page);
}

void Hands::choose(const QString& button, const QString& action) {
  auto* opener = find<QToolButton>(button);
  if (!opener || !opener->menu()) return;
  // Not the click that opens it: a menu holds the event loop until it closes.
  QMenu& menu = *opener->menu();
  menu.popup(opener->mapToGlobal(opener->rect().bottomLeft()));
  for (QAction* entry : menu.actions())
    if (entry->objectName() == action) {
      EXPECT_TRUE(entry->isEnabled()) << action.toStdString();
      QTest::mouseClick(&menu, Qt::LeftButton, {}, menu.actionGeometry(entry).center());
      return;
    }
  ADD_FAILURE() << "the menu has no " << action.toStdString();
}

bool Hands::wait_until(const char* what, const std::function<bool()>& is_so, double seconds) {
  QElapsedTimer timer;
  timer.start();
  while (!is_so()) {
    if (static_cast<double>(timer.elapsed()) > 1000 * seconds) {
      ADD_FAILURE() << "did not come in " << seconds << " s: " << what;
      save_pictures();
      return false;
    }
    QTest::qWait(20);
  }
  return true;
}

namespace {

nlohmann::json record_of(const fs::path& run) {
  std::ifstream file(run / "run.json");
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

std::string phase_of(const fs::path& run) {
  const auto record = record_of(run);
  return record.is_object() ? record.value("phase", "") : "";
}

int pid_of(const fs::path& run) {
  const auto record = record_of(run);
  return record.is_object() ? record.value("pid", 0) : 0;
}

int64_t last_step_of(const fs::path& run) {
  std::ifstream file(run / "metrics.jsonl");
  int64_t last = 0;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (row.is_object() && row.contains("loss")) last = row.value("step", last);
  }
  return last;
}

}  // namespace ferry::gui::test
