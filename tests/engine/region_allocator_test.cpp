#include "src/engine/cuda/region_allocator.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/base/error.h"

namespace ferry {
namespace {

TEST(RegionAllocator, GivesAlignedRangesThatDoNotOverlapAndTakesThemBack) {
  std::vector<std::byte> memory(8192);
  RegionAllocator region;
  region.set_region(memory.data(), 8192);
  void* a = region.allocate(1);
  void* b = region.allocate(513);
  void* c = region.allocate(512);
  EXPECT_EQ(static_cast<std::byte*>(a) - memory.data(), 0);
  EXPECT_EQ(static_cast<std::byte*>(b) - memory.data(), 512);
  EXPECT_EQ(static_cast<std::byte*>(c) - memory.data(), 1536);
  region.free(b);
  EXPECT_EQ(region.allocate(1024), b) << "the first gap that is large enough";
  EXPECT_EQ(region.peak_bytes(), 2048);
  EXPECT_EQ(region.n_allocations(), 4);
}

TEST(RegionAllocator, TooMuchIsAnErrorNotAnOverrun) {
  std::vector<std::byte> memory(2048);
  RegionAllocator region;
  region.set_region(memory.data(), 2048);
  void* a = region.allocate(1024);
  EXPECT_THROW(region.allocate(1025), Error);
  region.free(a);
  EXPECT_NE(region.allocate(2048), nullptr);
}

}  // namespace
}  // namespace ferry
