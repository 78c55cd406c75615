// ferry-gui [RUN]: the desktop app, with a run's page if one is named.

#include <QApplication>
#include <QIcon>
#include <cstdlib>
#include <filesystem>

#include "gui/app/language.h"
#include "gui/app/main_window.h"
#include "gui/app/palette.h"
#include "gui/widgets/plain_tips.h"
#include "src/base/process/out_of_memory.h"
#include "src/files/lost_pages.h"
#include "src/files/paths.h"
#include "src/files/write/owned_file.h"

namespace {

/** A machine without a desktop has no fonts, and text would be boxes: packages bring some. Before
 * the application, which reads the configuration once. */
void choose_fonts() {
  std::error_code error;
  if (std::filesystem::exists("/etc/fonts/fonts.conf", error)) return;
  const auto own = ferry::program_directory() / "../share/ferry/fonts/fonts.conf";
  if (std::filesystem::exists(own, error))
    setenv("FONTCONFIG_FILE", own.lexically_normal().c_str(), /*overwrite=*/0);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ferry::gui;
  ferry::end_on_lost_pages();
  ferry::end_on_lost_memory();
  ferry::keep_others_out();
  choose_fonts();
  QApplication app(argc, argv);
  QApplication::setApplicationName("ferry-gui");
  QApplication::setApplicationDisplayName("Ferry");
  QApplication::setApplicationVersion(FERRY_VERSION);
  QApplication::setDesktopFileName("ferry");
  QApplication::setWindowIcon(QIcon(":/ferry.svg"));
  install_plain_tips(app);
  AppSettings settings;
  install_language(app, settings.language());
  apply_theme(settings.theme());
  apply_zoom(settings.zoom());
  MainWindow window(settings);
  window.show();
  window.show_page(window.current_page());
  // The rest of the arguments, byte for byte: a run's name need not be text.
  if (argc > 1) emit window.navigator().live_wanted(std::filesystem::absolute(argv[1]));
  return QApplication::exec();
}
