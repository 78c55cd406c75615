#include "gui/pages/compare/compare_page.h"

#include <QAction>
#include <QComboBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSaveFile>
#include <QSplitter>
#include <QStackedLayout>
#include <QTabWidget>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <set>

#include "gui/models/runs/run_progress.h"
#include "gui/models/service_words.h"
#include "gui/models/text.h"
#include "gui/widgets/charts/curve_chart.h"
#include "gui/widgets/charts/curve_style.h"
#include "gui/widgets/charts/smoothing_box.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/look.h"
#include "gui/widgets/notice.h"
#include "gui/widgets/runs/run_chooser.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

constexpr int kAgainMs = 20'000;

struct Metric {
  const char* key;
  QString name;
  ValueUnit unit;
};

std::vector<Metric> known_metrics() {
  return {{"loss", ComparePage::tr("Training loss"), ValueUnit::number},
          {"eval_loss", ComparePage::tr("Evaluation loss"), ValueUnit::number},
          {"learning_rate", ComparePage::tr("Learning rate"), ValueUnit::number},
          {"grad_norm", ComparePage::tr("Gradient norm"), ValueUnit::number},
          {"train_tokens_per_second", ComparePage::tr("Tokens per second"), ValueUnit::per_second},
          {"step_ms", ComparePage::tr("Time of a step"), ValueUnit::milliseconds},
          {"host_bytes", ComparePage::tr("Host memory"), ValueUnit::bytes},
          {"gpu_bytes", ComparePage::tr("GPU memory"), ValueUnit::bytes},
          {"gpu_bytes_peak", ComparePage::tr("GPU memory, peak"), ValueUnit::bytes},
          {"gpu_busy_pct", ComparePage::tr("GPU busy"), ValueUnit::percent},
          {"overlap_pct", ComparePage::tr("Overlap"), ValueUnit::percent}};
}

QTableView* view_of(ComparisonTable& model, const QString& name, const char* object_name) {
  auto* const view = new QTableView;
  view->setObjectName(object_name);
  view->setAccessibleName(name);
  view->setModel(&model);
  view->verticalHeader()->hide();
  view->setAlternatingRowColors(true);
  view->setSelectionMode(QAbstractItemView::ContiguousSelection);
  view->setFrameShape(QFrame::NoFrame);
  view->setWordWrap(false);
  new ColumnFit(view, {.rest = 1, .n_rest = ColumnFit::kToTheLast});
  view->verticalHeader()->setDefaultSectionSize(view->fontMetrics().height() * 3 / 2);
  return view;
}

QString csv_field(QString text) {
  text = without_isolates(text);
  if (!text.contains(',') && !text.contains('"') && !text.contains('\n')) return text;
  return '"' + text.replace("\"", "\"\"") + '"';
}

}  // namespace

ComparePage::ComparePage(Shared& shared, QWidget* parent) : Page(shared, parent) {
  stack_ = new QStackedLayout(this);
  auto* const choose = new QWidget;
  picker_ =
      new RunChooser(shared.runs, tr("Choose two to six runs to compare"), tr("&Compare"), kMost);
  back_ = new QPushButton(tr("&Back"));
  back_->setObjectName("compare_back");
  auto* const column = new QVBoxLayout(choose);
  column->setContentsMargins(kPageMargin, kPageMargin, kPageMargin, kPageMargin);
  column->addWidget(picker_);
  picker_->add_button(back_);
  stack_->addWidget(choose);
  make_runs_page();
  stack_->addWidget(runs_page_);
  back_->hide();
  again_.setInterval(kAgainMs);
  connect(&again_, &QTimer::timeout, this, [this] {
    const bool has_running = std::ranges::any_of(followers_, [](const auto& follower) {
      return run_group(follower->facts().phase) == RunGroup::running;
    });
    if (has_running) comparer_.compare(shown_runs());
  });
  connect(picker_, &RunChooser::chosen, this, &ComparePage::add_runs);
  connect(back_, &QPushButton::clicked, this, [this] { stack_->setCurrentWidget(runs_page_); });
  connect(&comparer_, &Comparer::compared, this,
          [this](const std::shared_ptr<const service::RunComparison>& comparison,
                 const QString& trouble) {
            if (!trouble.isEmpty()) notice_->say(Notice::Kind::warning, trouble);
            if (comparison) show_comparison(*comparison);
          });
}

