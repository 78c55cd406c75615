#include "gui/widgets/runs/run_chooser.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStyledItemDelegate>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/models/text.h"
#include "gui/widgets/column_fit.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

/** Rows with some air. */
class RowDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QSize size = QStyledItemDelegate::sizeHint(option, index);
    return {size.width(), option.fontMetrics.height() * 3 / 2};
  }
};

}  // namespace

RunChooser::RunChooser(
    RunListModel& runs, const QString& title, const QString& button, int most, QWidget* parent)
    : QWidget(parent), runs_(runs), filter_(runs), most_(most) {
  auto* const heading = heading_label(title, kTitle);
  search_ = new QLineEdit;
  search_->setObjectName("picker_search");
  search_->setPlaceholderText(tr("Search by name, model or state"));
  search_->setAccessibleName(tr("Search runs"));
  search_->setClearButtonEnabled(true);
  list_ = new QTreeView;
  list_->setObjectName("picker_runs");
  list_->setAccessibleName(title);
  list_->setModel(&filter_);
  list_->setItemDelegate(new RowDelegate(list_));
  list_->setRootIsDecorated(false);
  list_->setUniformRowHeights(true);
  list_->setAlternatingRowColors(true);
  list_->setSelectionMode(most > 1 ? QAbstractItemView::ExtendedSelection
                                   : QAbstractItemView::SingleSelection);
  QHeaderView& header = *list_->header();
  for (int column = 0; column < RunListModel::kColumns; ++column)
    header.hideSection(column);
  int place = 0;
  for (const int column :
       {RunListModel::name, RunListModel::state, RunListModel::model, RunListModel::started}) {
    header.showSection(column);
    header.moveSection(header.visualIndex(column), place++);
  }
  new ColumnFit(list_, {.rest = RunListModel::name, .most_rest_chars = 72, .keeps_widths = true});
  empty_ = new TextLabel(tr("Looking for runs…"));
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  button_ = new QPushButton(button);
  button_->setObjectName("picker_choose");
  button_->setEnabled(false);
  buttons_ = new QHBoxLayout;
  buttons_->addStretch(1);
  buttons_->addWidget(button_);
  auto* const column = new QVBoxLayout(this);
  column->setContentsMargins({});
  column->addWidget(heading);
  column->addWidget(search_);
  column->addWidget(list_, 1);
  column->addWidget(empty_);
  column->addLayout(buttons_);
  connect(&runs_, &RunListModel::searched, this, &RunChooser::show_runs);
  connect(&filter_, &RunFilter::rowsInserted, this, &RunChooser::show_runs);
  connect(&filter_, &RunFilter::rowsRemoved, this, &RunChooser::show_runs);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& text) {
    filter_.set_search(text);
    show_runs();
  });
  connect(list_->selectionModel(), &QItemSelectionModel::selectionChanged, this,
          &RunChooser::update_button);
  connect(list_, &QTreeView::activated, this, &RunChooser::choose);
  connect(button_, &QPushButton::clicked, this, &RunChooser::choose);
  show_runs();
}

void RunChooser::add_button(QPushButton* button) {
  buttons_->insertWidget(0, button);
}

void RunChooser::show_runs() {
  const bool is_empty = runs_.rowCount() == 0;
  empty_->setText(
      runs_.is_loading()
          ? tr("Looking for runs…")
          : tr("There are no runs yet. Start offers a first one that fits this machine."));
  empty_->setVisible(is_empty);
  search_->setEnabled(!is_empty);
  if (!list_->selectionModel()->hasSelection() && filter_.rowCount() > 0)
    list_->setCurrentIndex(filter_.index(0, RunListModel::name));
  update_button();
}

std::vector<fs::path> RunChooser::selected() const {
  QModelIndexList rows = list_->selectionModel()->selectedRows();
  // In the order of the list, not of the clicks.
  std::ranges::sort(rows, {}, &QModelIndex::row);
  std::vector<fs::path> paths;
  for (const QModelIndex& row : rows)
    paths.push_back(to_path(row.data(RunListModel::path_role).toString()));
  return paths;
}

void RunChooser::update_button() {
  const size_t n = selected().size();
  const bool is_too_many = n > static_cast<size_t>(most_);
  button_->setEnabled(n > 0 && !is_too_many);
  button_->setToolTip(is_too_many ? tr("At most %n runs", nullptr, most_) : QString());
}

void RunChooser::choose() {
  if (const auto paths = selected(); !paths.empty() && paths.size() <= static_cast<size_t>(most_))
    emit chosen(paths);
}

}  // namespace ferry::gui
