#pragma once
// The steps of a new run, each with a sign and words where something is wrong in it.

#include <QListWidget>

namespace ferry::gui {

class StepList : public QListWidget {
  Q_OBJECT

 public:
  explicit StepList(QWidget* parent = nullptr);
  void add_step(const QString& name);
  void set_problems(int step, int n_problems);

  QSize sizeHint() const override;

 protected:
  void changeEvent(QEvent* event) override;
};

}  // namespace ferry::gui
