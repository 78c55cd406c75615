#pragma once
// Starts `ferry train` as a process of its own, which outlives the app. What it says before its run
// directory is there is kept, so that a start that fails can tell why.

#include <sys/types.h>

#include <QObject>
#include <QTimer>
#include <filesystem>
#include <optional>
#include <vector>

#include "src/config/config.h"
#include "src/plan/choosing_progress.h"

namespace ferry::gui {

class Launcher : public QObject {
  Q_OBJECT

 public:
  explicit Launcher(QObject* parent = nullptr);

  /** Starts a training with these settings in a new directory under `runs`, or in output_dir where
   * it is set; gives the run's directory. started() or failed() follows. Asked again with the same
   * settings while that start goes on, it gives the same directory and starts nothing. Empty where
   * there is no program to start: failed() told why. */
  std::filesystem::path start(const config::Config& config, const std::filesystem::path& runs);

  /** Goes on with a run from its last checkpoint, or from the checkpoint-N that is given: `extra`
   * are further flags ("--max-steps=200"). */
  void resume(const std::filesystem::path& run, const QStringList& extra = {});

  /** True while the run's process has not written its run.json. */
  bool is_starting(const std::filesystem::path& run) const;
  /** The process that was started for it while that is so; 0: none. */
  pid_t pid_of(const std::filesystem::path& run) const;
  /** The process lives and was started for this run, by whichever app. */
  static bool is_start_of(pid_t pid, const std::filesystem::path& run);
  /** Says that a starting run times plans, and how far it is; empty where the run does not. */
  QString doing(const std::filesystem::path& run) const;
  /** Runs that are starting. */
  std::vector<std::filesystem::path> starting() const;

 signals:
  /** doing() is another now. */
  void doing_changed(const std::filesystem::path& run);
  /** run.json is there, written by the new process. */
  void started(const std::filesystem::path& run);
  /** The process ended before that; `message` is what it said. */
  void failed(const std::filesystem::path& run, const QString& message, const QString& command);

 private:
  struct Start {
    std::filesystem::path run;
    QStringList asked = {};  ///< what start() was given; empty of a resume
    QString command = {};
    std::filesystem::path log = {};
    pid_t pid = 0;
    std::filesystem::file_time_type before = {};  ///< of an older run.json
    std::optional<ChoosingProgress> choosing = {};
  };
  bool launch(Start start, const QStringList& arguments);
  void look();

  std::vector<Start> starts_;
  QTimer timer_;
};

}  // namespace ferry::gui
