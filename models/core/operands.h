#pragma once
// The operands of a part of an operation, by name. Each part has a struct of them:
//
//   template <class T>
//   struct LinearGrads {
//     T dy, dx, sum;
//     static constexpr std::array<std::string_view, 3> kNames = {"dy", "dx", "sum"};
//   };
//
// T is ValueId in a program, a place in a pass (PassPlan::places), a tensor where the pass runs.

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>
#include <vector>

namespace ferry {

template <template <class> class Operands>
inline constexpr size_t kOperands = Operands<int>::kNames.size();

/** The operands in the order of their names. */
template <template <class> class Operands>
std::vector<int> listed(const Operands<int>& operands) {
  const auto list = std::bit_cast<std::array<int, kOperands<Operands>>>(operands);
  return {list.begin(), list.end()};
}

/** And back: `list` has as many as there are names. */
template <template <class> class Operands, class T>
Operands<T> named(std::span<const T> list) {
  std::array<T, kOperands<Operands>> array{};
  std::copy_n(list.begin(), array.size(), array.begin());
  return std::bit_cast<Operands<T>>(array);
}

}  // namespace ferry
