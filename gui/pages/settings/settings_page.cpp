#include "gui/pages/settings/settings_page.h"

namespace ferry::gui {

SettingsPage::SettingsPage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

}  // namespace ferry::gui
