#pragma once
// What the app remembers.

#include "gui/pages/page.h"

namespace ferry::gui {

class SettingsPage : public Page {
  Q_OBJECT

 public:
  explicit SettingsPage(Shared& shared, QWidget* parent = nullptr);
};

}  // namespace ferry::gui
