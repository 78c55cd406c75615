#pragma once
// The places where bytes live, and the tags that say what they are for. Every allocation of 1 MiB
// or more carries a place and a tag (design 6). `ferry plan`, the report of a run and the
// out-of-memory message print the ledger of tags.

#include <array>
#include <cstdint>
#include <string_view>

namespace ferry {

/** The device is what computes: its memory is the host's own where that is the CPU. */
enum class Place : uint8_t { device, host, nvme };
inline constexpr int kPlaces = 3;

/** Some of a segment's bytes, or of a reservation's. */
struct ByteRange {
  int64_t offset = 0, n_bytes = 0;
  bool operator==(const ByteRange&) const = default;
};

/** Index of a region in Layout::regions; -1: there is none. */
using RegionId = int;

enum class Tag : uint8_t {
  weights,  ///< resident or host weights, compute type
  grads,
  master,
  adam_m,
  adam_v,
  slots,    ///< weight and gradient slots on the GPU
  saved,    ///< activations: tensors that forward passes leave for backward passes
  scratch,  ///< temporaries of one operation or block
  library,  ///< memory that ATen's entries allocate through Ferry's allocator
  staging,  ///< host side of transfers
  batch,    ///< token ids, labels, lengths of the micro-batches of a step
  dataset,
  cache,  ///< keys and values of the sequences that a model goes on with
};
inline constexpr int kTags = 13;

constexpr std::string_view name_of(Place place) {
  constexpr std::array<std::string_view, kPlaces> names = {"device", "host", "nvme"};
  return names[static_cast<size_t>(place)];
}

/** The option that limits a place. */
constexpr std::string_view budget_option_of(Place place) {
  constexpr std::array<std::string_view, kPlaces> names = {"gpu_memory", "host_memory",
                                                           "nvme_memory"};
  return names[static_cast<size_t>(place)];
}

constexpr std::string_view name_of(Tag tag) {
  constexpr std::array<std::string_view, kTags> names = {
      "weights", "grads",   "master",  "adam_m", "adam_v",  "slots", "saved",
      "scratch", "library", "staging", "batch",  "dataset", "cache"};
  return names[static_cast<size_t>(tag)];
}

}  // namespace ferry
