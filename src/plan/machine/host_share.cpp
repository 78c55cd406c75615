#include "src/plan/machine/host_share.h"

#include <algorithm>

namespace ferry {
namespace {

/** Between what was measured with fewer and with more threads; more than all get no more. */
double at_threads(const std::vector<UpdateRate>& rates, double n_threads, double UpdateRate::*of) {
  double n_before = 0, before = 0;
  for (const UpdateRate& rate : rates) {
    const double n = rate.n_threads;
    if (n_threads <= n)
      return before + (rate.*of - before) * (n_threads - n_before) / std::max(1.0, n - n_before);
    n_before = n;
    before = rate.*of;
  }
  return before;
}

/** The part that everyone gets of what all ask for together. */
double given(double rate, double asked) {
  return rate > 0 && asked > rate ? rate / asked : 1;
}

}  // namespace

double host_memory_rate(const MachineProfile& machine) {
  const HostProfile& host = machine.host;
  double most = std::max(host.dram_bytes_per_s, host.memory_bytes_per_s);
  for (const UpdateRate& rate : host.updates)
    most =
        std::max({most, rate.alone * kUpdateTraffic_bytes,
                  rate.beside_copies * kUpdateTraffic_bytes + rate.h2d_beside + rate.d2h_beside});
  return most;
}

MachineProfile share_of_host(const MachineProfile& machine, int n_ranks, bool gpu) {
  MachineProfile share = machine;
  const double n = n_ranks, memory_rate = host_memory_rate(machine) / n;
  HostProfile& host = share.host;
  const std::vector<UpdateRate> of_all = std::move(host.updates);
  const int n_of_host = std::max(host.n_threads, of_all.empty() ? 0 : of_all.back().n_threads);
  host.n_threads = std::max(1, n_of_host / n_ranks);
  host.dram_bytes_per_s = memory_rate;
  host.memory_bytes_per_s /= n;
  for (GemmRate& rate : host.gemms)
    rate.flops_per_s /= n;
  for (AttentionRate& rate : host.attentions) {
    rate.forward_flops_per_s /= n;
    rate.backward_flops_per_s /= n;
  }
  double to_gpu = 0, from_gpu = 0;  // of a rank that copies large pieces both ways
  if (share.gpu)
    for (CopyRate& copy : share.gpu->copies) {
      const auto beside = [](double rate, double alone) { return rate > 0 ? rate : alone; };
      to_gpu = beside(copy.h2d_beside_d2h, copy.h2d);
      from_gpu = beside(copy.d2h_beside_h2d, copy.d2h);
      const double both = given(memory_rate, to_gpu + from_gpu);
      copy.h2d *= given(memory_rate, copy.h2d);
      copy.d2h *= given(memory_rate, copy.d2h);
      copy.h2d_beside_d2h = to_gpu * both;
      copy.d2h_beside_h2d = from_gpu * both;
    }
  host.updates.clear();
  if (of_all.empty()) return share;
  const int n_most = std::max(1, host.n_threads - (gpu ? 1 : 0));
  for (int n_threads = 1;; n_threads = std::min(2 * n_threads, n_most)) {
    const double n_all = n * n_threads;
    const auto of_rank = [&](double UpdateRate::*of) { return at_threads(of_all, n_all, of) / n; };
    UpdateRate rate = {.n_threads = n_threads, .alone = of_rank(&UpdateRate::alone)};
    const double left = given(memory_rate, rate.alone * kUpdateTraffic_bytes + to_gpu + from_gpu);
    if (of_all.back().beside_copies > 0) {
      // One GPU's copies were beside it when it was measured.
      rate.beside_copies = std::min(of_rank(&UpdateRate::beside_copies), rate.alone * left);
      rate.h2d_beside = std::min(of_all.back().h2d_beside, to_gpu * left);
      rate.d2h_beside = std::min(of_all.back().d2h_beside, from_gpu * left);
    }
    host.updates.push_back(rate);
    if (n_threads == n_most) return share;
  }
}

}  // namespace ferry
