#pragma once
// The app's own settings: where runs go, how it looks, when runs may train. Every change takes
// effect at once and is kept; the language's at the next start.

#include "gui/models/latest_worker.h"
#include "gui/pages/page.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QTimeEdit;
class QVBoxLayout;

namespace ferry::gui {

class Notice;

class SettingsPage : public Page {
  Q_OBJECT

 public:
  explicit SettingsPage(Shared& shared, QWidget* parent = nullptr);
  ~SettingsPage() override;
  void set_active(bool active) override;

 private:
  void add_folders(QVBoxLayout& column);
  void add_look(QVBoxLayout& column);
  void add_hours(QVBoxLayout& column);
  void add_notices(QVBoxLayout& column);
  /** Shows what is kept: another page may have changed it. */
  void show_settings();
  void take_runs_folder();
  void check_runs_folder();
  void show_folder_trouble(const QString& trouble);
  void take_hours();
  void show_hours_text();

  QLineEdit *runs_, *presets_;
  Notice* runs_trouble_;
  QLabel* runs_note_;
  QComboBox *theme_, *language_;
  QLabel *language_note_, *hours_note_;
  QCheckBox *hours_, *yields_, *queue_, *notices_;
  QTimeEdit *from_, *until_;
  QString language_at_start_;
  bool is_showing_ = false;
  LatestWorker background_;
};

}  // namespace ferry::gui
