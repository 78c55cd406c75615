#include "gui/models/plan/plan_thread.h"

#include <QRegularExpression>

#include "gui/models/text.h"

namespace ferry::gui {

using service::PlanAnswer;
using service::Planner;

namespace {

using Outcome = std::shared_ptr<const PlanOutcome>;

PlanOutcome outcome_of(Planner& planner,
                       const config::Config& config,
                       const service::PlanQuestion& question) {
  PlanOutcome outcome;
  try {
    outcome.answer = planner.answer(config, question);
    outcome.has_counted_data = outcome.answer->texts.mean_tokens.has_value();
  } catch (const Error& error) {
    outcome.error = error;
  } catch (const std::exception& error) {
    outcome.error = Error(Fault::machine, "plan", error.what());
  }
  return outcome;
}

/** The bytes that a plan takes of the memory that another one lacks. */
int64_t bytes_of(const PlanAnswer& answer, Place place) {
  if (!answer.plan) return 0;
  return place == Place::device ? answer.plan->layout.n_bytes[static_cast<size_t>(Place::device)]
                                : host_bytes_of(*answer.plan, answer.request.has_gpu);
}

Place lacking_place(const PlanAnswer& answer) {
  const bool lacks_gpu =
      answer.request.has_gpu && bytes_of(answer, Place::device) > answer.request.gpu_budget_bytes;
  return lacks_gpu ? Place::device : Place::host;
}

/** Those of the refusal with which the planner finds a plan. */
std::vector<PlanChange> changes_that_fit(Planner& planner,
                                         const PlanAnswer& refused,
                                         const config::Config& config,
                                         const LatestWorker::Turn& turn) {
  constexpr size_t kMost = 4;
  std::vector<PlanChange> changes;
  const Place place = lacking_place(refused);
  for (auto& settings : changes_in_words(to_text(refused.refusal->what()))) {
    if (changes.size() == kMost || turn.is_overtaken()) break;
    try {
      config::Config changed = config;
      for (const auto& [key, value] : settings)
        changed.set(key.toStdString(), value.toStdString(),
                    {config::Source::command_line, "the memory plan"});
      const PlanAnswer answer =
          planner.answer(changed, {.reads_data = false, .looks_for_gains = false});
      if (answer.refusal) continue;
      const int64_t less = refused.plan ? bytes_of(refused, place) - bytes_of(answer, place) : 0;
      changes.push_back({std::move(settings), less});
    } catch (const std::exception&) {
      // No setting, or one that contradicts another: no help.
    }
  }
  return changes;
}

}  // namespace

std::vector<std::vector<std::pair<QString, QString>>> changes_in_words(const QString& refusal) {
  std::vector<std::vector<std::pair<QString, QString>>> all;
  const QString begin = QStringLiteral("it fits ");
  const qsizetype at = refusal.indexOf(begin);
  if (at < 0) return all;
  // Behind these words are changes that the machine cannot make.
  const QString words = refusal.mid(at + begin.size()).section(QStringLiteral("; else only"), 0, 0);
  static const QRegularExpression setting(
      QStringLiteral("([a-z_0-9]+) = ([A-Za-z0-9_]+(?:\\.[0-9]+[A-Za-z]*)?)"));
  for (const QString& change : words.split(QStringLiteral(", or "))) {
    std::vector<std::pair<QString, QString>> settings;
    qsizetype n_left_out = 0;  // settings before this place are left out
    if (change.startsWith(QStringLiteral("without "))) {
      n_left_out = change.indexOf(QStringLiteral(" and with "));
      if (n_left_out < 0) n_left_out = change.size();
    }
    for (auto match = setting.globalMatch(change); match.hasNext();) {
      const QRegularExpressionMatch found = match.next();
      const bool is_left_out = found.capturedStart() < n_left_out;
      settings.emplace_back(found.captured(1),
                            is_left_out ? QStringLiteral("auto") : found.captured(2));
    }
    if (!settings.empty()) all.push_back(std::move(settings));
  }
  return all;
}

PlanThread::PlanThread(QObject* parent) : QObject(parent), main_(this), stand_in_(this) {}

void PlanThread::ask(const config::Config& config) {
  const uint64_t question = ++question_;
  is_waiting_ = true;
  has_answer_ = false;
  const auto deliver = [this, question](const LatestWorker::Turn& turn, PlanOutcome&& outcome,
                                        bool is_stand_in = false) {
    auto shared = std::make_shared<const PlanOutcome>(std::move(outcome));
    turn.deliver([this, question, shared, is_stand_in] {
      if (question == question_ && !(is_stand_in && has_answer_)) take(shared);
    });
  };
  stand_in_.forget();
  if (planners_->is_counting)
    stand_in_.post([planners = planners_, config, deliver](const LatestWorker::Turn& turn) {
      deliver(
          turn,
          outcome_of(planners->stand_in, config, {.reads_data = false, .looks_for_gains = false}),
          /*is_stand_in=*/true);
    });
  main_.post([planners = planners_, config, deliver](const LatestWorker::Turn& turn) {
    Planner& planner = planners->main;
    const bool has_data = !config.text("dataset").empty();
    PlanOutcome outcome =
        outcome_of(planner, config, {.reads_data = false, .looks_for_gains = false});
    outcome.is_complete = !outcome.answer;
    if (outcome.is_complete) return deliver(turn, std::move(outcome));
    deliver(turn, PlanOutcome(outcome));
    if (turn.is_overtaken()) return;
    if (has_data && !outcome.has_counted_data) {
      planners->is_counting = true;
      outcome = outcome_of(planner, config, {.looks_for_gains = false});
      planners->is_counting = false;
      outcome.is_complete = !outcome.answer;
      if (outcome.is_complete) return deliver(turn, std::move(outcome));
      deliver(turn, PlanOutcome(outcome));
      if (turn.is_overtaken()) return;
    }
    if (outcome.answer->refusal)
      outcome.changes = changes_that_fit(planner, *outcome.answer, config, turn);
    else if (outcome.answer->time)
      outcome = outcome_of(planner, config, {.reads_data = false});
    outcome.is_complete = true;
    deliver(turn, std::move(outcome));
  });
}

void PlanThread::forget() {
  ++question_;
  is_waiting_ = false;
  main_.forget();
  stand_in_.forget();
}

void PlanThread::take(const Outcome& outcome) {
  has_answer_ = true;
  if (outcome->is_complete) is_waiting_ = false;
  emit answered(outcome);
}

}  // namespace ferry::gui
