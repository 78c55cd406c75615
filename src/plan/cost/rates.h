#pragma once
// Rates at sizes that were not measured: between those of a machine's profile that were, on the
// line through them in logarithms.

#include <string>
#include <vector>

#include "models/core/tensor_table.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry {

/** FLOP/s of a product: interpolated between the measured ones, in the logarithms of its size. */
double gemm_rate(const std::vector<GemmRate>& rates, DType type, const BlockWork::Product& product);

/** FLOP/s of attention over texts of so many tokens, with the heads' width nearest to the model's;
 * 0 where nothing like it was measured. */
double attention_rate(const std::vector<AttentionRate>& all,
                      const ModelTable& model,
                      int64_t length,
                      bool backward);

/** Bytes of the copies that were measured, ascending. */
std::vector<int64_t> sizes_of(const std::vector<CopyRate>& rates);

/** Bytes a second of a copy of n_bytes one way, alone. `sizes`: sizes_of(rates), not empty. */
double copy_rate(const std::vector<CopyRate>& rates,
                 const std::vector<int64_t>& sizes,
                 bool to_gpu,
                 double n_bytes);

/** The rates of exchanges between ranks, of which a host has so many; what the profile does not
 * tell is assumed. GPUs of several kinds wait for the slowest link. */
ExchangeProfile exchange_rates(const MachineProfile& machine, bool gpu, int n_of_host);

/** The figures that a profile lacks to time a step of this model, in words; empty where it lacks
 * none. An unknown figure must not count as no time. `nvme`: states may live on a drive. */
std::string missing_figures(const MachineProfile& machine,
                            bool gpu,
                            const ModelTable& model,
                            bool nvme = false);

}  // namespace ferry
