#include "gui/models/settings/settings_model.h"

#include <fmt/format.h>

#include <QDir>

#include "gui/models/process/ferry_command.h"
#include "gui/models/settings/option_text.h"
#include "gui/models/text.h"
#include "src/config/command_line/command_line.h"

namespace ferry::gui {

using config::Option;
using config::Type;

namespace {

bool is_ticked_or_chosen(const Option& option) {
  return option.type == Type::boolean || option.type == Type::choice;
}

/** The text as Ferry reads it: a shell would have put the home directory in place of "~". */
std::string meant(const Option& option, const QString& text) {
  if (option.type == Type::path && text.startsWith(QLatin1String("~/")))
    return QDir::home().filePath(text.mid(2)).toStdString();
  return text.toStdString();
}

/** "2e-05" as people write it. */
QString shown_value(const Option& option, const config::Value& value) {
  QString text = to_text(flag_value(option, value));
  if (option.type == Type::number)
    text.replace(QLatin1String("e-0"), QLatin1String("e-")).replace("e+0", "e");
  return text;
}

QString name_of_column(int column) {
  switch (column) {
    case SettingsModel::label_column:
      return SettingsModel::tr("Setting");
    case SettingsModel::value_column:
      return SettingsModel::tr("Value");
    case SettingsModel::unit_column:
      return SettingsModel::tr("Unit");
    case SettingsModel::default_column:
      return SettingsModel::tr("Default");
    case SettingsModel::group_column:
      return SettingsModel::tr("Group");
    case SettingsModel::changed_column:
      return SettingsModel::tr("Changed");
    default:
      return {};
  }
}

QStringList list_of(const std::vector<std::string_view>& texts) {
  QStringList list;
  for (std::string_view text : texts)
    list << to_text(text);
  return list;
}

}  // namespace

SettingsModel::SettingsModel(QObject* parent) : QAbstractTableModel(parent) {
  for (const Option& option : config::option_table())
    if (option.verbs & config::kTrain) {
      row_by_key_[to_text(option.key)] = static_cast<int>(rows_.size());
      rows_.push_back(
          {.option = &option, .text = {}, .own_default = {}, .found = {}, .problem = {}});
    }
  find_problems();
}

int SettingsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int SettingsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : n_columns;
}

int SettingsModel::row_of(const QString& key) const {
  return row_by_key_.value(key, -1);
}
SettingsModel::Row* SettingsModel::row(const QString& key) {
  const int at = row_of(key);
  return at < 0 ? nullptr : &rows_[static_cast<size_t>(at)];
}
const SettingsModel::Row* SettingsModel::row(const QString& key) const {
  const int at = row_of(key);
  return at < 0 ? nullptr : &rows_[static_cast<size_t>(at)];
}

QVariant SettingsModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const Row& row = rows_[static_cast<size_t>(index.row())];
  const Option& option = *row.option;
  const QString key = to_text(option.key);
  switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole:
      switch (index.column()) {
        case label_column:
          return label_of(option);
        case value_column:
          return role == Qt::DisplayRole ? in_words(option, row.text) : row.text;
        case unit_column:
          return unit_of(option);
        case default_column:
          return role == Qt::DisplayRole ? in_words(option, default_text(key)) : default_text(key);
        case group_column:
          return group_of(option);
        case changed_column:
          return row.text.isEmpty() ? QString() : tr("changed");
        default:
          return {};
      }
    case Qt::ToolTipRole:
    case help_role:
      return help_of(option);
    case Qt::AccessibleTextRole:
      if (index.column() != label_column) return {};
      return row.text.isEmpty()
                 ? tr("%1, default %2").arg(label_of(option), in_words(option, default_text(key)))
                 : tr("%1, changed to %2").arg(label_of(option), in_words(option, row.text));
    case Qt::AccessibleDescriptionRole:
      return row.problem;
    case key_role:
      return key;
    case type_role:
      return static_cast<int>(option.type);
    case choices_role:
      return list_of(option.choices);
    case level_role:
      return static_cast<int>(option.level);
    case problem_role:
      return row.problem;
    case is_changed_role:
      return !row.text.isEmpty();
    case is_auto_role:
      return (row.text.isEmpty() ? default_text(key) : row.text.trimmed()) == "auto";
    case is_missing_role:
      return row.is_missing;
    case aliases_role: {
      QStringList names;
      for (const config::Alias& alias : option.aliases)
        names << to_text(alias.name);
      return names;
    }
    default:
      return {};
  }
}

