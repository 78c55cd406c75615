#pragma once
// This machine: what is wrong and how to mend it, what it has, how fast it is, which models are
// here.

#include "gui/models/machine/doctor_thread.h"
#include "gui/pages/page.h"

class QGridLayout;
class QLabel;
class QProgressBar;
class QPushButton;
class QTableWidget;
class QTimer;
class QVBoxLayout;

namespace ferry::gui {

class DoctorPage : public Page {
  Q_OBJECT

 public:
  explicit DoctorPage(Shared& shared, QWidget* parent = nullptr);

  void set_active(bool active) override;
  QList<QAction*> page_actions() override;
  /** Null: it is being looked at. */
  const DoctorReport* report() const { return report_.get(); }
  bool is_looking() const { return thread_.is_waiting(); }

 private:
  QWidget* make_head();
  void show_report(const std::shared_ptr<const DoctorReport>& report);
  void show_findings();
  QWidget* widget_of(const service::Finding& finding, int place);
  void show_profile();
  void show_models();
  void show_measuring();
  void measure();
  void copy_report();

  DoctorThread thread_;
  std::shared_ptr<const DoctorReport> report_;
  QAction *look_ = nullptr, *copy_ = nullptr, *measure_action_ = nullptr;
  QTimer* tick_ = nullptr;
  QLabel *icon_ = nullptr, *verdict_ = nullptr;
  QVBoxLayout* findings_ = nullptr;
  QGridLayout *facts_ = nullptr, *profile_ = nullptr;
  QLabel* profile_words_ = nullptr;
  QPushButton *measure_ = nullptr, *cancel_ = nullptr;
  QProgressBar* progress_ = nullptr;
  QTableWidget* models_ = nullptr;
  QLabel* no_models_ = nullptr;
};

}  // namespace ferry::gui
