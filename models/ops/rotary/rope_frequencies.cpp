#include "models/ops/rotary/rope_frequencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "src/base/error.h"

namespace ferry {
namespace {

/** theta^(-2 i / width). */
double plain_frequency(double theta, int64_t i, int64_t width) {
  return std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
}

/** YaRN's temperature of attention for positions stretched `factor` times, weighted. */
double temperature(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

double stretch_of(const RopeSpec& spec) {
  if (spec.factor > 0) return spec.factor;
  return static_cast<double>(spec.max_positions) / static_cast<double>(spec.original_positions);
}

double attention_factor_of(const RopeSpec& spec) {
  if (spec.scaling != RopeScaling::yarn && spec.scaling != RopeScaling::longrope) return 1;
  if (spec.attention_factor > 0) return spec.attention_factor;
  const double stretch = stretch_of(spec);
  if (spec.scaling == RopeScaling::longrope) {
    const double original = std::log(static_cast<double>(spec.original_positions));
    return stretch <= 1 ? 1 : std::sqrt(1 + std::log(stretch) / original);
  }
  if (spec.mscale == 0 || spec.mscale_all_dim == 0) return temperature(stretch, 1);
  return temperature(stretch, spec.mscale) / temperature(stretch, spec.mscale_all_dim);
}

/** YaRN: how much of the plain frequency pair i keeps. Pairs that turn beta_fast times or more over
 * the original positions keep all of it, those that turn beta_slow times or less nothing. */
double kept_by_yarn(const RopeSpec& spec, int64_t i) {
  const auto width = static_cast<double>(spec.width);
  const auto positions = static_cast<double>(spec.original_positions);
  const auto pair_of_turns = [&](double n_turns) {
    return width * std::log(positions / (n_turns * 2 * std::numbers::pi)) /
           (2 * std::log(spec.theta));
  };
  double low = pair_of_turns(spec.beta_fast), high = pair_of_turns(spec.beta_slow);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, width - 1);
  if (low == high) high += 0.001;
  return 1 - std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
}

/** Llama 3: wavelengths over original / low_frequency_factor are stretched, those under original /
 * high_frequency_factor stay, and between them goes a straight line. */
double scaled_by_llama3(const RopeSpec& spec, double plain) {
  const double turns =
      static_cast<double>(spec.original_positions) * plain / (2 * std::numbers::pi);
  const double kept = std::clamp((turns - spec.low_frequency_factor) /
                                     (spec.high_frequency_factor - spec.low_frequency_factor),
                                 0.0, 1.0);
  return (1 - kept) * plain / spec.factor + kept * plain;
}

double frequency(const RopeSpec& spec, bool is_long, int64_t i) {
  const double plain = plain_frequency(spec.theta, i, spec.width);
  switch (spec.scaling) {
    case RopeScaling::none:
    case RopeScaling::dynamic:
      return plain;
    case RopeScaling::linear:
      return plain / spec.factor;
    case RopeScaling::yarn: {
      const double kept = kept_by_yarn(spec, i);
      return plain / stretch_of(spec) * (1 - kept) + plain * kept;
    }
    case RopeScaling::longrope:
      return plain / (is_long ? spec.long_factor : spec.short_factor)[static_cast<size_t>(i)];
    case RopeScaling::llama3:
      return scaled_by_llama3(spec, plain);
  }
  return plain;
}

}  // namespace

const char* refused_rope(const RopeSpec& spec) {
  const auto n_pairs = static_cast<size_t>(spec.width / 2);
  const bool needs_original = spec.scaling == RopeScaling::yarn ||
                              spec.scaling == RopeScaling::longrope ||
                              spec.scaling == RopeScaling::llama3;
  const bool may_derive =
      spec.scaling == RopeScaling::yarn || spec.scaling == RopeScaling::longrope;
  if (spec.width <= 0 || spec.width % 2 != 0) return "the rotated columns are not an even number";
  if (spec.theta <= 1) return "theta is not above one";
  if (needs_original && spec.original_positions <= 0)
    return "original_max_position_embeddings is missing";
  if (spec.scaling != RopeScaling::none && spec.factor <= 0 &&
      !(may_derive && spec.max_positions > 0))
    return "the factor is missing";
  switch (spec.scaling) {
    case RopeScaling::longrope:
      if (spec.short_factor.size() != n_pairs || spec.long_factor.size() != n_pairs)
        return "short_factor and long_factor do not have a number for each pair of columns";
      break;
    case RopeScaling::llama3:
      if (spec.high_frequency_factor <= spec.low_frequency_factor)
        return "high_freq_factor is not above low_freq_factor";
      break;
    default:
      break;
  }
  return nullptr;
}

RopeTable rope_table(const RopeSpec& spec) {
  const char* refused = refused_rope(spec);
  FERRY_CHECK(refused == nullptr, "rotary positions: {}", refused);
  RopeTable table = {.factor = static_cast<float>(attention_factor_of(spec))};
  const auto frequencies = [&](bool are_long) {
    std::vector<float> all;
    for (int64_t i = 0; i < spec.width / 2; ++i)
      all.push_back(static_cast<float>(frequency(spec, are_long, i)));
    return all;
  };
  table.frequencies = frequencies(false);
  if (spec.scaling == RopeScaling::longrope) {
    table.long_frequencies = frequencies(true);
    table.long_from = spec.original_positions;
  }
  return table;
}

}  // namespace ferry
