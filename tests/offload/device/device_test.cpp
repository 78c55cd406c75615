// Promises of every device (device.h): queues in order, events between them, failures kept,
// queues drained. The simulated ones always, the CUDA device where there is one; what only one of
// them does, below.

#include "offload/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "tests/offload/device/tested_devices.h"

namespace ferry::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class Devices : public testing::TestWithParam<TestedDevice> {
 protected:
  void SetUp() override {
    if (const std::string why = why_none(GetParam()); !why.empty()) GTEST_SKIP() << why;
    pool_ = make_thread_pool(2);
    device_ = make_device(GetParam(), *pool_);
  }
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<Device> device_;
};

constexpr int64_t kBytes = 1 << 20;

TEST_P(Devices, ReservationsAreZeroAndOfTheSizeAskedFor) {
  auto gpu = device_->reserve(Place::device, kBytes), host = device_->reserve(Place::host, kBytes);
  ASSERT_GE(gpu->n_bytes(), kBytes);
  ASSERT_GE(host->n_bytes(), kBytes);
  EXPECT_EQ(device_->reserve(Place::device, 0)->data(), nullptr);
  EXPECT_EQ(device_->reserve(Place::host, 0)->data(), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(host->data()) % (2 * kMiB), 0u);  // large pages begin so
  for (int64_t i = 0; i < kBytes; ++i)
    ASSERT_EQ(host->data()[i], std::byte{0});
  std::memset(host->data(), 1, kBytes);
  device_->submit(QueueId::d2h,
                  [&] { device_->copy(QueueId::d2h, host->data(), gpu->data(), kBytes); });
  device_->drain();
  for (int64_t i = 0; i < kBytes; ++i)
    ASSERT_EQ(host->data()[i], std::byte{0});
}

/** host writes -> h2d -> d2h -> host reads, many times through the same memory: `n_bytes` from
 * `from` on, to `to`. */
void expect_copies_in_order(Device& device, std::byte* from, std::byte* to, int64_t n_bytes) {
  auto gpu = device.reserve(Place::device, n_bytes);
  const EventId written = device.make_event(QueueId::host),
                fetched = device.make_event(QueueId::h2d), sent = device.make_event(QueueId::d2h),
                read = device.make_event(QueueId::host);
  constexpr int kRounds = 100;
  std::vector<int> seen;
  for (int round = 0; round < kRounds; ++round) {
    device.wait(QueueId::host, fetched);  // of the round before
    device.submit(QueueId::host,
                  [=] { std::memset(from, round + 1, static_cast<size_t>(n_bytes)); });
    device.record(written);

    device.wait(QueueId::h2d, written);
    device.wait(QueueId::h2d, sent);
    device.submit(QueueId::h2d,
                  [=, &device, at = gpu->data()] { device.copy(QueueId::h2d, at, from, n_bytes); });
    device.record(fetched);

    device.wait(QueueId::d2h, fetched);
    device.wait(QueueId::d2h, read);
    device.submit(QueueId::d2h,
                  [=, &device, at = gpu->data()] { device.copy(QueueId::d2h, to, at, n_bytes); });
    device.record(sent);

    device.wait(QueueId::host, sent);
    device.submit(QueueId::host, [=, &seen] {
      const bool whole = std::all_of(to, to + n_bytes, [=](std::byte b) { return b == *to; });
      seen.push_back(whole ? static_cast<int>(*to) : -1);
    });
    device.record(read);
  }
  ASSERT_TRUE(device.wait_host(read, 60s));
  ASSERT_EQ(seen.size(), static_cast<size_t>(kRounds));
  for (int round = 0; round < kRounds; ++round)
    EXPECT_EQ(seen[static_cast<size_t>(round)], (round + 1) % 256);
}

TEST_P(Devices, CopiesFollowTheEventsBetweenQueues) {
  auto host = device_->reserve(Place::host, 2 * kBytes);
  expect_copies_in_order(*device_, host->data(), host->data() + kBytes, kBytes);
  const PinnedBytes bytes = device_->pinned_bytes();
  EXPECT_GE(bytes.pinned, 2 * kBytes);
  EXPECT_EQ(bytes.ring + bytes.unpinned, 0);
}

