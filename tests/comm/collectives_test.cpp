// Ferry's collectives in host memory, among ranks that are threads: the places of values, and sums
// in the order of ranks. `ferry bench nccl` checks them among processes.

#include "src/comm/collectives.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "src/comm/thread_comm.h"

namespace ferry {
namespace {

using Values = std::vector<float>;

/** The values that each rank has in `n_result` places after `work`, which every rank does on its
 * own values.
 */
std::vector<Values> results_of(
    int world,
    int64_t n_result,
    const std::function<Values(int rank)>& values_of,
    const std::function<void(Collectives&, const float* from, float* to)>& work) {
  std::vector<Values> results(static_cast<size_t>(world), Values(static_cast<size_t>(n_result)));
  auto comms = make_thread_comms(world, std::chrono::seconds(120));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      const auto collectives = make_host_collectives(*comms[static_cast<size_t>(rank)]);
      const Values values = values_of(rank);
      float* const from = collectives->reserve(std::ssize(values));
      float* const to = collectives->reserve(n_result);
      collectives->write(from, values);
      collectives->write(to, Values(static_cast<size_t>(n_result), -1.0F));
      work(*collectives, from, to);
      collectives->wait();
      collectives->read(results[static_cast<size_t>(rank)], to);
    });
  threads.clear();
  return results;
}

Values from_to(float first, int64_t n) {
  Values values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(first + static_cast<float>(i));
  return values;
}

class HostCollectives : public testing::TestWithParam<int> {};

TEST_P(HostCollectives, GatherAndPassOnWholeBuffers) {
  const int world = GetParam();
  const auto mine = [](int rank) { return from_to(100.0F * static_cast<float>(rank), 3); };
  Values all;
  for (int rank = 0; rank < world; ++rank)
    for (const float value : mine(rank))
      all.push_back(value);
  for (const Values& result :
       results_of(world, 3 * world, mine,
                  [](Collectives&its, const float*from, float*to) { its.all_gather(from, to, 3); }))
    EXPECT_EQ(result, all);
  const std::vector<Values> passed =
      results_of(world, 3, mine,
                 [](Collectives& its, const float* from, float* to) { its.send_on(from, to, 3); });
  for (int rank = 0; rank < world; ++rank)
    EXPECT_EQ(passed[static_cast<size_t>(rank)], mine((rank + world - 1) % world));
}

TEST_P(HostCollectives, ExchangePartsAndAddThem) {
  const int world = GetParam();
  const int64_t n = 5, n_all = n * world;
  const auto mine = [&](int rank) { return from_to(1000.0F * static_cast<float>(rank), n_all); };
  const std::vector<Values> exchanged = results_of(
      world, n_all, mine,
      [&](Collectives& its, const float* from, float* to) { its.all_to_all(from, to, n); });
  const std::vector<Values> sums = results_of(
      world, n, mine,
      [&](Collectives& its, const float* from, float* to) { its.reduce_scatter(from, to, n); });
  for (int rank = 0; rank < world; ++rank) {
    Values received, sum(static_cast<size_t>(n), 0.0F);
    for (int from = 0; from < world; ++from)
      for (int64_t i = 0; i < n; ++i) {
        received.push_back(mine(from)[static_cast<size_t>(rank * n + i)]);
        sum[static_cast<size_t>(i)] += received.back();
      }
    EXPECT_EQ(exchanged[static_cast<size_t>(rank)], received);
    EXPECT_EQ(sums[static_cast<size_t>(rank)], sum);
  }
}

// Fewer values than ranks, and parts that are not alike. 1e8 + 1 is 1e8 in fp32, so another order
// has another sum.
TEST_P(HostCollectives, ReduceAnyNumberOfValuesInTheOrderOfRanks) {
  const int world = GetParam();
  const float sum = world == 1 ? 1e8F : 0.0F;
  for (const int64_t n : {1, 2, 7, 4096}) {
    const auto mine = [&](int rank) {
      return Values(static_cast<size_t>(n), rank == 0 ? 1e8F : rank == world - 1 ? -1e8F : 1.0F);
    };
    for (const Values& result : results_of(
             world, n, mine,
             [&](Collectives&its, const float*from, float*to) { its.all_reduce(from, to, n); }))
      EXPECT_EQ(result, Values(static_cast<size_t>(n), sum));
  }
}

INSTANTIATE_TEST_SUITE_P(World, HostCollectives, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace ferry
