#pragma once
// The places where bytes live, and the tags that say what they are for. Every allocation of 1 MiB
// or more carries a place and a tag. `ferry plan`, the report of a run and the
// out-of-memory message print the ledger of tags.

#include <array>
#include <cstdint>
#include <string_view>

#include "simd/update/optim.h"
#include "src/base/indexed.h"

namespace ferry {

/** The device is what computes: its memory is the host's own where that is the CPU. */
enum class Place : uint8_t { device, host, nvme };
inline constexpr int kPlaces = 3;
template <class T>
using PerPlace = PerEnum<Place, T, kPlaces>;

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
  state_0,  ///< the optimizer's states, in the order of its row
  state_1,
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

static_assert(static_cast<int>(Tag::slots) - static_cast<int>(Tag::state_0) == simd::kStates_max);
constexpr bool is_state(Tag tag) {
  return tag == Tag::state_0 || tag == Tag::state_1;
}
/** True of bytes that last from step to step. */
constexpr bool is_of_model(Tag tag) {
  return tag == Tag::weights || tag == Tag::master || is_state(tag);
}

/** The name of a tag in a run with this optimizer. */
constexpr std::string_view name_of(Tag tag, simd::Optim optim) {
  if (is_state(tag))
    return simd::spec_of(optim)
        .states[static_cast<size_t>(tag) - static_cast<size_t>(Tag::state_0)];
  constexpr std::array<std::string_view, kTags> names = {
      "weights", "grads",   "master",  {},      {},        "slots", "saved",
      "scratch", "library", "staging", "batch", "dataset", "cache"};
  return names[static_cast<size_t>(tag)];
}

}  // namespace ferry