TEST_P(Devices, CopiesOfWhatIsNotPinnedFollowThemToo) {
  constexpr int64_t kAll = kBytes + 3000;  // no whole number of chunks
  // Slots have 2, 16 and 37.5 KiB. The pinned part ends within the first copy or the second one.
  for (const int64_t pinned_bytes_max : {64 * kKiB, 512 * kKiB, 1200 * kKiB}) {
    auto device =
        make_device(GetParam(), *pool_, {.seed = 7, .pinned_bytes_max = pinned_bytes_max});
    auto host = device->reserve(Place::host, 3 * kAll, {}, {0, 2 * kAll});
    expect_copies_in_order(*device, host->data(), host->data() + kAll, kAll);
    const PinnedBytes bytes = device->pinned_bytes();
    EXPECT_LE(bytes.pinned, pinned_bytes_max);
    EXPECT_GT(bytes.pinned, pinned_bytes_max - 4 * kKiB);
    EXPECT_LE(bytes.ring, pinned_bytes_max / 2);
    EXPECT_GE(bytes.pinned - bytes.ring + bytes.unpinned, 2 * kAll);
    host.reset();
    EXPECT_EQ(device->pinned_bytes().pinned, bytes.ring);
    EXPECT_EQ(device->pinned_bytes().unpinned, 0);
  }
}

TEST_P(Devices, ThreadsOfARingEndWithAStepThatFails) {
  for (const bool fails_before : {true, false}) {
    auto device = make_device(GetParam(), *pool_, {.pinned_bytes_max = 64 * kKiB});
    auto gpu = device->reserve(Place::device, kBytes), host = device->reserve(Place::host, kBytes);
    const EventId updated = device->make_event(QueueId::host),
                  fetched = device->make_event(QueueId::h2d),
                  sent = device->make_event(QueueId::d2h),
                  ran = device->make_event(QueueId::compute);
    device->submit(QueueId::host, [&] {
      std::this_thread::sleep_for(5ms);  // the others are waiting by now
      if (fails_before) throw Error(Fault::machine, "test", "planted");
    });
    device->record(updated);
    device->wait(QueueId::h2d, updated);
    device->submit(QueueId::h2d, [&] {
      device->copy(QueueId::h2d, gpu->data(), host->data(), kBytes);
      if (!fails_before) throw Error(Fault::machine, "test", "planted");
    });
    device->record(fetched);
    device->wait(QueueId::d2h, fetched);
    device->submit(QueueId::d2h,
                   [&] { device->copy(QueueId::d2h, host->data(), gpu->data(), kBytes); });
    device->record(sent);
    device->wait(QueueId::compute, sent);
    device->record(ran);
    EXPECT_THROW(device->wait_host(ran, 60s), Error);
    EXPECT_THROW(device->drain(), Error);
  }
}

TEST_P(Devices, AnEventNeverRecordedHoldsNobodyUp) {
  const EventId event = device_->make_event(QueueId::host);
  EXPECT_TRUE(device_->happened(event));
  for (int q = 0; q < kQueues; ++q)
    device_->wait(static_cast<QueueId>(q), event);
  EXPECT_TRUE(device_->wait_host(event, 60s));
  device_->drain();
}

TEST_P(Devices, AWaitIsForTheLastRecordBeforeIt) {
  for (int q = 0; q < kQueues; ++q) {
    const auto queue = static_cast<QueueId>(q), other = static_cast<QueueId>((q + 1) % kQueues);
    // A stream waits by itself: what this thread gives it runs here before.
    if (device_->is_cuda() && other <= QueueId::d2h) continue;
    const EventId event = device_->make_event(queue);
    std::vector<int> seen;
    std::atomic<int> n_run{0};
    for (int round = 0; round < 50; ++round) {
      device_->submit(queue, [&] { ++n_run; });
      device_->record(event);
      device_->wait(other, event);
      device_->submit(other, [&] { seen.push_back(n_run); });
    }
    ASSERT_TRUE(device_->wait_host(event, 60s));
    EXPECT_TRUE(device_->happened(event));
    EXPECT_EQ(n_run, 50);
    device_->drain();
    for (int round = 0; round < 50; ++round)
      EXPECT_GT(seen[static_cast<size_t>(round)], round);
  }
}

