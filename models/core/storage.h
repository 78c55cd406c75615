#pragma once
// How a parameter lies in its block's segment: in the type of compute, or as bytes of its own. int8
// is LLM.int8's (Dettmers 2022), nf4 QLoRA's (Dettmers 2023) without double quantisation, both to
// the last bit what bitsandbytes 0.50 makes on a CPU. Torch-free.
//
// A quantised matrix (rows, columns): the codes of all rows, then from the next 512-byte boundary
// fp32 scales, row by row.
//   int8  a byte a value; a scale a row, which is its largest magnitude
//   nf4   two values a byte, the first in the high half; a scale for each 64 values of a row

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/base/dtype.h"

namespace ferry {

enum class Storage : uint8_t { compute, f32, f16, bf16, int8, nf4 };
constexpr std::string_view name_of(Storage storage) {
  constexpr std::string_view kNames[] = {"compute", "fp32", "fp16", "bf16", "int8", "nf4"};
  return kNames[static_cast<size_t>(storage)];
}
constexpr bool is_quantised(Storage storage) {
  return storage == Storage::int8 || storage == Storage::nf4;
}
/** The type of the elements; bytes of a quantised matrix. */
DType type_of(Storage storage, DType compute);

/** Values that share a scale in nf4: columns are a multiple of it. */
inline constexpr int64_t kNf4Values_per_scale = 64;
/** The values of the codes of nf4, ascending (bitsandbytes, functional.py, get_4bit_type). */
inline constexpr std::array<float, 16> kNf4 = {-1.0f,
                                               -0.6961928009986877f,
                                               -0.5250730514526367f,
                                               -0.39491748809814453f,
                                               -0.28444138169288635f,
                                               -0.18477343022823334f,
                                               -0.09105003625154495f,
                                               0.0f,
                                               0.07958029955625534f,
                                               0.16093020141124725f,
                                               0.24611230194568634f,
                                               0.33791524171829224f,
                                               0.44070982933044434f,
                                               0.5626170039176941f,
                                               0.7229568362236023f,
                                               1.0f};
/** 1 / 127 as bitsandbytes has it. */
inline constexpr float kInt8_step = 0.007874015718698502f;

/** The places of a matrix's codes and scales. */
struct StoredMatrix {
  Storage storage{};
  DType type{};  ///< of what is not quantised
  int64_t rows = 0, columns = 0;
  int64_t row_bytes = 0;     ///< the codes of a row, or its elements
  int64_t row_scales = 0;    ///< 0: not quantised
  int64_t scales_begin = 0;  ///< bytes

  int64_t n_bytes() const {
    return scales_begin + rows * row_scales * static_cast<int64_t>(sizeof(float));
  }
};
/** FERRY_CHECK fails for nf4 whose columns are no multiple of 64. */
StoredMatrix stored_matrix(Storage storage, int64_t rows, int64_t columns, DType compute);
inline int64_t stored_bytes(Storage storage, int64_t rows, int64_t columns, DType compute) {
  return stored_matrix(storage, rows, columns, compute).n_bytes();
}

/** Linear maps take so many values of a stored matrix apart at a time, unless one row has more. */
inline constexpr int64_t kTile_values = 1 << 20;
/** The rows of a tile that is as wide as the matrix. */
int64_t tile_rows(const StoredMatrix& matrix);
/** The columns of a tile that is as high as the matrix, a multiple of 64 unless all. */
int64_t tile_columns(const StoredMatrix& matrix);

/** Codes and scales of whole rows of a quantised matrix, one row after another. */
void quantise(const StoredMatrix& matrix,
              std::span<const float> values,
              std::byte* codes,
              float* scales);
/** And back, values of one row from a column on; `codes` and `scales` are the row's. */
void dequantise(const StoredMatrix& matrix,
                const std::byte* codes,
                const float* scales,
                int64_t first_column,
                std::span<float> values);

}  // namespace ferry
