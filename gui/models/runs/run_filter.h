#pragma once
// The list of runs as the page shows it: sorted, and only those that were searched for.

#include <QSortFilterProxyModel>
#include <optional>

#include "gui/models/runs/run_list_model.h"

namespace ferry::gui {

class RunFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit RunFilter(RunListModel& runs, QObject* parent = nullptr);

  /** Each word is somewhere in the run's name, path, model, data, task or state. */
  void set_search(const QString& text);
  void set_group(std::optional<RunGroup> group);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  QStringList words_;
  std::optional<RunGroup> group_;
};

}  // namespace ferry::gui
