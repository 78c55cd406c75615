// ferry gui [RUN]: becomes the desktop app.

#include <fmt/format.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/commands.h"
#include "src/cli/settings.h"
#include "src/files/paths.h"
#include "src/runs/index/run_list.h"

namespace ferry::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kGuiHelp =
    "ferry gui - the desktop app\n\n"
    "usage: ferry gui         your runs, and new ones\n"
    "       ferry gui RUN     one run while it trains, and after\n\n"
    "RUN is a directory, or a name that `ferry runs ls` shows, or the beginning of just one.\n"
    "Runs go on when the app is closed.\n";

/** Beside this program, installed or in the build tree. Throws Error(machine) where there is none.
 */
fs::path find_app() {
  const fs::path here = program_directory();
  for (const char* where : {"ferry-gui", "../../gui/app/ferry-gui"})
    if (access((here / where).c_str(), X_OK) == 0) return (here / where).lexically_normal();
  throw Error(Fault::machine, "cli.gui", "this Ferry was built without the desktop app",
              "install Qt 6 and QCustomPlot (scripts/setup --gui), then build again");
}

}  // namespace

int run_gui(Arguments arguments) {
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) {
    print(std::string(kGuiHelp));
    return 0;
  }
  if (arguments.size() > 1 || (!arguments.empty() && arguments[0].starts_with('-')))
    throw Error(Fault::usage, "cli.gui", fmt::format("'ferry gui {}'", fmt::join(arguments, " ")),
                "usage: ferry gui [RUN]");
  std::vector<std::string> words = {find_app().string()};
  if (!arguments.empty()) words.push_back(fs::absolute(runs::find_run(arguments[0])).string());
  if (environment_variable("DISPLAY").empty() && environment_variable("WAYLAND_DISPLAY").empty() &&
      environment_variable("QT_QPA_PLATFORM").empty())
    throw Error(Fault::machine, "cli.gui",
                "there is no desktop here: DISPLAY and WAYLAND_DISPLAY are empty",
                "log in to a desktop, or use ssh -X; `ferry runs` shows runs in a terminal");
  become(std::move(words), "cli.gui");
}

}  // namespace ferry::cli
