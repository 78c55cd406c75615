#pragma once
// The mark of positions in batches with a long text. Read by kernels, too, so it includes nothing
// of the models' tables.

#include <cstdint>

namespace ferry {

/** Set in the position of each token whose batch has a sequence of more than ModelTable::long_from
 * tokens: rotary positions have other frequencies there. */
inline constexpr int32_t kLongPosition = 1 << 30;

}  // namespace ferry
