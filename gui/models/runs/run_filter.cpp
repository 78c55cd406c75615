#include "gui/models/runs/run_filter.h"

namespace ferry::gui {

RunFilter::RunFilter(RunListModel& runs, QObject* parent) : QSortFilterProxyModel(parent) {
  setSourceModel(&runs);
  setSortRole(RunListModel::sort_role);
  setFilterRole(RunListModel::search_role);
  setSortLocaleAware(true);
  setDynamicSortFilter(true);
}

void RunFilter::set_search(const QString& text) {
  words_ = text.simplified().split(' ', Qt::SkipEmptyParts);
  invalidateFilter();
}

void RunFilter::set_group(std::optional<RunGroup> group) {
  group_ = group;
  invalidateFilter();
}

bool RunFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
  const QModelIndex index = sourceModel()->index(row, RunListModel::name, parent);
  if (group_ && index.data(RunListModel::group_role).toInt() != static_cast<int>(*group_))
    return false;
  if (words_.isEmpty()) return true;
  const QString text = index.data(RunListModel::search_role).toString();
  return std::all_of(words_.begin(), words_.end(),
                     [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
}

}  // namespace ferry::gui
