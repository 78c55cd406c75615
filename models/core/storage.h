#pragma once
// How a parameter lies in its block's segment: in the type of compute, or as bytes of its own. int8
// is LLM.int8's (Dettmers 2022), nf4 QLoRA's (Dettmers 2023), both to the last bit what
// bitsandbytes 0.50 makes on a CPU. The other kinds are blocks that a file had
// (simd/block_formats.h). Torch-free.
//
// A matrix lies in one storage, or each part of its rows in another: the matrix of query,
// key and value is three tensors in files. A part (rows, columns) that is quantised begins at a
// 512-byte boundary with the codes of all rows, then from the next such boundary has scales, row by
// row.
//   int8        a byte a value; an fp32 scale a row, which is its largest magnitude
//   nf4         two values a byte, the first in the high half; an fp32 scale for each 64 of a row
//   nf4_nested  the same with a byte for each scale, then from the next boundary fp32: an offset,
//               and a scale for each 256 of the part's scales (double quantisation)
//   q8_0, q4_0, q4_1, q4_k, q6_k, mxfp4   rows of blocks, which have their scales in them

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/dtype.h"

namespace ferry {

enum class Storage : uint8_t {
  compute,
  f32,
  f16,
  bf16,
  int8,
  nf4,
  nf4_nested,
  q8_0,
  q4_0,
  q4_1,
  q4_k,
  q6_k,
  mxfp4,
};
constexpr std::string_view name_of(Storage storage) {
  constexpr std::string_view kNames[] = {"compute", "fp32",       "fp16", "bf16", "int8",
                                         "nf4",     "nf4_nested", "q8_0", "q4_0", "q4_1",
                                         "q4_k",    "q6_k",       "mxfp4"};
  return kNames[static_cast<size_t>(storage)];
}
/** The storage of that name. */
std::optional<Storage> storage_named(std::string_view name);
constexpr bool is_quantised(Storage storage) {
  return storage >= Storage::int8;
}
/** Its rows are blocks, which are taken from a file as they are. */
constexpr bool has_blocks(Storage storage) {
  return storage >= Storage::q8_0;
}
/** Columns of a matrix are a multiple of it. */
int64_t columns_multiple(Storage storage);
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

/** Scales of nested nf4 that share a scale. */
inline constexpr int64_t kNested_scales = 256;
/** Rows of a matrix that lie in one storage. */
struct RowStorage {
  Storage storage = Storage::compute;
  int64_t rows = 0;

  bool operator==(const RowStorage&) const = default;
};

/** The storage of a matrix: one of all rows, or one of each part of them, in their order. */
class MatrixStorage {
 public:
  MatrixStorage(Storage all = Storage::compute) : all_(all) {}
  /** Parts that are alike, and quantised in blocks or rows alone, are one. */
  explicit MatrixStorage(std::vector<RowStorage> parts);

  bool is(Storage storage) const { return parts_.empty() && all_ == storage; }
  /** A parameter lies in its segment as all parameters do. */
  bool is_compute() const { return is(Storage::compute); }
  bool is_quantised() const { return !parts_.empty() || ferry::is_quantised(all_); }
  /** The parts of a matrix of so many rows. */
  std::vector<RowStorage> parts(int64_t rows) const;
  /** "nf4", or "q4_k and q6_k". */
  std::string name() const;
  /** The type of the elements; bytes of a quantised matrix. */
  DType type(DType compute) const { return parts_.empty() ? type_of(all_, compute) : DType::u8; }

  bool operator==(const MatrixStorage&) const = default;

 private:
  Storage all_;
  std::vector<RowStorage> parts_;  ///< none: `all_` is of all rows
};

/** The places of codes and scales of a part of a matrix, in bytes from the matrix's begin. */
struct StoredMatrix {
  Storage storage{};
  DType type{};           ///< of what is not quantised
  int64_t first_row = 0;  ///< of the matrix
  int64_t rows = 0, columns = 0;
  int64_t begin = 0;
  int64_t row_bytes = 0;     ///< the codes of a row, or its elements
  int64_t row_scales = 0;    ///< 0: it has no scales beside the codes
  int64_t scales_begin = 0;  ///< the end of the codes where there are none
  int64_t nested_begin = 0;  ///< of nested scales: an offset, then scales of scales
  int64_t end = 0;

  int64_t n_bytes() const { return end - begin; }
  bool is_nested() const { return storage == Storage::nf4_nested; }
  int64_t scale_bytes() const { return is_nested() ? 1 : static_cast<int64_t>(sizeof(float)); }
  /** Offset and scales of nested scales. */
  int64_t n_nested() const {
    return is_nested() ? 1 + (rows * row_scales + kNested_scales - 1) / kNested_scales : 0;
  }
};
/** A part that is a whole matrix. FERRY_CHECK fails for columns that the storage does not take. */
StoredMatrix stored_matrix(Storage storage, int64_t rows, int64_t columns, DType compute);
/** The parts of a matrix, one after the other. */
using StoredParts = std::vector<StoredMatrix>;
StoredParts stored_parts(const MatrixStorage& storage,
                         int64_t rows,
                         int64_t columns,
                         DType compute);
inline int64_t stored_bytes(const MatrixStorage& storage,
                            int64_t rows,
                            int64_t columns,
                            DType compute) {
  return stored_parts(storage, rows, columns, compute).back().end;
}

/** Linear maps take so many values of a stored matrix apart at a time, unless one row has more. A
 * GPU reads the other operand again for each tile, so that small tiles take longer than the
 * product: 8 G of parameters on an H200 took 2.6 times as long with tiles of 1 Mi. */
constexpr int64_t tile_values(bool cuda) {
  return int64_t{1} << (cuda ? 24 : 20);
}
/** The rows of a tile that is as wide as the matrix, a multiple of 128 where that can be, unless
 * all. */
int64_t tile_rows(int64_t rows, int64_t columns, bool cuda);
/** The columns of a tile that is as high as the matrix, a multiple of 64 unless all. */
int64_t tile_columns(int64_t rows, int64_t columns, bool cuda);

/** Codes and scales of whole rows of int8 or nf4, one row after another. Nested scales begin as
 * fp32, too (models/core/nested_scales.h). */
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
