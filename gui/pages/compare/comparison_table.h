#pragma once
// Runs beside each other as a table: a column a run, a line a result or a setting that differs.

#include <QAbstractTableModel>
#include <QStringList>
#include <vector>

#include "src/service/runs/comparison.h"

namespace ferry::gui {

struct ComparisonLine {
  QString name;
  QStringList values;  ///< one a run; empty: it has none
  QString tip = {};
};

std::vector<ComparisonLine> result_lines(const service::RunComparison& comparison);
std::vector<ComparisonLine> setting_lines(const service::RunComparison& comparison);

class ComparisonTable : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;
  void show(QStringList runs, std::vector<ComparisonLine> lines);
  const std::vector<ComparisonLine>& lines() const { return lines_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QStringList runs_;
  std::vector<ComparisonLine> lines_;
};

}  // namespace ferry::gui
