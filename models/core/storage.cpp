#include "models/core/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "simd/block_formats.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::fabs(value));
  return largest;
}

/** The number of midpoints between neighbours of the table that are below: a tie is the lower. */
int nf4_code(float scaled) {
  int code = 0;
  for (size_t i = 0; i + 1 < kNf4.size(); ++i)
    code += (kNf4[i] + kNf4[i + 1]) / 2 < scaled;
  return code;
}

void quantise_nf4(std::span<const float> values, std::byte* codes, float* scales) {
  for (size_t first = 0; first < values.size(); first += kNf4Values_per_scale) {
    const auto block = values.subspan(first, kNf4Values_per_scale);
    const float scale = *scales++ = largest_magnitude(block);
    const float factor = 1.0f / std::max(scale, 1e-38f);
    const auto code = [&](size_t i) {
      return nf4_code(std::clamp(block[i] * factor, -1.0f, 1.0f));
    };
    for (size_t i = 0; i < block.size(); i += 2)
      *codes++ = static_cast<std::byte>(code(i) << 4 | code(i + 1));
  }
}

void quantise_int8(std::span<const float> row, std::byte* codes, float* scale) {
  *scale = largest_magnitude(row);
  const float factor = 127.0f / *scale;  // infinite where the row has nothing but tiny values
  for (const float value : row) {
    const float scaled = value * factor;
    const float rounded = std::isfinite(scaled) ? std::nearbyint(scaled) : 0.0f;
    *codes++ = static_cast<std::byte>(static_cast<int8_t>(rounded));
  }
}

/** Values of a row of blocks from a column on. */
void dequantise_blocks(Storage storage,
                       const uint8_t* row,
                       int64_t first_column,
                       std::span<float> values) {
  const auto read = [&]<class Format>(Format) {
    simd::row_values<Format>(row, first_column, std::ssize(values), values.data());
  };
  switch (storage) {
    case Storage::q8_0:
      return read(simd::BlockQ8_0());
    case Storage::q4_0:
      return read(simd::BlockQ4_0());
    case Storage::q4_1:
      return read(simd::BlockQ4_1());
    case Storage::q4_k:
      return read(simd::BlockQ4_K());
    case Storage::q6_k:
      return read(simd::BlockQ6_K());
    case Storage::mxfp4:
      return read(simd::BlockMxfp4());
    default:
      FERRY_CHECK(false, "{} has no blocks", name_of(storage));
  }
}

/** Values and bytes of a block. */
std::pair<int, int> block_of(Storage storage) {
  switch (storage) {
    case Storage::q8_0:
      return {simd::BlockQ8_0::kValues, simd::BlockQ8_0::kBytes};
    case Storage::q4_0:
      return {simd::BlockQ4_0::kValues, simd::BlockQ4_0::kBytes};
    case Storage::q4_1:
      return {simd::BlockQ4_1::kValues, simd::BlockQ4_1::kBytes};
    case Storage::q4_k:
      return {simd::BlockQ4_K::kValues, simd::BlockQ4_K::kBytes};
    case Storage::q6_k:
      return {simd::BlockQ6_K::kValues, simd::BlockQ6_K::kBytes};
    case Storage::mxfp4:
      return {simd::BlockMxfp4::kValues, simd::BlockMxfp4::kBytes};
    default:
      return {1, 0};
  }
}

}  // namespace

std::optional<Storage> storage_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Storage::mxfp4); ++i)
    if (name_of(static_cast<Storage>(i)) == name) return static_cast<Storage>(i);
  return std::nullopt;
}

int64_t columns_multiple(Storage storage) {
  if (storage == Storage::nf4 || storage == Storage::nf4_nested) return kNf4Values_per_scale;
  return block_of(storage).first;
}

DType type_of(Storage storage, DType compute) {
  switch (storage) {
    case Storage::compute:
      return compute;
    case Storage::f32:
      return DType::f32;
    case Storage::f16:
      return DType::f16;
    case Storage::bf16:
      return DType::bf16;
    default:
      return DType::u8;
  }
}

MatrixStorage::MatrixStorage(std::vector<RowStorage> parts) : all_(Storage::compute) {
  for (const RowStorage& part : parts) {
    // Nested scales share an offset in each tensor of a file.
    const bool is_more = !parts_.empty() && parts_.back().storage == part.storage &&
                         part.storage != Storage::nf4_nested;
    if (is_more)
      parts_.back().rows += part.rows;
    else
      parts_.push_back(part);
  }
  if (parts_.size() != 1) return;
  all_ = parts_.front().storage;
  parts_.clear();
}

std::vector<RowStorage> MatrixStorage::parts(int64_t rows) const {
  if (parts_.empty()) return {{all_, rows}};
  int64_t n_rows = 0;
  for (const RowStorage& part : parts_)
    n_rows += part.rows;
  FERRY_CHECK(n_rows == rows, "parts of {} rows of a matrix of {}", n_rows, rows);
  return parts_;
}

