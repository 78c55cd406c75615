#pragma once
// Which NUMA node new host memory lies on: that of the thread that writes to a page first. A
// pool's parallel_for gives each node the same share of every segment, so what a worker touches
// here is what workers of its node update later.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "offload/device/worker_pool.h"

namespace ferry {

/** Writes to every page of new, zero-filled memory; its bytes stay zero. */
using FirstTouch = std::function<void(std::byte* data)>;

/** Of one segment: on several nodes each page by a worker of the node that will own its bytes. */
void touch_first(WorkerPool& pool, std::byte* data, int64_t n_bytes);
/** By the caller alone. */
void touch_first(std::byte* data, int64_t n_bytes);

}  // namespace ferry
