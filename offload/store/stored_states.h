#pragma once
// The contents of a generation by the names of tensors, as a checkpoint tells of them: a run with
// other blocks on the drive, or with none, finds them there. Plain data.

#include <cstdint>
#include <string>
#include <vector>

#include "offload/step/layout.h"

namespace ferry {

struct StoredStates {
  /** Some of a tensor's bytes, in Ferry's order of elements. */
  struct Part {
    std::string tensor;
    int64_t first_byte = 0;  ///< of the tensor
    int64_t n_bytes = 0;
    int block = -1;      ///< -1: the checkpoint's files have it
    int64_t offset = 0;  ///< bytes of the block's segment, as GenerationReader counts
  };
  struct Block {
    std::string name;
    int number = 0;
    int64_t n_elements = 0, n_trained_elements = 0;
    bool has_weights = false;  ///< those that passes read, frozen ones too
  };

  DType compute = DType::f32;
  simd::Optim optim = simd::Optim::adamw;
  bool split_master = false;
  int64_t piece_elements = 0;
  std::vector<Block> blocks;  ///< with states or weights on the drive
  /** All parts of the tensors that are there, wholly or in part: of the master in fp32, and of each
   * of the optimizer's states. */
  std::vector<Part> master, states;

  const std::vector<Part>& parts(Segment segment) const {
    return segment == Segment::master ? master : states;
  }
};

/** As much of the shape of the run then as says where bytes lie in its store. */
StepShape shape_of(const StoredStates& states);

}  // namespace ferry
