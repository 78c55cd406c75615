#include "src/measure/bench.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/normal.h>
#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"
#include "src/base/process/host_memory.h"
#include "src/base/process/threads.h"
#include "src/measure/kernels/update.h"

namespace ferry::measure {
namespace {

constexpr int64_t kGpu_bytes = 1152 * kMiB;     ///< two copies' ends, AdamW, or a GEMM's matrices
constexpr int64_t kLoad_bytes = 320 * kMiB;     ///< StepLoad's product and pass, in fp32 the most
constexpr int64_t kLibrary_bytes = 640 * kMiB;  ///< cuBLAS's workspaces, what attention returns
constexpr int64_t kCpuTensors_bytes = 256 * kMiB;
constexpr int64_t kCopies_bytes = 256 * kMiB;  ///< each way
constexpr int64_t kCopiesPart = 5;             ///< where host memory is short, a fifth each way
static_assert(kHostBytes_default / kCopiesPart >= kCopies_bytes, "the largest copy has room");

}  // namespace

std::byte* Arena::take(int64_t n_bytes) {
  const int64_t begin = used_bytes_;
  if (begin + n_bytes > n_bytes_)
    throw Error(
        Fault::does_not_fit, "measure.memory",
        fmt::format("{} more of {} asked for", format_bytes(n_bytes), format_bytes(n_bytes_)));
  used_bytes_ = round_up(begin + n_bytes, kTensorAlignment_bytes);
  return base_ + begin;
}

Bench::Bench(const MeasureOptions& options,
             const CudaProbe& probe,
             std::vector<std::string>& skipped)
    : pool_(make_tbb_pool(n_usable_threads())) {
  if (!probe.usable || !options.uses_gpu || !open_gpu(probe, skipped)) open_cpu();
  reserve_host(std::min(options.host_bytes_max, read_host_memory().budget_bytes() / 2), skipped);
  done_ = device_->make_event(QueueId::compute);
}

bool Bench::open_gpu(const CudaProbe& probe, std::vector<std::string>& skipped) {
  constexpr int64_t kNeeded_bytes = kGpu_bytes + kLoad_bytes + kLibrary_bytes;
  constexpr int64_t kFree_bytes = kNeeded_bytes * 5 / 4;  // a desktop needs some beside
  try {
    if (probe.free_bytes < kFree_bytes)
      throw Error(Fault::does_not_fit, "measure.gpu",
                  fmt::format("{} of its memory are free, {} are needed",
                              format_bytes(probe.free_bytes), format_bytes(kFree_bytes)),
                  "close what else uses the card");
    device_ = make_cuda_device();
    gpu_memory_ = device_->reserve(Place::device, kNeeded_bytes);
  } catch (const Error& error) {
    if (error.fault() == Fault::usage) throw;
    skipped.push_back(fmt::format("the GPU: {}", error.what()));
    return false;
  }
  gpu = Arena(gpu_memory_->data(), kGpu_bytes);
  load = Arena(gpu_memory_->data() + kGpu_bytes, kLoad_bytes);
  library_region_ = std::make_unique<CudaLibraryRegion>(
      gpu_memory_->data() + kGpu_bytes + kLoad_bytes, kLibrary_bytes, device_->compute_stream());
  stream_ = std::make_unique<ComputeStream>(device_->compute_stream(), device_->index());
  return true;
}

void Bench::open_cpu() {
  device_ = make_simulated_device({}, *pool_);
  gpu_memory_ = device_->reserve(Place::device, kCpuTensors_bytes);
  gpu = Arena(gpu_memory_->data(), kCpuTensors_bytes);
}

HostParts host_parts(int64_t most_bytes, bool has_copies) {
  HostParts parts;
  if (has_copies)
    parts.copies_bytes = std::min(kCopies_bytes, most_bytes / kCopiesPart / kMiB * kMiB);
  parts.update_bytes = std::min(round_up(update_bytes_most(), kMiB),
                                (most_bytes - parts.update_begin()) / kMiB * kMiB);
  return parts;
}

void Bench::reserve_host(int64_t most_bytes, std::vector<std::string>& skipped) {
  const HostParts parts = host_parts(most_bytes, is_cuda());
  const auto update_at = [&](std::byte* data) {
    return Arena(data + parts.update_begin(), parts.update_bytes);
  };
  const FirstTouch touch = [&](std::byte* data) {
    touch_update_segments(*pool_, update_at(data));
    touch_first(*pool_, data, parts.all_bytes());
  };
  int64_t copies_bytes = parts.copies_bytes;
  try {
    host_memory_ = device_->reserve(Place::host, parts.all_bytes(), touch);
  } catch (const Error& error) {
    skipped.push_back(fmt::format("memory for AdamW and copies: {}", error.what()));
    if (copies_bytes == 0) return;
    // AdamW needs none of it pinned.
    try {
      host_memory_ = device_->reserve(Place::host, parts.all_bytes(), touch, ByteRange());
    } catch (const Error&) {
      return;
    }
    pins_nothing_ = true;
    copies_bytes = 0;
  }
  // What is not pinned takes the way through a ring: no rate of the link.
  if (const PinnedBytes pinned = device_->pinned_bytes(); pinned.unpinned > 0)
    copies_bytes = std::min(copies_bytes, (pinned.pinned - pinned.ring) / 2 / kMiB * kMiB);
  std::byte* const base = host_memory_->data();
  from_host = Arena(base, copies_bytes);
  to_host = Arena(base + copies_bytes, copies_bytes);
  update_arena =
      update_at(base);  // where its segments were touched, however short the copies' ends are
}

at::Tensor Bench::tensor(at::IntArrayRef shape, at::ScalarType type, Arena& arena) {
  int64_t n_bytes = static_cast<int64_t>(at::elementSize(type));
  for (const int64_t n : shape)
    n_bytes *= n;
  const at::Device on = is_cuda() ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  at::Tensor made =
      at::from_blob(arena.take(n_bytes), shape, at::TensorOptions().device(on).dtype(type));
  return at::isFloatingType(type) ? made.normal_(0, 0.02) : made.zero_();
}

double Bench::seconds_of(int n, const std::function<void()>& work) {
  using namespace std::chrono_literals;
  const auto start = Clock::now();
  // Not submitted: what throws there ends the device, and a size that does not fit is no end here.
  for (int i = 0; i < n; ++i)
    work();
  device_->record(done_);
  // Without sleeping: most of what is timed is shorter than a sleep.
  while (!device_->happened(done_)) {
  }
  const double seconds = seconds_since(start);
  device_->wait_host(done_, 0ms);  // rethrows
  return seconds;
}

Replayed::Replayed(Bench& bench, bool can_be_recorded, Work work)
    : bench_(bench), work_(std::move(work)) {
  if (!bench.is_cuda() || !BlockGraphs::available() || !can_be_recorded) return;
  // As many as make the graph's own launch a small part of its time.
  constexpr double kGraph_s = 200e-6;
  constexpr int kCalls_max = 32;
  const auto once = [&] { work_({}); };
  bench.seconds_of(1, once);  // warm-up
  n_recorded_ =
      1 + static_cast<int>(std::min<double>(kCalls_max, kGraph_s / bench.seconds_of(1, once)));
  seconds_of(1);  // as it is
  seconds_of(1);  // recorded
}

double Replayed::seconds_of(int n) {
  if (n_recorded_ == 0) return bench_.seconds_of(n, [&] { work_({}); });
  const RandomKey random = {.training = true};
  const auto replay = [&] {
    graphs_.run({}, random, [&](const RandomKey& keys) {
      for (int i = 0; i < n_recorded_; ++i)
        work_(keys);
    });
  };
  const int n_replays = (n + n_recorded_ - 1) / n_recorded_;
  return bench_.seconds_of(n_replays, replay) * n / (n_replays * n_recorded_);
}

}  // namespace ferry::measure
