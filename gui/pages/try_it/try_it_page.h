#pragma once
// A text, and what a trained model makes of it.

#include "gui/pages/page.h"

namespace ferry::gui {

class TryItPage : public Page {
  Q_OBJECT

 public:
  explicit TryItPage(Shared& shared, QWidget* parent = nullptr);
  void show_run(const std::filesystem::path& run);
};

}  // namespace ferry::gui
