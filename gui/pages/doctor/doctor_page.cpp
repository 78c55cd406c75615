#include "gui/pages/doctor/doctor_page.h"

namespace ferry::gui {

DoctorPage::DoctorPage(Shared& shared, QWidget* parent) : Page(shared, parent) {}

}  // namespace ferry::gui
