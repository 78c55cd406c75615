#include "gui/pages/live/live_charts.h"

#include <QGridLayout>
#include <QMenu>
#include <algorithm>
#include <set>

#include "gui/models/service_words.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace {

constexpr int kColumnCharacters = 64, kColumnsMost = 3;
constexpr int kChartLines = 15;

QString settings_key(const std::string& id) {
  return QStringLiteral("live/chart_") + to_text(id);
}

}  // namespace

LiveCharts::LiveCharts(AppSettings& settings, QWidget* parent)
    : QScrollArea(parent), settings_(settings) {
  setFocusPolicy(Qt::ClickFocus);  // the tab key passes: it would show no focus
  setObjectName("charts");
  setAccessibleName(tr("Charts of the run"));
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  inside_ = new QWidget;
  grid_ = new QGridLayout(inside_);
  grid_->setContentsMargins({});
  setWidget(inside_);
  menu_ = new QMenu(this);
  menu_->setObjectName("chart_choice");
  rebuild();
}

std::vector<LiveCharts::Spec> LiveCharts::specs() const {
  std::vector<Spec> all = {
      {"loss",
       tr("Loss"),
       ValueUnit::number,
       {{.name = tr("training"), .key = "loss"},
        {.name = tr("evaluation"), .key = "eval_loss", .is_smoothed = false, .has_markers = true}}},
      {"learning_rate",
       tr("Learning rate"),
       ValueUnit::number,
       {{.name = tr("learning rate"), .key = "learning_rate", .is_smoothed = false}}},
      {"grad_norm",
       tr("Gradient norm"),
       ValueUnit::number,
       {{.name = tr("gradient norm"), .key = "grad_norm"}}},
      {"speed",
       tr("Speed"),
       ValueUnit::per_second,
       {{.name = tr("tokens"), .key = "train_tokens_per_second"}}},
      {"memory",
       tr("Memory"),
       ValueUnit::bytes,
       {{.name = tr("host"), .key = "host_bytes", .is_smoothed = false},
        {.name = tr("host, pinned"), .key = "host_bytes_pinned", .is_smoothed = false},
        {.name = tr("GPU"), .key = "gpu_bytes", .is_smoothed = false},
        {.name = tr("GPU, peak"), .key = "gpu_bytes_peak", .is_smoothed = false},
        {.name = tr("NVMe"), .key = "nvme_bytes", .is_smoothed = false}}},
      {"overlap",
       tr("Overlap"),
       ValueUnit::percent,
       {{.name = tr("GPU busy"), .key = "gpu_busy_pct"},
        {.name = tr("transfers hidden"), .key = "overlap_pct"}}},
  };
  for (Spec& spec : evaluation_specs())
    all.push_back(std::move(spec));
  all.push_back({"step_time",
                 tr("Time of a step"),
                 ValueUnit::milliseconds,
                 {{.name = tr("step"), .key = "step_ms"},
                  {.name = tr("update on the CPU"), .key = "cpu_update_ms"}},
                 false});
  all.push_back({"transfers",
                 tr("Transfers of a step"),
                 ValueUnit::bytes,
                 {{.name = tr("to the GPU"), .key = "h2d_bytes"},
                  {.name = tr("from the GPU"), .key = "d2h_bytes"},
                  {.name = tr("read from NVMe"), .key = "nvme_read_bytes"},
                  {.name = tr("written to NVMe"), .key = "nvme_write_bytes"}},
                 false});
  all.push_back({"loss_scale",
                 tr("Loss scale"),
                 ValueUnit::number,
                 {{.name = tr("loss scale"), .key = "loss_scale", .is_smoothed = false}},
                 false});
  for (Spec& spec : all) {
    // Looks stay with a curve whatever others the run has.
    for (size_t i = 0; i < spec.curves.size(); ++i) {
      spec.curves[i].style = static_cast<int>(i);
      spec.curves[i].reader = reader_;
      spec.curves[i].run = run_;
    }
    std::erase_if(spec.curves, [this](const ChartCurve& curve) {
      return !reader_ || !reader_->find(curve.key);
    });
  }
  // The loss is what everybody waits for: its chart is there from the beginning.
  std::erase_if(all, [](const Spec& spec) { return spec.curves.empty() && spec.id != "loss"; });
  return all;
}

std::vector<LiveCharts::Spec> LiveCharts::evaluation_specs() const {
  Spec shares{"eval", tr("Evaluation"), ValueUnit::number, {}};
  std::vector<Spec> others;
  if (!reader_) return {};
  for (const auto& [key, series] : reader_->curves()) {
    if (!key.starts_with("eval_") || key == "eval_loss") continue;
    const ChartCurve curve{
        .name = metric_words(key), .key = key, .is_smoothed = false, .has_markers = true};
    const auto extent = extent_of(series.points());
    // Shares and correlations have one axis; a perplexity needs its own.
    const bool is_share = !extent || (extent->min >= -1.0001 && extent->max <= 1.0001);
    if (is_share && shares.curves.size() < 6)
      shares.curves.push_back(curve);
    else
      others.push_back({key, tr("Evaluation: %1").arg(curve.name), ValueUnit::number, {curve}});
  }
  if (!shares.curves.empty()) others.insert(others.begin(), std::move(shares));
  return others;
}

