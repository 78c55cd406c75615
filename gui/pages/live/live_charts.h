#pragma once
// The charts of one run, in as many columns as the width takes. A chart is there once the run has
// values for it; the user chooses which are shown.

#include <QScrollArea>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gui/models/settings/app_settings.h"
#include "gui/widgets/charts/curve_chart.h"

class QGridLayout;
class QMenu;

namespace ferry::gui {

class LiveCharts : public QScrollArea {
  Q_OBJECT

 public:
  explicit LiveCharts(AppSettings& settings, QWidget* parent = nullptr);

  /** The run's metrics, which outlive the charts or are taken away with null. */
  void show_run(const service::MetricsReader* reader, const std::filesystem::path& run);
  /** There are more; anew: all begins again. */
  void update_data(bool anew);
  void set_smoothing(double weight);

  /** Null where the run has no such chart: "loss", "learning_rate", "grad_norm", "speed", "memory",
   * "overlap", "eval", ... */
  CurveChart* chart(const std::string& id) const;
  std::vector<CurveChart*> shown_charts() const;
  bool is_shown(const std::string& id) const;
  void set_shown(const std::string& id, bool shown);
  /** For the button that chooses charts. */
  QMenu* menu() const { return menu_; }
  int n_columns() const { return n_columns_; }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Spec {
    std::string id;
    QString title;
    ValueUnit unit;
    std::vector<ChartCurve> curves;
    bool is_usual = true;  ///< shown unless the user hides it
  };
  std::vector<Spec> specs() const;
  std::vector<Spec> evaluation_specs() const;
  void rebuild();
  void arrange();

  AppSettings& settings_;
  const service::MetricsReader* reader_ = nullptr;
  std::filesystem::path run_;
  double smoothing_ = 0.9;
  size_t n_curves_ = 0;
  int n_columns_ = 0;
  QWidget* inside_ = nullptr;
  QGridLayout* grid_ = nullptr;
  QMenu* menu_ = nullptr;
  std::vector<std::string> order_;
  std::map<std::string, CurveChart*> charts_;
  std::map<std::string, bool> usual_;
};

}  // namespace ferry::gui
