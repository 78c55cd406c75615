#include "gui/app/language.h"

#include <QLibraryInfo>
#include <QLocale>
#include <QTranslator>

namespace ferry::gui {

void install_language(QCoreApplication& app, const QString& language) {
  const QLocale locale = language.isEmpty() ? QLocale::system() : QLocale(language);
  const auto load = [&](const QString& file, const QString& directory) {
    auto* translator = new QTranslator(&app);
    if (translator->load(file, directory)) QCoreApplication::installTranslator(translator);
  };
  // English in any case: its plurals, "1 run" and "2 runs", are translations too.
  load("ferry_en", ":/translations");
  if (locale.language() != QLocale::Chinese) return;
  QLocale::setDefault(locale);
  // Qt's own words: dialogs' buttons. They are a package of their own, and may be missing.
  load("qtbase_zh_CN", QLibraryInfo::path(QLibraryInfo::TranslationsPath));
  load("ferry_zh_CN", ":/translations");
}

}  // namespace ferry::gui
