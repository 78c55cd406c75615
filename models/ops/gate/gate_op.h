#pragma once
// f(gate) * up of gate_up = (gate, up).
#include "models/core/operation.h"
#include "models/ops/activation_kind.h"

namespace ferry::ops {

struct GateAttributes {
  Activation kind{};
};

template <class T>
struct GateValues {
  T gate_up, y;
  static constexpr std::array<std::string_view, 2> kNames = {"gate_up", "y"};
};

/** `y`: made again, where somebody waits for it; it may be dy. */
template <class T>
struct GateGrads {
  T dy, gate_up, d_gate_up, y;
  static constexpr std::array<std::string_view, 4> kNames = {"dy", "gate_up", "d_gate_up", "y"};
};

extern const OpDef kGate;

}  // namespace ferry::ops
