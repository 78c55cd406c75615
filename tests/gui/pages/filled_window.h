#pragma once
// The app's window with runs, a model and data in it.

#include <QAction>
#include <QMenuBar>
#include <QStringList>
#include <optional>

#include "gui/app/main_window.h"
#include "src/config/config.h"
#include "tests/gui/gui_test.h"
#include "tests/gui/run_files.h"
#include "tests/train/tiny_model.h"

namespace ferry::gui {

/** A window over two runs, and settings whose texts and plan are shown. */
struct FilledWindow {
  FilledWindow() {
    settings.set_runs_directory(home.runs());
    first = make_run(home.runs() / "first");
    second = make_run(home.runs() / "second");
    ferry::test::write_tiny_model(home / "model");
    ferry::test::write_tiny_data(home / "x.tsv", 40, 3);
    for (const auto& [key, value] : {std::pair{"model", "model"}, {"dataset", "x.tsv"}})
      config.set(key, (home / value).string(), {config::Source::command_line, "test"});
    window.emplace(settings);
    window->show();
    for (const QAction* menu : window->menuBar()->actions())
      menus << menu->text();
  }

  TestHome home;
  AppSettings settings{home.file("app.ini")};
  fs::path first, second;
  config::Config config;
  std::optional<MainWindow> window;
  QStringList menus;
};

}  // namespace ferry::gui
