#pragma once
// The phase of a run as a shape of its own: told without colour, too.

#include <QWidget>

#include "gui/models/run_progress.h"

namespace ferry::gui {

class PhaseMark : public QWidget {
  Q_OBJECT

 public:
  explicit PhaseMark(QWidget* parent = nullptr);
  void show_kind(PhaseKind kind);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  PhaseKind kind_ = PhaseKind::unknown;
};

}  // namespace ferry::gui
