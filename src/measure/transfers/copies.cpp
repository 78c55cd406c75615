#include "src/measure/transfers/copies.h"

#include <thread>

#include "src/measure/transfers/copy_traffic.h"

namespace ferry::measure {
namespace {

struct Rates {
  double h2d = 0, d2h = 0;
};

Rates run(Bench& bench, const CopyTraffic::Options& options, double seconds) {
  constexpr int kLooks_min = 5;  // however slow the link is
  CopyTraffic traffic(bench, options);
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  traffic.await(kLooks_min, start);
  traffic.stop();
  return {rounded(traffic.bytes_per_s(QueueId::h2d, start)),
          rounded(traffic.bytes_per_s(QueueId::d2h, start))};
}

}  // namespace

std::vector<CopyRate> measure_copies(Bench& bench,
                                     std::span<const int64_t> sizes_bytes,
                                     double seconds) {
  const double each_s = seconds / static_cast<double>(3 * sizes_bytes.size());
  std::vector<CopyRate> rates;
  for (const int64_t n_bytes : sizes_bytes) {
    if (n_bytes > bench.from_host.n_bytes()) continue;
    CopyTraffic::Options options = {.piece_bytes = n_bytes};
    const Rates both = run(bench, options, each_s);
    options.d2h = false;
    const Rates up = run(bench, options, each_s);
    options = {.h2d = false, .piece_bytes = n_bytes};
    const Rates down = run(bench, options, each_s);
    rates.push_back({.n_bytes = n_bytes,
                     .h2d = up.h2d,
                     .d2h = down.d2h,
                     .h2d_beside_d2h = both.h2d,
                     .d2h_beside_h2d = both.d2h});
  }
  return rates;
}

}  // namespace ferry::measure