ComparePage::~ComparePage() {
  chart_->set_curves({});
}

void ComparePage::make_runs_page() {
  runs_page_ = new QWidget;
  auto* const heading = heading_label(tr("Compare runs"), kTitle);
  chips_ = new QWidget;
  chips_->setObjectName("compared_runs");
  add_action_ = new QAction(tr("&Add runs…"), this);
  add_action_->setObjectName("action_add_runs");
  export_action_ = new QAction(tr("&Export the tables as CSV…"), this);
  export_action_->setObjectName("action_export_comparison");
  add_ = new QPushButton(tr("A&dd runs…"));
  add_->setObjectName("add_runs");
  auto* const metric_label = new TextLabel(tr("&Curve"));
  metric_ = new QComboBox;
  metric_->setObjectName("metric");
  metric_->setFocusPolicy(Qt::StrongFocus);
  metric_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  metric_->setAccessibleName(tr("Curve to compare"));
  metric_label->setBuddy(metric_);
  smoothing_ = new SmoothingBox;
  auto* const export_button = new QPushButton(tr("&Export…"));
  export_button->setObjectName("export_comparison");
  export_button->setToolTip(
      tr("Writes results and settings as CSV. The chart's own menu exports "
         "the curves."));
  notice_ = new Notice;
  chart_ = new CurveChart(tr("Training loss"), ValueUnit::number);
  chart_->setObjectName("comparison_chart");
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  tabs_->addTab(view_of(results_, tr("Results"), "results"), tr("&Results"));
  auto* const settings_page = new QWidget;
  same_ = new TextLabel(tr("The runs have the same settings."));
  same_->setAlignment(Qt::AlignCenter);
  same_->setVisible(false);
  auto* const inside = new QVBoxLayout(settings_page);
  inside->setContentsMargins({});
  inside->addWidget(view_of(settings_, tr("Settings that differ"), "settings"), 1);
  inside->addWidget(same_, 1);
  tabs_->addTab(settings_page, tr("Se&ttings that differ"));

  auto* const head = new QHBoxLayout;
  head->addWidget(heading);
  head->addStretch(1);
  head->addWidget(add_);
  head->addWidget(export_button);
  auto* const looks = new QHBoxLayout;
  looks->addWidget(metric_label);
  looks->addWidget(metric_);
  notice_->keep_room();
  looks->addWidget(notice_, 1);
  looks->addWidget(smoothing_);
  auto* const splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(chart_);
  splitter->addWidget(tabs_);
  splitter->setStretchFactor(0, 3);
  splitter->setStretchFactor(1, 2);
  splitter->setCollapsible(0, false);
  splitter->setHandleWidth(2 * style()->pixelMetric(QStyle::PM_SplitterWidth));
  auto* const column = new QVBoxLayout(runs_page_);
  column->setContentsMargins(kPageMargin, kPageMargin, kPageMargin, kPageMargin);
  column->setSpacing(10);
  column->addLayout(head);
  column->addWidget(chips_);
  column->addLayout(looks);
  column->addWidget(splitter, 1);

  connect(add_, &QPushButton::clicked, this, &ComparePage::show_picker);
  connect(add_action_, &QAction::triggered, this, &ComparePage::show_picker);
  connect(metric_, &QComboBox::currentIndexChanged, this, &ComparePage::fill_chart);
  connect(smoothing_, &SmoothingBox::changed, chart_, &CurveChart::set_smoothing);
  const auto ask = [this] {
    auto* const dialog = new QFileDialog(this, tr("Export the comparison"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix("csv");
    dialog->setNameFilter("CSV (*.csv)");
    dialog->selectFile("comparison.csv");
    connect(dialog, &QFileDialog::fileSelected, this, &ComparePage::export_table);
    dialog->open();
  };
  connect(export_button, &QPushButton::clicked, this, ask);
  connect(export_action_, &QAction::triggered, this, ask);
}

std::vector<fs::path> ComparePage::shown_runs() const {
  std::vector<fs::path> runs;
  for (const auto& follower : followers_)
    runs.push_back(follower->run());
  return runs;
}

QString ComparePage::name_of(const fs::path& run) const {
  // Runs of the same name are told apart by the directory above.
  const auto same = std::ranges::count_if(
      followers_, [&](const auto& other) { return other->run().filename() == run.filename(); });
  return same > 1 ? path_text(run.parent_path().filename() / run.filename())
                  : path_text(run.filename());
}

void ComparePage::show_runs(const std::vector<fs::path>& runs) {
  set_runs(runs);
}

void ComparePage::add_runs(const std::vector<fs::path>& runs) {
  std::vector<fs::path> all = shown_runs();
  all.insert(all.end(), runs.begin(), runs.end());
  set_runs(std::move(all));
}

void ComparePage::remove_run(const fs::path& run) {
  std::vector<fs::path> all = shown_runs();
  std::erase(all, run);
  set_runs(std::move(all));
}

void ComparePage::set_runs(std::vector<fs::path> runs) {
  std::vector<fs::path> wanted;
  for (const fs::path& run : runs)
    if (wanted.size() < kMost && std::ranges::find(wanted, run) == wanted.end())
      wanted.push_back(run);
  chart_->set_curves({});  // before the metrics go that it shows
  std::vector<std::unique_ptr<RunFollower>> before = std::move(followers_);
  followers_.clear();
  for (const fs::path& run : wanted) {
    const auto known = std::ranges::find_if(
        before, [&](const auto& follower) { return follower && follower->run() == run; });
    if (known != before.end()) {
      followers_.push_back(std::move(*known));
      continue;
    }
    followers_.push_back(std::make_unique<RunFollower>(run));
    connect(followers_.back().get(), &RunFollower::metrics_changed, this, [this](bool anew) {
      fill_metrics();
      if (anew)
        fill_chart();
      else
        chart_->update_data();
    });
    connect(followers_.back().get(), &RunFollower::ended, this,
            [this] { comparer_.compare(shown_runs()); });
    followers_.back()->set_active(is_active_);
  }
  before.clear();
  n_metrics_ = 0;
  fill_chips();
  fill_metrics();
  fill_chart();
  if (followers_.empty()) return show_picker();
  stack_->setCurrentWidget(runs_page_);
  if (followers_.size() < 2)
    notice_->say(Notice::Kind::info, tr("Add another run to compare it with."));
  else
    notice_->say(Notice::Kind::info, {});
  comparer_.compare(shown_runs());
}

void ComparePage::show_picker() {
  back_->setVisible(!followers_.empty());
  stack_->setCurrentIndex(0);
  shared().runs.refresh();
}

void ComparePage::set_active(bool active) {
  is_active_ = active;
  for (const auto& follower : followers_)
    follower->set_active(active);
  if (!active) return again_.stop();
  again_.start();
  if (stack_->currentIndex() == 0) shared().runs.refresh();
}

QList<QAction*> ComparePage::page_actions() {
  return {add_action_, export_action_};
}

QString ComparePage::notice() const {
  return notice_->text();
}

void ComparePage::fill_chips() {
  qDeleteAll(chips_->findChildren<QWidget*>(Qt::FindDirectChildrenOnly));
  delete chips_->layout();
  auto* const grid = new QGridLayout(chips_);
  grid->setContentsMargins({});
  const int kColumns = std::clamp(static_cast<int>(followers_.size()), 2, 3);
  for (size_t i = 0; i < followers_.size(); ++i) {
    const fs::path run = followers_[i]->run();
    const QString name = name_of(run);
    auto* const chip = new QWidget;
    auto* const row = new QHBoxLayout(chip);
    row->setContentsMargins({});
    auto* const label = new TextLabel(name);  // ends in dots only where there is no room
    label->setAccessibleName(name);
    label->setToolTip(path_text(run));
    auto* const watch = new QToolButton;
    watch->setText(tr("Live"));
    watch->setAccessibleName(tr("Watch %1").arg(name));
    watch->setAutoRaise(true);
    auto* const remove = new QToolButton;
    remove->setObjectName(QStringLiteral("remove_run_%1").arg(i));
    remove->setText(QStringLiteral("×"));
    remove->setAutoRaise(true);
    remove->setAccessibleName(tr("Leave out %1").arg(name));
    remove->setToolTip(tr("Leaves this run out"));
    row->addWidget(new CurveSample(static_cast<int>(i)));
    row->addWidget(label);
    row->addWidget(watch);
    row->addWidget(remove);
    row->addStretch(1);
    grid->addWidget(chip, static_cast<int>(i) / kColumns, static_cast<int>(i) % kColumns);
    connect(watch, &QToolButton::clicked, this,
            [this, run] { emit shared().navigator.live_wanted(run); });
    // Its chip goes with it: after the click.
    connect(
        remove, &QToolButton::clicked, this, [this, run] { remove_run(run); },
        Qt::QueuedConnection);
  }
  for (int column = 0; column < kColumns; ++column)
    grid->setColumnStretch(column, 1);
  const bool is_full = followers_.size() >= kMost;
  for (QAction* const action : {add_action_})
    action->setEnabled(!is_full);
  add_->setEnabled(!is_full);
  add_->setToolTip(is_full ? tr("At most %n runs are compared", nullptr, kMost) : QString());
}

void ComparePage::fill_metrics() {
  std::set<std::string> keys;
  for (const auto& follower : followers_)
    for (const auto& [key, series] : follower->metrics().curves())
      keys.insert(key);
  if (keys.size() == n_metrics_ && metric_->count() > 0) return;
  n_metrics_ = keys.size();
  const QString chosen = metric_->currentData().toString();
  const QSignalBlocker blocker(metric_);
  metric_->clear();
  for (const Metric& metric : known_metrics())
    if (keys.erase(metric.key) > 0 || std::string_view(metric.key) == "loss")
      metric_->addItem(metric.name, QString::fromLatin1(metric.key));
  for (const std::string& key : keys)
    if (key.starts_with("eval_"))
      metric_->addItem(tr("Evaluation %1").arg(isolated(metric_words(key))), to_text(key));
  metric_->setCurrentIndex(std::max(0, metric_->findData(chosen)));
}

void ComparePage::fill_chart() {
  const std::string key = metric_->currentData().toString().toStdString();
  ValueUnit unit = ValueUnit::number;
  for (const Metric& metric : known_metrics())
    if (key == metric.key) unit = metric.unit;
  chart_->set_title(metric_->currentText());
  chart_->set_unit(unit);
  const bool is_evaluation = key.starts_with("eval_");
  std::vector<ChartCurve> curves;
  for (const auto& follower : followers_)
    curves.push_back(
        {.name = name_of(follower->run()),
         .key = key,
         .reader = &follower->metrics(),
         .run = follower->run(),
         .is_smoothed = !is_evaluation && key != "learning_rate" && unit != ValueUnit::bytes,
         .has_markers = is_evaluation});
  chart_->set_curves(std::move(curves));
}

void ComparePage::show_comparison(const service::RunComparison& comparison) {
  QStringList names;
  for (const auto& follower : followers_)
    names << name_of(follower->run());
  results_.show(names, result_lines(comparison));
  settings_.show(names, setting_lines(comparison));
  const bool is_same = comparison.settings.empty();
  same_->setVisible(is_same);
  runs_page_->findChild<QTableView*>("settings")->setVisible(!is_same);
  const int n = static_cast<int>(comparison.settings.size());
  tabs_->setTabText(1, tr("Se&ttings that differ (%1)").arg(n));
}

void ComparePage::export_table(const QString& file) {
  QSaveFile target(file);
  bool is_written = target.open(QIODevice::WriteOnly);
  if (is_written) {
    QString text;
    for (const ComparisonTable* const table : {&results_, &settings_}) {
      for (int row = text.isEmpty() ? -1 : 0; row < table->rowCount(); ++row) {
        QStringList fields;
        for (int column = 0; column < table->columnCount(); ++column)
          fields << csv_field(
              row < 0 ? table->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString()
                      : table->index(row, column).data().toString());
        text += fields.join(',') + '\n';
      }
    }
    const QByteArray bytes = text.toUtf8();
    is_written = target.write(bytes) == bytes.size();
  }
  is_written = is_written && target.commit();
  notice_->say(is_written ? Notice::Kind::good : Notice::Kind::warning,
               is_written ? tr("Written: %1").arg(file)
                          : tr("%1 cannot be written: %2").arg(file, target.errorString()));
}

}  // namespace ferry::gui
