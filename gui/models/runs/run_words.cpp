#include "gui/models/runs/run_words.h"

#include <QCoreApplication>
#include <QLocale>
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gui/models/text.h"
#include "src/base/bytes.h"
#include "src/runs/directory/run_directory.h"

namespace ferry::gui {

using nlohmann::ordered_json;
using service::RunFacts;
using service::Trainer;

namespace {

struct RunWords {
  Q_DECLARE_TR_FUNCTIONS(RunWords)
};

int64_t count_in(const ordered_json& record, const char* part, const char* key) {
  const double number = number_in(record, part, key).value_or(0);
  return number > 0 && number < 9e18 ? static_cast<int64_t>(number) : 0;
}

/** 0: none, or a negative one. */
int64_t integer_in(const ordered_json& record, const char* key) {
  if (!record.is_object()) return 0;
  const auto found = record.find(key);
  return found != record.end() && found->is_number_integer()
             ? std::max<int64_t>(0, found->get<int64_t>())
             : 0;
}

/** The sum of the plan's rows at a place. */
int64_t planned_at(const ordered_json& record, std::string_view place) {
  if (!record.is_object() || !record.contains("plan")) return 0;
  const ordered_json& plan = record["plan"];
  if (!plan.is_object() || !plan.contains("rows") || !plan["rows"].is_array()) return 0;
  int64_t sum = 0;
  for (const ordered_json& row : plan["rows"])
    if (row.is_object() && row.contains("place") && row["place"] == place &&
        row.contains("bytes") && row["bytes"].is_number_integer())
      sum += std::max<int64_t>(0, row["bytes"].get<int64_t>());
  return sum;
}

}  // namespace

RunGroup run_group(const std::string& phase) {
  if (phase == "paused") return RunGroup::paused;
  if (phase == "finished") return RunGroup::finished;
  if (phase == "stopped") return RunGroup::stopped;
  if (phase == "failed" || phase == "lost" || phase == "unstarted") return RunGroup::failed;
  return runs::phase_named(phase) ? RunGroup::running : RunGroup::unreadable;
}

QString group_text(RunGroup group) {
  switch (group) {
    case RunGroup::running:
      return RunWords::tr("Running");
    case RunGroup::paused:
      return RunWords::tr("Paused");
    case RunGroup::finished:
      return RunWords::tr("Finished");
    case RunGroup::stopped:
      return RunWords::tr("Stopped");
    case RunGroup::failed:
      return RunWords::tr("Failed or killed");
    case RunGroup::unreadable:
      return RunWords::tr("Unreadable");
  }
  return {};
}

QString state_text(const std::string& name) {
  using runs::Phase;
  const auto phase = runs::phase_named(name);
  if (!phase) return RunWords::tr("Unreadable");
  switch (*phase) {
    case Phase::preparing:
      return RunWords::tr("Preparing");
    case Phase::training:
      return RunWords::tr("Training");
    case Phase::evaluating:
      return RunWords::tr("Evaluating");
    case Phase::sampling:
      return RunWords::tr("Sampling");
    case Phase::saving:
      return RunWords::tr("Saving");
    case Phase::paused:
      return RunWords::tr("Paused");
    case Phase::finished:
      return RunWords::tr("Finished");
    case Phase::stopped:
      return RunWords::tr("Stopped");
    case Phase::failed:
      return RunWords::tr("Failed");
    case Phase::lost:
      return RunWords::tr("Killed");
    case Phase::unstarted:
      return RunWords::tr("Not begun");
  }
  return {};
}

bool waits_for_room(const RunFacts& facts) {
  return facts.waits_for_room && facts.phase == "saving" && facts.trainer != Trainer::none;
}

QString state_text(const RunFacts& facts) {
  return waits_for_room(facts) ? RunWords::tr("Waits for disk") : state_text(facts.phase);
}

bool has_ended(const std::string& phase) {
  const RunGroup group = run_group(phase);
  return group == RunGroup::finished || group == RunGroup::stopped || group == RunGroup::failed;
}

QString duration_text(double seconds) {
  if (!(seconds >= 0) || !std::isfinite(seconds)) return {};
  const QLocale locale;
  const auto whole = static_cast<qint64>(std::min(seconds, 1e12));
  const auto two = [&](const QString& form, qint64 big, qint64 small) {
    return isolated(form.arg(locale.toString(big), locale.toString(small)));
  };
  if (whole < 60) return isolated(RunWords::tr("%1 s").arg(locale.toString(whole)));
  if (whole < 600) return two(RunWords::tr("%1 min %2 s"), whole / 60, whole % 60);
  if (whole < 3600) return isolated(RunWords::tr("%1 min").arg(locale.toString(whole / 60)));
  if (whole < 2 * 86400) return two(RunWords::tr("%1 h %2 min"), whole / 3600, whole / 60 % 60);
  return two(RunWords::tr("%1 d %2 h"), whole / 86400, whole / 3600 % 24);
}

QString bytes_text(int64_t bytes) {
  return isolated(to_text(format_bytes(bytes)).replace('.', QLocale().decimalPoint()));
}

QString text_in(const ordered_json& record, const char* key) {
  if (!record.is_object()) return {};
  const auto found = record.find(key);
  return found != record.end() && found->is_string() ? to_text(found->get_ref<const std::string&>())
                                                     : QString();
}

std::optional<double> number_in(const ordered_json& record, const char* part, const char* key) {
  if (!record.is_object()) return std::nullopt;
  const auto found = record.find(part);
  if (found == record.end() || !found->is_object()) return std::nullopt;
  const auto value = found->find(key);
  if (value == found->end() || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

int64_t steps_in(const ordered_json& record) {
  return integer_in(record, "n_steps");
}

QDateTime time_of_record(const ordered_json& record, const char* key) {
  return QDateTime::fromString(text_in(record, key), Qt::ISODate).toLocalTime();
}

QString time_text(const QDateTime& time) {
  if (!time.isValid()) return {};
  QString format = QLocale().dateTimeFormat(QLocale::ShortFormat);
  return QLocale().toString(time, format.remove(QStringLiteral(":ss")));
}

QString hour_text(QTime time) {
  QString format = QLocale().timeFormat(QLocale::ShortFormat);
  return QLocale().toString(time, format.remove(QStringLiteral(":ss")));
}

QString run_name(const std::filesystem::path& run) {
  return path_text(run.has_filename() ? run.filename() : run.parent_path().filename());
}

int64_t planned_host_bytes(const ordered_json& record) {
  const int64_t measured = count_in(record, "promised", "host_bytes_peak");
  return measured > 0 ? measured : planned_at(record, "host");
}

int64_t budgeted_host_bytes(const ordered_json& record) {
  return integer_in(record, "host_budget_bytes");
}

int64_t planned_gpu_bytes(const ordered_json& record) {
  const int64_t measured = count_in(record, "promised", "gpu_bytes_peak");
  return measured > 0 ? measured : planned_at(record, "device");
}

}  // namespace ferry::gui
