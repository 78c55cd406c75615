#include "gui/pages/runs/runs_page.h"

namespace ferry::gui {

RunsPage::RunsPage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

}  // namespace ferry::gui
