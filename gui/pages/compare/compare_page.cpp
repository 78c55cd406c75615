#include "gui/pages/compare/compare_page.h"

namespace ferry::gui {

ComparePage::ComparePage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

void ComparePage::show_runs(const std::vector<std::filesystem::path>&) {}

}  // namespace ferry::gui
