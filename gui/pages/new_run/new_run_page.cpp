#include "gui/pages/new_run/new_run_page.h"

namespace ferry::gui {

NewRunPage::NewRunPage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

void NewRunPage::begin(const config::Config&) {}

}  // namespace ferry::gui
