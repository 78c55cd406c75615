#pragma once
// The phase of a run as a shape of its own: told without colour, too.

#include <QWidget>

#include "gui/models/runs/run_words.h"

namespace ferry::gui {

class PhaseMark : public QWidget {
  Q_OBJECT

 public:
  explicit PhaseMark(QWidget* parent = nullptr);
  void show_group(RunGroup group);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QColor colour() const;

  RunGroup group_ = RunGroup::unreadable;
};

}  // namespace ferry::gui
