#pragma once
// A checkpoint as a Hugging Face directory.

#include "gui/pages/page.h"

namespace ferry::gui {

class ExportPage : public Page {
  Q_OBJECT

 public:
  explicit ExportPage(Shared& shared, QWidget* parent = nullptr);
  void show_run(const std::filesystem::path& run);
};

}  // namespace ferry::gui
