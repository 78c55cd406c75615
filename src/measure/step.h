#pragma once
// Whole training steps of a small model of random weights, through the engine that trains. Private
// to src/measure.

#include <string>
#include <vector>

#include "src/measure/measure.h"

namespace ferry::measure {

struct StepTime {
  std::string model;      ///< "BERT 6 x 1024, 8 x 128 tokens, bf16"
  std::string placement;  ///< "resident", "host"
  double ms = 0;          ///< a step, the median
};

/** On the GPU where one can be used, with weights and states there and in host memory; else on the
 * CPU. What does not fit is named in `skipped`. */
std::vector<StepTime> measure_steps(const MeasureOptions& options,
                                    std::vector<std::string>& skipped);

}  // namespace ferry::measure
