// The table of the list of runs: texts, numbers to sort by, what a screen reader says.

#include <QLocale>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "gui/models/runs/run_list_row.h"
#include "gui/models/text.h"

namespace ferry::gui {

using nlohmann::ordered_json;

namespace {

QString number_text(double value) {
  return std::isfinite(value) ? QLocale().toString(value, 'g', 4) : QString();
}

/** The last part of a path or of the hub's name of something. */
QString name_in_list(const QString& path) {
  const QString trimmed = path.endsWith('/') ? path.chopped(1) : path;
  return trimmed.section('/', -1);
}

}  // namespace

int RunListModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int RunListModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kColumns;
}

QVariant RunListModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= kColumns) return {};
  const bool is_number = section == loss || section == time || section == speed;
  if (role == Qt::TextAlignmentRole)
    return QVariant(is_number ? kNumberSide : Qt::AlignLeading | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case state:
      return tr("State");
    case name:
      return tr("Name");
    case model:
      return tr("Model");
    case data_set:
      return tr("Data and task");
    case loss:
      return tr("Loss");
    case curve:
      return tr("Curve");
    case progress:
      return tr("Progress");
    case time:
      return tr("Time");
    case speed:
      return tr("Tokens/s");
    default:
      return tr("Started");
  }
}

QVariant RunListModel::shown(const Row& row, int column) const {
  const ordered_json& record = row.watch.record();
  const QLocale locale;
  switch (column) {
    case state:
      if (row.is_starting) return tr("Starting");
      if (!row.start_failure.isEmpty()) return tr("Not started");
      if (row.gone_since) return tr("Removed");
      return row.is_looked_at ? state_text(row.facts) : tr("Reading");
    case name:
      return run_name(row.path);
    case model:
      return name_in_list(text_in(record, "model"));
    case data_set: {
      const QString data = name_in_list(text_in(record, "dataset"));
      if (row.task.isEmpty()) return data;
      return data.isEmpty() ? row.task : tr("%1 (%2)", "data and task").arg(data, row.task);
    }
    case loss:
      return number_text(row.loss);
    case curve:
      return {};
    case progress: {
      const int64_t all = steps_in(record);
      if (all <= 0) return row.n_steps > 0 ? locale.toString(qlonglong{row.n_steps}) : QString();
      const int percent = static_cast<int>(100.0 * static_cast<double>(std::min(row.n_steps, all)) /
                                           static_cast<double>(all));
      return tr("%3 % (%1/%2)", "steps done, all steps, percent")
          .arg(locale.toString(qlonglong{row.n_steps}), locale.toString(qlonglong{all}))
          .arg(percent);
    }
    case time:
      return row.seconds >= 1 ? duration_text(row.seconds) : QString();
    case speed:
      return std::isfinite(row.speed) ? locale.toString(qlonglong(std::llround(row.speed)))
                                      : QString();
    default:
      return time_text(time_of_record(record, "started"));
  }
}

QVariant RunListModel::sorted_by(const Row& row, int column) const {
  const ordered_json& record = row.watch.record();
  const auto number = [](double value) { return std::isfinite(value) ? value : -1.0; };
  switch (column) {
    case state:
      return static_cast<int>(run_group(row.facts.phase)) * 2 + (row.is_alive() ? 0 : 1);
    case loss:
      return std::isfinite(row.loss) ? row.loss : std::numeric_limits<double>::max();
    case curve:
    case progress: {
      const int64_t all = steps_in(record);
      return all > 0 ? static_cast<double>(row.n_steps) / static_cast<double>(all) : -1.0;
    }
    case time:
      return row.seconds;
    case speed:
      return number(row.speed);
    case started: {
      const QString at = text_in(record, "started");
      return at.isEmpty() ? row.created : at;
    }
    default:
      return shown(row, column).toString().toCaseFolded();
  }
}

QString RunListModel::spoken(const Row& row, int column) const {
  const QString text = shown(row, column).toString();
  if (column != curve) {
    const QString header = headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
    return tr("%1: %2", "column and value").arg(header, text.isEmpty() ? tr("none") : text);
  }
  double first = kNone, last = kNone;
  int n_gaps = 0;
  for (const QVariant& value : row.curve) {
    const double loss = value.toDouble();
    if (!std::isfinite(loss)) {
      ++n_gaps;
      continue;
    }
    if (!std::isfinite(first)) first = loss;
    last = loss;
  }
  if (!std::isfinite(first)) return tr("Loss curve: none");
  const QString way = last < first ? tr("falling") : last > first ? tr("rising") : tr("level");
  const QString said =
      tr("Loss curve: from %1 to %2, %3").arg(number_text(first), number_text(last), way);
  return n_gaps > 0 ? tr("%1; it has values that are not finite").arg(said) : said;
}

QVariant RunListModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount() || index.column() >= kColumns) return {};
  const Row& row = *rows_[static_cast<size_t>(index.row())];
  const ordered_json& record = row.watch.record();
  switch (role) {
    case Qt::DisplayRole:
      return shown(row, index.column());
    case Qt::AccessibleTextRole:
      return spoken(row, index.column());
    case Qt::TextAlignmentRole:
      return headerData(index.column(), Qt::Horizontal, Qt::TextAlignmentRole);
    case Qt::ToolTipRole:
      switch (index.column()) {
        case state: {
          const QString trouble = trouble_of_row(index.row());
          return trouble.isEmpty() ? why_ended_of(index.row()) : trouble;
        }
        case name:
          return path_text(row.path);
        case model:
          return text_in(record, "model");
        case data_set:
          return text_in(record, "dataset");
        case curve:
          return spoken(row, curve);
        default:
          return {};
      }
    case path_role:
      return path_text(row.path);
    case group_role:
      return static_cast<int>(row.is_starting                ? RunGroup::running
                              : !row.start_failure.isEmpty() ? RunGroup::failed
                                                             : run_group(row.facts.phase));
    case sort_role:
      return sorted_by(row, index.column());
    case sparkline_role:
      return row.curve;
    case progress_role: {
      const int64_t all = steps_in(record);
      if (all <= 0) return {};
      return std::clamp(static_cast<double>(row.n_steps) / static_cast<double>(all), 0.0, 1.0);
    }
    case search_role:
      return QStringList{shown(row, state).toString(), run_name(row.path),
                         path_text(row.path),          text_in(record, "model"),
                         text_in(record, "dataset"),   row.task}
          .join('\n');
    default:
      return {};
  }
}

}  // namespace ferry::gui
