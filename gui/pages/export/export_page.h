#pragma once
// A finished model or a checkpoint as a Hugging Face directory or as a GGUF file: where to, whether
// there is room, how far it is, what came of it.

#include <QTimer>
#include <optional>
#include <thread>
#include <vector>

#include "gui/models/latest_worker.h"
#include "gui/models/process/ferry_process.h"
#include "gui/models/results/export_check.h"
#include "gui/pages/page.h"

class QComboBox;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QTableWidget;
class QWidget;

namespace ferry::gui {

class Notice;
class RunPicker;

class ExportPage : public Page {
  Q_OBJECT

 public:
  explicit ExportPage(Shared& shared, QWidget* parent = nullptr);
  void show_run(const std::filesystem::path& run);
  void set_active(bool active) override;
  QList<QAction*> page_actions() override;

  /** The check of the target as it stands in the form; nothing while it is looked at. */
  const std::optional<ExportCheck>& check() const { return check_; }

 private:
  enum class Doing { nothing, exporting, verifying };
  QWidget* make_form();
  QWidget* make_options(QLabel* label);
  void add_option(QHBoxLayout& row, const char* key);
  QStringList option_words() const;
  ExportForm wanted() const;
  void take_form();
  void show_form();
  QWidget* make_result();
  QWidget* make_about();
  void show_about();
  void take_model();
  void suggest_target();
  void look();
  void take_check(const ExportCheck& check);
  void update_buttons();
  void begin_export();
  void begin_verify();
  void cancel();
  void watch_progress();
  void show_progress(const Written& written);
  void end(const QString& trouble);
  void show_result(const Written& written);
  void browse();
  std::filesystem::path target() const;

  /** A setting of `ferry export`, for one of the two forms. */
  struct Field {
    std::string key;
    QWidget *label, *field;
    bool is_of_gguf = false;
  };
  QString value_of(const Field& field) const;

  std::vector<Field> options_;
  QComboBox* form_;
  RunPicker* picker_;
  QLineEdit* target_;
  QPushButton *browse_, *export_button_, *verify_button_, *cancel_button_;
  QPushButton *open_button_, *try_button_;
  QLabel *room_, *doing_text_, *result_title_, *result_text_;
  Notice *trouble_, *message_;
  QProgressBar* progress_;
  QWidget *result_, *about_;
  QLabel *about_text_, *loading_title_;
  QTableWidget* files_;
  QPlainTextEdit* loading_;
  QAction *export_action_, *verify_action_;

  LatestWorker looking_, watching_;
  int n_removing_ = 0;                  ///< cancelled exports that are not removed yet
  std::vector<std::jthread> removals_;  // the app ends when they have
  FerryProcess process_;
  QTimer timer_, typing_;
  std::optional<ExportCheck> check_;
  Doing doing_ = Doing::nothing;
  QString suggested_;               ///< the target that nobody typed
  std::filesystem::path exported_;  ///< the last result
  QString verified_;                ///< what the check of a run printed
};

}  // namespace ferry::gui
