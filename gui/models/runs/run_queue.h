#pragma once
// Settings that wait to be trained, in order: files in $XDG_DATA_HOME/ferry/queue, so that they
// outlive the app. Off until it is switched on; then it starts the next one whenever no run has a
// process on this machine, whoever started that. One app at a time works on it, by a lock file; the
// others show it and may add to it.
//
//   queue.add(config, "minilm on my reviews");
//   settings.set_queue_on(true);

#include <QAbstractListModel>
#include <QTimer>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gui/models/process/launcher.h"
#include "gui/models/runs/run_list_model.h"
#include "gui/models/settings/app_settings.h"
#include "src/config/config.h"

class QLockFile;

namespace ferry::gui {

class RunQueue : public QAbstractListModel {
  Q_OBJECT

 public:
  enum Role {
    title_role = Qt::UserRole + 1,
    state_role,    ///< "Next", "2.", "Starting", "Could not start"
    trouble_role,  ///< why it could not be started; empty: it was not tried
    about_role,    ///< model and data
  };

  /** $XDG_DATA_HOME/ferry/queue. */
  static std::filesystem::path default_directory();

  RunQueue(AppSettings& settings,
           Launcher& launcher,
           RunListModel& runs,
           std::filesystem::path directory = default_directory(),
           QObject* parent = nullptr);
  ~RunQueue() override;

  /** Puts settings at the end; what went wrong, for the user. */
  std::optional<QString> add(const config::Config& settings, QString title);

  // By row; only who works on the queue may.
  void move(int row, int by);
  void remove(int row);
  /** Starts it whatever runs, and whether or not the queue is on. */
  void start_now(int row);

  /** This app works on it. */
  bool is_ours() const { return is_ours_; }
  /** Why nothing is started now, or which is next: one line. */
  QString status() const;
  /** Further conditions for a start by itself (run hours): why not; empty: it may. */
  void set_gate(std::function<QString()> why_not) { why_not_ = std::move(why_not); }
  QString why_not_now() const { return why_not_ ? why_not_() : QString(); }

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;

  /** A turn of looking, as its timer does it; public for tests. */
  void look();

 signals:
  /** status() or is_ours() may be another. */
  void status_changed();

 private:
  struct Entry {
    QString id, title, about;
    QString trouble;
    std::filesystem::path run;  ///< where it is being started; empty: it is not
    pid_t pid = 0;              ///< of that start, which may be a former app's
  };
  std::filesystem::path file_of(const Entry& entry) const;
  void take_lock();
  /** Takes up what others added or removed. */
  void read_directory();
  std::vector<Entry> read_order() const;
  /** A former app's start goes on, whose end the launcher does not tell. */
  bool is_of_former_app(const Entry& entry) const;
  void look_at_former_starts();
  void write_order();
  void start(int row);
  void end_start(const std::filesystem::path& run, const QString& trouble);
  int row_starting(const std::filesystem::path& run) const;
  void change(int row);
  void drop(int row);
  int next() const;
  bool is_free();
  void tell();

  AppSettings& settings_;
  Launcher& launcher_;
  RunListModel& runs_;
  std::filesystem::path directory_;
  std::unique_ptr<QLockFile> lock_;
  std::function<QString()> why_not_;
  std::vector<Entry> entries_;
  QString stamp_, status_;
  QString trouble_;  ///< why the directory could not be read
  bool is_ours_ = false;
  int64_t free_since_pass_ = -1;
  QTimer timer_;
};

}  // namespace ferry::gui