QVariant SettingsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return name_of_column(section);
}

Qt::ItemFlags SettingsModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  return index.column() == value_column ? flags | Qt::ItemIsEditable : flags;
}

bool SettingsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || index.column() != value_column || role != Qt::EditRole) return false;
  set_text(to_text(option(index.row()).key), value.toString());
  return true;
}

QString SettingsModel::text(const QString& key) const {
  const Row* const found = row(key);
  return found ? found->text : QString();
}

QString SettingsModel::default_text(const QString& key) const {
  const Row* const found = row(key);
  if (!found) return {};
  return found->own_default.isEmpty() ? to_text(found->option->value) : found->own_default;
}

/** True where that is a change. */
bool SettingsModel::take(Row& row, const QString& text) {
  QString taken = text;
  if (is_ticked_or_chosen(*row.option) && text == to_text(row.option->value)) taken.clear();
  if (row.text == taken) return false;
  row.text = taken;
  row.found.clear();
  if (row.option->key == "dataset") data_problem_.clear();
  return true;
}

void SettingsModel::set_text(const QString& key, const QString& text) {
  Row* const found = row(key);
  if (!found || !take(*found, text)) return;
  check();
  const int at = row_of(key);
  emit dataChanged(index(at, 0), index(at, n_columns - 1));
  emit settings_changed();
}

void SettingsModel::choose(const QString& key, const QString& text) {
  set_text(key, text == default_text(key) ? QString() : text);
}

void SettingsModel::reset(const QString& key) {
  set_text(key, {});
}
void SettingsModel::reset_all() {
  load_texts({});
}

void SettingsModel::load(const config::Config& config) {
  QMap<QString, QString> texts;
  for (const Row& row : rows_)
    if (config.is_set(row.option->key))
      texts[to_text(row.option->key)] = shown_value(*row.option, config.value(row.option->key));
  load_texts(texts);
}

void SettingsModel::load_texts(const QMap<QString, QString>& texts) {
  for (Row& row : rows_) {
    row.found.clear();
    take(row, texts.value(to_text(row.option->key)));
  }
  check();
  emit dataChanged(index(0, 0), index(rowCount() - 1, n_columns - 1));
  emit settings_changed();
}

QMap<QString, QString> SettingsModel::texts() const {
  QMap<QString, QString> texts;
  for (const Row& row : rows_)
    if (!row.text.isEmpty()) texts[to_text(row.option->key)] = row.text;
  return texts;
}

void SettingsModel::set_default(const QString& key, const QString& text) {
  Row* const found = row(key);
  if (!found || found->own_default == text) return;
  found->own_default = text;
  const int at = row_of(key);
  emit dataChanged(index(at, 0), index(at, n_columns - 1));
}

void SettingsModel::set_found_problem(const QString& key, const QString& text) {
  Row* const found = row(key);
  if (!found || found->found == text) return;
  found->found = text;
  check();
  emit settings_changed();
}

void SettingsModel::set_data_problem(const QString& what) {
  if (data_problem_ == what) return;
  data_problem_ = what;
  check();
  emit settings_changed();
}

/** Where the data can be chosen, or told how to be read. */
void SettingsModel::add_data_problem() {
  if (data_problem_.isEmpty()) return;
  const OptionMessage message = message_of(data_problem_);
  QString key = QStringLiteral("dataset");
  for (const QString& named : message.keys)
    if (const Row* const one = row(named); one && one->option->group == row(key)->option->group) {
      key = named;
      break;
    }
  Row& one = *row(key);
  if (!one.problem.isEmpty()) return;
  one.problem = message.text;
  problems_.push_back({key, message.text});
}

std::optional<config::Config> SettingsModel::config() const {
  if (!problems_.empty()) return std::nullopt;
  return valid_part();
}

