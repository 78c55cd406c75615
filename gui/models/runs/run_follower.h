#pragma once
// Follows and steers one run, whoever started it, without ever waiting: what it does (RunWatch),
// its curves (MetricsReader), its log, its answers (RunClient). Looks several times a second while
// active; after that every few seconds at its state alone, until it has ended.

#include <QObject>
#include <QSocketNotifier>
#include <QStringList>
#include <QTimer>
#include <filesystem>
#include <memory>

#include "src/service/runs/metrics_reader.h"
#include "src/service/runs/run_actions.h"
#include "src/service/runs/run_client.h"
#include "src/service/runs/run_watch.h"

namespace ferry::gui {

class RunFollower : public QObject {
  Q_OBJECT

 public:
  explicit RunFollower(std::filesystem::path run, QObject* parent = nullptr);

  void set_active(bool active);
  bool is_active() const { return is_active_; }

  const std::filesystem::path& run() const { return watch_.run(); }
  const service::RunFacts& facts() const { return watch_.facts(); }
  /** run.json as it was read last. */
  const nlohmann::ordered_json& record() const { return watch_.record(); }
  const service::AllowedActions& allowed() const { return allowed_; }
  const service::MetricsReader& metrics() const { return metrics_; }
  /** Why run.json or metrics.jsonl cannot be read; empty: they can. */
  QString trouble() const;
  /** The end of train.log, at most some thousand lines. */
  const QStringList& log() const { return log_; }
  /** metrics.jsonl is not read to its end yet: curves are still short. */
  bool is_behind() const { return is_behind_; }
  /** An action was asked for and has no answer yet. */
  bool is_waiting() const { return client_ && client_->n_waiting() > 0; }

  // Each does nothing where it is not allowed; replied() says what came of it.
  void pause();
  void resume();
  void save_now();
  void sample_now();
  void stop();
  void stop_without_saving();
  void force_quit();
  void set_setting(const QString& key, const QString& value);

 signals:
  /** Phase, record, allowed actions or trouble changed. */
  void changed();
  /** There are new metrics; `anew`: all curves begin again. */
  void metrics_changed(bool anew);
  void log_grown(const QStringList& lines);
  /** The log is another one: what log_grown() brought is void. */
  void log_anew();
  /** The run was seen at work and has ended now; phase as RunFacts has it. */
  void ended(const QString& phase);
  /** The answer to an action. */
  void replied(bool is_done, const QString& text);

 private:
  void look();
  void look_at_state();
  void read_metrics();
  void read_log();
  void take_replies();
  /** The client, made when first wanted. */
  service::RunClient& client();
  void act(service::RunAction action, const std::function<void()>& work);

  service::RunWatch watch_;
  service::MetricsReader metrics_;
  service::AllowedActions allowed_;
  service::RunFacts shown_;
  JsonValue shown_record_;
  QString shown_trouble_, metrics_trouble_;
  bool is_active_ = false, is_behind_ = false;
  std::unique_ptr<service::RunClient> client_;
  std::unique_ptr<QSocketNotifier> replies_;
  QStringList log_;
  int64_t log_at_ = 0;  ///< bytes of train.log that were read
  QByteArray log_rest_;
  QTimer timer_, catch_up_;
};

}  // namespace ferry::gui
