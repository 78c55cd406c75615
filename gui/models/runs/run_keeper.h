#pragma once
// Pauses runs of this machine by itself and lets them go on again: outside the run hours, and while
// another program has the GPU's memory. It lets go on only what it paused itself, which it keeps in
// the settings, so that a restart of the app forgets nothing; a run that the user lets go on
// against it is left alone until the reason is over.

#include <QDateTime>
#include <QObject>
#include <QTimer>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "gui/models/runs/run_list_model.h"
#include "gui/models/runs/run_requests.h"
#include "gui/models/settings/app_settings.h"

namespace ferry::gui {

/** True where `now` lies in the hours of a day; equal times: always. Each day has one begin and one
 * end, also where clocks are set forward or back. */
bool is_within_hours(const QDateTime& now, QTime from, QTime until);

/** The memory of this machine's first GPU in use, read in a thread of its own while wanted. */
class GpuMemoryReader {
 public:
  GpuMemoryReader();
  ~GpuMemoryReader();
  /** Memory of all programs, a second old or less; nullopt: not told. Reads on for some seconds
   * after. */
  std::optional<int64_t> used_bytes();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

class RunKeeper : public QObject {
  Q_OBJECT

 public:
  /** The world that it sees and acts on; tests give another. */
  struct World {
    std::function<QDateTime()> now;
    /** Memory of all programs; nullopt: not told. Asked only where runs yield. */
    std::function<std::optional<int64_t>()> gpu_used_bytes;
    std::function<std::vector<RunListModel::Running>()> runs;
    std::function<void(const std::filesystem::path&)> pause, resume;
    /** This app does it, not another one. */
    std::function<bool()> is_in_charge;
  };
  static World this_machine(RunListModel& runs,
                            RunRequests& requests,
                            std::function<bool()> is_in_charge);

  RunKeeper(AppSettings& settings, World world, QObject* parent = nullptr);

  /** Why no run is to train now; empty: it may. */
  QString why_not_now() const;
  /** It paused this run, and will let it go on. */
  bool has_paused(const std::filesystem::path& run) const;
  /** The runs that it paused and that wait for it to let them go on. */
  std::vector<std::filesystem::path> paused() const;

  /** Memory of other programs from which on runs yield to them. */
  int64_t threshold_bytes() const;

  /** A turn, as the timer does it once a second; public for tests. */
  void look();

 signals:
  /** A run was paused or let go on, and why: one line. */
  void acted(const std::filesystem::path& run, const QString& text);
  /** why_not_now() is another. */
  void changed();

 private:
  /** A process of a run that it paused. */
  struct Kept {
    QString process;
    bool is_seen_paused = false;
  };
  void read_kept();
  void write_kept();
  bool is_gpu_wanted(const QDateTime& now, const std::vector<RunListModel::Running>& runs);
  void follow(const RunListModel::Running& run, const QDateTime& now, const QString& why_not);

  AppSettings& settings_;
  World world_;
  std::map<QString, Kept> kept_;        ///< by path
  std::map<QString, QDateTime> asked_;  ///< pause or resume under way
  std::set<QString> left_alone_;        ///< the user let them go on
  std::optional<QDateTime> wanted_since_, free_since_;
  bool is_outside_ = false, is_wanted_ = false;
  QTimer timer_;
};

}  // namespace ferry::gui