TEST_P(Devices, AThrowOfHostWorkComesBackWhileOtherQueuesWaitForIt) {
  auto gpu = device_->reserve(Place::device, kBytes), host = device_->reserve(Place::host, kBytes);
  const EventId updated = device_->make_event(QueueId::host),
                fetched = device_->make_event(QueueId::h2d),
                ran = device_->make_event(QueueId::compute);
  std::atomic<int> n_after{0};
  device_->submit(QueueId::host, [] {
    std::this_thread::sleep_for(20ms);  // the others are waiting by now
    throw Error(Fault::machine, "test", "planted");
  });
  device_->submit(QueueId::host, [&] { ++n_after; });
  device_->record(updated);
  device_->wait(QueueId::h2d, updated);
  device_->submit(QueueId::h2d,
                  [&] { device_->copy(QueueId::h2d, gpu->data(), host->data(), kBytes); });
  device_->record(fetched);
  device_->wait(QueueId::compute, fetched);
  device_->record(ran);
  EXPECT_THROW(device_->wait_host(ran, 60s), Error);
  EXPECT_EQ(n_after, 0);
  EXPECT_THROW(device_->drain(), Error);
}

TEST_P(Devices, AThrowOfComputeWorkComesBack) {
  std::atomic<int> n_after{0};
  device_->submit(QueueId::compute, [] { throw std::runtime_error("planted"); });
  for (int i = 0; i < 10; ++i)
    device_->submit(QueueId::compute, [&] { ++n_after; });
  EXPECT_THROW(device_->drain(), std::runtime_error);
  EXPECT_EQ(n_after, 0);
}

TEST_P(Devices, TheFirstOfSeveralFailuresIsTheOneThatComesBack) {
  device_->fail(std::make_exception_ptr(std::runtime_error("first")));
  device_->fail(std::make_exception_ptr(std::runtime_error("second")));
  bool ran = false;
  device_->submit(QueueId::host, [&] { ran = true; });
  try {
    device_->drain();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& failure) {
    EXPECT_STREQ(failure.what(), "first");
  }
  EXPECT_FALSE(ran);
}

TEST_P(Devices, DrainWaitsForEverything) {
  std::atomic<int> n{0};
  std::vector<EventId> events;
  for (int q = 0; q < kQueues; ++q)
    events.push_back(device_->make_event(static_cast<QueueId>(q)));
  for (size_t i = 0; i < 40; ++i) {
    const size_t q = i % kQueues;
    device_->wait(static_cast<QueueId>(q), events[(q + kQueues - 1) % kQueues]);
    device_->submit(static_cast<QueueId>(q), [&] { ++n; });
    device_->record(events[q]);
  }
  device_->drain();
  EXPECT_EQ(n, 40);
}

TEST_P(Devices, MathHasTheBitsOfTheScalarCode) {
  constexpr int64_t kN = 3 * 4096 + 77;
  // sum, gradients and one total, as the compute queue sees them.
  const int64_t sum_bytes = round_up(kN * 4, kTensorAlignment_bytes), g_bytes = sum_bytes / 2;
  const int64_t n_bytes = sum_bytes + g_bytes + kTensorAlignment_bytes;
  auto gpu = device_->reserve(Place::device, n_bytes),
       host = device_->reserve(Place::host, n_bytes);
  auto* g = reinterpret_cast<uint16_t*>(host->data() + sum_bytes);
  std::vector<float> values(kN);
  for (int64_t i = 0; i < kN; ++i)
    values[i] = static_cast<float>(i % 173 - 80) * 0.013f;
  simd::f32_to_bf16(g, values.data(), kN);
  std::vector<float> expected(kN);
  simd::accumulate_first(expected.data(), g, DType::bf16, kN);
  simd::accumulate(expected.data(), g, DType::bf16, kN);
  const double expected_total = simd::square_sum(expected.data(), DType::f32, kN);

  const EventId fetched = device_->make_event(QueueId::h2d),
                ran = device_->make_event(QueueId::compute);
  auto* sum = reinterpret_cast<float*>(gpu->data());
  auto* total = reinterpret_cast<double*>(gpu->data() + sum_bytes + g_bytes);
  device_->submit(QueueId::h2d,
                  [&] { device_->copy(QueueId::h2d, gpu->data(), host->data(), n_bytes); });
  device_->record(fetched);
  device_->wait(QueueId::compute, fetched);
  device_->submit(QueueId::compute, [&] {
    const std::byte* from = gpu->data() + sum_bytes;
    device_->math().accumulate(sum, from, DType::bf16, kN, true);
    device_->math().accumulate(sum, from, DType::bf16, kN, false);
    device_->math().square_sum(sum, DType::f32, kN, total);
  });
  device_->record(ran);
  device_->wait(QueueId::d2h, ran);
  device_->submit(QueueId::d2h,
                  [&] { device_->copy(QueueId::d2h, host->data(), gpu->data(), n_bytes); });
  device_->drain();
  EXPECT_EQ(std::memcmp(host->data(), expected.data(), kN * sizeof(float)), 0);
  double seen;
  std::memcpy(&seen, host->data() + sum_bytes + g_bytes, sizeof seen);
  EXPECT_EQ(seen, expected_total);
}

