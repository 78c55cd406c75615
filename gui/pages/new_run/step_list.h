#pragma once
// The steps of a new run, each with a sign and words where something is wrong in it.

#include <QListWidget>

namespace ferry::gui {

class StepList : public QListWidget {
  Q_OBJECT

 public:
  explicit StepList(QWidget* parent = nullptr);
  void add_step(const QString& name);
  /** `n_missing` of them are settings that are still to come. */
  void set_problems(int step, int n_problems, int n_missing);

  QSize sizeHint() const override;

 protected:
  void changeEvent(QEvent* event) override;
};

}  // namespace ferry::gui
