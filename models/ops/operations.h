#pragma once
// The list of the operations.

#include "models/ops/run.h"

namespace ferry {

using RunOp = void (*)(const OpCall&);
/** The function that runs the operation's calls. FERRY_CHECK fails for one that nobody listed. */
RunOp run_of(const OpDef& def);

}  // namespace ferry
