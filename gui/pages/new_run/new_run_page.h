#pragma once
// A new run: model, data, method, memory, review.

#include "gui/pages/page.h"

namespace ferry::gui {

class NewRunPage : public Page {
  Q_OBJECT

 public:
  explicit NewRunPage(Shared& shared, QWidget* parent = nullptr);
  /** Begins anew with these settings. */
  void begin(const config::Config& settings);
};

}  // namespace ferry::gui
