#include "src/engine/state/stored_rows.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <utility>

#include "models/core/nested_scales.h"
#include "simd/kernels.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Codes and scales of some rows. */
struct Piece {
  std::vector<std::byte> codes, nested_codes;
  std::vector<float> scales;

  void resize(const StoredMatrix& part, int64_t n_rows) {
    codes.resize(static_cast<size_t>(n_rows * part.row_bytes));
    scales.resize(static_cast<size_t>(n_rows * part.row_scales));
    nested_codes.resize(part.is_nested() ? scales.size() : 0);
  }
};

int64_t piece_rows(const StoredMatrix& part) {
  constexpr int64_t kPiece_values = 512 * 1024;
  return std::max(kPiece_values / part.columns, int64_t{1});
}

/** Each row by itself, so that threads change no bit: one thread took two minutes for 8 G values.
 */
void quantise_rows(const StoredMatrix& part, std::span<const float> values, Piece& piece) {
  const auto columns = static_cast<size_t>(part.columns);
  tbb::parallel_for(size_t{0}, values.size() / columns, [&](size_t row) {
    const auto at = static_cast<int64_t>(row);
    quantise(part, values.subspan(row * columns, columns), piece.codes.data() + at * part.row_bytes,
             piece.scales.data() + at * part.row_scales);
  });
}

int64_t codes_at(const StoredMatrix& part, int64_t row) {
  return part.begin + row * part.row_bytes;
}
int64_t scales_at(const StoredMatrix& part, int64_t row) {
  return part.scales_begin + row * part.row_scales * part.scale_bytes();
}

/** Keeps the scales of rows; with the last rows all are written. */
void add_nested(const StoredMatrix& part,
                int64_t row,
                std::span<const float> scales,
                const WriteStored& write,
                UnnestedScales& all) {
  all.scales.resize(static_cast<size_t>(part.rows * part.row_scales));
  std::ranges::copy(scales, all.scales.begin() + row * part.row_scales);
  all.n_rows += std::ssize(scales) / part.row_scales;
  if (all.n_rows < part.rows) return;
  std::vector<std::byte> codes(all.scales.size());
  std::vector<float> nested(static_cast<size_t>(part.n_nested()));
  nest(all.scales, codes, nested);
  write(part.scales_begin, codes);
  write(part.nested_begin, std::as_bytes(std::span(nested)));
  all = {};
}

/** `row` is the part's. */
void write_part(const StoredMatrix& part,
                int64_t row,
                std::span<const float> values,
                const WriteStored& write,
                const ScalesOfPart& scales_of) {
  FERRY_CHECK(!has_blocks(part.storage), "values for blocks of {}", name_of(part.storage));
  const int64_t n_rows = std::ssize(values) / part.columns;
  Piece piece;
  for (int64_t done = 0, n = 0; done < n_rows; done += n) {
    n = std::min(piece_rows(part), n_rows - done);
    piece.resize(part, n);
    const auto from = values.subspan(static_cast<size_t>(done * part.columns),
                                     static_cast<size_t>(n * part.columns));
    if (is_quantised(part.storage))
      quantise_rows(part, from, piece);
    else
      simd::convert(piece.codes.data(), part.type, from.data(), DType::f32, std::ssize(from));
    write(codes_at(part, row + done), piece.codes);
    if (part.is_nested())
      add_nested(part, row + done, piece.scales, write, scales_of(part));
    else if (!piece.scales.empty())
      write(scales_at(part, row + done), std::as_bytes(std::span(piece.scales)));
  }
}

/** Values of a part from the value `first_value` of the part on. */
void read_part(const StoredMatrix& part,
               int64_t first_value,
               std::span<float> values,
               const ReadStored& read) {
  const int64_t end = first_value + std::ssize(values);
  std::vector<float> nested(static_cast<size_t>(part.n_nested()));
  if (part.is_nested()) read(part.nested_begin, std::as_writable_bytes(std::span(nested)));
  Piece piece;
  for (int64_t at = first_value; at < end;) {
    const int64_t first_row = at / part.columns;
    const int64_t n_rows = std::min(piece_rows(part), (end - 1) / part.columns + 1 - first_row);
    piece.resize(part, n_rows);
    read(codes_at(part, first_row), piece.codes);
    if (part.is_nested()) {
      read(scales_at(part, first_row), piece.nested_codes);
      unnest(piece.nested_codes.data(), nested.data(), first_row * part.row_scales, piece.scales);
    } else if (!piece.scales.empty()) {
      read(scales_at(part, first_row), std::as_writable_bytes(std::span(piece.scales)));
    }
    for (int64_t row = 0; row < n_rows; ++row) {
      const int64_t column = at % part.columns, n = std::min(part.columns - column, end - at);
      const auto to = values.subspan(static_cast<size_t>(at - first_value), static_cast<size_t>(n));
      const std::byte* codes = piece.codes.data() + row * part.row_bytes;
      if (is_quantised(part.storage))
        dequantise(part, codes, piece.scales.data() + row * part.row_scales, column, to);
      else
        simd::convert(to.data(), DType::f32,
                      codes + column * static_cast<int64_t>(size_of(part.type)), part.type, n);
      at += n;
    }
  }
}

/** The begin and the end of what a part has of a range of values, counted in the part. */
std::pair<int64_t, int64_t> in_part(const StoredMatrix& part, int64_t begin, int64_t end) {
  const int64_t first = part.first_row * part.columns;
  return {std::max(begin, first) - first, std::min(end, first + part.rows * part.columns) - first};
}

}  // namespace

void write_rows(const StoredParts& parts,
                int64_t first_row,
                std::span<const float> values,
                const WriteStored& write,
                const ScalesOfPart& scales_of) {
  const int64_t columns = parts.front().columns, n_rows = std::ssize(values) / columns;
  FERRY_CHECK(n_rows * columns == std::ssize(values), "{} values of rows of {}", values.size(),
              columns);
  const int64_t first = first_row * columns;
  for (const StoredMatrix& part : parts) {
    const auto [begin, end] = in_part(part, first, first + std::ssize(values));
    if (begin >= end) continue;
    const int64_t at = part.first_row * columns + begin - first;
    write_part(part, begin / columns,
               values.subspan(static_cast<size_t>(at), static_cast<size_t>(end - begin)), write,
               scales_of);
  }
}

void read_rows(const StoredParts& parts,
               int64_t first_value,
               std::span<float> values,
               const ReadStored& read) {
  for (const StoredMatrix& part : parts) {
    const auto [begin, end] = in_part(part, first_value, first_value + std::ssize(values));
    if (begin >= end) continue;
    const int64_t at = part.first_row * part.columns + begin - first_value;
    read_part(part, begin,
              values.subspan(static_cast<size_t>(at), static_cast<size_t>(end - begin)), read);
  }
}

}  // namespace ferry
