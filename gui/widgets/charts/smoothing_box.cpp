#include "gui/widgets/charts/smoothing_box.h"
#include "gui/widgets/look.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QSlider>
#include <cmath>

namespace ferry::gui {

SmoothingBox::SmoothingBox(QWidget* parent) : QWidget(parent) {
  auto* const label = new TextLabel(tr("S&moothing"));
  slider_ = new QSlider(Qt::Horizontal);
  slider_->setObjectName("smoothing");
  slider_->setRange(0, 99);
  slider_->setPageStep(10);
  slider_->setFocusPolicy(Qt::StrongFocus);
  slider_->setMinimumWidth(16 * fontMetrics().averageCharWidth());
  slider_->setAccessibleName(tr("Smoothing of curves, in percent"));
  slider_->setToolTip(
      tr("How much of each point comes from the points before it. 0 shows the values alone."));
  label->setBuddy(slider_);
  value_ = new TextLabel;
  value_->setMinimumWidth(fontMetrics().horizontalAdvance("0.99 "));
  auto* const row = new QHBoxLayout(this);
  row->setContentsMargins({});
  row->addWidget(label);
  row->addWidget(slider_);
  row->addWidget(value_);
  connect(slider_, &QSlider::valueChanged, this, [this] {
    value_->setText(QString::number(weight(), 'f', 2));
    emit changed(weight());
  });
  set_weight(0.9);
}

double SmoothingBox::weight() const {
  return slider_->value() / 100.0;
}

void SmoothingBox::set_weight(double weight) {
  slider_->setValue(static_cast<int>(std::lround(weight * 100)));
}

}  // namespace ferry::gui
