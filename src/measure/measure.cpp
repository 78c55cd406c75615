#include "src/measure/measure.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "simd/level.h"
#include "src/base/process/host_memory.h"
#include "src/base/process/threads.h"
#include "src/base/version.h"
#include "src/engine/torch_setup.h"
#include "src/measure/kernels/gemm.h"
#include "src/measure/kernels/gpu.h"
#include "src/measure/kernels/update.h"
#include "src/measure/memory.h"
#include "src/measure/transfers/copies.h"
#include "src/measure/transfers/disk.h"
#include "src/runs/logs/wall_time.h"

namespace ferry::measure {
namespace {

constexpr Part kParts[] = {Part::memory, Part::update, Part::dram,      Part::copy,
                           Part::gpu,    Part::gemm,   Part::attention, Part::disk};
constexpr std::string_view kNames[] = {"memory", "adamw", "dram",      "copy",
                                       "gpu",    "gemm",  "attention", "disk"};
/** Shares of MeasureOptions::seconds, in sixtieths. Memory is no matter of time. */
constexpr double kShares[] = {0, 12, 2, 5, 2, 18, 12, 8};
/** Products and attention of the CPU take this much of their part, the GPU's the rest. */
constexpr double kCpuShare = 0.2;
/** The share of all seconds that a GPU is given to leave its idle clocks. */
constexpr double kWakeShare = 0.025;

constexpr std::array<int64_t, 5> kCopySizes_bytes = {1 * kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB,
                                                     256 * kMiB};
constexpr int kBf16_capability = 80, kFlash_capability = 80;

GemmGrid gpu_gemms(int compute_capability) {
  GemmGrid grid{.types = {DType::f16, DType::f32},
                .rows = {512, 2048, 8192, 16384},
                .widths = {384, 768, 1024, 2048, 4096}};
  if (compute_capability >= kBf16_capability) grid.types.insert(grid.types.begin(), DType::bf16);
  return grid;
}
GemmGrid cpu_gemms() {
  return {.types = {DType::f32}, .rows = {512, 2048}, .widths = {384, 768, 1024}};
}

/** Every type with each backend that has it. */
AttentionGrid gpu_attentions(int compute_capability) {
  AttentionGrid grid{.lengths = {128, 512, 1024, 2048},
                     .head_widths = {32, 64, 128},
                     .tokens = 8192,
                     .width = 1024};
  for (const DType type : {DType::bf16, DType::f16}) {
    if (type == DType::bf16 && compute_capability < kBf16_capability) continue;
    if (compute_capability >= kFlash_capability)
      grid.kinds.push_back({type, AttentionBackend::flash});
    grid.kinds.push_back({type, AttentionBackend::memory_efficient});
  }
  grid.kinds.push_back({DType::f32, AttentionBackend::memory_efficient});
  return grid;
}
AttentionGrid cpu_attentions() {
  return {.kinds = {{DType::f32, AttentionBackend::cpu_math}},
          .lengths = {128, 512},
          .head_widths = {64},
          .tokens = 1024,
          .width = 768};
}

bool uses_multiprocessors(Part part) {
  return part == Part::gpu || part == Part::gemm || part == Part::attention;
}

/** All that one call of measure() holds. */
class Measuring {
 public:
  Measuring(const MeasureOptions& options,
            const CudaProbe& probe,
            const TakenMemory& taken,
            Measured& out)
      : options_(options), probe_(probe), out_(out), bench_(options, probe, out.skipped) {
    MachineProfile& profile = out.profile;
    profile.name = bench_.is_cuda() ? probe.gpu_name : "CPU";
    profile.source = fmt::format("measured {} by ferry {}", runs::now_in_words(), ferry_version());
    const HostMemory memory = read_host_memory();
    profile.host.n_threads = bench_.n_threads();
    profile.host.simd = simd::level_name();
    profile.host.memory_bytes =
        std::min(memory.total_bytes, memory.cgroup_limit_bytes.value_or(memory.total_bytes));
    profile.host.process = taken.on_cpu;
    if (!bench_.is_cuda()) return;
    out.gpu_free_bytes = probe.free_bytes;
    profile.gpu = GpuProfile{.name = probe.gpu_name,
                             .compute_capability = probe.compute_capability,
                             .memory_bytes = probe.total_bytes,
                             .context_bytes = probe.total_bytes - probe.free_bytes,
                             .kernels = taken.kernels,
                             .process = taken.on_gpu};
    const PinnedBytes pinned = bench_.device().pinned_bytes();
    if (pinned.unpinned > 0) profile.gpu->pinned_bytes_max = pinned.pinned;
    profile.gpu->pins_nothing = bench_.pins_nothing();
  }

