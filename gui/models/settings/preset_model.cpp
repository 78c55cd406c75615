#include "gui/models/settings/preset_model.h"

#include <QDir>
#include <QFile>
#include <QRegularExpression>
#include <algorithm>

#include "gui/models/runs/run_words.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/settings/settings_file.h"
#include "gui/models/text.h"
#include "src/base/process/host_memory.h"
#include "src/service/machine/nvidia.h"
#include "src/service/machine/smaller_machine.h"

namespace ferry::gui {

namespace fs = std::filesystem;

namespace {

QString plan_line(const service::PresetPlan& plan) {
  if (!plan.refusal.empty()) return PresetModel::tr("does not fit its card");
  const QString memory =
      plan.has_gpu ? PresetModel::tr("takes %1 of GPU and %2 of host memory")
                         .arg(bytes_text(plan.gpu_bytes), bytes_text(plan.host_bytes))
                   : PresetModel::tr("takes %1 of host memory").arg(bytes_text(plan.host_bytes));
  if (!plan.time) return memory;
  const double rate = plan.time->samples_per_s;
  return PresetModel::tr("%1, %2 samples/s").arg(memory, QString::number(rate, 'g', 3));
}

/** The machine that the preset was made for, if any: "2080ti-11g". */
QString card_text(const config::PresetHead& head) {
  return head.card.empty() ? PresetModel::tr("any machine") : to_text(head.card);
}

fs::path file_of(const QString& name) {
  return config::users_preset_directory() / to_path(name + ".toml");
}

}  // namespace

PresetModel::PresetModel(QObject* parent)
    : QAbstractListModel(parent), reading_(this), planning_(this) {}

int PresetModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(entries_.size());
}

QVariant PresetModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Entry& entry = entries_[static_cast<size_t>(index.row())];
  const auto* const facts = entry.facts ? &*entry.facts : nullptr;
  const QString name = to_text(entry.preset.name);
  switch (role) {
    case Qt::DisplayRole:
    case title_role:
      return facts && !facts->head.title.empty() ? to_text(facts->head.title) : name;
    case Qt::ToolTipRole:
      return path_text(entry.preset.file);
    case Qt::AccessibleTextRole:
      return QStringList{data(index, title_role).toString(),
                         data(index, purpose_role).toString(),
                         data(index, card_role).toString(),
                         entry.plan,
                         entry.lacks,
                         entry.problem}
          .filter(QRegularExpression(QStringLiteral(".")))
          .join(QStringLiteral(". "));
    case name_role:
      return name;
    case purpose_role:
      return facts ? to_text(facts->head.purpose) : QString();
    case model_role:
      return facts ? to_text(facts->model) : QString();
    case task_role:
      return facts ? to_text(facts->task) : QString();
    case card_role:
      return facts ? card_text(facts->head) : QString();
    case plan_role:
      return entry.plan;
    case lacks_role:
      return entry.lacks;
    case is_users_role:
      return entry.preset.is_users;
    case problem_role:
      return entry.problem;
    default:
      return {};
  }
}

