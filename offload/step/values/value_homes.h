#pragma once
// The homes of a step's values, by when passes write and read them: a value that a forward leaves
// for a backward has a region of its own or goes through slots, others share regions in turn.

#include <cstdint>
#include <vector>

#include "offload/step/step_shape.h"

namespace ferry {

struct ValueHome {
  enum class Kind : uint8_t {
    none,    ///< no pass touches it
    own,     ///< a region of its own
    slot,    ///< a slot while a pass needs it
    shared,  ///< a region that other values have before and after it
  };
  Kind kind = Kind::none;
  int shared = -1;        ///< index into ValueHomes::shared
  bool has_host = false;  ///< in a slot: it may leave for host memory
  int discarded = -1;  ///< in a slot: the shared region where a recomputation writes it for nobody
};

/** A region of the device for values that pass by. */
struct SharedHome {
  int64_t n_bytes = 0;
  bool has_grads = false;  ///< holds gradients; false: values that forwards alone read
};

struct ValueHomes {
  std::vector<ValueHome> of;  ///< by value
  std::vector<SharedHome> shared;
  int64_t slot_bytes = 0;  ///< the largest value that lives in slots; 0: none does
};

ValueHomes value_homes(const StepShape& shape);

}  // namespace ferry
