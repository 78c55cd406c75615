// Row look-ups on the CPU: embeddings forward and backward, dropout alone, rows gathered and put
// back.

#include <cstring>

#include "models/ops/cpu_kernels.h"
#include "models/ops/cpu_rows.h"
#include "models/ops/row_kernels.h"

namespace ferry::ops::cpu {

void embedding_forward(DType type,
                       int64_t T,
                       int64_t W,
                       const int32_t* ids,
                       const int32_t* type_ids,
                       const int32_t* position_ids,
                       const void* word_table,
                       const void* type_table,
                       const void* position_table,
                       void* sum) {
  const RowKernels& kernels = row_kernels();
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows words(type, W, word_table), types(type, W, type_table), positions(type, W, position_table);
    Rows out(type, W, sum);
    for (int64_t t = begin; t < end; t++) {
      float* to = out.write(t);
      const float* word = words.read(ids[t]);
      if (position_table != nullptr) {
        kernels.add_bias(to, word, positions.read(position_ids[t]), W);
      } else {
        std::copy_n(word, W, to);
      }
      if (type_table != nullptr) kernels.add(to, types.read(type_ids[t]), W);
      out.wrote(t);
    }
  });
}

void embedding_backward(DType type,
                        int64_t T,
                        int64_t W,
                        const int32_t* ids,
                        int64_t n_rows,
                        const void* dx,
                        void* d_table,
                        void* scratch) {
  const RowKernels& kernels = row_kernels();
  const int64_t row_bytes = W * static_cast<int64_t>(size_of(type));
  auto* table = static_cast<std::byte*>(d_table);
  for_row_blocks(n_rows, W, [&](int64_t, int64_t begin, int64_t end) {
    memset(table + begin * row_bytes, 0, static_cast<size_t>((end - begin) * row_bytes));
  });
  // Tokens by id, then by place, so that a row's terms are neighbours and in order.
  auto* keys = static_cast<uint64_t*>(scratch);
  for (int64_t t = 0; t < T; t++)
    keys[t] = static_cast<uint64_t>(static_cast<uint32_t>(ids[t])) << 32 | static_cast<uint64_t>(t);
  std::sort(keys, keys + T);
  const auto id_of = [&](int64_t i) { return static_cast<int64_t>(keys[i] >> 32); };
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows d_rows(type, W, dx), out(type, W, d_table);
    // A block of places owns the ids that begin in it.
    int64_t i = begin;
    while (i < end && i > 0 && id_of(i) == id_of(i - 1))
      i++;
    while (i < end) {
      const int64_t id = id_of(i);
      float* sum = out.write(id);
      std::fill_n(sum, W, 0.0f);
      for (; i < T && id_of(i) == id; i++)
        kernels.add(sum, d_rows.read(static_cast<int64_t>(keys[i] & 0xffffffffu)), W);
      out.wrote(id);
    }
  });
}

void dropout(DType type, int64_t n_elements, Dropout dropout, const void* x, void* out) {
  constexpr int64_t kPiece = 4096;
  const int64_t element_bytes = static_cast<int64_t>(size_of(type));
  at::parallel_for(0, (n_elements + kPiece - 1) / kPiece, 4, [&](int64_t begin, int64_t end) {
    uint8_t keep[kPiece];
    for (int64_t piece = begin; piece < end; piece++) {
      const int64_t first = piece * kPiece, n = std::min(kPiece, n_elements - first);
      simd::dropout_mask(keep, n, static_cast<uint64_t>(first), dropout.key, dropout.p);
      simd::dropout_apply(static_cast<std::byte*>(out) + first * element_bytes,
                          static_cast<const std::byte*>(x) + first * element_bytes, type, keep, n,
                          dropout.p);
    }
  });
}

void gather_rows(DType type, int64_t n, int64_t W, const void* x, const int32_t* rows, void* out) {
  const int64_t row_bytes = W * static_cast<int64_t>(size_of(type));
  for_row_blocks(n, W, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      memcpy(static_cast<std::byte*>(out) + i * row_bytes,
             static_cast<const std::byte*>(x) + rows[i] * row_bytes,
             static_cast<size_t>(row_bytes));
    }
  });
}

void scatter_rows(
    DType type, int64_t T, int64_t n, int64_t W, const void* d_out, const int32_t* rows, void* dx) {
  const int64_t row_bytes = W * static_cast<int64_t>(size_of(type));
  auto* to = static_cast<std::byte*>(dx);
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    memset(to + begin * row_bytes, 0, static_cast<size_t>((end - begin) * row_bytes));
  });
  for (int64_t i = 0; i < n; i++) {
    memcpy(to + rows[i] * row_bytes, static_cast<const std::byte*>(d_out) + i * row_bytes,
           static_cast<size_t>(row_bytes));
  }
}

}  // namespace ferry::ops::cpu
