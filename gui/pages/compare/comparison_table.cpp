#include "gui/pages/compare/comparison_table.h"

#include <QFont>
#include <QLocale>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "gui/models/curves/curve.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/service_words.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace {

using Json = nlohmann::ordered_json;
using runs::RunSummary;

std::optional<double> number_of(const Json& values, const std::string& key) {
  if (!values.is_object()) return std::nullopt;
  const auto found = values.find(key);
  if (found == values.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

QString shown(std::optional<double> value, ValueUnit unit = ValueUnit::number) {
  return value && std::isfinite(*value) ? value_text(*value, unit) : QString();
}

/** Tokens of all steps by their time: of the last one alone it would be noise. */
std::optional<double> tokens_per_second(const RunSummary& run) {
  const auto tokens = number_of(*run.last_step, "num_input_tokens_seen");
  if (!tokens || run.training_seconds <= 0) return std::nullopt;
  return *tokens / run.training_seconds;
}

/** A setting as people write it: without the quotes of TOML. */
QString plain(const std::string& toml) {
  const QString text = to_text(toml);
  return text.size() >= 2 && text.startsWith('"') && text.endsWith('"')
             ? text.mid(1, text.size() - 2)
             : text;
}

}  // namespace

std::vector<ComparisonLine> result_lines(const service::RunComparison& comparison) {
  std::vector<ComparisonLine> lines;
  const auto add = [&](const QString& name,
                       const std::function<QString(const RunSummary&)>& value) {
    ComparisonLine line{.name = name, .values = {}};
    for (const RunSummary& run : comparison.runs)
      line.values << value(run);
    // A line that no run has a value for is none.
    if (std::ranges::any_of(line.values, [](const QString& v) { return !v.isEmpty(); }))
      lines.push_back(std::move(line));
  };
  add(ComparisonTable::tr("State"), [](const RunSummary& run) { return state_text(run.phase()); });
  add(ComparisonTable::tr("Steps"), [](const RunSummary& run) {
    const auto step = number_of(*run.last_step, "step"), all = number_of(*run.record, "n_steps");
    const QLocale locale;
    const QString done = locale.toString(static_cast<qlonglong>(step.value_or(0)));
    return all ? ComparisonTable::tr("%1 of %2")
                     .arg(done, locale.toString(static_cast<qlonglong>(*all)))
               : done;
  });
  add(ComparisonTable::tr("Last loss"), [](const RunSummary& run) { return shown(run.mean_loss); });
  add(ComparisonTable::tr("Evaluation loss"),
      [](const RunSummary& run) { return shown(number_of(*run.last_evaluation, "eval_loss")); });
  for (const std::string& metric : comparison.metrics) {
    if (metric == "eval_loss") continue;
    add(ComparisonTable::tr("Evaluation %1").arg(isolated(metric_words(metric))),
        [&](const RunSummary& run) { return shown(number_of(*run.last_evaluation, metric)); });
  }
  add(ComparisonTable::tr("Training time"), [](const RunSummary& run) {
    return run.training_seconds > 0 ? duration_text(run.training_seconds) : QString();
  });
  add(ComparisonTable::tr("Speed"), [](const RunSummary& run) {
    const auto speed = tokens_per_second(run);
    return speed ? ComparisonTable::tr("%1 tokens/s")
                       .arg(QLocale().toString(static_cast<qlonglong>(std::llround(*speed))))
                 : QString();
  });
  for (const auto& [name, key] :
       {std::pair{ComparisonTable::tr("Host memory, peak"), "host_bytes_peak"},
        {ComparisonTable::tr("GPU memory, peak"), "gpu_bytes_peak"}})
    add(name, [key = key](const RunSummary& run) {
      return shown(number_in(*run.record, "actual", key), ValueUnit::bytes);
    });
  add(ComparisonTable::tr("Why it ended"), [](const RunSummary& run) {
    return sentence(service_words(text_in(*run.record, "exit_reason")));
  });
  return lines;
}

std::vector<ComparisonLine> setting_lines(const service::RunComparison& comparison) {
  std::vector<ComparisonLine> lines;
  for (const service::SettingDifference& difference : comparison.settings) {
    ComparisonLine line{.name = to_text(difference.option->label),
                        .values = {},
                        .tip = ComparisonTable::tr("%1: %2").arg(to_text(difference.option->key),
                                                                 to_text(difference.option->help))};
    for (const std::string& value : difference.values)
      line.values << plain(value);
    lines.push_back(std::move(line));
  }
  return lines;
}

void ComparisonTable::show(QStringList runs, std::vector<ComparisonLine> lines) {
  beginResetModel();
  runs_ = std::move(runs);
  lines_ = std::move(lines);
  endResetModel();
}

int ComparisonTable::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(lines_.size());
}

int ComparisonTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(runs_.size()) + 1;
}

QVariant ComparisonTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const ComparisonLine& line = lines_[static_cast<size_t>(index.row())];
  const int run = index.column() - 1;
  const QString text = run < 0                    ? line.name
                       : run < line.values.size() ? line.values[run]
                                                  : QString();
  switch (role) {
    case Qt::DisplayRole:
      return run >= 0 && text.isEmpty() ? QStringLiteral("–") : text;
    case Qt::ToolTipRole:
      return run < 0 && !line.tip.isEmpty() ? line.tip : text;
    case Qt::AccessibleTextRole:
      return run < 0
                 ? text
                 : tr("%1, %2: %3").arg(line.name, runs_[run], text.isEmpty() ? tr("none") : text);
    default:
      return {};
  }
}

QVariant ComparisonTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignLeading | Qt::AlignVCenter);
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  if (orientation == Qt::Vertical) return {};
  if (section == 0) return QString();
  return section <= runs_.size() ? runs_[section - 1] : QVariant();
}

}  // namespace ferry::gui
