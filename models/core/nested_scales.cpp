#include "models/core/nested_scales.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "models/core/storage.h"

namespace ferry {
namespace {

/** Eight sums side by side. */
constexpr size_t kLanes = 8, kRows = 4;
using LaneSums = std::array<std::array<float, kLanes>, kRows>;

void add(LaneSums& sums, const LaneSums& others) {
  for (size_t k = 0; k < kRows; ++k)
    for (size_t lane = 0; lane < kLanes; ++lane)
      sums[k][lane] += others[k][lane];
}

/** The sum of values in fp32, in the order of LibTorch's sum on a CPU with one thread: four rows of
 * eight lanes, and sums of sums on four levels. */
float torch_sum(std::span<const float> values) {
  constexpr size_t kLevels = 4;
  const size_t n_vectors = values.size() / kLanes, n_steps = n_vectors / kRows;
  const auto log2 = static_cast<size_t>(std::bit_width(n_steps > 1 ? n_steps - 1 : 0));
  const size_t power = std::max<size_t>(4, log2 / kLevels), step = size_t{1} << power;
  std::array<LaneSums, kLevels> levels{};
  const auto add_step = [&](size_t i) {
    for (size_t k = 0; k < kRows; ++k)
      for (size_t lane = 0; lane < kLanes; ++lane)
        levels[0][k][lane] += values[(i * kRows + k) * kLanes + lane];
  };
  size_t i = 0;
  while (i + step <= n_steps) {
    for (const size_t end = i + step; i < end; ++i)
      add_step(i);
    for (size_t level = 1; level < kLevels; ++level) {
      add(levels[level], levels[level - 1]);
      levels[level - 1] = {};
      if ((i & ((step - 1) << level * power)) != 0) break;
    }
  }
  for (; i < n_steps; ++i)
    add_step(i);
  for (size_t level = 1; level < kLevels; ++level)
    add(levels[0], levels[level]);
  std::array<float, kLanes>& lanes = levels[0][0];
  for (size_t vector = n_steps * kRows; vector < n_vectors; ++vector)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += values[vector * kLanes + lane];
  for (size_t k = 1; k < kRows; ++k)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += levels[0][k][lane];
  float sum = 0;
  for (const float value : values.subspan(n_vectors * kLanes))
    sum += value;
  for (const float lane : lanes)
    sum += lane;
  return sum;
}

/** The code of the value that is nearest to one of 65536 steps from -1 to 1: bitsandbytes has a
 * table of them. Of two that are as near it is the lower one. */
size_t nested_code(float scaled) {
  constexpr float kHalf_steps = 32767.5f;
  if (std::isnan(scaled)) return 0;  // all scales of a block are the offset
  const auto step = static_cast<int>((scaled + 1.0f) * kHalf_steps + 0.5f);
  const float value = static_cast<float>(step) / kHalf_steps - 1.0f;
  const std::array<float, 256>& map = nested_map();
  const auto* const above = std::ranges::upper_bound(map, value);
  if (above == map.begin()) return 0;
  const auto code = static_cast<size_t>(above - map.begin()) - 1;
  const bool is_nearer =
      above != map.end() && std::fabs(value - *above) < std::fabs(value - map[code]);
  return code + is_nearer;
}

}  // namespace

const std::array<float, 256>& nested_map() {
  static const std::array<float, 256> map = [] {
    std::array<float, 256> values{};
    size_t n = 0;
    values[n++] = 0;
    values[n++] = 1;
    for (int e = 0; e < 7; ++e) {
      const int parts = 1 << e;
      const double step = (1.0f - 0.1f) / static_cast<float>(parts);
      // Rounded once, as LibTorch's linspace.
      const auto bound = [&](int i) {
        return static_cast<float>(i < (parts + 1) / 2 ? static_cast<double>(0.1f) + step * i
                                                      : 1.0 - step * (parts - i));
      };
      const auto factor = static_cast<float>(std::pow(10.0, e - 6));
      for (int i = 0; i < parts; ++i) {
        const float value = factor * ((bound(i) + bound(i + 1)) / 2);
        values[n++] = value;
        values[n++] = -value;
      }
    }
    std::ranges::sort(values);
    return values;
  }();
  return map;
}

void nest(std::span<const float> scales, std::span<std::byte> codes, std::span<float> nested) {
  const auto n = static_cast<float>(scales.size());
  const float offset = nested[0] = torch_sum(scales) / n;
  std::vector<float> block;
  for (size_t first = 0; first < scales.size(); first += kNested_scales) {
    const auto its = scales.subspan(first, std::min<size_t>(kNested_scales, scales.size() - first));
    block.assign(its.begin(), its.end());
    for (float& value : block)
      value -= offset;
    const float scale = nested[1 + first / kNested_scales] =
        std::fabs(*std::ranges::max_element(block, {}, [](float x) { return std::fabs(x); }));
    for (size_t i = 0; i < block.size(); ++i)
      codes[first + i] = static_cast<std::byte>(nested_code(block[i] / scale));
  }
}

void unnest(const std::byte* codes, const float* nested, int64_t first, std::span<float> scales) {
  const std::array<float, 256>& map = nested_map();
  for (size_t i = 0; i < scales.size(); ++i) {
    const size_t at = static_cast<size_t>(first) + i;
    const float scaled = map[std::to_integer<size_t>(codes[i])] * nested[1 + at / kNested_scales];
    scales[i] = scaled + nested[0];
  }
}

}  // namespace ferry
