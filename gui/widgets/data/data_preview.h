#pragma once
// The texts of a run before it starts: sample by sample as they are read and as the model will see
// them, their lengths, and the first batch. Reads in a thread.

#include <QWidget>
#include <memory>
#include <optional>

#include "gui/models/inputs/preview_thread.h"
#include "src/config/config.h"

class QLabel;
class QPushButton;
class QTableWidget;
class QTabWidget;
class QTimer;
class QVBoxLayout;

namespace ferry::gui {

class ErrorLabel;
class LengthChart;
class TokenView;

class DataPreview : public QWidget {
  Q_OBJECT

 public:
  explicit DataPreview(QWidget* parent = nullptr);

  /** Reads the data of a run with these settings. */
  void set_settings(const config::Config& settings);
  /** The preview that is shown; null: nothing was read yet, or it cannot be. */
  const service::Preview* preview() const;
  /** There is nothing to read yet, and why. */
  void show_missing(const QString& why);
  /** False: somebody else shows what trouble_changed() tells. */
  void set_says_trouble(bool says) { says_trouble_ = says; }
  bool is_reading() const { return thread_.is_waiting(); }

 signals:
  /** Another preview is shown, or a fault. */
  void shown();
  /** What is wrong with the data, in the service's words; empty: nothing. */
  void trouble_changed(const QString& what);

 private:
  QWidget* make_samples();
  QWidget* make_lengths();
  QWidget* make_batch();
  QWidget* make_labels();
  void show_outcome(const std::shared_ptr<const PreviewOutcome>& outcome);
  void go_to(int sample);
  void show_sample();
  void fit_fields();
  void show_findings();
  void show_numbers();
  void show_batch();
  void show_labels();

  PreviewThread thread_;
  std::shared_ptr<const PreviewOutcome> outcome_;
  int sample_ = 0;
  QTimer* slow_ = nullptr;
  bool says_trouble_ = true;
  ErrorLabel* error_ = nullptr;
  QWidget* findings_ = nullptr;  ///< what preflight found, a notice each
  QVBoxLayout* findings_column_ = nullptr;
  QLabel *facts_ = nullptr, *busy_ = nullptr;
  QTabWidget* tabs_ = nullptr;
  QPushButton *previous_ = nullptr, *next_ = nullptr;
  QLabel *place_ = nullptr, *learnt_ = nullptr, *numbers_ = nullptr, *batch_words_ = nullptr;
  QTableWidget *fields_ = nullptr, *batch_ = nullptr, *labels_ = nullptr;
  TokenView *text_ = nullptr, *tokens_ = nullptr;
  LengthChart* chart_ = nullptr;
};

}  // namespace ferry::gui
