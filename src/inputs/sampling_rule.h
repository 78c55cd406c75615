#pragma once
// How the next token of a text is drawn.

#include <cstdint>

namespace ferry {

struct SamplingRule {
  double temperature = 0;  ///< 0: the likeliest token
  int64_t top_k = 0;       ///< among so many of the likeliest; 0: all
  double top_p = 1;        ///< among the likeliest whose probabilities add up to this
};

}  // namespace ferry
