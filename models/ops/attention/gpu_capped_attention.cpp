// Attention of capped scores on a GPU, by its definition: products of the queries of one head of
// keys, a block of rows at a time, so that the scratch is bounded.

#include <ATen/ops/bmm.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/ops/attention/capped_softmax.h"
#include "models/ops/attention/gpu_attention.h"
#include "models/ops/dispatch.h"
#include "models/ops/rows/rows.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops::gpu {
namespace {

/** out (batch, m, n) fp32 = a b. */
void multiply_f32(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  if (a.scalar_type() == at::kFloat)
    at::bmm_out(out, a, b);
  else
    at::bmm_out(out, a, b, at::kFloat);
}

/** The beginning of a piece of scratch, as a dense tensor. */
at::Tensor shaped(const at::Tensor& room, at::IntArrayRef shape) {
  return room.narrow(0, 0, c10::multiply_integers(shape)).view(shape);
}

/** Calls work(block, query columns, first token) for the blocks of all sequences and heads of keys
 * in order; what the block holds but tensors is set. */
template <typename Work>
void for_blocks(const Attention& attention,
                const BatchTensors& batch,
                int64_t D,
                const Work& work) {
  const int64_t kv = attention.kv_heads(), group = attention.n_heads / kv;
  int64_t first_element = 0;
  for (int64_t s = 0; s < batch.n_seqs; s++) {
    const int64_t at = batch.cu_seqlens_host[static_cast<size_t>(s)];
    const int64_t n = batch.cu_seqlens_host[static_cast<size_t>(s) + 1] - at;
    if (n == 0) continue;
    const int64_t rows = std::clamp<int64_t>(kCappedScores_max / (group * n), 1, n);
    for (int64_t head = 0; head < kv; head++) {
      for (int64_t row = 0; row < n; row += rows) {
        ScoreBlock block = {.n_heads = group,
                            .n_rows = std::min(rows, n - row),
                            .first_row = row,
                            .length = n,
                            .window = attention.window,
                            .causal = attention.causal,
                            .scale = attention.scale == 0
                                         ? static_cast<float>(1 / std::sqrt(static_cast<double>(D)))
                                         : static_cast<float>(attention.scale),
                            .cap = attention.soft_cap,
                            .dropout = attention.dropout,
                            .first_element = first_element + head * group * n * n};
        if (attention.window > 0)
          block.first_column = std::max<int64_t>(0, row + 1 - attention.window);
        const int64_t end = attention.causal ? row + block.n_rows : n;
        block.n_columns = end - block.first_column;
        work(block, at, head);
      }
    }
    first_element += round_up(attention.n_heads * n * n, kProbsAlignment_elements);
  }
}

/** The scratch of a pass, as attention_scratch() counts it. */
struct Room {
  at::Tensor products, p, out;

  Room(const Attention& attention,
       const BatchTensors& batch,
       int64_t D,
       at::ScalarType type,
       Scratch& scratch) {
    const int64_t group = attention.n_heads / attention.kv_heads(), n = batch.shape.max_length;
    const int64_t n_scores = capped_scores(group, n);
    products = scratch.take({n_scores}, at::kFloat);
    p = scratch.take({n_scores}, type);
    out = scratch.take({group * n * D}, at::kFloat);
  }
};

/** Heads of queries or of a context's columns as (heads, rows, D), a view. */
at::Tensor heads_of(
    const at::Tensor& x, int64_t column, int64_t n_heads, int64_t D, int64_t row, int64_t n_rows) {
  return x.narrow(0, row, n_rows)
      .narrow(1, column, n_heads * D)
      .view({n_rows, n_heads, D})
      .transpose(0, 1);
}

/** The views of a block: queries (heads, rows, D), keys and values (heads, columns, D), one for
 * all. */
struct Operands {
  at::Tensor q, k, v;

  Operands(const Attention& attention,
           const ScoreBlock& block,
           const at::Tensor& qkv,
           int64_t D,
           int64_t at,
           int64_t head) {
    const int64_t W = attention.n_heads * D, kv = attention.kv_heads();
    q = heads_of(qkv, head * block.n_heads * D, block.n_heads, D, at + block.first_row,
                 block.n_rows);
    const auto shared = [&](int64_t column) {
      return heads_of(qkv, column, 1, D, at + block.first_column, block.n_columns)
          .expand({block.n_heads, block.n_columns, D});
    };
    k = shared(W + head * D);
    v = shared(W + (kv + head) * D);
  }
};

}  // namespace

