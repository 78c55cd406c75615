#pragma once
// The runs that are known, and the queue.

#include "gui/pages/page.h"

namespace ferry::gui {

class RunsPage : public Page {
  Q_OBJECT

 public:
  explicit RunsPage(Shared& shared, QWidget* parent = nullptr);
};

}  // namespace ferry::gui
