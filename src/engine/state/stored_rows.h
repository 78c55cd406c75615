#pragma once
// The values of a matrix of another storage than compute (models/core/storage.h), into its bytes
// and back, in pieces of 256 KiB of values or one row. Torch-free.

#include <functional>
#include <span>

#include "models/core/storage.h"

namespace ferry {

/** Bytes of the matrix from an offset on. */
using WriteStored = std::function<void(int64_t offset, std::span<const std::byte> from)>;
using ReadStored = std::function<void(int64_t offset, std::span<std::byte> to)>;

/** Stores whole rows of values. */
void write_rows(const StoredMatrix& matrix,
                int64_t first_row,
                std::span<const float> values,
                const WriteStored& write);
/** The values that the bytes stand for; these need not be whole rows. */
void read_rows(const StoredMatrix& matrix,
               int64_t first_value,
               std::span<float> values,
               const ReadStored& read);

}  // namespace ferry
