// ferry-gui: the desktop app.

#include <QApplication>
#include <QLibraryInfo>
#include <QLocale>
#include <QTranslator>

#include "gui/app/main_window.h"
#include "gui/app/palette.h"
#include "src/config/paths.h"
#include "src/files/lost_pages.h"

int main(int argc, char** argv) {
  using namespace ferry::gui;
  ferry::end_on_lost_pages();
  QApplication app(argc, argv);
  QApplication::setApplicationName("ferry-gui");
  QApplication::setApplicationDisplayName("Ferry");
  QApplication::setApplicationVersion(FERRY_VERSION);
  QApplication::setDesktopFileName("ferry");
  AppSettings settings;
  apply_theme(settings.theme());
  MainWindow window(settings);
  window.show();
  window.show_page(window.current_page());
  return QApplication::exec();
}