INSTANTIATE_TEST_SUITE_P(, Devices, testing::ValuesIn(kTestedDevices), [](const auto& info) {
  return name_of(info.param);
});

TEST(ThreadedDevice, AWaitGivesUpAfterItsPatience) {
  auto pool = make_thread_pool(1);
  auto device = make_simulated_device({.mode = SimulatedMode::threads}, *pool);
  std::latch over(1);
  const EventId event = device->make_event(QueueId::compute);
  device->submit(QueueId::compute, [&] { over.wait(); });
  device->record(event);
  EXPECT_FALSE(device->wait_host(event, 10ms));
  EXPECT_FALSE(device->happened(event));
  over.count_down();
  EXPECT_TRUE(device->wait_host(event, 60s));
  EXPECT_TRUE(device->happened(event));
}

TEST(SimulatedDevice, HasTheCapacityItWasGiven) {
  auto pool = make_thread_pool(1);
  auto device = make_simulated_device({.gpu_capacity_bytes = 3 * kMiB}, *pool);
  auto first = device->reserve(Place::device, 2 * kMiB);
  try {
    device->reserve(Place::device, 2 * kMiB);
    FAIL() << "4 MiB of 3 MiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::does_not_fit);
    EXPECT_THAT(error.what(), HasSubstr("2.0 MiB of GPU memory asked for, 2.0 MiB of 3.0 MiB"));
  }
  device->reserve(Place::host, 8 * kMiB);
  first.reset();
  device->reserve(Place::device, 3 * kMiB);
  EXPECT_THROW(device->reserve(Place::host, int64_t{1} << 60), Error);
}

TEST(SimulatedDevice, PoisonIsNotANumberInAnyType) {
  auto pool = make_thread_pool(1);
  for (bool poison : {false, true}) {
    auto device = make_simulated_device({.poison = poison}, *pool);
    auto memory = device->reserve(Place::device, 64);
    device->poison(memory->data(), 64);
    for (DType type : {DType::f32, DType::bf16, DType::f16}) {
      float value;
      simd::convert(&value, DType::f32, memory->data(), type, 1);
      EXPECT_EQ(std::isnan(value), poison);
    }
  }
}

TEST(AdversarialDevice, OrdersDifferBetweenSeedsAndRepeatForOne) {
  auto pool = make_thread_pool(1);
  auto order = [&](uint64_t seed) {
    auto device = make_simulated_device({.mode = SimulatedMode::adversarial, .seed = seed}, *pool);
    std::vector<int> ran;
    for (int i = 0; i < 40; ++i)
      device->submit(static_cast<QueueId>(i % kQueues), [&ran, i] { ran.push_back(i); });
    device->drain();
    return ran;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  EXPECT_NE(order(2), order(3));
}

TEST(CudaDevice, WithoutOneTheErrorSaysWhy) {
  const CudaProbe probe = probe_cuda();
  if (probe.usable) GTEST_SKIP() << "there is a CUDA device: " << probe.gpu_name;
  try {
    make_cuda_device();
    FAIL() << "a device without a GPU";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::machine);
    EXPECT_THAT(error.what(), HasSubstr(probe.why_not));
  }
}

TEST(CudaDevice, HowItWaitsMayBeAskedFor) {
  if (probe_cuda().why_not == "this build has no CUDA") GTEST_SKIP() << "this build has no CUDA";
  setenv("FERRY_HOST_WAITS", "events", 1);
  try {
    make_cuda_device();
    ADD_FAILURE() << "FERRY_HOST_WAITS=events";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    EXPECT_THAT(error.what(), HasSubstr("'events', expected driver or threads"));
  }
  unsetenv("FERRY_HOST_WAITS");
}

TEST(CudaDevice, TheDriverCountsWhatIsReserved) {
  const CudaProbe probe = probe_cuda();
  if (!probe.usable) GTEST_SKIP() << "no CUDA device: " << probe.why_not;
  auto device = make_cuda_device();
  const int64_t before = cuda_driver_used_bytes();
  auto memory = device->reserve(Place::device, 256 * kMiB);
  EXPECT_GE(cuda_driver_used_bytes() - before, 256 * kMiB);
  EXPECT_THROW(device->reserve(Place::device, probe.total_bytes + kGiB), Error);
}

}  // namespace
}  // namespace ferry::test
