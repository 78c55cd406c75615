#include "src/plan/plan_choice.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/bytes.h"
#include "src/plan/search/rank_choices.h"
#include "src/plan/search/search.h"

namespace ferry {
namespace {

/** Two that are timed decide, and more than these are not worth their time. */
constexpr size_t kTimed_least = 2, kTimed_most = 4;
/** Predictions of plans with the same products are off by nearly the same ratio; those of another
 * micro-batch are not. */
constexpr double kDoubtOfSame = 0.03, kDoubtOfOthers = 0.1;

bool uses_drive(const Plan& plan) {
  return plan.layout.n_bytes[Place::nvme] > 0;
}

/** Seconds to open a plan's memory, fill it, and take the first steps, as seen on machines with 16
 * cores: beside the steps it is pinning and reading that take long. */
double seconds_to_time(const Plan& plan) {
  constexpr double kOpening_s = 1.5, kOpened_bytes_per_s = 2e9;
  constexpr int kSteps = 3;
  double n_bytes = 0;
  for (const Place place : {Place::device, Place::host})
    n_bytes += static_cast<double>(plan.layout.n_bytes[place]);
  return kOpening_s + n_bytes / kOpened_bytes_per_s + kSteps * plan.predicted->step_s;
}

class Choosing {
 public:
  Choosing(const ModelTable& model, const PlanRequest& request, const ChoosingOptions& options)
      : options_(options),
        before_(model, request),
        learnt_(before_),
        left_s_(std::min(kChoosing_share * options.run_s, kChoosing_s_most)),
        open_(search_rivals(model, request, kRival_share)) {
    if (!open_.empty() && uses_drive(open_.front())) open_.clear();
    std::erase_if(open_, uses_drive);
  }

  PlanChoice choose(Plan plan) {
    if (is_worthwhile()) {
      if (options_.begin) options_.begin(left_s_);
      n_most_ = static_cast<int>(std::min(open_.size(), kTimed_most));
      while (time_next()) {
      }
    }
    const Rival* const fastest = fastest_of(choice_.tried);
    choice_.plan = fastest ? fastest->plan : std::move(plan);
    return std::move(choice_);
  }

 private:
  /** Two are to be timed at least, the earlier runs' among them. */
  bool is_worthwhile() const {
    const auto n_known =
        std::ranges::count_if(open_, [&](const Plan& plan) { return learnt_.knows(plan); });
    if (open_.size() < kTimed_least || n_known >= static_cast<int64_t>(kTimed_least)) return false;
    return seconds_to_time(open_[0]) + seconds_to_time(open_[1]) <= left_s_;
  }

  /** True where a plan with the same micro-batch was timed. */
  bool has_like(const Plan& plan) const {
    return std::ranges::any_of(choice_.tried, [&](const Rival& rival) {
      return rival.step_s && rival.plan.micro_batch_size == plan.micro_batch_size;
    });
  }

  /** The least time that a step of the plan may take. */
  double least_s(const Plan& plan) const {
    return plan.predicted->step_s * learnt_.ratio_of(plan) /
           (1 + (has_like(plan) ? kDoubtOfSame : kDoubtOfOthers));
  }

  /** The plan to time next: the planner's own, then those of other micro-batches, and at last those
   * that are like one that was timed; of each the one that may be the fastest. */
  std::vector<Plan>::iterator next() {
    if (choice_.tried.empty()) return open_.begin();
    return std::ranges::min_element(open_, {}, [&](const Plan& plan) {
      const bool is_late = has_like(plan) || least_s(plan) >= fastest_s_;
      return std::pair(is_late, least_s(plan));
    });
  }

  /** Times the next plan. False where none may be faster than the fastest that was timed, or there
   * is no time for it. */
  bool time_next() {
    if (open_.empty() || choice_.learnt.size() == kTimed_most) return false;
    const auto next = this->next();
    if (least_s(*next) >= fastest_s_ || std::max(last_s_, seconds_to_time(*next)) > left_s_)
      return false;
    Rival rival = {.plan = std::move(*next)};
    open_.erase(next);
    const int n = static_cast<int>(choice_.tried.size()) + 1;
    if (options_.next) options_.next({n, std::max(n, n_most_)}, rival.plan);
    const TimedStep timed = options_.time_step(rival.plan);
    left_s_ -= timed.took_s;
    last_s_ = timed.took_s;
    rival.step_s = timed.step_s;
    if (timed.step_s) {
      LearntStep step = learnt_.step_of(rival.plan, *timed.step_s, options_.now);
      learnt_.add(step);
      choice_.learnt.push_back(std::move(step));
      fastest_s_ = std::min(fastest_s_, *timed.step_s);
    }
    rival.promised_s = rival.plan.predicted->step_s * before_.ratio_of(rival.plan);
    learnt_.correct(rival.plan);
    choice_.tried.push_back(std::move(rival));
    return true;
  }

  const ChoosingOptions& options_;
  const LearntSteps before_;  ///< of earlier runs
  LearntSteps learnt_;        ///< and of this one
  double left_s_, last_s_ = 0, fastest_s_ = std::numeric_limits<double>::infinity();
  int n_most_ = 0;
  std::vector<Plan> open_;  ///< not timed, with the cost model's own times; the fastest first
  PlanChoice choice_;
};

}  // namespace

const Rival* fastest_of(std::span<const Rival> tried) {
  const auto fastest = std::ranges::min_element(tried, {}, [](const Rival& rival) {
    return rival.step_s.value_or(std::numeric_limits<double>::infinity());
  });
  return fastest != tried.end() && fastest->step_s ? &*fastest : nullptr;
}

PlanChoice choose_plan(const ModelTable& model,
                       const PlanRequest& wishes,
                       Plan plan,
                       const ChoosingOptions& options) {
  if (!wishes.machine || !plan.predicted) return {.plan = std::move(plan)};
  const PlanRequest request = settle_rank_choices(model, wishes).request;
  return Choosing(model, request, options).choose(std::move(plan));
}

}  // namespace ferry
