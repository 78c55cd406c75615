#pragma once
// Hosts whose GPUs are of several kinds, as the machine's profile tells of them: the time that each
// takes for the same passes, from which `ferry plan` estimates shares, and whether all of them
// together are faster than some. No torch, no device.

#include <optional>
#include <string>
#include <vector>

#include "src/plan/plan.h"

namespace ferry {

/** By rank, the seconds of one micro-batch's passes on its GPU, with all activations kept. Empty
 * where times are not known or all GPUs are alike. */
std::vector<double> pass_seconds_by_rank(const ModelTable& model, const PlanRequest& request);

/** Some of a host's GPUs. */
struct GpuSubset {
  std::vector<int> gpus;  ///< their numbers on the host, the fastest first
  double step_s = 0;      ///< the same step on these alone
};

/** The fastest of the subsets that leave out the slower GPUs: the fastest GPU alone, and all those
 * of the faster kinds. Each is planned anew, with the host's whole memory and the request's shares.
 * Nothing where all GPUs are alike, ranks share micro-batches, the run has several hosts, or none
 * of them fits. */
std::optional<GpuSubset> fastest_subset(const ModelTable& model, const PlanRequest& request);

/** GPUs help where they make a step this many times as fast at least. */
inline constexpr double kGpusHelp = 1.1;

/** "The NVIDIA GeForce RTX 4090 alone would take 900.0 ms a step: all 2 GPUs are 1.15 times as
 * fast", where a step on all of the request's GPUs takes `step_s`. Where they are not kGpusHelp
 * times as fast, it goes on with how to leave the slower ones out. `numbers`: by rank, the GPU's
 * number in the option gpus; empty: they count from 0. */
std::string comparison_text(const GpuSubset& subset,
                            const PlanRequest& request,
                            double step_s,
                            const std::vector<int>& numbers);

}  // namespace ferry
