#pragma once
// Two to six runs beside each other.

#include "gui/pages/page.h"

namespace ferry::gui {

class ComparePage : public Page {
  Q_OBJECT

 public:
  explicit ComparePage(Shared& shared, QWidget* parent = nullptr);
  void show_runs(const std::vector<std::filesystem::path>& runs);
};

}  // namespace ferry::gui
