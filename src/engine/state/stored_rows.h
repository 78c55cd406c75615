#pragma once
// The values of a matrix of another storage than compute (models/core/storage.h), into its bytes
// and back, in pieces of 256 KiB of values or one row. Torch-free.

#include <functional>
#include <span>
#include <vector>

#include "models/core/storage.h"

namespace ferry {

/** Bytes of the matrix from an offset on. */
using WriteStored = std::function<void(int64_t offset, std::span<const std::byte> from)>;
using ReadStored = std::function<void(int64_t offset, std::span<std::byte> to)>;

/** The scales that have come of a part with nested scales. All of them decide on each byte. */
struct UnnestedScales {
  std::vector<float> scales;  ///< (rows, scales of a row); empty: none has come
  int64_t n_rows = 0;         ///< rows that have come
};
/** By the begin of the part. */
using ScalesOfPart = std::function<UnnestedScales&(const StoredMatrix& part)>;

/** Stores whole rows of values. Rows of blocks come from files alone, and are our bug here. Each
 * row of nested scales is to be stored once; with the last one the part's scales are written. */
void write_rows(const StoredParts& parts,
                int64_t first_row,
                std::span<const float> values,
                const WriteStored& write,
                const ScalesOfPart& scales_of);
/** The values that the bytes stand for; these need not be whole rows. */
void read_rows(const StoredParts& parts,
               int64_t first_value,
               std::span<float> values,
               const ReadStored& read);

}  // namespace ferry
