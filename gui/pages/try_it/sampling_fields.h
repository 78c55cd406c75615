#pragma once
// Fields of how texts are drawn, for chats and for texts that are continued.

#include <QString>

class QDoubleSpinBox;
class QHBoxLayout;
class QSpinBox;
class QWidget;

namespace ferry::gui {

QSpinBox* make_length_field(int n_tokens);
QDoubleSpinBox* make_temperature_field(double value);
QDoubleSpinBox* make_top_p_field(double value);

/** A field under its label; `share`: of the row's width. */
void add_field(
    QHBoxLayout& row, const QString& label, QWidget* field, const char* name, int share = 1);

}  // namespace ferry::gui
