#pragma once
// The presets as people choose them: those that come with Ferry and the user's own, what each takes
// on its card, and what this machine lacks for it. Files are read and plans made in a thread. Only
// the user's own are ever written.

#include <QAbstractListModel>
#include <optional>
#include <vector>

#include "gui/models/latest_worker.h"
#include "src/service/presets.h"

namespace ferry::gui {

class PresetModel : public QAbstractListModel {
  Q_OBJECT

 public:
  enum Role {
    name_role = Qt::UserRole + 1,
    title_role,
    purpose_role,
    model_role,
    task_role,
    card_role,
    plan_role,   ///< one line; empty: not planned yet
    lacks_role,  ///< one line; empty: this machine has what it takes
    is_users_role,
    problem_role  ///< why its file is no preset; empty: it is one
  };

  explicit PresetModel(QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;

  /** Reads all presets again; loaded() follows, then the plans come. */
  void reload();
  bool is_loaded() const { return is_loaded_; }
  /** -1: none of that name. */
  int row_of(const QString& name) const;
  /** The settings of a preset that was read. nullptr: it was not, or is none. */
  const config::Config* settings(int row) const;

  // The user's own presets. Each says why it could not be done; an empty text: it is done, and the
  // list is read again.
  /** Saves what is set as a new preset; `replaces` an own one of that name. */
  QString save(const QString& name,
               const config::Config& settings,
               const QString& title,
               bool replaces = false);
  QString rename(const QString& from, const QString& to);
  QString remove(const QString& name);
  /** A copy of any preset, as one's own, byte for byte. */
  QString copy(const QString& from, const QString& to);

 signals:
  void loaded();

 private:
  struct Entry {
    config::Preset preset;
    std::optional<service::PresetFacts> facts;
    QString problem, lacks, plan;
  };
  static std::vector<Entry> read_all();
  void plan_all();
  QString refusal_of_name(const QString& name) const;
  /** nullptr: none of that name, or a built-in one. */
  const Entry* own(const QString& name) const;

  std::vector<Entry> entries_;
  bool is_loaded_ = false;
  LatestWorker reading_, planning_;
};

}  // namespace ferry::gui
