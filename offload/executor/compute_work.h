#pragma once
// The layer operations of a pass, and the memory that the executor has for them.

#include <cstddef>
#include <vector>

#include "offload/step/action.h"

namespace ferry {

/** The addresses of a pass's bytes, found once when its list is made. Null where the pass has none.
 */
struct PassMemory {
  std::byte* weights = nullptr;  ///< compute type
  std::vector<std::byte*> borrowed;
  std::byte* saved = nullptr;
  std::byte* saved_recomputed = nullptr;  ///< a selective block's recomputed activations
  std::vector<std::byte*> ports;          ///< values, by BlockShape::ports
  std::byte* grads = nullptr;  ///< compute type, this micro-batch's; borrowed uses behind the
                               ///< trained prefix; null where none is wanted
  std::byte* batch = nullptr;
  std::byte* loss = nullptr;  ///< fp32; null but for forwards of blocks that have one
};

/** Layer operations, run inside the compute queue's work. Implemented by src/engine; a test's own
 * arithmetic in tests/offload. */
class ComputeWork {
 public:
  virtual ~ComputeWork() = default;
  virtual void forward(const Action& action,
                       const PassMemory& memory) = 0;  ///< also Verb::recompute
  virtual void backward(const Action& action, const PassMemory& memory) = 0;
};

}  // namespace ferry
