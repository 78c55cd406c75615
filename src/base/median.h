#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace ferry {

/** The middle one; of an even number, the mean of the middle two. `values` is not empty. */
inline double median(std::vector<double> values) {
  const auto half = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, half);
  if (values.size() % 2 == 1) return *half;
  return (*std::max_element(values.begin(), half) + *half) / 2;
}

}  // namespace ferry
