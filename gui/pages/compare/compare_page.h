#pragma once
// Two to six runs beside each other: their curves on one chart, their results, the settings in
// which they differ.

#include <memory>
#include <vector>

#include "gui/models/runs/run_follower.h"
#include "gui/pages/compare/comparer.h"
#include "gui/pages/compare/comparison_table.h"
#include "gui/pages/page.h"

class QComboBox;
class QLabel;
class QPushButton;
class QStackedLayout;
class QTableView;
class QTabWidget;

namespace ferry::gui {

class CurveChart;
class Notice;
class RunChooser;
class SmoothingBox;

class ComparePage : public Page {
  Q_OBJECT

 public:
  static constexpr int kMost = 6;

  explicit ComparePage(Shared& shared, QWidget* parent = nullptr);
  ~ComparePage() override;

  /** At most kMost: of more the first ones. */
  void show_runs(const std::vector<std::filesystem::path>& runs);
  void add_runs(const std::vector<std::filesystem::path>& runs);
  void remove_run(const std::filesystem::path& run);
  std::vector<std::filesystem::path> shown_runs() const;
  void set_active(bool active) override;
  QList<QAction*> page_actions() override;

  CurveChart& chart() { return *chart_; }
  const ComparisonTable& results() const { return results_; }
  const ComparisonTable& settings() const { return settings_; }
  QComboBox& metric() { return *metric_; }
  /** Writes results and settings as CSV; what goes wrong is said on the page. */
  void export_table(const QString& file);
  QString notice() const;

 private:
  void make_runs_page();
  void show_picker();
  void set_runs(std::vector<std::filesystem::path> runs);
  void fill_chips();
  void fill_metrics();
  void fill_chart();
  void show_comparison(const service::RunComparison& comparison);
  QString name_of(const std::filesystem::path& run) const;

  QStackedLayout* stack_ = nullptr;
  RunChooser* picker_ = nullptr;
  QPushButton* back_ = nullptr;
  QWidget* runs_page_ = nullptr;
  QWidget* chips_ = nullptr;
  QPushButton* add_ = nullptr;
  QComboBox* metric_ = nullptr;
  SmoothingBox* smoothing_ = nullptr;
  CurveChart* chart_ = nullptr;
  Notice* notice_ = nullptr;
  QTabWidget* tabs_ = nullptr;
  QLabel* same_ = nullptr;
  QAction *add_action_ = nullptr, *export_action_ = nullptr;
  ComparisonTable results_, settings_;
  Comparer comparer_;
  std::vector<std::unique_ptr<RunFollower>> followers_;
  QTimer again_;  ///< compares anew while a run goes on
  size_t n_metrics_ = 0;
  bool is_active_ = false;
};

}  // namespace ferry::gui
