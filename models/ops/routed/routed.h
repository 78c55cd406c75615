#pragma once
// The rows of an expert, on the host.

#include "models/ops/run.h"

namespace ferry::ops {

/** By a router's offsets, (experts + 1, 1) int32; waits for the compute stream. */
RoutedRows routed_rows(const at::Tensor& offsets, int64_t expert);

}  // namespace ferry::ops
