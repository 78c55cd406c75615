// ferry-gui [RUN]: the desktop app, with a run's page if one is named.

#include <QApplication>
#include <QDir>
#include <QFontDatabase>
#include <QIcon>
#include <filesystem>

#include "gui/app/language.h"
#include "gui/app/main_window.h"
#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "src/files/lost_pages.h"

namespace {

/** A machine without a desktop has no fonts, and text would be boxes: packages bring some. */
void load_fonts() {
  if (!QFontDatabase::families().isEmpty()) return;
  const QDir fonts(QApplication::applicationDirPath() + "/../share/ferry/fonts");
  for (const QString& file : fonts.entryList({"*.ttf"}))
    QFontDatabase::addApplicationFont(fonts.filePath(file));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ferry::gui;
  ferry::end_on_lost_pages();
  QApplication app(argc, argv);
  QApplication::setApplicationName("ferry-gui");
  QApplication::setApplicationDisplayName("Ferry");
  QApplication::setApplicationVersion(FERRY_VERSION);
  QApplication::setDesktopFileName("ferry");
  QApplication::setWindowIcon(QIcon(":/ferry.svg"));
  load_fonts();
  AppSettings settings;
  install_language(app, settings.language());
  apply_theme(settings.theme());
  MainWindow window(settings);
  window.show();
  window.show_page(window.current_page());
  const QStringList words = QApplication::arguments();
  if (words.size() > 1)
    emit window.navigator().live_wanted(std::filesystem::absolute(to_path(words[1])));
  return QApplication::exec();
}
