#include "src/engine/cuda/region_allocator.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {

void RegionAllocator::set_region(std::byte* base, int64_t n_bytes) {
  std::lock_guard lock(mutex_);
  FERRY_CHECK(used_.empty(), "{} bytes are still in use", used_bytes_);
  base_ = base;
  n_bytes_ = n_bytes;
  peak_bytes_ = n_allocations_ = 0;
}

void* RegionAllocator::allocate(int64_t n_bytes) {
  std::lock_guard lock(mutex_);
  const int64_t size = round_up(std::max<int64_t>(n_bytes, 1), kTensorAlignment_bytes);
  int64_t at = 0;
  for (const auto& [offset, used] : used_) {
    if (offset - at >= size) break;
    at = offset + used;
  }
  if (at + size > n_bytes_)
    throw Error(
        Fault::does_not_fit, "engine.allocate",
        fmt::format("LibTorch asks for {} with {} of {} in use in the plan's region",
                    format_bytes(n_bytes), format_bytes(used_bytes_), format_bytes(n_bytes_)),
        "this is a fault of the plan: please report it with `ferry doctor --json`");
  used_.emplace(at, size);
  used_bytes_ += size;
  peak_bytes_ = std::max(peak_bytes_, at + size);
  ++n_allocations_;
  return base_ + at;
}

void RegionAllocator::free(void* data) {
  if (!data) return;
  std::lock_guard lock(mutex_);
  auto found = used_.find(static_cast<std::byte*>(data) - base_);
  FERRY_CHECK(found != used_.end(), "freed what was not allocated");
  used_bytes_ -= found->second;
  used_.erase(found);
}

bool RegionAllocator::has(const void* data) const {
  std::lock_guard lock(mutex_);
  return data >= base_ && data < base_ + n_bytes_;
}

int64_t RegionAllocator::peak_bytes() const {
  std::lock_guard lock(mutex_);
  return peak_bytes_;
}
int64_t RegionAllocator::n_allocations() const {
  std::lock_guard lock(mutex_);
  return n_allocations_;
}
int64_t RegionAllocator::used_bytes() const {
  std::lock_guard lock(mutex_);
  return used_bytes_;
}

}  // namespace ferry
