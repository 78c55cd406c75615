#include "gui/pages/live/live_page.h"

namespace ferry::gui {

LivePage::LivePage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

void LivePage::show_run(const std::filesystem::path&) {}

}  // namespace ferry::gui
