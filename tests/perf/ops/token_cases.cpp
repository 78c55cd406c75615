// Operations that bring tokens together: embedding, attention, rows with labels, LM head.

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "models/core/block.h"
#include "models/ops/attention/attention.h"
#include "models/ops/dispatch.h"
#include "models/ops/embedding/embedding.h"
#include "models/ops/rows/rows.h"
#include "models/ops/scratch_sizes.h"
#include "models/ops/vocabulary_loss/vocabulary_loss.h"
#include "tests/perf/ops/cases.h"

namespace ferry::ops_bench {
namespace {

Operation embedding(const Setup& s) {
  const int64_t T = s.sizes.tokens, W = s.sizes.width, V = s.sizes.vocab, length = s.sizes.length;
  const bool has_positions = s.sizes.family != Family::llama;
  const bool has_types = s.sizes.family == Family::bert;
  BatchTensors batch;
  batch.input_ids = s.random_ints(V, T);
  batch.type_ids = s.random_ints(2, T);
  batch.position_ids =
      at::arange(length, at::device(s.device).dtype(at::kInt)).repeat({T / length});
  const at::Tensor word = s.random({V, W}), dx = s.random({T, W});
  const at::Tensor position = has_positions ? s.random({length, W}) : at::Tensor();
  const at::Tensor type = has_types ? s.random({2, W}) : at::Tensor();
  at::Tensor sum = s.room({T, W}), d_word = s.room({V, W});
  Workspace space(s, ops::embedding_backward_scratch_bytes(T, W, s.cuda()));
  const auto formula = [=](const Tensors& in) {
    at::Tensor sum_of = at::embedding(in[0], batch.input_ids);
    if (has_positions) sum_of = sum_of + at::embedding(position, batch.position_ids);
    if (has_types) sum_of = sum_of + at::embedding(type, batch.type_ids);
    return Tensors{sum_of};
  };
  const auto forward = [=]() mutable {
    ops::embedding_forward(batch, word, position, type, sum);
    return Tensors{sum};
  };
  const auto backward = [=]() mutable {
    ops::embedding_backward(batch.input_ids, dx, d_word, space.scratch);
    return Tensors{d_word};
  };
  // As many rows of words count as there are tokens; the other tables are small and stay in caches.
  return operation_of({"embedding",
                       {word},
                       formula,
                       forward,
                       bytes_of({sum, sum, batch.input_ids}),
                       {dx},
                       backward,
                       bytes_of({dx, batch.input_ids, d_word})});
}

struct Sequences {
  std::vector<int32_t> starts;
  BatchTensors batch;  ///< refers to starts

