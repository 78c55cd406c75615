#pragma once
// New host memory lies on the NUMA node of the thread that writes to a page first. A pool's
// parallel_for gives each node the same share of every segment, so workers of a node touch here
// what they update later.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "offload/device/host/worker_pool.h"

namespace ferry {

/** Writes to every page of new, zero-filled memory; its bytes stay zero. */
using FirstTouch = std::function<void(std::byte* data)>;

/** Touches the memory of one segment: on several nodes each page by a worker of the node that will
 * own its bytes. */
void touch_first(WorkerPool& pool, std::byte* data, int64_t n_bytes);
/** Touches the memory in the calling thread alone. */
void touch_first(std::byte* data, int64_t n_bytes);

}  // namespace ferry
