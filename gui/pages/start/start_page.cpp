#include "gui/pages/start/start_page.h"

namespace ferry::gui {

StartPage::StartPage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

}  // namespace ferry::gui
