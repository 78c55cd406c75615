#pragma once
// This machine: what it has, what is wrong, how to mend it.

#include "gui/pages/page.h"

namespace ferry::gui {

class DoctorPage : public Page {
  Q_OBJECT

 public:
  explicit DoctorPage(Shared& shared, QWidget* parent = nullptr);
};

}  // namespace ferry::gui
