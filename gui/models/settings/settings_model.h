#pragma once
// The settings of a run while somebody makes them: one row for each option that `ferry train`
// takes, the text that was typed, and why it is no value where it is none. Holds only what was set.
// The check is that of `ferry train` itself: its command line is parsed after each change.

#include <QAbstractTableModel>
#include <QMap>
#include <QSortFilterProxyModel>
#include <optional>
#include <vector>

#include "src/config/config.h"

namespace ferry::gui {

class SettingsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column {
    label_column,
    value_column,
    unit_column,
    default_column,
    group_column,
    changed_column,
    n_columns
  };
  enum Role {
    key_role = Qt::UserRole + 1,
    help_role,
    type_role,     ///< config::Type as an int
    choices_role,  ///< QStringList; empty but for a choice
    level_role,    ///< config::Level as an int
    problem_role,
    is_changed_role,
    is_auto_role,
    aliases_role,
    is_missing_role  ///< a run needs it, and it is not set
  };
  struct Problem {
    QString key;  ///< of the option; empty: of the settings as a whole
    QString text;
    bool operator==(const Problem&) const = default;
  };

  explicit SettingsModel(QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

  const config::Option& option(int row) const { return *rows_[static_cast<size_t>(row)].option; }
  /** -1: no option of a training. */
  int row_of(const QString& key) const;

  /** As it was typed; empty: not set. */
  QString text(const QString& key) const;
  /** Sets what was typed, a value or not. Empty takes the setting back; so does the built-in value
   * of a choice or a check box. */
  void set_text(const QString& key, const QString& text);
  /** A value that was chosen and not typed: the default is no change. */
  void choose(const QString& key, const QString& text);
  void reset(const QString& key);
  void reset_all();
  /** Everything that is set in `config`, in place of what was here. */
  void load(const config::Config& config);
  /** The same from texts by key: what texts() gave. */
  void load_texts(const QMap<QString, QString>& texts);
  QMap<QString, QString> texts() const;
  bool is_changed(const QString& key) const { return !text(key).isEmpty(); }

  /** The value in force where a setting is not set. That of the model's family where it has its
   * own; an empty text takes the built-in one again. */
  void set_default(const QString& key, const QString& text);
  QString default_text(const QString& key) const;

  /** Something else found a fault in a setting, such as a model that is not on this machine; empty
   * takes it back. A change of that setting takes it back, too. */
  void set_found_problem(const QString& key, const QString& text);

  /** What the reading of the data said is wrong, in the service's words; empty: nothing. It stands
   * at the setting that it names, else at the data, until other data are chosen or they are read
   * anew: settled() holds meanwhile, so that they can be. */
  void set_data_problem(const QString& what);

  /** The settings that were made, and nothing else: arguments_of() makes the command line of it.
   * nullopt: see problems(). */
  std::optional<config::Config> config() const;
  /** Each setting that is a value by itself, whatever is wrong with others or between them. */
  config::Config valid_part() const;
  /** The settings in force: as `ferry train` has them after reading its command line. nullopt as
   * above, but for faults of the data. */
  const std::optional<config::Config>& settled() const { return settled_; }
  /** In the order of the rows. */
  const std::vector<Problem>& problems() const { return problems_; }
  /** Empty: none. */
  QString problem(const QString& key) const;
  /** The problem is that a run needs the setting, and it is not set: nothing wrong was typed. */
  bool is_missing(const QString& key) const;

 signals:
  /** Some setting is another, or its validity is. */
  void settings_changed();

 private:
  struct Row {
    const config::Option* option = nullptr;
    QString text;
    QString own_default;  ///< of the model's family
    QString found;        ///< set_found_problem()
    QString problem;      ///< shown
    bool is_missing = false;
  };
  Row* row(const QString& key);
  const Row* row(const QString& key) const;
  bool take(Row& row, const QString& text);
  void check();
  void find_problems();

  void add_data_problem();

  std::vector<Row> rows_;
  QString data_problem_;
  QMap<QString, int> row_by_key_;
  std::vector<Problem> problems_;
  std::optional<config::Config> settled_;
};

/** Rows by level and by words; while words are searched for, of every level. */
class SettingsFilter : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit SettingsFilter(QObject* parent = nullptr);
  void set_shows_all(bool all);
  void set_search(const QString& words);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

 private:
  bool shows_all_ = false;
  QString words_;
};

}  // namespace ferry::gui
