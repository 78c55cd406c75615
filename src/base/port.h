#pragma once
// A block's ports: the values between blocks that its passes touch. One list of them goes from the
// family that writes a block to the code that runs it.

#include <cstdint>
#include <vector>

namespace ferry {

/** The use of a value by a pass. A pass that changes a value finds it as others left it, and leaves
 * it in the same place: a running sum. */
enum class PortUse : uint8_t { none, reads, writes, changes };

constexpr bool reads(PortUse use) {
  return use == PortUse::reads || use == PortUse::changes;
}
constexpr bool writes(PortUse use) {
  return use == PortUse::writes || use == PortUse::changes;
}

/** A value of a model and its uses by a block's passes. A value that the forward reads and the
 * backward reads, too, lives until then. Its gradient is a value of its own, with another port. */
struct Port {
  int value = -1;
  PortUse forward = PortUse::none, backward = PortUse::none;

  PortUse of(bool is_backward) const { return is_backward ? backward : forward; }
  bool operator==(const Port&) const = default;
};

}  // namespace ferry