std::vector<PresetModel::Entry> PresetModel::read_all() {
  std::vector<Entry> entries;
  service::MachineHere here;
  trouble_of([&] { here = service::machine_here(service::read_nvidia(), read_host_memory()); });
  std::vector<config::Preset> presets;
  trouble_of([&] { presets = config::list_presets(); });
  for (const config::Preset& preset : presets) {
    Entry entry = {.preset = preset, .facts = {}, .problem = {}, .lacks = {}, .plan = {}};
    const auto trouble = words_of_trouble([&] {
      entry.facts = service::read_preset(preset);
      QStringList lacks;
      for (const std::string& phrase : service::lacks(here, entry.facts->head))
        lacks << to_text(phrase);
      if (!lacks.isEmpty()) entry.lacks = tr("here: %1").arg(listed(lacks));
    });
    if (trouble) {
      entry.facts.reset();
      entry.problem = *trouble;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

void PresetModel::reload() {
  planning_.forget();
  reading_.ask([] { return read_all(); },
               [this](std::vector<Entry> entries, const QString&) {
                 beginResetModel();
                 entries_ = std::move(entries);
                 endResetModel();
                 is_loaded_ = true;
                 emit loaded();
                 plan_all();
               });
}

void PresetModel::plan_all() {
  std::vector<service::PresetFacts> planned;
  std::vector<int> rows;
  for (int row = 0; row < rowCount(); ++row)
    if (const Entry& entry = entries_[static_cast<size_t>(row)];
        entry.facts && !entry.facts->head.is_empty()) {
      planned.push_back(*entry.facts);
      rows.push_back(row);
    }
  planning_.ask(
      [planned = std::move(planned)](const LatestWorker::Turn& turn) {
        QStringList lines;
        for (const service::PresetFacts& facts : planned) {
          if (turn.is_overtaken()) break;
          QString line;
          // One that cannot be planned leaves the others their plans.
          if (const auto trouble =
                  words_of_trouble([&] { line = plan_line(service::plan_preset(facts)); }))
            line = tr("No plan: %1").arg(*trouble);
          lines << line;
        }
        return lines;
      },
      [this, rows](const QStringList& lines, const QString&) {
        for (size_t i = 0; i < std::min(rows.size(), static_cast<size_t>(lines.size())); ++i)
          entries_[static_cast<size_t>(rows[i])].plan = lines[static_cast<qsizetype>(i)];
        if (rowCount() > 0) emit dataChanged(index(0), index(rowCount() - 1));
      });
}

int PresetModel::row_of(const QString& name) const {
  for (int row = 0; row < rowCount(); ++row)
    if (to_text(entries_[static_cast<size_t>(row)].preset.name) == name) return row;
  return -1;
}

const config::Config* PresetModel::settings(int row) const {
  if (row < 0 || row >= rowCount()) return nullptr;
  const Entry& entry = entries_[static_cast<size_t>(row)];
  return entry.facts ? &entry.facts->settings : nullptr;
}

const PresetModel::Entry* PresetModel::own(const QString& name) const {
  const int row = row_of(name);
  if (row < 0 || !entries_[static_cast<size_t>(row)].preset.is_users) return nullptr;
  return &entries_[static_cast<size_t>(row)];
}

QString PresetModel::refusal_of_name(const QString& name) const {
  const QString plain = name.trimmed();
  if (plain.isEmpty()) return tr("Give the preset a name.");
  if (plain.contains('/') || plain.startsWith('.'))
    return tr("A name has no “/” and does not begin with a point.");
  if (plain.toUtf8().size() > 200) return tr("The name is too long.");
  if (config::users_preset_directory().empty()) return tr("There is no home directory to save in.");
  if (QFile::exists(path_text(file_of(plain))))
    return tr("There is a preset of your own called “%1”.").arg(plain);
  return {};
}

QString PresetModel::save(const QString& name,
                          const config::Config& settings,
                          const QString& title,
                          bool replaces) {
  const QString plain = name.trimmed();
  if (const QString refusal = refusal_of_name(name);
      !refusal.isEmpty() && !(replaces && QFile::exists(path_text(file_of(plain)))))
    return refusal;
  config::PresetHead head;
  // One that is replaced stays what it is for.
  if (const Entry* const old = own(plain); old && old->facts)
    head = old->facts->head;
  else
    head.title = title.trimmed().toStdString();
  const QString trouble = write_settings_file(file_of(plain), settings, head);
  if (trouble.isEmpty()) reload();
  return trouble;
}

QString PresetModel::rename(const QString& from, const QString& to) {
  const Entry* const entry = own(from);
  if (!entry) return tr("Only presets of your own can be renamed.");
  if (const QString refusal = refusal_of_name(to); !refusal.isEmpty()) return refusal;
  QFile file(path_text(entry->preset.file));
  if (!file.rename(path_text(file_of(to.trimmed()))))
    return tr("It cannot be renamed: %1").arg(file.errorString());
  reload();
  return {};
}

QString PresetModel::remove(const QString& name) {
  const Entry* const entry = own(name);
  if (!entry) return tr("Only presets of your own can be deleted.");
  QFile file(path_text(entry->preset.file));
  if (!file.moveToTrash() && !file.remove())
    return tr("It cannot be deleted: %1").arg(file.errorString());
  reload();
  return {};
}

QString PresetModel::copy(const QString& from, const QString& to) {
  const int row = row_of(from);
  if (row < 0) return tr("There is no preset “%1”.").arg(from);
  if (const QString refusal = refusal_of_name(to); !refusal.isEmpty()) return refusal;
  QFile file(path_text(entries_[static_cast<size_t>(row)].preset.file));
  if (!file.open(QIODevice::ReadOnly)) return tr("It cannot be read: %1").arg(file.errorString());
  const QString trouble = write_text_file(file_of(to.trimmed()), file.readAll());
  if (trouble.isEmpty()) reload();
  return trouble;
}

}  // namespace ferry::gui
