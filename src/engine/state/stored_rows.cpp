#include "src/engine/state/stored_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "simd/kernels.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Codes and scales of some rows. */
struct Piece {
  std::vector<std::byte> codes;
  std::vector<float> scales;

  void resize(const StoredMatrix& matrix, int64_t n_rows) {
    codes.resize(static_cast<size_t>(n_rows * matrix.row_bytes));
    scales.resize(static_cast<size_t>(n_rows * matrix.row_scales));
  }
};

int64_t piece_rows(const StoredMatrix& matrix) {
  constexpr int64_t kPiece_values = 64 * 1024;
  return std::max(kPiece_values / matrix.columns, int64_t{1});
}

int64_t scales_at(const StoredMatrix& matrix, int64_t row) {
  return matrix.scales_begin + row * matrix.row_scales * static_cast<int64_t>(sizeof(float));
}

}  // namespace

void write_rows(const StoredMatrix& matrix,
                int64_t first_row,
                std::span<const float> values,
                const WriteStored& write) {
  const int64_t n_rows = std::ssize(values) / matrix.columns;
  FERRY_CHECK(n_rows * matrix.columns == std::ssize(values), "{} values of rows of {}",
              values.size(), matrix.columns);
  Piece piece;
  for (int64_t done = 0, n = 0; done < n_rows; done += n) {
    n = std::min(piece_rows(matrix), n_rows - done);
    piece.resize(matrix, n);
    const auto from = values.subspan(static_cast<size_t>(done * matrix.columns),
                                     static_cast<size_t>(n * matrix.columns));
    if (is_quantised(matrix.storage))
      quantise(matrix, from, piece.codes.data(), piece.scales.data());
    else
      simd::convert(piece.codes.data(), matrix.type, from.data(), DType::f32, std::ssize(from));
    write((first_row + done) * matrix.row_bytes, piece.codes);
    if (!piece.scales.empty())
      write(scales_at(matrix, first_row + done), std::as_bytes(std::span(piece.scales)));
  }
}

void read_rows(const StoredMatrix& matrix,
               int64_t first_value,
               std::span<float> values,
               const ReadStored& read) {
  const int64_t end = first_value + std::ssize(values);
  Piece piece;
  for (int64_t at = first_value; at < end;) {
    const int64_t first_row = at / matrix.columns;
    const int64_t n_rows = std::min(piece_rows(matrix), (end - 1) / matrix.columns + 1 - first_row);
    piece.resize(matrix, n_rows);
    read(first_row * matrix.row_bytes, piece.codes);
    if (!piece.scales.empty())
      read(scales_at(matrix, first_row), std::as_writable_bytes(std::span(piece.scales)));
    for (int64_t row = 0; row < n_rows; ++row) {
      const int64_t column = at % matrix.columns, n = std::min(matrix.columns - column, end - at);
      const auto to = values.subspan(static_cast<size_t>(at - first_value), static_cast<size_t>(n));
      const std::byte* codes = piece.codes.data() + row * matrix.row_bytes;
      if (is_quantised(matrix.storage))
        dequantise(matrix, codes, piece.scales.data() + row * matrix.row_scales, column, to);
      else
        simd::convert(to.data(), DType::f32,
                      codes + column * static_cast<int64_t>(size_of(matrix.type)), matrix.type, n);
      at += n;
    }
  }
}

}  // namespace ferry
