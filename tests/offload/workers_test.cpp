// The worker pools, the host queue of the CUDA device, and the arithmetic spread over workers.

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "offload/cpu_math.h"
#include "offload/host_queue.h"
#include "offload/worker_pool.h"

namespace ferry::test {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

class Pools : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && kThreadSanitizer)
      GTEST_SKIP() << "oneTBB is not instrumented for the thread sanitizer";
  }
  static std::unique_ptr<WorkerPool> make(int n_workers) {
    return GetParam() ? make_tbb_pool(n_workers) : make_thread_pool(n_workers);
  }
};

TEST_P(Pools, RunEveryTaskOnce) {
  for (int n_workers : {1, 2, 7}) {
    auto pool = make(n_workers);
    EXPECT_EQ(pool->n_workers(), n_workers);
    for (int64_t n_tasks : {0, 1, 3, 100}) {
      std::vector<std::atomic<int>> ran(static_cast<size_t>(n_tasks));
      pool->parallel_for(n_tasks, [&](int64_t i) { ++ran[static_cast<size_t>(i)]; });
      for (const auto& n : ran)
        EXPECT_EQ(n, 1);
    }
  }
}

TEST_P(Pools, RethrowWhatATaskThrows) {
  for (int n_workers : {1, 4}) {
    auto pool = make(n_workers);
    EXPECT_THROW(pool->parallel_for(50,
                                    [](int64_t i) {
                                      if (i == 17) throw std::runtime_error("planted");
                                    }),
                 std::runtime_error);
    std::atomic<int> n{0};
    pool->parallel_for(9, [&](int64_t) { ++n; });
    EXPECT_EQ(n, 9);
  }
}

TEST_P(Pools, ServeTwoThreadsAtOnce) {
  for (int n_workers : {1, 2}) {
    auto pool = make(n_workers);
    std::atomic<int> n{0};
    auto work = [&] {
      for (int round = 0; round < 50; ++round)
        pool->parallel_for(8, [&](int64_t) { ++n; });
    };
    {
      std::jthread other(work);
      work();
    }
    EXPECT_EQ(n, 800);
  }
}

INSTANTIATE_TEST_SUITE_P(, Pools, testing::Bool(), [](const auto& info) {
  return info.param ? "tbb" : "threads";
});

TEST(HostQueue, RunsInOrderAndDrains) {
  std::vector<int> ran;
  {
    HostQueue queue;
    for (int i = 0; i < 500; ++i)
      queue.push([&ran, i] { ran.push_back(i); });
    queue.drain();
    ASSERT_EQ(ran.size(), 500u);
    for (int i = 0; i < 500; ++i)
      EXPECT_EQ(ran[static_cast<size_t>(i)], i);
    queue.drain();  // empty
  }
  { HostQueue unused; }
}

TEST(CpuMath, HasTheBitsOfTheKernelsWhateverTheWorkers) {
  const int64_t n = 2 * simd::kTask_elements + 5000;
  std::vector<float> g(static_cast<size_t>(n));
  for (size_t i = 0; i < g.size(); ++i)
    g[i] = 0.001f * static_cast<float>(static_cast<int64_t>(i * 7919 % 10007) - 5000);
  const std::vector<TensorExtent> tensors = {
      {0, simd::kTask_elements + 256},
      {simd::kTask_elements + 256, 100},
      {simd::kTask_elements + 512, n - simd::kTask_elements - 512}};
  double expected = 0;
  for (const TensorExtent& t : tensors)
    expected += simd::square_sum(g.data() + t.offset, DType::f32, t.n_elements);
  std::vector<float> master(g.size(), 1.0f), m(g.size(), 0.0f), v(g.size(), 0.0f);
  const simd::AdamwStep step = simd::make_adamw_step({.lr = 0.1}, 1, 1.0f);
  simd::adamw(
      {master.data(), m.data(), v.data(), g.data(), DType::f32, nullptr, DType::f32, n, step});
  for (int n_workers : {1, 2, 7}) {
    auto pool = make_thread_pool(n_workers);
    CpuMath math(*pool);
    double total = 0;
    math.square_sum(g.data(), DType::f32, tensors, &total);
    EXPECT_EQ(total, expected);
    std::vector<float> master2(g.size(), 1.0f), m2(g.size(), 0.0f), v2(g.size(), 0.0f);
    const simd::AdamwArgs args{master2.data(), m2.data(),  v2.data(), g.data(), DType::f32,
                               nullptr,        DType::f32, n,         step};
    math.adamw({&args, 1});
    EXPECT_EQ(master2, master);
    EXPECT_EQ(m2, m);
    EXPECT_EQ(v2, v);
    std::vector<float> sum(g.size(), 9.0f);
    math.accumulate(sum.data(), g.data(), DType::f32, n, true);
    EXPECT_EQ(sum, g);
    math.accumulate(sum.data(), g.data(), DType::f32, n, false);
    EXPECT_EQ(sum[1234], 2 * g[1234]);
  }
}

}  // namespace
}  // namespace ferry::test
