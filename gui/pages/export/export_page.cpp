#include "gui/pages/export/export_page.h"

namespace ferry::gui {

ExportPage::ExportPage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

void ExportPage::show_run(const std::filesystem::path&) {}

}  // namespace ferry::gui