config::Config SettingsModel::valid_part() const {
  config::Config config;
  for (const Row& row : rows_)
    if (!row.text.isEmpty() && problem_of(*row.option, row.text).isEmpty())
      config.set(row.option->key, meant(*row.option, row.text),
                 {config::Source::command_line, "the app"});
  return config;
}

QString SettingsModel::problem(const QString& key) const {
  const Row* const found = row(key);
  return found ? found->problem : QString();
}

bool SettingsModel::is_missing(const QString& key) const {
  const Row* const found = row(key);
  return found && found->is_missing;
}

/** Finds problems anew, and tells of rows whose problem is another. */
void SettingsModel::check() {
  std::vector<QString> before;
  for (const Row& row : rows_)
    before.push_back(row.problem);
  find_problems();
  for (size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].problem != before[i]) {
      const int at = static_cast<int>(i);
      emit dataChanged(index(at, 0), index(at, n_columns - 1));
    }
}

void SettingsModel::find_problems() {
  settled_.reset();
  problems_.clear();
  std::vector<std::string> arguments;
  bool is_readable = true;
  for (Row& row : rows_) {
    row.problem.clear();
    row.is_missing = false;
    if (row.text.isEmpty()) continue;
    row.problem = problem_of(*row.option, row.text);
    is_readable = is_readable && row.problem.isEmpty();
    arguments.push_back(fmt::format("--{}={}", row.option->key, meant(*row.option, row.text)));
  }

  QString general;
  config::CommandLine command;
  const auto attribute = [&](const QString& what) {
    OptionMessage message = message_of(what);
    if (what.startsWith(QLatin1String("[cli.resume]"))) message.keys = {"resume_from_checkpoint"};
    bool is_shown = false;
    for (const QString& key : message.keys)
      if (Row* const one = row(key); one && !one->text.isEmpty()) {
        one->problem = message.text;
        is_shown = true;
      }
    if (is_shown) return;
    if (Row* const first = message.keys.isEmpty() ? nullptr : row(message.keys[0]))
      first->problem = message.text;
    else
      general = message.text;
  };
  if (is_readable) {
    if (const auto trouble =
            trouble_of([&] { command = config::parse_command_line("train", arguments); }))
      attribute(*trouble);
    else
      settled_ = command.config;
  }
  const auto require = [&](const char* key, const QString& what) {
    Row& one = *row(key);
    if (!one.problem.isEmpty()) return;
    one.problem = what;
    one.is_missing = true;
  };
  const auto lacks = [&](const char* key) {
    return settled_ ? settled_->text(key).empty() : row(key)->text.isEmpty();
  };
  const bool resumes = !row("resume_from_checkpoint")->text.isEmpty();
  if (!resumes || settled_) {
    if (lacks("model_name_or_path") && lacks("config_name"))
      require("model_name_or_path", tr("Choose a model."));
    if (lacks("dataset")) require("dataset", tr("Choose the data to train on."));
  }
  if (settled_ && !lacks("model_name_or_path") && !lacks("dataset"))
    if (const auto trouble = trouble_of([&] { config::check_required(command); }))
      attribute(*trouble);

  for (Row& row : rows_) {
    if (row.problem.isEmpty()) row.problem = row.found;
    if (!row.problem.isEmpty()) problems_.push_back({to_text(row.option->key), row.problem});
  }
  if (!general.isEmpty()) problems_.push_back({{}, general});
  if (!problems_.empty()) settled_.reset();
  add_data_problem();
}

SettingsFilter::SettingsFilter(QObject* parent) : QSortFilterProxyModel(parent) {}

void SettingsFilter::set_shows_all(bool all) {
  shows_all_ = all;
  invalidateFilter();
}

void SettingsFilter::set_search(const QString& words) {
  words_ = words.trimmed();
  invalidateFilter();
}

bool SettingsFilter::filterAcceptsRow(int row, const QModelIndex&) const {
  const auto* const settings = static_cast<const SettingsModel*>(sourceModel());
  const Option& option = settings->option(row);
  if (!words_.isEmpty()) return matches(option, words_);
  return shows_all_ || option.level == config::Level::basic;
}

}  // namespace ferry::gui
