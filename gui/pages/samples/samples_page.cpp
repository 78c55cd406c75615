#include "gui/pages/samples/samples_page.h"

namespace ferry::gui {

SamplesPage::SamplesPage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

void SamplesPage::show_run(const std::filesystem::path&) {}

}  // namespace ferry::gui
