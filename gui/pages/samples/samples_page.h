#pragma once
// The samples of a run: prompts by steps.

#include "gui/pages/page.h"

namespace ferry::gui {

class SamplesPage : public Page {
  Q_OBJECT

 public:
  explicit SamplesPage(Shared& shared, QWidget* parent = nullptr);
  void show_run(const std::filesystem::path& run);
};

}  // namespace ferry::gui
