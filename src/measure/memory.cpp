#include "src/measure/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>

#include "models/core/block.h"
#include "models/ops/norm/norm.h"
#include "models/ops/norm/norm_params.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/error.h"
#include "src/measure/bench.h"
#include "src/measure/kernels/gemm.h"
#include "src/measure/step.h"
#include "src/request/run_plan.h"

namespace ferry::measure {
namespace {

/** The same on the CPU and on the GPU. */
constexpr SmallModel kModel = {2, 768, 12, 4, 128};
constexpr int kSteps = 3;  ///< on a GPU the second one records graphs
/** Other programs may take or give GPU memory meanwhile: more is no figure of ours. */
constexpr int64_t kPlausible_bytes_max = kGiB;

/** In whole MiB and at least one: zero is what was not measured. */
int64_t whole_mib(int64_t n_bytes) {
  return round_up(std::max<int64_t>(1, n_bytes), kMiB);
}

int64_t plausible(int64_t n_bytes, const char* what) {
  if (n_bytes < -kMiB || n_bytes > kPlausible_bytes_max)
    throw Error(Fault::machine, "measure.memory",
                fmt::format("{} would be {} MiB: other programs took or gave GPU memory", what,
                            n_bytes / kMiB),
                "measure again when they are quiet");
  return n_bytes;
}

/** Forward and backward of a norm whose rows are wider than the kernels keep in registers. */
void run_wide_norm(Bench& bench, at::ScalarType type) {
  constexpr int64_t kRows = 64, kWidth = 5120;
  static_assert(kWidth * 2 > kWideRow_bytes);
  bench.gpu.reset();
  const auto rows = [&] { return bench.tensor({kRows, kWidth}, type); };
  const auto vector = [&] { return bench.tensor({kWidth}, type); };
  const at::Tensor a = rows(), x = rows(), dy = rows(), da = rows(), bias = vector();
  at::Tensor z = rows(), y = rows(), dz = rows(), d_bias = vector();
  const ops::NormParams norm = {vector(), vector()};
  ops::NormParams d_norm = {vector(), vector()};
  ops::NormState state = {bench.tensor({kRows}, at::kFloat), bench.tensor({kRows}, at::kFloat)};
  const int64_t scratch_bytes = ops::norm_backward_scratch_bytes(kRows, kWidth, /*cuda=*/true);
  Scratch scratch(bench.gpu.take(scratch_bytes), scratch_bytes, a.device());
  const ops::Dropout dropout = {.p = 0.1f, .key = 7};
  bench.seconds_of(1, [&] {
    ops::dropout_residual_norm_forward(a, bias, x, norm, 1e-5f, dropout, z, state, y);
    ops::dropout_residual_norm_backward(dy, z, norm, state, {}, dropout, dz, da, d_norm, d_bias,
                                        scratch);
  });
}

}  // namespace

int64_t resident_beside_plans_bytes() {
  std::ifstream mappings("/proc/self/smaps");
  int64_t all_bytes = 0, mapping_bytes = 0;
  for (std::string line; std::getline(mappings, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "Rss:") {
      words >> mapping_bytes;
      mapping_bytes *= kKiB;
    }
    if (key != "VmFlags:") continue;
    bool asks_for_large_pages = false;
    for (std::string flag; words >> flag;)
      asks_for_large_pages = asks_for_large_pages || flag == "hg";
    if (!asks_for_large_pages) all_bytes += mapping_bytes;
  }
  return all_bytes;
}

MemoryWatch::MemoryWatch(std::vector<std::string>& skipped) : skipped_(skipped) {
  keep_trying("the memory of the process", [&] {
    const int64_t at_start_bytes = resident_beside_plans_bytes();
    const ModelTable model = make_small_model(kModel, DType::f32, AttentionBackend::cpu_math);
    SmallRun run(model, kModel, /*cuda=*/false, Place::device, /*n_micro=*/1);
    int64_t most_bytes = 0;
    for (int step = 0; step < kSteps; ++step) {
      run.step();
      most_bytes = std::max(most_bytes, resident_beside_plans_bytes());
    }
    run.settle();
    taken_.on_cpu = {.at_start_bytes = whole_mib(at_start_bytes),
                     .later_bytes = whole_mib(most_bytes - at_start_bytes)};
  });
  before_context_bytes_ = resident_beside_plans_bytes();
}

void MemoryWatch::keep_trying(const char* what, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {  // LibTorch's too
    skipped_.push_back(fmt::format("{}: {}", what, first_line_of(error)));
  }
}

void MemoryWatch::see_gpu(const CudaProbe& probe) {
  constexpr int kBf16_capability = 80;
  const DType type = probe.compute_capability >= kBf16_capability ? DType::bf16 : DType::f16;
  const AttentionBackend attention = choose_attention(
      type, {.has_gpu = true, .compute_capability = probe.compute_capability}, {.drops = true});
  keep_trying("the memory of kernels", [&] { train_on_gpu(type, attention); });
  if (taken_.kernels.loaded_bytes == 0) return;
  keep_trying("the memory of kernels that spill",
              [&] { run_kernels_that_spill(probe, type, attention); });
}

void MemoryWatch::train_on_gpu(DType type, AttentionBackend attention) {
  const ModelTable model = make_small_model(kModel, type, attention);
  const int64_t context_bytes = resident_beside_plans_bytes() - before_context_bytes_;
  const int64_t before_bytes = cuda_driver_used_bytes();
  const auto beside_plan_bytes = [&](const SmallRun& run) {
    return cuda_driver_used_bytes() - before_bytes - run.plan().layout.n_bytes[Place::device];
  };
  int64_t loaded_bytes = 0, graph_bytes = 0, host_bytes = 0, graph_host_bytes = 0;
  // AdamW on the GPU and on the host, weights that stay and weights that come.
  for (const Place place : {Place::device, Place::host}) {
    constexpr int64_t kMicroBatches = 16;  // graphs of each, so that they outweigh their pool
    SmallRun run(model, kModel, /*cuda=*/true, place, kMicroBatches);
    const int64_t n_graphs = n_graphs_of(model, run.plan(), {{run.plan().typical.tokens}});
    run.step();
    run.settle();
    const int64_t before_graphs_bytes = beside_plan_bytes(run);
    const int64_t host_before_graphs_bytes = resident_beside_plans_bytes();
    for (int step = 1; step < kSteps; ++step)
      run.step();
    run.settle();
    const int64_t after_bytes = beside_plan_bytes(run);
    loaded_bytes = std::max(loaded_bytes, before_graphs_bytes);
    const int64_t host_after_bytes = resident_beside_plans_bytes();
    if (n_graphs > 0) {
      graph_bytes = std::max(graph_bytes, (after_bytes - before_graphs_bytes) / n_graphs);
      graph_host_bytes =
          std::max(graph_host_bytes, (host_after_bytes - host_before_graphs_bytes) / n_graphs);
    }
    host_bytes = std::max(host_bytes, host_before_graphs_bytes);
  }
  taken_.kernels.loaded_bytes = whole_mib(plausible(loaded_bytes, "kernels"));
  taken_.kernels.graph_bytes =
      round_up(std::max<int64_t>(1, plausible(graph_bytes, "a CUDA graph")), kKiB);
  taken_.kernels.graph_host_bytes = round_up(std::max<int64_t>(0, graph_host_bytes), kKiB);
  // Buffers that the CPU's run has left in the process (30 MiB) are no part of a process that
  // computes on the GPU: on an H100 such processes took 764 to 771 MiB, and this one took 799.
  taken_.on_gpu = {.at_start_bytes = whole_mib(taken_.on_cpu.at_start_bytes + context_bytes),
                   .later_bytes = whole_mib(host_bytes - before_context_bytes_ - context_bytes)};
}

void MemoryWatch::run_kernels_that_spill(const CudaProbe& probe,
                                         DType type,
                                         AttentionBackend attention) {
  MeasureOptions options;
  options.host_bytes_max = 0;
  Bench bench(options, probe, skipped_);
  if (!bench.is_cuda()) return;
  // Memory that every run has loaded is not counted twice.
  const int64_t before_bytes = cuda_driver_used_bytes();
  AttentionGrid grid{.kinds = {{type, attention}},
                     .lengths = {128},
                     .head_widths = {128},
                     .tokens = 1024,
                     .width = 1024};
  Allotted allotted(0);  // the first figure is always measured
  measure_attention(bench, grid, 0, allotted, skipped_);
  const int64_t heads_bytes = plausible(cuda_driver_used_bytes() - before_bytes, "wide heads");
  run_wide_norm(bench, scalar_type_of(type));
  const int64_t rows_bytes = plausible(cuda_driver_used_bytes() - before_bytes, "wide rows");
  taken_.kernels.wide_heads_bytes = whole_mib(heads_bytes);
  // The driver keeps the larger of both: rows that spill less are seen as taking what heads do.
  taken_.kernels.wide_rows_bytes = whole_mib(rows_bytes);
}

}  // namespace ferry::measure
