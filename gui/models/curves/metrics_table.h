#pragma once
// metrics.jsonl as a table: a line of the file is a row, read when it is shown. A million rows take
// no more memory than a few.

#include <QAbstractTableModel>
#include <list>
#include <string>
#include <vector>

#include "gui/models/curves/curve.h"
#include "src/service/runs/metrics_reader.h"

namespace ferry::gui {

struct MetricsColumn {
  std::string key;
  QString name;
  ValueUnit unit = ValueUnit::number;
};

class MetricsTable : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;

  /** The rows of this reader, which outlives the table or is taken away with null; beside the step
   * these columns. */
  void show(const service::MetricsReader* reader, std::vector<MetricsColumn> columns);
  /** The reader has more rows, or began anew. */
  void update();
  /** Why rows cannot be read; empty: they can. */
  const QString& trouble() const { return trouble_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 signals:
  void trouble_changed(const QString& trouble) const;

 private:
  struct Block {
    int first;
    std::vector<service::MetricsRow> rows;
  };
  /** Null where it cannot be read. */
  const service::MetricsRow* row(int number) const;

  const service::MetricsReader* reader_ = nullptr;
  std::vector<MetricsColumn> columns_;
  int n_rows_ = 0;
  mutable std::list<Block> blocks_;  // the one that was used last first
  mutable QString trouble_;
};

}  // namespace ferry::gui
