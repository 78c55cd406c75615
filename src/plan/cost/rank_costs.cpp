#include "src/plan/cost/rank_costs.h"

#include <algorithm>

#include "src/plan/cost/rates.h"

namespace ferry {

MachineProfile machine_of_gpu(const MachineProfile& machine, int index, int n_of_host) {
  MachineProfile its = machine;
  its.gpu = machine.gpu_at(index);
  its.gpu->exchange = exchange_rates(machine, /*gpu=*/true, n_of_host);
  its.other_gpus.clear();
  return its;
}

RankCosts::RankCosts(const MachineProfile& machine,
                     bool gpu,
                     const ModelTable& model,
                     const StepShape& shape,
                     const BatchShape& batch) {
  const auto add = [&](const MachineProfile& its) {
    own_.push_back(std::make_unique<const CostModel>(its, gpu, model, shape, batch));
    models_.push_back(own_.back().get());
  };
  const int n_of_host = shape.n_ranks_of_host();
  if (!gpu || !machine.has_unlike_gpus()) {
    add(machine);
    return;
  }
  std::vector<int> gpu_of_kind;
  for (int index = 0; index < std::min(n_of_host, machine.n_gpus()); ++index) {
    const auto known = std::ranges::find_if(
        gpu_of_kind, [&](int other) { return machine.gpu_at(other) == machine.gpu_at(index); });
    kinds_.push_back(static_cast<int>(known - gpu_of_kind.begin()));
    if (known != gpu_of_kind.end()) continue;
    gpu_of_kind.push_back(index);
    machines_.push_back(
        std::make_unique<const MachineProfile>(machine_of_gpu(machine, index, n_of_host)));
    add(*machines_.back());
  }
}

}  // namespace ferry
