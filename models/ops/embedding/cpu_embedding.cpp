// The embeddings on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/embedding/embedding.h"

namespace ferry::ops::cpu {
namespace {

void embedding_forward(const EmbeddingForward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows words(type, W, its.word_table), types(type, W, its.type_table);
    Rows positions(type, W, its.position_table), out(type, W, its.sum);
    std::vector<float> scaled(its.word_scale == 1 ? 0 : static_cast<size_t>(W));
    for (int64_t t = begin; t < end; t++) {
      const int64_t row = its.ids == nullptr ? t : its.ids[t] - its.first_word;
      if (its.ids != nullptr && (row < 0 || row >= its.n_words)) continue;
      float* to = out.write(t);
      const float* word = words.read(row);
      if (its.word_scale != 1) {
        std::transform(word, word + W, scaled.begin(), [&](float x) { return x * its.word_scale; });
        word = scaled.data();
      }
      if (its.position_table != nullptr) {
        kernels.add_bias(to, word, positions.read(its.position_ids[t]), W);
      } else {
        std::copy_n(word, W, to);
      }
      if (its.type_table != nullptr) kernels.add(to, types.read(its.type_ids[t]), W);
      out.wrote(t);
    }
  });
}

void embedding_backward(const EmbeddingBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  set_zero(type, its.n_rows, W, its.d_table);
  // Tokens by id, then by place, so that a row's terms are neighbours and in order.
  auto* keys = static_cast<uint64_t*>(on.scratch);
  for (int64_t t = 0; t < T; t++) {
    keys[t] =
        static_cast<uint64_t>(static_cast<uint32_t>(its.ids[t])) << 32 | static_cast<uint64_t>(t);
  }
  std::sort(keys, keys + T);
  const auto id_of = [&](int64_t i) { return static_cast<int64_t>(keys[i] >> 32); };
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows d_rows(type, W, its.dx), out(type, W, its.d_table);
    // A block of places owns the ids that begin in it.
    int64_t i = begin;
    while (i < end && i > 0 && id_of(i) == id_of(i - 1))
      i++;
    while (i < end) {
      const int64_t id = id_of(i), row = id - its.first_row;
      if (row < 0 || row >= its.n_rows) {
        i++;
        continue;
      }
      float* sum = out.write(row);
      std::fill_n(sum, W, 0.0f);
      for (; i < T && id_of(i) == id; i++)
        kernels.add(sum, d_rows.read(static_cast<int64_t>(keys[i] & 0xffffffffu)), W);
      if (its.scale != 1) std::transform(sum, sum + W, sum, [&](float x) { return x * its.scale; });
      out.wrote(row);
    }
  });
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::EmbeddingKernels ferry::ops::kCpuEmbedding = {
    .embedding_forward = cpu::embedding_forward, .embedding_backward = cpu::embedding_backward};