  explicit Sequences(const Setup& s) {
    for (int64_t at = 0; at <= s.sizes.tokens; at += s.sizes.length)
      starts.push_back(static_cast<int32_t>(at));
    batch.n_seqs = batch.n_seqs_real = s.sizes.tokens / s.sizes.length;
    batch.shape = {
        .tokens = s.sizes.tokens, .n_seqs_max = batch.n_seqs, .max_length = s.sizes.length};
    batch.cu_seqlens = at::tensor(starts, at::kInt).to(s.device);
    batch.cu_seqlens_host = starts;
  }
  Sequences(const Sequences&) = delete;
  Sequences& operator=(const Sequences&) = delete;
};

/** LibTorch's runs on rectangles, as all sequences are of one length, by whichever of its kernels
 * it chooses. */
Operation attention(const Setup& s) {
  const int64_t T = s.sizes.tokens, W = s.sizes.width, Q = s.sizes.qkv_width();
  const int64_t H = s.sizes.n_heads, kv = s.sizes.n_kv_heads, D = s.sizes.head_width();
  const ops::Attention its = {
      .backend = s.attention,
      .n_heads = H,
      .dropout = s.sizes.family == Family::llama ? ops::Dropout{} : s.dropout(),
      .n_kv_heads = kv,
      .causal = s.sizes.is_decoder()};
  const auto sequences = std::make_shared<const Sequences>(s);
  const BatchShape& shape = sequences->batch.shape;
  const at::Tensor qkv = s.random({T, Q}), d_context = s.random({T, W});
  at::Tensor context = s.room({T, W}), d_qkv = s.room({T, Q});
  const DType type = ops::dtype_of(qkv);
  Tensors state;
  for (const SavedSpec& spec : ops::attention_saved(its.backend, type, shape, H))
    state.push_back(at::empty(spec.shape, at::device(s.device).dtype(scalar_type_of(spec.dtype))));
  // The number of multiprocessors matters to what LibTorch allocates, not to the scratch.
  const ScratchNeed need = ops::attention_scratch(its.backend, type, shape, {H, kv, D}, 1);
  const int64_t sum_bytes = ops::stacked_bytes(ops::column_sum_scratch_bytes(T, Q));
  Workspace space(s, std::max({need.forward_bytes, need.backward_bytes, sum_bytes}));
  ops::attention_forward(its, sequences->batch, qkv, state, context, space.scratch);
  const auto formula = [=, length = s.sizes.length](const Tensors& in) {
    const at::Tensor heads = in[0].view({T / length, length, H + 2 * kv, D}).transpose(1, 2);
    const auto parts = heads.split_with_sizes({H, kv, kv}, 1);
    const at::Tensor out = at::scaled_dot_product_attention(
        parts[0], parts[1], parts[2], {}, its.dropout.p, its.causal, {}, /*enable_gqa=*/H != kv);
    return Tensors{out.transpose(1, 2).reshape({T, W})};
  };
  const auto forward = [=]() mutable {
    ops::attention_forward(its, sequences->batch, qkv, state, context, space.scratch);
    return Tensors{context};
  };
  const auto backward = [=]() mutable {
    ops::attention_backward(its, sequences->batch, d_context, qkv, state, context, d_qkv, {},
                            space.scratch);
    return Tensors{d_qkv};
  };
  return operation_of({"attention",
                       {qkv},
                       formula,
                       forward,
                       bytes_of({qkv, context}),
                       {d_context},
                       backward,
                       bytes_of({d_context, qkv, context, d_qkv})});
}

Operation label_rows(const Setup& s) {
  const int64_t T = s.sizes.tokens, W = s.sizes.width, n = s.sizes.head_rows;
  const at::Tensor x = s.random({T, W}), d_out = s.random({n, W});
  const at::Tensor ascending = std::get<0>(at::randperm(T).narrow(0, 0, n).sort());
  const at::Tensor long_rows = ascending.to(s.device), rows = long_rows.to(at::kInt);
  at::Tensor out = s.room({n, W}), dx = s.room({T, W});
  const auto formula = [=](const Tensors& in) { return Tensors{in[0].index_select(0, long_rows)}; };
  const auto forward = [=]() mutable {
    ops::gather_rows(x, rows, out);
    return Tensors{out};
  };
  const auto backward = [=]() mutable {
    ops::scatter_rows(d_out, rows, dx);
    return Tensors{dx};
  };
  return operation_of({"rows with labels",
                       {x},
                       formula,
                       forward,
                       bytes_of({out, out, rows}),
                       {d_out},
                       backward,
                       bytes_of({d_out, rows, dx})});
}

/** LibTorch's logits are widened before the loss, as transformers does it. */
Operation vocabulary_loss(const Setup& s) {
  const int64_t n = s.sizes.head_rows, W = s.sizes.width, V = s.sizes.vocab;
  const bool has_bias = !s.sizes.is_decoder();
  const at::Tensor t = s.random({n, W}), word = s.random({V, W}, 0.02);
  const at::Tensor bias = has_bias ? s.random({V}) : at::Tensor();
  const at::Tensor labels = s.random_ints(V, n), long_labels = labels.to(at::kLong);
  at::Tensor lse = s.room_f32({n}), loss = s.room_f32({}), no_logits;
  at::Tensor dt = s.room({n, W}), d_word = s.room({V, W});
  const at::Tensor d_bias = has_bias ? s.room({V}) : at::Tensor();
  const ScratchNeed need = ops::vocabulary_scratch(ops::dtype_of(t), n, V, W, s.cuda(), has_bias);
  Workspace space(s, std::max(need.forward_bytes, need.backward_bytes));
  const auto formula = [=](const Tensors& in) {
    const at::Tensor logits = at::linear(in[0], in[1], has_bias ? in[2] : at::Tensor());
    return Tensors{
        at::cross_entropy_loss(logits.to(at::kFloat), long_labels, {}, at::Reduction::Sum)};
  };
  const auto forward = [=]() mutable {
    ops::vocabulary_loss_forward(t, {.word = word, .bias = bias, .vocab = V}, labels,
                                 /*smoothing=*/0, /*weight=*/1, lse, loss, no_logits,
                                 space.scratch);
    return Tensors{loss};
  };
  const auto backward = [=]() mutable {
    ops::vocabulary_loss_backward(t, {.word = word, .bias = bias, .vocab = V}, labels, lse,
                                  /*smoothing=*/0, /*factor=*/1, dt, d_word, d_bias, space.scratch);
    return has_bias ? Tensors{dt, d_word, d_bias} : Tensors{dt, d_word};
  };
  auto run_once = forward;
  run_once();  // lse, for the backward
  return operation_of({"LM head + cross entropy",
                       has_bias ? Tensors{t, word, bias} : Tensors{t, word},
                       formula,
                       forward,
                       bytes_of({t, word, bias, labels, lse, loss}),
                       {at::ones_like(loss)},
                       backward,
                       bytes_of({t, word, bias, labels, lse, dt, d_word, d_bias})});
}

}  // namespace

std::vector<MakeOperation> token_operations(const Sizes& sizes) {
  if (sizes.is_decoder()) return {embedding, attention, vocabulary_loss};
  return {embedding, attention, label_rows, vocabulary_loss};
}

}  // namespace ferry::ops_bench
