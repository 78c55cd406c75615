#pragma once
// The cost models of a run's ranks: one for all of them where their GPUs are alike, else one for
// each kind of GPU. The simulator asks for the model of a rank, the search for the first rank's.

#include <memory>
#include <vector>

#include "src/plan/cost/cost.h"

namespace ferry {

class RankCosts {
 public:
  /** Takes CostModel's arguments. A host's ranks have the GPUs of the profile in their order. */
  RankCosts(const MachineProfile& machine,
            bool gpu,
            const ModelTable& model,
            const StepShape& shape,
            const BatchShape& batch);
  /** All ranks are as this one, which outlives the object. */
  RankCosts(const CostModel& all) : models_{&all} {}

  const CostModel& first() const { return of(0); }
  const CostModel& of(int rank) const { return *models_[static_cast<size_t>(kind_of(rank))]; }
  /** Ranks with GPUs of one kind have the same number, which counts from 0. */
  int kind_of(int rank) const {
    return kinds_.empty() ? 0 : kinds_[static_cast<size_t>(rank) % kinds_.size()];
  }
  /** The profile tells of several kinds of GPUs among the ranks. */
  bool are_unlike() const { return models_.size() > 1; }

 private:
  std::vector<std::unique_ptr<const MachineProfile>> machines_;  ///< kinds behind the first
  std::vector<std::unique_ptr<const CostModel>> own_;
  std::vector<const CostModel*> models_;  ///< by kind
  std::vector<int> kinds_;                ///< by rank of a host; empty: all are of kind 0
};

/** The profile of a host that has GPU `index` in each place. Exchanges take as long as between the
 * real GPUs, and `n_of_host` ranks of a run share a host. */
MachineProfile machine_of_gpu(const MachineProfile& machine, int index, int n_of_host);

}  // namespace ferry
