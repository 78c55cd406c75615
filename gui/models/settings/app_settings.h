#pragma once
// The app's memory from one start to the next, in the user's configuration directory. The
// settings of a run are not among them: those are the run's own.

#include <QObject>
#include <QSettings>
#include <QTime>
#include <filesystem>

namespace ferry::gui {

enum class Theme { system, light, dark };

class AppSettings : public QObject {
  Q_OBJECT

 public:
  explicit AppSettings(QObject* parent = nullptr);
  /** In this file, for tests. */
  explicit AppSettings(const QString& file, QObject* parent = nullptr);

  /** The directory of new runs: the one that was chosen, else ./runs if it is there, else
   * ~/ferry/runs. */
  std::filesystem::path runs_directory() const;
  void set_runs_directory(const std::filesystem::path& directory);

  Theme theme() const;
  void set_theme(Theme theme);
  /** "en", "zh_CN"; empty: the system's. Takes effect at the next start. */
  /** The size of all text, in percent of the system's. */
  int zoom() const;
  void set_zoom(int percent);
  QString language() const;
  void set_language(const QString& language);
  bool shows_all_options() const;
  void set_shows_all_options(bool all);
  bool has_seen_start() const;
  void set_has_seen_start(bool seen);

  /** The queue starts runs only when it is on. */
  bool is_queue_on() const;
  void set_queue_on(bool on);
  /** Runs train only at these hours; equal times: always. */
  bool has_run_hours() const;
  QTime run_from() const;
  QTime run_until() const;
  void set_run_hours(bool on, QTime from, QTime until);
  /** A run is paused while another program wants the GPU's memory. */
  bool yields() const;
  void set_yields(bool yields);
  /** The desktop tells when a run has ended. */
  bool notifies() const;
  void set_notifies(bool notifies);

  /** A key of a page's own: "live/log_axis". */
  QVariant value(const QString& key, const QVariant& otherwise = {}) const;
  void set_value(const QString& key, const QVariant& value);
  /** Values that another app has stored since are seen from here on. */
  void read_again();

 signals:
  void changed();

 private:
  QSettings stored_;
};

}  // namespace ferry::gui
