#pragma once
// The optimizers, one row each: which states a parameter has, and how they are kept. Segments,
// their names on disk, the bytes of a plan and the kernel of an update follow from the row. An
// optimizer is a row here and a rule (rules.h).

#include <array>
#include <cstdint>
#include <string_view>

namespace ferry::simd {

/** How a state is kept: in fp32, or in fewer bytes by an explicit choice of the run.
 * adamw.h says what the bytes mean and how far they are off. */
enum class StateType : uint8_t {
  fp32,
  bf16,    ///< rounded stochastically
  block8,  ///< 8-bit floats whose exponents count from one exponent a block of elements
};

/** Elements with one exponent, counted from the tensor's start. Every tensor begins on a multiple
 * of it in its segment (models/core/tensor_table.h), so that a block never holds parts of two. */
inline constexpr int64_t kStateBlock = 256;
constexpr int64_t state_blocks(int64_t n_elements) {
  return (n_elements + kStateBlock - 1) / kStateBlock;
}

/** Bytes of one state of n elements without the exponents. */
constexpr int64_t state_value_bytes(StateType type, int64_t n_elements) {
  return n_elements * (type == StateType::fp32 ? 4 : type == StateType::bf16 ? 2 : 1);
}
/** The same with them: one byte a block behind the values. */
constexpr int64_t state_bytes(StateType type, int64_t n_elements) {
  return state_value_bytes(type, n_elements) +
         (type == StateType::block8 ? state_blocks(n_elements) : 0);
}

/** The most states that an optimizer has. */
inline constexpr int kStates_max = 2;

enum class Optim : uint8_t { adamw, adamw_bf16, adamw_8bit, lion, sgd, sgd_momentum };

struct OptimSpec {
  std::string_view name;  ///< a run's identity has it
  /** The records of states on a drive have it: those of before named AdamW's kinds by the type. */
  std::string_view stored_name;
  StateType type;  ///< of each state
  /** Names in checkpoints, stores and plans, at most 15 characters; the rest is empty. All states
   * are zero before step 1. */
  std::array<std::string_view, kStates_max> states;
  /** An update may be cut at multiples of so many elements of a tensor. */
  int64_t unit = 1;

  constexpr int n_states() const {
    int n = 0;
    while (n < kStates_max && !states[static_cast<size_t>(n)].empty())
      ++n;
    return n;
  }
};

/** By Optim. */
inline constexpr std::array kOptims = {
    OptimSpec{"adamw", "fp32", StateType::fp32, {"adam_m", "adam_v"}},
    OptimSpec{"adamw_bf16", "bf16", StateType::bf16, {"adam_m", "adam_v"}},
    OptimSpec{"adamw_8bit", "block8", StateType::block8, {"adam_m", "adam_v"}, kStateBlock},
    OptimSpec{"lion", "lion", StateType::fp32, {"lion_m"}},
    OptimSpec{"sgd", "sgd", StateType::fp32, {}},
    OptimSpec{"sgd_momentum", "sgd_momentum", StateType::fp32, {"momentum"}},
};
static_assert(kOptims.size() == static_cast<size_t>(Optim::sgd_momentum) + 1);

constexpr const OptimSpec& spec_of(Optim optim) {
  return kOptims[static_cast<size_t>(optim)];
}
/** Bytes of all states of n elements. */
constexpr int64_t state_bytes(Optim optim, int64_t n_elements) {
  return spec_of(optim).n_states() * state_bytes(spec_of(optim).type, n_elements);
}

}  // namespace ferry::simd
