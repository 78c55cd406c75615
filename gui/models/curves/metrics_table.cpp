#include "gui/models/curves/metrics_table.h"

#include <QLocale>
#include <algorithm>

#include "gui/models/text.h"

namespace ferry::gui {

namespace {

constexpr int kRows_of_block = 128;
constexpr size_t kBlocks = 16;

}  // namespace

void MetricsTable::show(const service::MetricsReader* reader, std::vector<MetricsColumn> columns) {
  beginResetModel();
  reader_ = reader;
  columns_ = std::move(columns);
  blocks_.clear();
  trouble_.clear();
  n_rows_ = reader_ ? static_cast<int>(std::min<int64_t>(reader_->n_rows(), INT_MAX)) : 0;
  endResetModel();
}

void MetricsTable::update() {
  if (!reader_) return;
  const int now = static_cast<int>(std::min<int64_t>(reader_->n_rows(), INT_MAX));
  if (now < n_rows_) return show(reader_, std::move(columns_));
  if (now == n_rows_) return;
  // A block at the end has more rows now.
  std::erase_if(blocks_, [](const Block& block) { return block.rows.size() < kRows_of_block; });
  beginInsertRows({}, n_rows_, now - 1);
  n_rows_ = now;
  endInsertRows();
}

int MetricsTable::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : n_rows_;
}

int MetricsTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size()) + 1;
}

const service::MetricsRow* MetricsTable::row(int number) const {
  const int first = number / kRows_of_block * kRows_of_block;
  auto block = std::ranges::find(blocks_, first, &Block::first);
  if (block == blocks_.end()) {
    Block read{.first = first, .rows = {}};
    const QString before = trouble_;
    trouble_ = trouble_of([&] {
                 reader_->read_rows(first, [&](const service::MetricsRow& row) {
                   read.rows.push_back(row);
                   return read.rows.size() < kRows_of_block;
                 });
               }).value_or(QString());
    if (trouble_ != before) emit trouble_changed(trouble_);
    blocks_.push_front(std::move(read));
    if (blocks_.size() > kBlocks) blocks_.pop_back();
    block = blocks_.begin();
  } else {
    blocks_.splice(blocks_.begin(), blocks_, block);
    block = blocks_.begin();
  }
  const auto at = static_cast<size_t>(number - first);
  return at < block->rows.size() ? &block->rows[at] : nullptr;
}

QVariant MetricsTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !reader_ || index.row() >= n_rows_) return {};
  if (role == Qt::TextAlignmentRole) return QVariant(kNumberSide);
  if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole) return {};
  const service::MetricsRow* const shown = row(index.row());
  if (!shown) return {};
  QString text;
  if (index.column() == 0) {
    text = QLocale().toString(static_cast<qlonglong>(shown->step));
  } else {
    const MetricsColumn& column = columns_[static_cast<size_t>(index.column() - 1)];
    if (!shown->has(column.key)) return {};
    text = value_text(shown->value(column.key), column.unit);
  }
  if (role == Qt::DisplayRole) return text;
  return QStringLiteral("%1: %2").arg(
      headerData(index.column(), Qt::Horizontal, Qt::DisplayRole).toString(), text);
}

QVariant MetricsTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  if (section == 0) return tr("Step");
  if (section > static_cast<int>(columns_.size())) return {};
  return columns_[static_cast<size_t>(section - 1)].name;
}

}  // namespace ferry::gui
