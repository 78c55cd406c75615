// The numbers of a chart as a table, and all of it as a file.

#include <QComboBox>
#include <QFileDialog>
#include <QHeaderView>
#include <QSaveFile>
#include <QStackedLayout>
#include <QSvgGenerator>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/widgets/charts/curve_chart.h"
#include "gui/widgets/charts/curve_plot.h"
#include "gui/widgets/charts/curve_style.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

constexpr QSize kPictureSize{1200, 680};

}  // namespace

bool CurveChart::is_table_shown() const {
  return table_page_ && stack_->currentWidget() == table_page_;
}

void CurveChart::set_table_shown(bool shown) {
  table_action_->setChecked(shown);
  if (!table_page_ && shown) {
    table_page_ = new QWidget;
    auto* const column = new QVBoxLayout(table_page_);
    column->setContentsMargins({});
    table_run_ = new QComboBox;
    table_run_->setAccessibleName(tr("Run of the table"));
    table_view_ = new QTableView;
    table_view_->setObjectName("table");
    table_view_->setAccessibleName(tr("%1, table").arg(title_));
    table_view_->setModel(&table_);
    table_view_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_view_->setFrameShape(QFrame::NoFrame);
    table_view_->verticalHeader()->hide();
    table_view_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table_view_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 4);
    new ColumnFit(table_view_, {.rest = 1, .n_rest = ColumnFit::kToTheLast});
    column->addWidget(table_run_);
    column->addWidget(table_view_, 1);
    stack_->addWidget(table_page_);
    connect(table_run_, &QComboBox::activated, this, &CurveChart::fill_table);
  }
  if (!table_page_) return;
  stack_->setCurrentWidget(shown ? table_page_ : static_cast<QWidget*>(plot_));
  if (!shown) return table_.show(nullptr, {});
  leave();
  fill_table();
}

void CurveChart::fill_table() {
  std::vector<const service::MetricsReader*> readers;
  QStringList names;
  for (const ChartCurve& curve : curves_)
    if (curve.reader && std::ranges::find(readers, curve.reader) == readers.end()) {
      readers.push_back(curve.reader);
      names << curve.name;
    }
  QStringList shown;
  for (int i = 0; i < table_run_->count(); ++i)
    shown << table_run_->itemText(i);
  if (shown != names) {
    table_run_->clear();
    table_run_->addItems(names);
  }
  table_run_->setVisible(readers.size() > 1);
  const int chosen = std::max(0, table_run_->currentIndex());
  if (readers.empty()) return table_.show(nullptr, {});
  const auto* const reader = readers[static_cast<size_t>(chosen)];
  std::vector<MetricsColumn> columns;
  for (const ChartCurve& curve : curves_)
    if (curve.reader == reader)
      columns.push_back({curve.key, readers.size() > 1 ? title_ : curve.name, unit_});
  table_.show(reader, std::move(columns));
}

void CurveChart::paint_all(QPaintDevice& device, QSize size) {
  plot_->show_readout(std::nullopt, {});
  show_legend();
  QCPPainter painter(&device);
  const QPalette colours = palette();
  painter.fillRect(QRect({}, size), colours.color(QPalette::Base));
  const QFontMetricsF metrics(font());
  const double margin = metrics.height();
  const QFont title_font = bold_font(font());
  painter.setFont(title_font);
  painter.setPen(colours.color(QPalette::Text));
  QRectF where(margin, margin / 2, size.width() - 2 * margin, size.height() - margin);
  painter.drawText(where, Qt::AlignTop | Qt::AlignLeft, title_);
  where.setTop(where.top() + 1.4 * metrics.height());
  where.setTop(where.top() + draw_legend(&painter, legend_->entries(), where, font(), colours) +
               metrics.height() / 2);
  painter.translate(where.topLeft());
  plot_->toPainter(&painter, static_cast<int>(where.width()), static_cast<int>(where.height()));
  painter.end();
  show_readout();
}

void CurveChart::export_to(const QString& file) {
  done_.clear();
  say({});
  if (file.endsWith(QLatin1String(".csv"), Qt::CaseInsensitive)) {
    std::vector<CsvRun> runs;
    std::vector<std::string> keys;
    for (const ChartCurve& curve : curves_) {
      if (std::ranges::find(runs, curve.run, &CsvRun::run) == runs.end())
        runs.push_back({curve.name, curve.run});
      if (std::ranges::find(keys, curve.key) == keys.end()) keys.push_back(curve.key);
    }
    return csv_.start(std::move(runs), std::move(keys), file);
  }
  QSaveFile target(file);
  bool is_written = target.open(QIODevice::WriteOnly);
  if (is_written && file.endsWith(QLatin1String(".svg"), Qt::CaseInsensitive)) {
    QSvgGenerator svg;
    svg.setOutputDevice(&target);
    svg.setSize(kPictureSize);
    svg.setResolution(logicalDpiX());  // texts as large as they were measured
    svg.setViewBox(QRect({}, kPictureSize));
    svg.setTitle(title_);
    svg.setDescription(summary());
    paint_all(svg, kPictureSize);
  } else if (is_written) {
    constexpr int kScale = 2;
    QImage image(kPictureSize * kScale, QImage::Format_RGB32);
    image.setDevicePixelRatio(kScale);
    image.setText("Description", summary());
    paint_all(image, kPictureSize);
    is_written = image.save(&target, "PNG");
  }
  is_written = is_written && target.commit();
  const QString trouble =
      is_written ? QString() : tr("%1 cannot be written: %2").arg(file, target.errorString());
  done_ = is_written ? tr("Written: %1").arg(file) : QString();
  say(trouble);
  emit exported(file, trouble);
}

void CurveChart::ask_for_file(const QString& kind) {
  auto* const dialog = new QFileDialog(this, tr("Export %1").arg(title_));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(kind);
  dialog->setNameFilter(QStringLiteral("%1 (*.%2)").arg(kind.toUpper(), kind));
  QString name = title_.toLower();
  name.replace('/', '-').replace(' ', '-');
  dialog->selectFile(name + '.' + kind);
  connect(dialog, &QFileDialog::fileSelected, this, &CurveChart::export_to);
  dialog->open();
}

}  // namespace ferry::gui
