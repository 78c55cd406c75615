// The worker pools, the host queue of the CUDA device, and the arithmetic spread over workers.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "offload/device/host/cpu_math.h"
#include "offload/device/host/first_touch.h"
#include "offload/device/host/host_queue.h"
#include "offload/device/host/worker_pool.h"
#include "src/base/bytes.h"

namespace ferry::test {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif
#ifdef __SANITIZE_ADDRESS__
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

class Pools : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && kInstrumented)
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

TEST(ThreadPool, HasTheSameThreadsInEachCall) {
  auto pool = make_thread_pool(3);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  for (int round = 0; round < 200; ++round)
    pool->parallel_for(3, [&](int64_t) {
      std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
  EXPECT_LE(threads.size(), 3u);
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
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

TEST(Workers, AreSpreadOverTheNodesAsTheirCores) {
  EXPECT_EQ(spread_workers(16, {16}), (NodeWorkers{16}));
  EXPECT_EQ(spread_workers(16, {16, 16}), (NodeWorkers{8, 8}));
  EXPECT_EQ(spread_workers(7, {16, 16}), (NodeWorkers{3, 4}));
  EXPECT_EQ(spread_workers(12, {8, 4, 12}), (NodeWorkers{4, 2, 6}));
  EXPECT_EQ(spread_workers(1, {4, 4}), (NodeWorkers{0, 1}));
}

TEST(Workers, OfANodeHaveTheSamePartOfEverySegment) {
  const NodeWorkers workers = {3, 4, 1};
  for (int64_t n_tasks : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{800}, int64_t{1} << 40}) {
    EXPECT_EQ(first_task(workers, 0, n_tasks), 0);
    EXPECT_EQ(first_task(workers, 1, n_tasks), n_tasks * 3 / 8);
    EXPECT_EQ(first_task(workers, 2, n_tasks), n_tasks * 7 / 8);
    EXPECT_EQ(first_task(workers, 3, n_tasks), n_tasks);
  }
}

constexpr int kNoTbbbind = 77;

/** In a process of its own, for which hwloc makes up a machine of two nodes with a core of this one
 * each. Prints nothing else than what is wrong. */
[[noreturn]] void use_two_nodes(int first_core, int second_core) {
  // Cores have their numbers in the order of the nodes; of others the pool must keep away.
  setenv(
      "HWLOC_SYNTHETIC",
      fmt::format("package:2 [numa] core:1 pu:1(indexes={},{})", first_core, second_core).c_str(),
      1);
  setenv("HWLOC_THISSYSTEM", "1", 1);
  const auto fail = [](const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::exit(1);
  };
  if (oneapi::tbb::info::numa_nodes().front() == oneapi::tbb::task_arena::automatic)
    std::exit(kNoTbbbind);
  auto pool = make_tbb_pool(2);
  if (pool->n_nodes() != 2) fail(fmt::format("{} nodes", pool->n_nodes()));
  if (pool->n_workers() != 2) fail(fmt::format("{} workers", pool->n_workers()));
  constexpr int kTasks = 1001;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::atomic<int>> ran(kTasks);
    pool->parallel_for(kTasks, [&](int64_t i) {
      cpu_set_t allowed;
      sched_getaffinity(0, sizeof allowed, &allowed);
      const int core = i < kTasks / 2 ? first_core : second_core;
      const bool is_bound = CPU_COUNT(&allowed) == 1 && CPU_ISSET(core, &allowed);
      ran[static_cast<size_t>(i)] += is_bound ? 1 : 1000;
    });
    for (int i = 0; i < kTasks; ++i)
      if (ran[static_cast<size_t>(i)] != 1)
        fail(fmt::format("task {} ran {}", i, ran[static_cast<size_t>(i)].load()));
  }
  try {
    pool->parallel_for(kTasks, [](int64_t i) {
      if (i == 3 || i == kTasks - 1) throw std::runtime_error("planted");
    });
    fail("nothing was thrown");
  } catch (const std::runtime_error&) {
  }
  std::atomic<int> n{0};
  pool->parallel_for(kTasks, [&](int64_t) { ++n; });
  if (n != kTasks) fail(fmt::format("{} tasks ran after a throw", n.load()));
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  if (CPU_COUNT(&allowed) < 2) fail("the caller has lost its cores");
  std::exit(0);
}

TEST(NumaDeathTest, EachNodesWorkersRunItsShareOnItsCores) {
  if (kInstrumented) GTEST_SKIP() << "oneTBB is not instrumented for the thread sanitizer";
  if (kAddressSanitizer) GTEST_SKIP() << "the address sanitizer forbids oneTBB's library for NUMA";
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  if (cores.size() < 2) GTEST_SKIP() << "two cores are needed";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process
  static int code;
  const auto has_ended = [](int status) {
    code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code == 0 || code == kNoTbbbind;
  };
  EXPECT_EXIT(use_two_nodes(cores[0], cores[1]), has_ended, "");
  if (code == kNoTbbbind) GTEST_SKIP() << "oneTBB's library for NUMA, libtbbbind, is not here";
}

TEST(FirstTouch, FindsEveryPageAndLeavesItZero) {
  auto pool = make_thread_pool(3);
  for (const int64_t n_bytes : {kKiB, 2 * kMiB, 5 * kMiB + 12345}) {
    const auto size = static_cast<size_t>(n_bytes);
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(p, MAP_FAILED);
    auto* data = static_cast<std::byte*>(p);
    touch_first(*pool, data, n_bytes);
    std::vector<unsigned char> is_there((size + 4095) / 4096);
    ASSERT_EQ(mincore(p, size, is_there.data()), 0);
    for (const unsigned char page : is_there)
      ASSERT_EQ(page & 1, 1);
    for (int64_t i = 0; i < n_bytes; ++i)
      ASSERT_EQ(data[i], std::byte{0});
    munmap(p, size);
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
  const double expected = simd::square_sum(g.data(), DType::f32, n);
  std::vector<float> master(g.size(), 1.0f), m(g.size(), 0.0f), v(g.size(), 0.0f);
  const simd::UpdateStep step = simd::make_step(simd::Optim::adamw, {.lr = 0.1}, 1, 1.0f);
  simd::update({master.data(),
                {{m.data()}, {v.data()}},
                g.data(),
                DType::f32,
                nullptr,
                DType::f32,
                n,
                step});
  for (int n_workers : {1, 2, 7}) {
    auto pool = make_thread_pool(n_workers);
    CpuMath math(*pool);
    double total = 0;
    math.square_sum(g.data(), DType::f32, n, &total);
    EXPECT_EQ(total, expected);
    std::vector<float> master2(g.size(), 1.0f), m2(g.size(), 0.0f), v2(g.size(), 0.0f);
    const simd::UpdateArgs args{master2.data(),
                                {{m2.data()}, {v2.data()}},
                                g.data(),
                                DType::f32,
                                nullptr,
                                DType::f32,
                                n,
                                step};
    math.update({&args, 1});
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
