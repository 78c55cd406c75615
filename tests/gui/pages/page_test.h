#pragma once
// Helpers that tests of pages share: a page's surroundings, and pictures of it for who wants to
// look.

#include <QAbstractButton>
#include <QApplication>
#include <QGroupBox>
#include <QKeySequence>
#include <QLabel>
#include <QStringList>
#include <QTabBar>
#include <QWidget>
#include <algorithm>
#include <map>
#include <string>

#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "gui/pages/page.h"
#include "gui/widgets/forms/option_form.h"
#include "tests/gui/gui_test.h"

namespace ferry::gui {

/** A page's surroundings; runs go to a directory of the test's own. */
struct PageHome {
  PageHome() { settings.set_runs_directory(home / "runs"); }

  TestHome home;
  AppSettings settings{home.file("app.ini")};
  Launcher launcher;
  Navigator navigator;
  RunListModel run_list{settings, launcher};
  RunQueue queue{settings, launcher, run_list};
  Shared shared{settings, launcher, navigator, run_list, queue};
};

/** Shows it as the window does, without a window. */
inline void show_page(Page& page, bool active = true) {
  page.resize(1000, 740);
  page.show();
  page.set_active(active);
}

/** A picture in light and dark where FERRY_GUI_PICTURES names a directory. */
inline void picture(QWidget& page, const QString& name) {
  const QString directory = qEnvironmentVariable("FERRY_GUI_PICTURES");
  if (directory.isEmpty()) return;
  for (const Theme theme : {Theme::dark, Theme::light}) {
    apply_theme(theme);
    QCoreApplication::processEvents();
    page.grab().save(directory + '/' + name + (theme == Theme::dark ? "-dark.png" : "-light.png"));
  }
}

/** The letters of Alt shortcuts of what can be seen in it: each once, and none of the window's menu
 * bar. */
inline void check_mnemonics(const QWidget& page,
                            const std::string& name,
                            const QStringList& menus = {"&File", "&Actions", "&View", "&Help"}) {
  std::map<QString, QString> seen;
  const auto take = [&](const QString& text) {
    const QString key = QKeySequence::mnemonic(text).toString().section('+', -1);
    if (key.isEmpty()) return;
    EXPECT_TRUE(seen.emplace(key, text).second)
        << name << ": " << text.toStdString() << " and " << seen[key].toStdString();
  };
  for (const QString& menu : menus)
    take(menu);
  for (const QLabel* label : page.findChildren<QLabel*>())
    if (label->buddy() && label->isVisibleTo(&page)) take(label->text());
  for (const QAbstractButton* button : page.findChildren<QAbstractButton*>())
    if (button->isVisibleTo(&page)) take(button->text());
  for (const QGroupBox* box : page.findChildren<QGroupBox*>())
    if (box->isVisibleTo(&page)) take(box->title());
  for (const QTabBar* tabs : page.findChildren<QTabBar*>())
    for (int i = 0; tabs->isVisibleTo(&page) && i < tabs->count(); ++i)
      if (tabs->isTabVisible(i)) take(tabs->tabText(i));
}

/** Forms make their fields in several turns of the event loop. */
inline bool has_all_fields(const QWidget& page) {
  return wait_until([&] {
    const auto forms = page.findChildren<OptionForm*>();
    return std::ranges::all_of(forms, &OptionForm::is_complete);
  });
}

template <typename Widget>
Widget& part(QWidget& page, const char* name) {
  auto* const found = page.findChild<Widget*>(name);
  EXPECT_TRUE(found) << name;
  return *found;
}

}  // namespace ferry::gui
