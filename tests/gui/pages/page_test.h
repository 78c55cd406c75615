#pragma once
// What tests of pages share: a page's surroundings, and pictures of it for who wants to look.

#include <QApplication>
#include <QWidget>

#include "gui/app/palette.h"
#include "gui/models/text.h"
#include "gui/pages/page.h"
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

template <typename Widget>
Widget& part(QWidget& page, const char* name) {
  auto* const found = page.findChild<Widget*>(name);
  EXPECT_TRUE(found) << name;
  return *found;
}

}  // namespace ferry::gui
