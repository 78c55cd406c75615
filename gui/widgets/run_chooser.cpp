#include "gui/widgets/run_chooser.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/models/run_progress.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

constexpr int kPath = Qt::UserRole;

}  // namespace

RunChooser::RunChooser(const QString& title, const QString& button, int most, QWidget* parent)
    : QWidget(parent), most_(most) {
  auto* const heading = new QLabel(title);
  QFont large = font();
  large.setBold(true);
  large.setPointSizeF(large.pointSizeF() * 1.3);
  heading->setFont(large);
  search_ = new QLineEdit;
  search_->setObjectName("picker_search");
  search_->setPlaceholderText(tr("Search by name, model or state"));
  search_->setAccessibleName(tr("Search runs"));
  search_->setClearButtonEnabled(true);
  list_ = new QTreeWidget;
  list_->setObjectName("picker_runs");
  list_->setAccessibleName(title);
  list_->setRootIsDecorated(false);
  list_->setUniformRowHeights(true);
  list_->setAlternatingRowColors(true);
  list_->setSelectionMode(most > 1 ? QAbstractItemView::ExtendedSelection
                                   : QAbstractItemView::SingleSelection);
  list_->setHeaderLabels({tr("Run"), tr("State"), tr("Model"), tr("Created")});
  list_->header()->setStretchLastSection(false);
  list_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  for (const int column : {1, 2, 3})
    list_->header()->setSectionResizeMode(column, QHeaderView::ResizeToContents);
  empty_ = new QLabel(tr("Looking for runs…"));
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
  connect(&runs_, &RecentRuns::found, this, &RunChooser::fill);
  connect(search_, &QLineEdit::textChanged, this, &RunChooser::filter);
  connect(list_, &QTreeWidget::itemSelectionChanged, this, &RunChooser::update_button);
  connect(list_, &QTreeWidget::itemActivated, this, &RunChooser::choose);
  connect(button_, &QPushButton::clicked, this, &RunChooser::choose);
}

void RunChooser::look(const fs::path& directory) {
  runs_.look(directory);
}

void RunChooser::add_button(QPushButton* button) {
  buttons_->insertWidget(0, button);
}

void RunChooser::fill() {
  const auto kept = selected();
  list_->clear();
  for (const RecentRun& run : runs_.runs()) {
    auto* const item =
        new QTreeWidgetItem(list_, {run.name, phase_word(run.phase), run.model, run.created});
    item->setData(0, kPath, path_text(run.path));
    item->setSizeHint(0, QSize(0, fontMetrics().height() * 3 / 2));
    item->setToolTip(0, path_text(run.path));
    if (std::ranges::find(kept, run.path) != kept.end()) item->setSelected(true);
  }
  const bool is_empty = runs_.runs().empty();
  empty_->setText(tr("There are no runs yet."));
  empty_->setVisible(is_empty);
  search_->setEnabled(!is_empty);
  if (!is_empty && list_->selectedItems().isEmpty()) list_->setCurrentItem(list_->topLevelItem(0));
  filter(search_->text());
  update_button();
}

void RunChooser::filter(const QString& text) {
  for (int i = 0; i < list_->topLevelItemCount(); ++i) {
    QTreeWidgetItem* const item = list_->topLevelItem(i);
    bool has = text.isEmpty();
    for (int column = 0; column < 3 && !has; ++column)
      has = item->text(column).contains(text, Qt::CaseInsensitive);
    item->setHidden(!has);
  }
}

std::vector<fs::path> RunChooser::selected() const {
  std::vector<fs::path> paths;
  // In the order of the list, not of the clicks.
  for (int i = 0; i < list_->topLevelItemCount(); ++i)
    if (const QTreeWidgetItem* const item = list_->topLevelItem(i);
        item->isSelected() && !item->isHidden())
      paths.push_back(to_path(item->data(0, kPath).toString()));
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
