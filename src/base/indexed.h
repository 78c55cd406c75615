#pragma once
// Containers by the indices of this project: blocks, values, ports and regions count in int, and
// places, queues and segments are enums.

#include <array>
#include <concepts>
#include <cstddef>
#include <vector>

namespace ferry {

/** A vector whose index is any integer that is not negative. */
template <class T>
class Indexed : public std::vector<T> {
 public:
  using std::vector<T>::vector;

  template <std::integral Index>
  decltype(auto) operator[](Index index) {
    return std::vector<T>::operator[](static_cast<size_t>(index));
  }
  template <std::integral Index>
  decltype(auto) operator[](Index index) const {
    return std::vector<T>::operator[](static_cast<size_t>(index));
  }
};

/** An array with an element for each of an enum's n values. */
template <class Enum, class T, size_t n>
struct PerEnum : std::array<T, n> {
  constexpr T& operator[](Enum index) {
    return std::array<T, n>::operator[](static_cast<size_t>(index));
  }
  constexpr const T& operator[](Enum index) const {
    return std::array<T, n>::operator[](static_cast<size_t>(index));
  }
  using std::array<T, n>::operator[];
};

}  // namespace ferry
