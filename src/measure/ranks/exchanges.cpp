#include "src/measure/ranks/exchanges.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "src/base/error.h"
#include "src/measure/timing.h"

namespace ferry::measure {
namespace {

/** Memory of a rank, in values, and who it is. */
struct RankMemory {
  Comm& comm;
  Collectives& collectives;
  const float* from;
  float* to;
  int64_t rank() const { return comm.rank(); }
  int64_t world() const { return comm.world(); }
  int64_t before() const { return (rank() + world() - 1) % world(); }
};

/** Value `i` of a rank's buffer: small whole numbers, whose sums are exact in any order. */
float value_of(int64_t rank, int64_t i) {
  constexpr int64_t kPeriod = 251;  // a prime: no two parts of a buffer begin alike
  return static_cast<float>(i % kPeriod + 3 * rank);
}
float sum_at(const RankMemory& its, int64_t i) {
  float sum = 0;
  for (int64_t rank = 0; rank < its.world(); ++rank)
    sum += value_of(rank, i);
  return sum;
}

struct Operation {
  std::string_view name;
  /** The part of its bytes that crosses each rank's link, in nccl-tests' way. */
  double (*bus_share)(double world);
  bool is_cut;      ///< each rank has a part of the buffer, of n / world values
  bool gives_part;  ///< the result is such a part
  void (*run)(const RankMemory& its, int64_t n);
  float (*expected)(const RankMemory& its, int64_t n, int64_t i);  ///< value i of the result
};

double of_others(double world) {
  return (world - 1) / world;
}

/** `n` is what a rank has of a buffer that is cut, else the whole. */
constexpr Operation kOperations[] = {
    {"all-gather", of_others, true, false,
     [](const RankMemory& its, int64_t n) { its.collectives.all_gather(its.from, its.to, n); },
     [](const RankMemory&, int64_t n, int64_t i) { return value_of(i / n, i % n); }},
    {"reduce-scatter", of_others, true, true,
     [](const RankMemory& its, int64_t n) { its.collectives.reduce_scatter(its.from, its.to, n); },
     [](const RankMemory& its, int64_t n, int64_t i) { return sum_at(its, its.rank() * n + i); }},
    {"all-reduce", [](double world) { return 2 * of_others(world); }, false, false,
     [](const RankMemory& its, int64_t n) { its.collectives.all_reduce(its.from, its.to, n); },
     [](const RankMemory& its, int64_t, int64_t i) { return sum_at(its, i); }},
    {"all-to-all", of_others, true, false,
     [](const RankMemory& its, int64_t n) { its.collectives.all_to_all(its.from, its.to, n); },
     [](const RankMemory& its, int64_t n, int64_t i) {
       return value_of(i / n, its.rank() * n + i % n);
     }},
    {"send/recv", [](double) { return 1.0; }, false, false,
     [](const RankMemory& its, int64_t n) { its.collectives.send_on(its.from, its.to, n); },
     [](const RankMemory& its, int64_t, int64_t i) { return value_of(its.before(), i); }},
};
/** The operation by which Ferry sends weights and gradients. */
constexpr std::string_view kExchange = "all-to-all";

void check_result(const RankMemory& its, const Operation& operation, int64_t n, int64_t n_all) {
  std::vector<float> result(static_cast<size_t>(operation.gives_part ? n : n_all), -1.0F);
  its.collectives.write(its.to, result);
  operation.run(its, n);
  its.collectives.wait();
  its.collectives.read(result, its.to);
  for (int64_t i = 0; i < std::ssize(result); ++i) {
    const float expected = operation.expected(its, n, i), found = result[static_cast<size_t>(i)];
    if (found != expected)
      throw Error(
          Fault::machine, "bench.nccl",
          fmt::format("{} of {} gave rank {} the value {} in place of {}, at {}", operation.name,
                      format_bytes(n_all * sizeof(float)), its.rank(), found, expected, i),
          "a link or a library is broken: try NCCL_P2P_DISABLE=1");
  }
}

/** The first rank says how often, and the slowest rank's time counts. */
double operation_seconds(const RankMemory& its,
                         const Operation& operation,
                         int64_t n,
                         double seconds) {
  const auto run = [&](int64_t n_times) {
    its.comm.barrier();
    const auto start = Clock::now();
    for (int64_t i = 0; i < n_times; ++i)
      operation.run(its, n);
    its.collectives.wait();
    return std::ranges::max(its.comm.gather_values(seconds_since(start)));
  };
  constexpr int64_t kEnd = 0;
  double found_s = 0;
  if (its.rank() == 0) {
    found_s = sample({.seconds = seconds}, [&](int n_times) {
      its.comm.broadcast_value(static_cast<int64_t>(n_times), 0);
      return run(n_times);
    });
    its.comm.broadcast_value(kEnd, 0);
  } else {
    while (const int64_t n_times = its.comm.broadcast_value(kEnd, 0))
      run(n_times);
  }
  return its.comm.broadcast_value(found_s, 0);
}

std::vector<int64_t> sizes_up_to(int64_t most_bytes) {
  std::vector<int64_t> sizes;
  for (int64_t n_bytes = kMessage_bytes_least; n_bytes <= most_bytes; n_bytes *= 4)
    sizes.push_back(n_bytes);
  return sizes;
}

}  // namespace

ExchangeBench measure_exchanges(Comm& comm,
                                Collectives& collectives,
                                const ExchangeOptions& options) {
  const std::vector<int64_t> sizes = sizes_up_to(options.bytes_max);
  FERRY_CHECK(!sizes.empty(), "{} bytes at most", options.bytes_max);
  const auto n_values = [](int64_t n_bytes) {
    return n_bytes / static_cast<int64_t>(sizeof(float));
  };
  const int64_t n_most = n_values(sizes.back());
  float* const from = collectives.reserve(n_most);
  const RankMemory its = {comm, collectives, from, collectives.reserve(n_most)};
  std::vector<float> values(static_cast<size_t>(n_most));
  for (int64_t i = 0; i < n_most; ++i)
    values[static_cast<size_t>(i)] = value_of(its.rank(), i);
  collectives.write(from, values);
  values = {};
  const double seconds =
      options.seconds / static_cast<double>(std::size(kOperations) * sizes.size());
  ExchangeBench bench;
  for (const Operation& operation : kOperations)
    for (const int64_t n_bytes : sizes) {
      const int64_t n = n_values(n_bytes) / (operation.is_cut ? its.world() : 1);
      const int64_t n_all = operation.is_cut ? n * its.world() : n;
      check_result(its, operation, n, n_all);
      ExchangeTime time = {.operation = operation.name,
                           .n_bytes = n_all * static_cast<int64_t>(sizeof(float)),
                           .seconds = rounded(operation_seconds(its, operation, n, seconds))};
      time.bytes_per_s = rounded(static_cast<double>(time.n_bytes) / time.seconds);
      time.bus_bytes_per_s =
          rounded(time.bytes_per_s * operation.bus_share(static_cast<double>(its.world())));
      bench.times.push_back(time);
      if (operation.name != kExchange) continue;
      if (n_bytes == sizes.front()) bench.profile.message_s = time.seconds;
      bench.profile.bytes_per_s = std::max(bench.profile.bytes_per_s, time.bus_bytes_per_s);
    }
  return bench;
}

}  // namespace ferry::measure
