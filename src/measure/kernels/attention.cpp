#include <fmt/format.h>

#include "models/ops/attention/attention.h"
#include "models/ops/scratch_sizes.h"
#include "src/measure/kernels/gemm.h"

namespace ferry::measure {
namespace {

constexpr float kDropout = 0.1f;

/** One call's tensors, in the bench's memory. */
struct Call {
  Call(Bench& bench,
       const AttentionKind& kind,
       int64_t tokens,
       int64_t width,
       int64_t length,
       int64_t head_width)
      : attention{.backend = kind.backend,
                  .n_heads = width / head_width,
                  .dropout = {.p = kDropout, .key = 0x9e3779b97f4a7c15}} {
    const int64_t n_seqs = tokens / length;
    for (int64_t s = 0; s <= n_seqs; ++s)
      starts.push_back(static_cast<int32_t>(s * length));
    bench.gpu.reset();
    const at::ScalarType type = scalar_type_of(kind.type);
    qkv = bench.tensor({tokens, 3 * width}, type);
    d_qkv = bench.tensor({tokens, 3 * width}, type);
    context = bench.tensor({tokens, width}, type);
    d_context = bench.tensor({tokens, width}, type);
    d_bias = bench.tensor({3 * width}, type);
    batch.shape = {.tokens = tokens, .n_seqs_max = n_seqs, .max_length = length};
    batch.n_seqs = batch.n_seqs_real = n_seqs;
    batch.cu_seqlens_host = starts;
    batch.cu_seqlens = bench.tensor({n_seqs + 1}, at::kInt);
    for (int64_t s = 0; s <= n_seqs; ++s)
      batch.cu_seqlens.narrow(0, s, 1).fill_(starts[static_cast<size_t>(s)]);
    for (const SavedSpec& spec :
         ops::attention_saved(kind.backend, kind.type, batch.shape, attention.n_heads))
      state.push_back(bench.tensor(spec.shape, scalar_type_of(spec.dtype)));
    const int64_t scratch_bytes =
        ops::stacked_bytes(ops::column_sum_scratch_bytes(tokens, 3 * width));
    scratch = std::make_unique<Scratch>(bench.gpu.take(scratch_bytes), scratch_bytes, qkv.device());
  }
  void forward(const RandomKey& keys) {
    attention.dropout.key_at = keys.on_gpu;
    ops::attention_forward(attention, batch, qkv, state, context, *scratch);
  }
  void backward() {
    ops::attention_backward(attention, batch, d_context, qkv, state, context, d_qkv, d_bias,
                            *scratch);
  }

  ops::Attention attention;
  std::vector<int32_t> starts;
  BatchTensors batch;
  at::Tensor qkv, d_qkv, context, d_context, d_bias;
  std::vector<at::Tensor> state;
  std::unique_ptr<Scratch> scratch;
};

}  // namespace

std::vector<AttentionRate> measure_attention(Bench& bench,
                                             const AttentionGrid& grid,
                                             double seconds,
                                             Allotted& allotted,
                                             std::vector<std::string>& skipped) {
  const auto n_figures =
      static_cast<double>(2 * grid.kinds.size() * grid.lengths.size() * grid.head_widths.size());
  std::vector<AttentionRate> rates;
  for (const AttentionKind& kind : grid.kinds) {
    StepLoad load(bench, kind.type);
    const Bound bound = load.bound(seconds / n_figures);
    for (const int64_t length : grid.lengths) {
      for (const int64_t head_width : grid.head_widths) {
        if (allotted.is_over()) continue;
        try {
          Call call(bench, kind, grid.tokens, grid.width, length, head_width);
          const bool is_flash = kind.backend == AttentionBackend::flash;  // as layers are
          Replayed forward(bench, is_flash, [&](const RandomKey& keys) { call.forward(keys); });
          Replayed backward(bench, is_flash, [&](const RandomKey&) { call.backward(); });
          const double forward_s = sample(bound, [&](int n) { return forward.seconds_of(n); });
          const double backward_s = sample(bound, [&](int n) { return backward.seconds_of(n); });
          // Two products of (length, head_width) and (length, length) a head and sequence.
          const auto flops = static_cast<double>(4 * grid.tokens * length * grid.width);
          rates.push_back({.type = kind.type,
                           .backend = std::string(name_of(kind.backend)),
                           .length = length,
                           .head_width = head_width,
                           .forward_flops_per_s = rounded(flops / forward_s),
                           .backward_flops_per_s = rounded(2.5 * flops / backward_s)});
        } catch (const std::exception& error) {  // LibTorch's too
          skipped.push_back(fmt::format("{} attention, {}, length {}, heads of {}: {}",
                                        name_of(kind.backend), name_of(kind.type), length,
                                        head_width, first_line_of(error)));
        }
      }
    }
  }
  return rates;
}

}  // namespace ferry::measure
