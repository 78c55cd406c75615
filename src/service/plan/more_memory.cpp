#include "src/service/plan/more_memory.h"

#include "src/base/bytes.h"

namespace ferry::service {

MoreMemory::MoreMemory(const ModelTable& model, const PlanRequest& request)
    : model_(model), request_(request) {
  if (request.world == 1) begin(request);
}

void MoreMemory::begin(const PlanRequest& request) {
  if (!request.machine || !request.has_gpu) return;
  with_gpu_ = std::async(std::launch::async, [&model = model_, more = request]() mutable {
    more.gpu_budget_bytes += kGiB;
    for (int64_t& budget_bytes : more.gpu_budgets_bytes)
      budget_bytes += kGiB;
    return find_plan(model, more);
  });
}

std::vector<MemoryGain> MoreMemory::gains(const Plan& plan) {
  constexpr double kWorthSaying = 0.01;
  PlanRequest more = with_rank_choices_of(plan, request_);
  if (request_.world > 1) begin(more);
  std::vector<MemoryGain> found;
  const auto consider = [&](const char* what, const std::optional<Plan>& better) {
    if (better && better->predicted->step_s < plan.predicted->step_s * (1 - kWorthSaying))
      found.push_back({what, better->predicted->step_s});
  };
  std::optional<Plan> with_host;
  if (plan.host_lacking_bytes <= kGiB) {
    more.host_budget_bytes += kGiB;
    with_host = find_plan(model_, more);
  }
  if (with_gpu_.valid()) consider("GPU memory", with_gpu_.get());
  consider("host memory", with_host);
  return found;
}

}  // namespace ferry::service