  void run(Part part) {
    const double seconds = options_.seconds / 60 * kShares[static_cast<size_t>(part)];
    if (bench_.is_cuda() && !is_awake_ && uses_multiprocessors(part)) {
      wake(bench_, options_.seconds * kWakeShare);
      is_awake_ = true;
    }
    switch (part) {
      case Part::memory:
        return;  // it was before all others
      case Part::update:
        return updates(seconds);
      case Part::dram:
        out_.profile.host.dram_bytes_per_s = measure_dram(bench_, seconds);
        if (out_.profile.host.updates.empty()) updates(seconds, /*only_all_threads=*/true);
        return;
      case Part::copy:
        if (bench_.is_cuda() && bench_.from_host.n_bytes() > 0)
          out_.profile.gpu->copies = measure_copies(bench_, kCopySizes_bytes, seconds);
        return;
      case Part::gpu:
        if (bench_.is_cuda()) measure_gpu(bench_, seconds, *out_.profile.gpu);
        return;
      case Part::gemm:
        return gemm(seconds);
      case Part::attention:
        return attention(seconds);
      case Part::disk:
        out_.profile.disk = measure_disk(options_.directory, options_.disk_bytes_max, seconds);
        return;
    }
  }

 private:
  void updates(double seconds, bool only_all_threads = false) {
    HostProfile& host = out_.profile.host;
    host.updates = measure_updates(bench_, seconds, only_all_threads);
    host.memory_bytes_per_s =
        rounded(host.updates.back().alone * static_cast<double>(kUpdateTraffic_bytes));
  }
  void gemm(double seconds) {
    Allotted allotted(2 * seconds + options_.patience_s);
    if (bench_.is_cuda())
      out_.profile.gpu->gemms = measure_gemms(bench_, gpu_gemms(probe_.compute_capability),
                                              seconds * (1 - kCpuShare), allotted);
    out_.profile.host.gemms = measure_gemms(cpu(), cpu_gemms(), seconds * cpu_share(), allotted);
    tell(Part::gemm, allotted);
  }
  void attention(double seconds) {
    Allotted allotted(2 * seconds + options_.patience_s);
    if (bench_.is_cuda())
      out_.profile.gpu->attentions =
          measure_attention(bench_, gpu_attentions(probe_.compute_capability),
                            seconds * (1 - kCpuShare), allotted, out_.skipped);
    out_.profile.host.attentions =
        measure_attention(cpu(), cpu_attentions(), seconds * cpu_share(), allotted, out_.skipped);
    tell(Part::attention, allotted);
  }
  void tell(Part part, const Allotted& allotted) {
    if (allotted.n_left_out() > 0)
      out_.skipped.push_back(fmt::format("{}: {} of {} figures, for their time was up",
                                         name_of(part), allotted.n_left_out(), allotted.n_asked()));
  }
  double cpu_share() const { return bench_.is_cuda() ? kCpuShare : 1; }
  /** Beside a GPU, the CPU as a device of its own. */
  Bench& cpu() {
    if (!bench_.is_cuda()) return bench_;
    if (!cpu_) {
      MeasureOptions options = options_;
      options.uses_gpu = false;
      options.host_bytes_max = 0;
      cpu_.emplace(options, probe_, out_.skipped);
    }
    return *cpu_;
  }

  const MeasureOptions& options_;
  const CudaProbe& probe_;
  Measured& out_;
  Bench bench_;
  std::optional<Bench> cpu_;
  bool is_awake_ = false;
};

}  // namespace

std::string_view name_of(Part part) {
  return kNames[static_cast<size_t>(part)];
}

std::span<const Part> all_parts() {
  return kParts;
}

Measured measure(std::span<const Part> parts, const MeasureOptions& options) {
  set_up_torch({.intra_op_threads = n_usable_threads()});
  Measured out;
  const auto tell = [&](Part part) {
    if (options.on_part) options.on_part(name_of(part));
  };
  std::optional<MemoryWatch> watch;
  if (std::ranges::find(parts, Part::memory) != parts.end()) {
    tell(Part::memory);
    watch.emplace(out.skipped);
  }
  const CudaProbe probe = options.uses_gpu ? probe_cuda() : CudaProbe{.why_not = "not asked for"};
  out.gpu_trouble = probe.why_not;
  if (watch && probe.usable) watch->see_gpu(probe);
  Measuring measuring(options, probe, watch ? watch->taken() : TakenMemory{}, out);
  for (const Part part : parts) {
    if (part != Part::memory) tell(part);
    try {
      measuring.run(part);
    } catch (const std::exception& error) {  // LibTorch's too
      out.skipped.push_back(fmt::format("{}: {}", name_of(part), first_line_of(error)));
    }
  }
  return out;
}

}  // namespace ferry::measure
