#pragma once
// First-fit allocation inside one region of the plan: where LibTorch's own allocations on the GPU
// come from (cuBLAS workspaces, what attention returns). Everything runs on one stream, so a freed
// range may be given again at once. Thread-safe. No torch.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace ferry {

class RegionAllocator {
 public:
  RegionAllocator() = default;
  /** All earlier allocations have been freed. */
  void set_region(std::byte* base, int64_t n_bytes);
  /** 512-byte aligned; throws Error(does_not_fit) when the region cannot hold it: the plan was too
   * small. */
  void* allocate(int64_t n_bytes);
  void free(void* data);
  /** True of addresses in the region. */
  bool has(const void* data) const;

  int64_t peak_bytes() const;  ///< since set_region
  int64_t n_allocations() const;
  int64_t used_bytes() const;

 private:
  mutable std::mutex mutex_;
  std::byte* base_ = nullptr;
  int64_t n_bytes_ = 0;
  std::map<int64_t, int64_t> used_;  ///< offset -> size
  int64_t used_bytes_ = 0;
  int64_t peak_bytes_ = 0;  ///< highest end of an allocation
  int64_t n_allocations_ = 0;
};

}  // namespace ferry
