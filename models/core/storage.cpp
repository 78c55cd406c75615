#include "models/core/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

}  // namespace

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
    case Storage::int8:
    case Storage::nf4:
      return DType::u8;
  }
  return compute;
}

StoredMatrix stored_matrix(Storage storage, int64_t rows, int64_t columns, DType compute) {
  StoredMatrix matrix = {
      .storage = storage, .type = type_of(storage, compute), .rows = rows, .columns = columns};
  matrix.row_bytes = columns * static_cast<int64_t>(size_of(matrix.type));
  if (storage == Storage::int8) matrix.row_scales = 1;
  if (storage == Storage::nf4) {
    FERRY_CHECK(columns % kNf4Values_per_scale == 0, "nf4 of {} columns", columns);
    matrix.row_bytes = columns / 2;
    matrix.row_scales = columns / kNf4Values_per_scale;
  }
  matrix.scales_begin = rows * matrix.row_bytes;
  if (is_quantised(storage))
    matrix.scales_begin = round_up(matrix.scales_begin, kTensorAlignment_bytes);
  return matrix;
}

int64_t tile_rows(const StoredMatrix& matrix) {
  return std::clamp(kTile_values / matrix.columns, int64_t{1}, matrix.rows);
}

int64_t tile_columns(const StoredMatrix& matrix) {
  const int64_t n = kTile_values / matrix.rows / kNf4Values_per_scale * kNf4Values_per_scale;
  return std::min(std::max(n, kNf4Values_per_scale), matrix.columns);
}

void quantise(const StoredMatrix& matrix,
              std::span<const float> values,
              std::byte* codes,
              float* scales) {
  const auto columns = static_cast<size_t>(matrix.columns);
  FERRY_CHECK(is_quantised(matrix.storage) && values.size() % columns == 0,
              "{} values of rows of {} as {}", values.size(), columns, name_of(matrix.storage));
  if (matrix.storage == Storage::nf4) return quantise_nf4(values, codes, scales);
  for (size_t at = 0; at < values.size(); at += columns, codes += columns)
    quantise_int8(values.subspan(at, columns), codes, scales++);
}

void dequantise(const StoredMatrix& matrix,
                const std::byte* codes,
                const float* scales,
                int64_t first_column,
                std::span<float> values) {
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
