#pragma once
// Asks the planner in a thread of its own: the latest question wins. An answer comes at once, with
// each text as long as max_length where the data were not counted before; then one with the data
// counted; then one with the changes that would help.

#include <QObject>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gui/models/latest_worker.h"
#include "gui/models/plan/plan_types.h"

namespace ferry::gui {

/** Settings with which it fits, tried. */
struct PlanChange {
  std::vector<std::pair<QString, QString>> settings;  ///< key and value: "max_length", "1024"
  int64_t bytes = 0;  ///< so much less is needed of the memory that is too small; may be negative
};

struct PlanOutcome {
  std::optional<service::PlanAnswer> answer;
  std::optional<Error> error;  ///< in place of an answer: settings, model or data are wrong
  bool has_counted_data = false;
  bool is_complete = false;         ///< nothing more comes of this question
  std::vector<PlanChange> changes;  ///< of an answer that does not fit
};

class PlanThread : public QObject {
  Q_OBJECT

 public:
  explicit PlanThread(QObject* parent = nullptr);

  void ask(const config::Config& config);
  /** Nobody waits for the last question any more. */
  void forget();
  /** A question was asked whose last answer has not come. */
  bool is_waiting() const { return is_waiting_; }

 signals:
  void answered(const std::shared_ptr<const ferry::gui::PlanOutcome>& outcome);

 private:
  /** The planners keep what they counted; a job that is left alone keeps its own. */
  struct Planners {
    service::Planner main, stand_in;
    std::atomic<bool> is_counting = false;
  };
  void take(const std::shared_ptr<const PlanOutcome>& outcome);

  std::shared_ptr<Planners> planners_ = std::make_shared<Planners>();
  uint64_t question_ = 0;
  bool is_waiting_ = false, has_answer_ = false;
  // The stand-in answers while the other counts large data.
  LatestWorker main_, stand_in_;
};

/** Changes that a refusal's words name: each as settings that may be tried. */
std::vector<std::vector<std::pair<QString, QString>>> changes_in_words(const QString& refusal);

}  // namespace ferry::gui
