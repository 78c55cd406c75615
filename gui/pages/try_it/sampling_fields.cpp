#include "gui/pages/try_it/sampling_fields.h"

#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QSpinBox>
#include <QVBoxLayout>

#include "gui/pages/try_it/try_it_page.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

QSpinBox* make_length_field(int n_tokens) {
  auto* field = new QSpinBox;
  field->setRange(1, 100000);
  field->setValue(n_tokens);
  field->setSuffix(TryItPage::tr(" tokens"));
  return field;
}

QDoubleSpinBox* make_temperature_field(double value) {
  auto* field = new QDoubleSpinBox;
  field->setRange(0, 10);
  field->setSingleStep(0.1);
  field->setValue(value);
  field->setToolTip(
      TryItPage::tr("0 takes the likeliest token each time. Higher values take more "
                    "chances."));
  return field;
}

QDoubleSpinBox* make_top_p_field(double value) {
  auto* field = new QDoubleSpinBox;
  field->setRange(0.01, 1);
  field->setSingleStep(0.05);
  field->setValue(value);
  field->setToolTip(TryItPage::tr("Draws among the likeliest tokens whose shares add up to this."));
  return field;
}

void add_field(
    QHBoxLayout& row, const QString& label, QWidget* field, const char* name, int share) {
  auto* cell = new QVBoxLayout;
  auto* words = new TextLabel(label);
  words->setBuddy(field);
  field->setObjectName(name);
  field->setAccessibleName(QString(label).remove('&'));
  cell->addWidget(words);
  cell->addWidget(field);
  row.addLayout(cell, share);
}

}  // namespace ferry::gui
