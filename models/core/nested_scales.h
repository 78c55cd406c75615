#pragma once
// Double quantisation (QLoRA): the scales of nf4 as a byte each. Weights are loaded through it, and
// kernels read scales as unnest() does. Torch-free.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ferry {

/** The values of the codes of nested scales, ascending (bitsandbytes, create_dynamic_map). */
const std::array<float, 256>& nested_map();

/** Double quantisation of all scales of a part: a byte each, and `nested` (n_nested() values). */
void nest(std::span<const float> scales, std::span<std::byte> codes, std::span<float> nested);
/** And back: `codes` are the codes of the part's scales from `first` on. */
void unnest(const std::byte* codes, const float* nested, int64_t first, std::span<float> scales);

}  // namespace ferry
