#include "gui/pages/try_it/try_it_page.h"

namespace ferry::gui {

TryItPage::TryItPage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

void TryItPage::show_run(const std::filesystem::path&) {}

}  // namespace ferry::gui
