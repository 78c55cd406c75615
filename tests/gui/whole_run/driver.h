#pragma once
// Uses the app as a person does: with the mouse and the keyboard, seeing what is on the screen.

#include <QApplication>
#include <QString>
#include <QTemporaryDir>
#include <filesystem>
#include <functional>
#include <memory>

#include "gui/app/main_window.h"

namespace ferry::gui::test {

/** A home of its own for the app and its runs: a tiny model, data that it can learn, a preset of
 * the user's that names both. */
class Desk {
 public:
  Desk();
  /** One that another process made. */
  explicit Desk(std::filesystem::path home);

  const std::filesystem::path& home() const { return home_; }
  std::filesystem::path runs() const { return home() / "runs"; }
  QString settings_file() const;
  /** Rewrites the preset "tiny" with so many steps. */
  void write_preset(int n_steps);
  /** The only run that is there, or the newest. */
  std::filesystem::path newest_run() const;

 private:
  void set_environment();

  std::unique_ptr<QTemporaryDir> directory_;
  std::filesystem::path home_;
};

/** A window, and hands. What is not found or does not come fails the test and is nullptr. */
class Hands {
 public:
  explicit Hands(MainWindow& window) : window_(window) {}

  template <typename Widget = QWidget>
  Widget* find(const QString& name) {
    return qobject_cast<Widget*>(find_widget(name));
  }
  void click(const QString& name);
  void click(QWidget& widget);
  void press(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier);
  void type(const QString& name, const QString& text);
  /** Chooses a page in the window's list by the mouse. */
  void go_to(PageId page);
  /** Chooses an entry of the menu that a button opens; by its object name. */
  void choose(const QString& button, const QString& action);

  /** Waits until it is on the screen and takes clicks. */
  QWidget* wait_for(const QString& name, double seconds = 30);
  /** Presses the action's shortcut once the action is enabled. */
  void press_shortcut_of(const QString& action, double seconds = 30);
  /** Waits while events go on; false, and a failure that says what did not come, after `seconds`.
   */
  static bool wait_until(const char* what,
                         const std::function<bool()>& is_so,
                         double seconds = 120);

 private:
  /** Null, without a failure, where it is not on the screen. */
  QWidget* find_shown(const QString& name);
  QWidget* find_widget(const QString& name);

  MainWindow& window_;
};

/** The phase in run.json, "" where there is none. */
std::string phase_of(const std::filesystem::path& run);
/** The last step in metrics.jsonl. */
int64_t last_step_of(const std::filesystem::path& run);
/** The trainer's pid in run.json. */
int pid_of(const std::filesystem::path& run);

}  // namespace ferry::gui::test
