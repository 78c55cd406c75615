#pragma once
// How much curves are smoothed: a slider with its value.

#include <QWidget>

class QLabel;
class QSlider;

namespace ferry::gui {

class SmoothingBox : public QWidget {
  Q_OBJECT

 public:
  explicit SmoothingBox(QWidget* parent = nullptr);

  /** 0 (none) to 0.99. */
  double weight() const;
  void set_weight(double weight);

 signals:
  void changed(double weight);

 private:
  QSlider* slider_ = nullptr;
  QLabel* value_ = nullptr;
};

}  // namespace ferry::gui
