#pragma once
// The newest runs, for choosing one. Read in a thread: hundreds of directories take a while.

#include <QObject>
#include <QString>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace ferry::gui {

struct RecentRun {
  std::filesystem::path path;
  QString name, model, created;  ///< created: the day and hour here
  std::string phase;
};

/** The newest first, at most so many: those under `directory` and those that the index knows. What
 * cannot be read is left out. */
std::vector<RecentRun> recent_runs(const std::filesystem::path& directory, size_t n_max);

class RecentRuns : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  ~RecentRuns() override;

  /** Looks; found() follows. One look at a time. */
  void look(const std::filesystem::path& directory, size_t n_max = 50);
  const std::vector<RecentRun>& runs() const { return runs_; }
  bool is_looking() const { return is_looking_; }

 signals:
  void found();

 private:
  void take(std::vector<RecentRun> runs);

  std::vector<RecentRun> runs_;
  bool is_looking_ = false;
  std::jthread thread_;
};

}  // namespace ferry::gui
