#pragma once
// The way in which the CPU kernels walk over rows (private to models/ops): blocks of a fixed number
// of rows on LibTorch's threads, and rows of any type read and written as fp32.

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/ops/dropout_mask.h"
#include "simd/kernels.h"

namespace ferry::ops::cpu {

inline constexpr int64_t kBlockRows = 64;

constexpr int64_t n_blocks_of(int64_t n_rows) {
  return (n_rows + kBlockRows - 1) / kBlockRows;
}

/** A thread gets at least this many elements: less work than that is done before a second thread
 * has woken up. */
inline constexpr int64_t kThreadElements = 16 * 1024;

/** work(block, first row, end row) for each kBlockRows rows of `width` elements, spread over
 * threads. */
template <typename Work>
void for_row_blocks(int64_t n_rows, int64_t width, const Work& work) {
  const int64_t block_elements = std::max<int64_t>(1, kBlockRows * width);
  const int64_t grain_blocks = (kThreadElements + block_elements - 1) / block_elements;
  at::parallel_for(0, n_blocks_of(n_rows), grain_blocks, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block++) {
      work(block, block * kBlockRows, std::min(n_rows, (block + 1) * kBlockRows));
    }
  });
}

/** Adds the partial sums (n_blocks, n_sums, N) over blocks, in order, into n_sums tensors of N;
 * null: not wanted. */
void add_partials(
    DType type, int64_t n_blocks, int n_sums, int64_t N, const float* partial, void* const* out);

/** Makes a (n_rows, W) matrix zero. */
void set_zero(DType type, int64_t n_rows, int64_t W, void* data);

/** Rows of n elements of some type, handed out as fp32: in place when the type is fp32, through a
 * buffer otherwise. One object per tensor and thread. */
class Rows {
 public:
  Rows(DType type, int64_t n, const void* base)
      : type_(type),
        n_(n),
        base_(static_cast<std::byte*>(const_cast<void*>(base))),
        buffer_(type == DType::f32 || base == nullptr ? 0 : static_cast<size_t>(n)) {}

  /** The row's values; null when there is no tensor. Valid until the next read. */
  const float* read(int64_t row) {
    if (base_ == nullptr) return nullptr;
    if (type_ == DType::f32) return reinterpret_cast<const float*>(at(row));
    simd::convert(buffer_.data(), DType::f32, at(row), type_, n_);
    return buffer_.data();
  }
  /** The memory to compute the row's values in; `wrote` puts them into the tensor. */
  float* write(int64_t row) {
    if (base_ == nullptr) return nullptr;
    return type_ == DType::f32 ? reinterpret_cast<float*>(at(row)) : buffer_.data();
  }
  void wrote(int64_t row) {
    if (base_ == nullptr || type_ == DType::f32) return;
    simd::convert(at(row), type_, buffer_.data(), DType::f32, n_);
  }

 private:
  std::byte* at(int64_t row) const {
    return base_ + row * n_ * static_cast<int64_t>(size_of(type_));
  }

  DType type_;
  int64_t n_;
  std::byte* base_;
  std::vector<float> buffer_;
};

/** The dropout mask of one row at a time. */
class KeepRows {
 public:
  KeepRows(Dropout dropout, int64_t n)
      : dropout_(dropout), n_(n), keep_(dropout.p > 0 ? static_cast<size_t>(n) : 0) {}
  /** Null without dropout. */
  const uint8_t* row(int64_t index) {
    if (dropout_.p <= 0) return nullptr;
    simd::dropout_mask(keep_.data(), n_, static_cast<uint64_t>(dropout_.first_element + index * n_),
                       dropout_.key, dropout_.p);
    return keep_.data();
  }

 private:
  Dropout dropout_;
  int64_t n_;
  std::vector<uint8_t> keep_;
};

}  // namespace ferry::ops::cpu
