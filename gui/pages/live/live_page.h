#pragma once
// One run while it goes on, and after.

#include "gui/pages/page.h"

namespace ferry::gui {

class LivePage : public Page {
  Q_OBJECT

 public:
  explicit LivePage(Shared& shared, QWidget* parent = nullptr);
  void show_run(const std::filesystem::path& run);
};

}  // namespace ferry::gui
