#pragma once
// Shared by the tests of the store: small segments, and bytes that follow from a number.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "offload/store/store.h"

namespace ferry::test {

/** Fills memory with bytes that follow from a number. */
inline void fill(uint64_t number, std::span<std::byte> memory) {
  for (size_t at = 0; at < memory.size(); at += sizeof(uint64_t)) {
    uint64_t z = number * 0x9e3779b97f4a7c15 + at * 0xd1342543de82ef95;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z ^= z >> 27;
    std::memcpy(memory.data() + at, &z, sizeof z);
  }
}

/** Memory for a whole segment. */
inline std::vector<StorePage> pages_for(const StoreLayout& layout, SegmentId segment) {
  return std::vector<StorePage>(
      static_cast<size_t>(layout.padded_bytes(segment) / kStorePage_bytes));
}

/** Writes a segment of which extent i follows from the number + i. */
inline void write_numbered(ExtentStore& store, SegmentId segment, uint64_t number) {
  auto pages = pages_for(store.layout(), segment);
  for (int64_t i = 0; i < store.layout().n_extents(segment); ++i)
    fill(number + static_cast<uint64_t>(i), store.layout().part_of(bytes_of(pages), segment, i));
  store.write_segment(segment, bytes_of(pages));
}

/** True where a segment is what write_numbered() wrote. Throws as read_segment(). */
inline bool is_numbered(const ExtentStore& store,
                        const Generation& generation,
                        SegmentId segment,
                        uint64_t number) {
  auto pages = pages_for(store.layout(), segment), right = pages;
  store.read_segment(generation, segment, bytes_of(pages));
  for (int64_t i = 0; i < store.layout().n_extents(segment); ++i)
    fill(number + static_cast<uint64_t>(i), store.layout().part_of(bytes_of(right), segment, i));
  return std::memcmp(pages.data(), right.data(), bytes_of(pages).size()) == 0;
}

/** Two blocks with states and gradients. */
inline std::vector<StoredSegment> small_segments() {
  return {
      {.block = 0, .name = "adam_m", .n_bytes = 20'000, .extent_bytes = 8192},
      {.block = 0, .name = "grads", .n_bytes = 9'000, .extent_bytes = 4096, .is_volatile = true},
      {.block = 1, .name = "adam_m", .n_bytes = 8'192, .extent_bytes = 8192},
      {.block = 1, .name = "master", .n_bytes = 512, .extent_bytes = 4096}};
}
inline constexpr SegmentId kLasting[] = {0, 2, 3};
inline constexpr SegmentId kVolatile = 1;

/** Writes all lasting segments for a generation and commits it with the number as metadata. */
inline int64_t commit_numbered(ExtentStore& store, uint64_t number) {
  for (const SegmentId segment : kLasting)
    write_numbered(store, segment, 1000 * number + 100 * static_cast<uint64_t>(segment));
  return store.commit(std::to_string(number));
}
inline bool is_generation(const ExtentStore& store, const Generation& generation, uint64_t number) {
  if (generation.metadata != std::to_string(number)) return false;
  for (const SegmentId segment : kLasting) {
    if (!is_numbered(store, generation, segment,
                     1000 * number + 100 * static_cast<uint64_t>(segment)))
      return false;
  }
  return true;
}

}  // namespace ferry::test