void LiveCharts::show_run(const service::MetricsReader* reader, const std::filesystem::path& run) {
  for (const auto& [id, chart] : charts_)
    chart->set_curves({});
  reader_ = reader;
  run_ = run;
  rebuild();
}

void LiveCharts::update_data(bool anew) {
  const size_t n_curves = reader_ ? reader_->curves().size() : 0;
  if (anew || n_curves != n_curves_) return rebuild();
  for (const auto& [id, chart] : charts_)
    chart->update_data();
}

void LiveCharts::rebuild() {
  n_curves_ = reader_ ? reader_->curves().size() : 0;
  const std::vector<Spec> wanted = specs();
  std::vector<std::string> order;
  for (const Spec& spec : wanted) {
    order.push_back(spec.id);
    CurveChart*& chart = charts_[spec.id];
    if (!chart) {
      chart = new CurveChart(spec.title, spec.unit, inside_);
      chart->setObjectName(QStringLiteral("chart_") + to_text(spec.id));
      chart->setMinimumHeight(kChartLines * fontMetrics().height());
      chart->set_smoothing(smoothing_);
      chart->hide();
    }
    usual_[spec.id] = spec.is_usual;
    chart->set_curves(spec.curves);
  }
  for (auto it = charts_.begin(); it != charts_.end();) {
    if (std::ranges::find(order, it->first) != order.end()) {
      ++it;
      continue;
    }
    delete it->second;
    it = charts_.erase(it);
  }
  if (order != order_) {
    order_ = std::move(order);
    menu_->clear();
    for (const std::string& id : order_) {
      QAction* const action = menu_->addAction(charts_[id]->title());
      action->setObjectName(QStringLiteral("show_chart_") + to_text(id));
      action->setCheckable(true);
      action->setChecked(is_shown(id));
      connect(action, &QAction::toggled, this, [this, id](bool shown) { set_shown(id, shown); });
    }
  }
  arrange();
}

CurveChart* LiveCharts::chart(const std::string& id) const {
  const auto found = charts_.find(id);
  return found == charts_.end() ? nullptr : found->second;
}

bool LiveCharts::is_shown(const std::string& id) const {
  const auto usual = usual_.find(id);
  return settings_.value(settings_key(id), usual == usual_.end() || usual->second).toBool();
}

void LiveCharts::set_shown(const std::string& id, bool shown) {
  settings_.set_value(settings_key(id), shown);
  arrange();
}

std::vector<CurveChart*> LiveCharts::shown_charts() const {
  std::vector<CurveChart*> shown;
  for (const std::string& id : order_)
    if (is_shown(id)) shown.push_back(chart(id));
  return shown;
}

void LiveCharts::set_smoothing(double weight) {
  smoothing_ = weight;
  for (const auto& [id, chart] : charts_)
    chart->set_smoothing(weight);
}

void LiveCharts::arrange() {
  const std::vector<CurveChart*> shown = shown_charts();
  const int n_shown = static_cast<int>(shown.size());
  n_columns_ =
      std::clamp(viewport()->width() / (kColumnCharacters * fontMetrics().averageCharWidth()), 1,
                 std::max(1, std::min(kColumnsMost, n_shown)));
  while (QLayoutItem* const item = grid_->takeAt(0))
    delete item;
  const std::set<CurveChart*> kept(shown.begin(), shown.end());
  for (const auto& [id, chart] : charts_)
    if (!kept.contains(chart)) chart->hide();
  for (int column = 0; column < kColumnsMost; ++column)
    grid_->setColumnStretch(column, column < n_columns_ ? 1 : 0);
  QWidget* before = nullptr;
  for (int i = 0; i < n_shown; ++i) {
    CurveChart* const chart = shown[static_cast<size_t>(i)];
    // The last one takes what is left of its row.
    const bool is_last = i == n_shown - 1;
    const int column = i % n_columns_;
    grid_->addWidget(chart, i / n_columns_, column, 1, is_last ? n_columns_ - column : 1);
    chart->show();
    if (before) setTabOrder(before, chart);
    before = chart;
  }
}

void LiveCharts::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  const int n =
      std::clamp(viewport()->width() / (kColumnCharacters * fontMetrics().averageCharWidth()), 1,
                 std::max(1, std::min(kColumnsMost, static_cast<int>(shown_charts().size()))));
  if (n != n_columns_) arrange();
}

}  // namespace ferry::gui
