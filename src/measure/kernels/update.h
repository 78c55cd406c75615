#pragma once
// AdamW in host memory, over threads, alone and beside copies; and what DRAM gives accesses like
// AdamW's. Private to src/measure.

#include "simd/kernels.h"
#include "src/measure/bench.h"

namespace ferry::measure {

/** AdamW over n parameters with bf16 gradients and weights and fp32 states, in memory that
 * `segment(bytes of an element)` gives. */
template <class Segment>
simd::UpdateArgs update_args(int64_t n, Segment&& segment) {
  // In order: braces are evaluated from first to last.
  return {
      .master = segment(4),
      .states = {{segment(4)}, {segment(4)}},
      .grad = segment(2),
      .grad_type = DType::bf16,
      .weights = segment(2),
      .weights_type = DType::bf16,
      .n = n,
      .step = simd::make_step(simd::Optim::adamw, {.lr = 1e-4, .weight_decay = 0.01}, 10, 1.0f)};
}

/** Bytes of an arena that has room for as much as measuring takes. */
int64_t update_bytes_most();

/** Where AdamW's segments will lie, told before the memory is touched: each is shared out over the
 * nodes as its update is. */
void touch_update_segments(WorkerPool& pool, Arena arena);

/** By threads: 1, 2, 4, ... and all of them, or all only. `seconds` for all rows together. */
std::vector<UpdateRate> measure_updates(Bench& bench,
                                        double seconds,
                                        bool only_all_threads = false);

/** Bytes per second that all threads read and write where AdamW's master, m and v lie, each changed
 * in place and nothing computed: what memory gives accesses like AdamW's. */
double measure_dram(Bench& bench, double seconds);

}  // namespace ferry::measure