std::string MatrixStorage::name() const {
  std::vector<Storage> seen;
  std::string text;
  for (const RowStorage& part : parts_.empty() ? std::vector<RowStorage>{{all_, 0}} : parts_) {
    if (std::ranges::find(seen, part.storage) != seen.end()) continue;
    seen.push_back(part.storage);
    text += fmt::format("{}{}", text.empty() ? "" : " and ", name_of(part.storage));
  }
  return text;
}

namespace {

StoredMatrix lay_out(
    const RowStorage& part, int64_t first_row, int64_t begin, int64_t columns, DType compute) {
  StoredMatrix matrix = {.storage = part.storage,
                         .type = type_of(part.storage, compute),
                         .first_row = first_row,
                         .rows = part.rows,
                         .columns = columns,
                         .begin = begin};
  const int64_t multiple = columns_multiple(part.storage);
  FERRY_CHECK(columns % multiple == 0, "{} of {} columns", name_of(part.storage), columns);
  matrix.row_bytes = columns * static_cast<int64_t>(size_of(matrix.type));
  if (part.storage == Storage::int8) matrix.row_scales = 1;
  if (multiple == kNf4Values_per_scale && !has_blocks(part.storage)) {
    matrix.row_bytes = columns / 2;
    matrix.row_scales = columns / kNf4Values_per_scale;
  }
  if (has_blocks(part.storage))
    matrix.row_bytes = columns / multiple * block_of(part.storage).second;
  matrix.scales_begin = begin + part.rows * matrix.row_bytes;
  if (matrix.row_scales > 0)
    matrix.scales_begin = round_up(matrix.scales_begin, kTensorAlignment_bytes);
  matrix.end = matrix.scales_begin + part.rows * matrix.row_scales * matrix.scale_bytes();
  if (matrix.is_nested()) {
    matrix.nested_begin = round_up(matrix.end, kTensorAlignment_bytes);
    matrix.end = matrix.nested_begin + matrix.n_nested() * static_cast<int64_t>(sizeof(float));
  }
  return matrix;
}

}  // namespace

StoredMatrix stored_matrix(Storage storage, int64_t rows, int64_t columns, DType compute) {
  return lay_out({storage, rows}, 0, 0, columns, compute);
}

StoredParts stored_parts(const MatrixStorage& storage,
                         int64_t rows,
                         int64_t columns,
                         DType compute) {
  StoredParts parts;
  for (const RowStorage& part : storage.parts(rows)) {
    const int64_t first_row = parts.empty() ? 0 : parts.back().first_row + parts.back().rows;
    const int64_t begin = parts.empty() ? 0 : round_up(parts.back().end, kTensorAlignment_bytes);
    parts.push_back(lay_out(part, first_row, begin, columns, compute));
  }
  return parts;
}

namespace {

/** The largest multiple up to n; n itself, but 1 at least, where it is less than one. */
int64_t whole_multiples(int64_t n, int64_t multiple) {
  return n < multiple ? std::max(n, int64_t{1}) : n / multiple * multiple;
}

}  // namespace

int64_t tile_rows(int64_t rows, int64_t columns, bool cuda) {
  constexpr int64_t kAligned_rows = 128;
  return std::min(whole_multiples(tile_values(cuda) / columns, kAligned_rows), rows);
}

int64_t tile_columns(int64_t rows, int64_t columns, bool cuda) {
  const int64_t n = tile_values(cuda) / rows / kNf4Values_per_scale * kNf4Values_per_scale;
  return std::min(std::max(n, kNf4Values_per_scale), columns);
}

void quantise(const StoredMatrix& matrix,
              std::span<const float> values,
              std::byte* codes,
              float* scales) {
  const auto columns = static_cast<size_t>(matrix.columns);
  FERRY_CHECK(matrix.row_scales > 0 && values.size() % columns == 0,
              "{} values of rows of {} as {}", values.size(), columns, name_of(matrix.storage));
  if (matrix.storage != Storage::int8) return quantise_nf4(values, codes, scales);
  for (size_t at = 0; at < values.size(); at += columns, codes += columns)
    quantise_int8(values.subspan(at, columns), codes, scales++);
}

void dequantise(const StoredMatrix& matrix,
                const std::byte* codes,
                const float* scales,
                int64_t first_column,
                std::span<float> values) {
  if (has_blocks(matrix.storage))
    return dequantise_blocks(matrix.storage, reinterpret_cast<const uint8_t*>(codes), first_column,
                             values);
  int64_t column = first_column;
  if (matrix.storage == Storage::int8) {
    for (float& value : values) {
      const auto code = static_cast<int8_t>(codes[column++]);
      value = static_cast<float>(code) * *scales * kInt8_step;
    }
    return;
  }
  for (float& value : values) {
    const auto pair = static_cast<uint8_t>(codes[column / 2]);
    const size_t code = column % 2 == 0 ? pair >> 4 : pair & 15;
    value = kNf4[code] * scales[column++ / kNf4Values_per_scale];
  }
}

}  // namespace ferry
