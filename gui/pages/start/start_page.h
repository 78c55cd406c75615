#pragma once
// The first page: this machine, a model that fits it, sample data, and a training in three clicks.

#include "gui/pages/page.h"

namespace ferry::gui {

class StartPage : public Page {
  Q_OBJECT

 public:
  explicit StartPage(Shared& shared, QWidget* parent = nullptr);
};

}  // namespace ferry::gui