void capped_forward(const AttentionForward& its) {
  const ScratchScope scope(its.scratch);
  const Attention& attention = its.attention;
  const int64_t D = its.context.size(1) / attention.n_heads;
  const Room room(attention, its.batch, D, its.qkv.scalar_type(), its.scratch);
  for_blocks(attention, its.batch, D, [&](ScoreBlock block, int64_t at, int64_t head) {
    const Operands of(attention, block, its.qkv, D, at, head);
    const std::array<int64_t, 3> shape = {block.n_heads, block.n_rows, block.n_columns};
    at::Tensor products = shaped(room.products, shape), p = shaped(room.p, shape);
    at::Tensor out = shaped(room.out, {block.n_heads, block.n_rows, D});
    multiply_f32(of.q, of.k.transpose(1, 2), products);
    block.type = dtype_of(its.qkv);
    block.products = floats_of(products);
    kCudaCappedSoftmax.capped_softmax({.block = block, .p = data_of(p)}, launch_on(p));
    multiply_f32(p, of.v, out);
    heads_of(its.context, head * block.n_heads * D, block.n_heads, D, at + block.first_row,
             block.n_rows)
        .copy_(out);
  });
}

void capped_backward(const AttentionBackward& its) {
  {
    const ScratchScope scope(its.scratch);
    const Attention& attention = its.attention;
    const int64_t D = its.d_context.size(1) / attention.n_heads, W = attention.n_heads * D;
    const int64_t kv = attention.kv_heads(), n_most = its.batch.shape.max_length;
    const at::ScalarType type = its.qkv.scalar_type();
    const Room room(attention, its.batch, D, type, its.scratch);
    const at::Tensor dp_room = its.scratch.take(room.products.sizes(), at::kFloat);
    const at::Tensor d_room = its.scratch.take(room.p.sizes(), type);
    const at::Tensor dk_room = its.scratch.take({n_most * D}, at::kFloat);
    const at::Tensor dv_room = its.scratch.take({n_most * D}, at::kFloat);
    for_blocks(attention, its.batch, D, [&](ScoreBlock block, int64_t at, int64_t head) {
      const Operands of(attention, block, its.qkv, D, at, head);
      const int64_t query_column = head * block.n_heads * D, row = at + block.first_row;
      const at::Tensor d_out =
          heads_of(its.d_context, query_column, block.n_heads, D, row, block.n_rows);
      const std::array<int64_t, 3> shape = {block.n_heads, block.n_rows, block.n_columns};
      at::Tensor products = shaped(room.products, shape), p = shaped(room.p, shape);
      at::Tensor dp = shaped(dp_room, shape), d_products = shaped(d_room, shape);
      multiply_f32(of.q, of.k.transpose(1, 2), products);
      multiply_f32(d_out, of.v.transpose(1, 2), dp);
      block.type = dtype_of(its.qkv);
      block.products = floats_of(products);
      kCudaCappedSoftmax.capped_softmax_backward(
          {.block = block, .dp = floats_of(dp), .p = data_of(p), .d_products = data_of(d_products)},
          launch_on(p));
      at::Tensor dq = shaped(room.out, {block.n_heads, block.n_rows, D});
      multiply_f32(d_products, of.k, dq);
      heads_of(its.d_qkv, query_column, block.n_heads, D, row, block.n_rows).copy_(dq);
      // The heads of a group and the blocks of rows add up in order.
      const auto add = [&](const at::Tensor& sum_room, const at::Tensor& a, const at::Tensor& b,
                           int64_t column) {
        const at::Tensor sum = shaped(sum_room, {block.length, D});
        if (block.first_row == 0) sum.zero_();
        at::Tensor parts = shaped(room.out, {block.n_heads, block.n_columns, D});
        multiply_f32(a.transpose(1, 2), b, parts);
        for (int64_t h = 0; h < block.n_heads; h++)
          sum.narrow(0, block.first_column, block.n_columns).add_(parts[h]);
        if (block.first_row + block.n_rows == block.length)
          its.d_qkv.narrow(0, at, block.length).narrow(1, column, D).copy_(sum);
      };
      add(dk_room, d_products, of.q, W + head * D);
      add(dv_room, p, d_out, W + (kv + head) * D);
    });
  }
  if (its.d_bias.defined()) column_sum(its.d_qkv, its.d_bias, its.scratch);
}

}  // namespace ferry::ops::gpu
