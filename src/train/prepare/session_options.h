#pragma once
// The options of a session, from a run's settings and what is known of its data.

#include <cstdint>
#include <vector>

#include "src/config/config.h"
#include "src/engine/session.h"
#include "src/train/prepare/machine.h"

namespace ferry {

/** What a session has to know of the run besides its settings. */
struct SessionFacts {
  LossKind loss{};
  uint64_t seed = 0;
  std::vector<float> class_weights;
  GenerationShape generation;
  int64_t n_steps = 0;
  bool trains = true;
  simd::Optim optim{};
  DType compute{};
};

/** Without what only the rank that leads has: the store, and what a generation is described by.
 * `n_sharing` processes share the cores of this machine. */
SessionOptions make_session_options(const config::Config& config,
                                    const Machine& machine,
                                    const SessionFacts& facts,
                                    int n_sharing = 1);

/** Copies need pinned host memory: on a GPU, and where one is simulated. Nothing is pinned where
 * the CPU computes. */
bool pins_memory(const config::Config& config, const Machine& machine);

}  // namespace ferry
