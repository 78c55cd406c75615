#pragma once
// All runs that are known, the newest first: those under ./runs, those of the index, those where
// new runs go, those that are being started. Looks again by itself, in slices of some milliseconds:
// several times a second while a page shows it, every other second else (then without curves), so
// that who starts or pauses runs by itself knows what goes on.
//
//   model.set_active(true);              // the page is shown
//   model.index(row, RunListModel::name) // rows come and go; the model is never reset

#include <QAbstractTableModel>
#include <QDateTime>
#include <QTimer>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "gui/models/latest_worker.h"
#include "gui/models/process/launcher.h"
#include "gui/models/runs/run_words.h"
#include "gui/models/settings/app_settings.h"
#include "src/service/runs/run_actions.h"

namespace ferry::gui {

class RunListModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { state, name, model, data_set, loss, curve, progress, time, speed, started };
  static constexpr int kColumns = 10;
  enum Role {
    path_role = Qt::UserRole + 1,  ///< QString
    group_role,                    ///< RunGroup as int
    sort_role,                     ///< of the column
    sparkline_role,                ///< QVariantList of doubles, oldest first; NaN is a gap
    progress_role,                 ///< double, 0 to 1; invalid where it is not known
    search_role,                   ///< QString, all that a search may mean
  };

  RunListModel(AppSettings& settings, Launcher& launcher, QObject* parent = nullptr);
  ~RunListModel() override;

  /** A page shows it. */
  void set_active(bool active);
  /** Looks for runs that came, soon and beside the event loop. */
  void refresh();
  /** True until the first search has ended; some runs may be there before. */
  bool is_loading() const { return !has_searched_; }
  /** The row of a run that was removed goes at once. */
  void forget(const std::filesystem::path& run);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  const std::filesystem::path& path_of(int row) const;
  const service::RunFacts& facts_of(int row) const;
  const nlohmann::ordered_json& record_of(int row) const;
  service::AllowedActions allowed(int row) const;
  /** Its start goes on: nothing of it can be told yet. */
  bool is_starting(int row) const;
  /** Why its record cannot be read, or why it could not be started; empty: it could. */
  QString trouble_of_row(int row) const;
  /** Why it ended, in a sentence or two; empty: it goes on, or nothing is wrong. */
  QString why_ended_of(int row) const;
  /** -1: not known. */
  int row_of(const std::filesystem::path& run) const;

  /** A run that has a process on this machine, or will have one in a moment. */
  struct Running {
    std::filesystem::path path;
    service::RunFacts facts;
    QString process;        ///< tells this process of the run from its other ones
    int64_t gpu_bytes = 0;  ///< planned or measured; 0: not told
    bool is_starting = false;
  };
  std::vector<Running> running() const;
  /** Counts the times that every run was looked at. */
  int64_t n_passes() const { return n_passes_; }

  /** One turn of looking, as the timer does it; public for tests. */
  void look();

 signals:
  /** Twice of each search: those that lie here come before those of the index. */
  void searched(bool is_last);
  /** After a turn in which any run changed, came or went. */
  void looked();
  /** A run that was seen alive has ended, whoever started it. */
  void ended(const std::filesystem::path& run);
  /** The end of a run that was seen alive does not fit the disk: it waits. */
  void waits_for_room(const std::filesystem::path& run);

 private:
  using Clock = std::chrono::steady_clock;
  struct Row;
  struct Found {
    std::filesystem::path path, key;
    QString created;
  };
  void search_when_due();
  void take_found(const std::vector<Found>& found, bool is_last);
  void add(std::unique_ptr<Row> row);
  void remove(int row);
  void tell_change(int row);
  void note_start(const std::filesystem::path& run);
  void follow_launcher();
  void tell_news();
  bool look_at(Row& row);
  bool read_on(Row& row);
  void set_pace();
  QVariant shown(const Row& row, int column) const;
  QVariant sorted_by(const Row& row, int column) const;
  QString spoken(const Row& row, int column) const;

  AppSettings& settings_;
  Launcher& launcher_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::vector<QString> sources_seen_;
  std::vector<std::filesystem::path> ended_, waiting_;  ///< not told yet: who hears may ask
  size_t next_ = 0;
  int64_t n_passes_ = 0;
  bool is_active_ = false, has_searched_ = false, is_searching_ = false, is_search_wanted_ = true;
  bool has_more_to_read_ = true;
  Clock::time_point last_search_{};
  QTimer timer_;
  LatestWorker search_;
};

}  // namespace ferry::gui
