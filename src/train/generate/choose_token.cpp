#include "src/train/generate/choose_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "src/base/error.h"
#include "src/data/hash.h"

namespace ferry {
namespace {

/** The tokens that may be drawn by their likelihood: all, or the likeliest first. */
std::vector<int32_t> candidates_of(std::span<const float> logits, const SamplingRule& rule) {
  std::vector<int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto is_likelier = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  const auto n = static_cast<int64_t>(tokens.size());
  if (rule.top_k > 0 && rule.top_k < n) {
    std::ranges::partial_sort(tokens, tokens.begin() + rule.top_k, is_likelier);
    tokens.resize(static_cast<size_t>(rule.top_k));
  } else if (rule.top_p < 1) {
    std::ranges::sort(tokens, is_likelier);
  }
  return tokens;
}

}  // namespace

int32_t choose_token(std::span<const float> logits, const SamplingRule& rule, double u) {
  FERRY_CHECK(!logits.empty(), "no logits");
  const auto likeliest = std::ranges::max_element(logits);
  if (rule.temperature <= 0 || rule.top_k == 1)
    return static_cast<int32_t>(likeliest - logits.begin());
  std::vector<int32_t> tokens = candidates_of(logits, rule);
  std::vector<double> weights;
  weights.reserve(tokens.size());
  double sum = 0;
  for (int32_t token : tokens) {
    const double below = static_cast<double>(logits[static_cast<size_t>(token)]) - *likeliest;
    weights.push_back(std::exp(below / rule.temperature));
    sum += weights.back();
  }
  if (rule.top_p < 1) {
    double kept = 0;
    size_t n_kept = 0;
    while (n_kept == 0 || (n_kept < weights.size() && kept < rule.top_p * sum))
      kept += weights[n_kept++];
    weights.resize(n_kept);
    sum = kept;
  }
  double left = u * sum;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (left < weights[i]) return tokens[i];
    left -= weights[i];
  }
  // Rounding may leave a rest behind the last token.
  return tokens[weights.size() - 1];
}

double random_of_token(uint64_t seed, int64_t prompt, int64_t token) {
  constexpr int kUnused_bits = 11;  // a double holds 53
  return static_cast<double>(hash_key(seed, prompt, token) >> kUnused_bits) * 0x1p-53;
}

}  // namespace ferry
