// A store's superblock, map, table or mark (the first byte says which) is refused, or keeps to its
// limits and means the same once it was written again. Its checksum is made right: else nothing is
// reached.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "offload/store/store_format.h"
#include "src/base/crc32c.h"

namespace ferry {
namespace {

constexpr const char* kUuid = "0123456789abcdef0123456789abcdef";

void expect(bool is_so) {
  if (!is_so) std::abort();
}

std::vector<StorePage> pages_of(std::span<const std::byte> input, int64_t n_bytes) {
  std::vector<StorePage> pages(static_cast<size_t>(n_bytes / kStorePage_bytes));
  std::ranges::copy(input.first(std::min(input.size(), bytes_of(pages).size() - 4)),
                    bytes_of(pages).begin());
  return pages;
}

void seal(std::span<std::byte> area) {
  const uint32_t crc = crc32c(area.first(area.size() - 4));
  std::memcpy(area.data() + area.size() - 4, &crc, sizeof crc);
}

void feed_superblock(std::span<const std::byte> input) {
  auto pages = pages_of(input, StoreLayout::superblock_bytes());
  seal(bytes_of(pages));
  const Superblock superblock = decode_superblock(bytes_of(pages));
  const StoreLayout layout(superblock.segments, superblock.n_kept);
  expect(layout.n_bytes() > 0 && layout.n_extents() >= 0);
  encode_superblock(superblock, bytes_of(pages));
  const Superblock again = decode_superblock(bytes_of(pages));
  expect(again.identity.run == superblock.identity.run);
  expect(StoreLayout(again.segments, again.n_kept).n_bytes() == layout.n_bytes());
}

StoreLayout small_layout() {
  return {{{.block = 0, .name = "adam_m", .n_bytes = 20'000, .extent_bytes = 4096}}, 3};
}

void feed_map(std::span<const std::byte> input) {
  const StoreLayout layout = small_layout();
  auto pages = pages_of(input, kStorePage_bytes);
  seal(bytes_of(pages));
  const StoreMap map = decode_map(pages[0], kUuid, layout);
  expect(static_cast<int>(map.pins.size()) <= layout.n_kept());
  for (const Pin& pin : map.pins)
    expect(pin.kept.table >= 0 && pin.kept.table < layout.n_tables());
  encode_map(map, kUuid, pages[0]);
  expect(decode_map(pages[0], kUuid, layout).committed == map.committed);
}

void feed_table(std::span<const std::byte> input) {
  const StoreLayout layout = small_layout();
  auto pages = pages_of(input, kStorePage_bytes);
  const auto n = static_cast<size_t>(layout.n_extents());
  Generation generation{.copies = std::vector<uint8_t>(n, kNoCopy),
                        .crcs = std::vector<uint32_t>(n)};
  decode_table(bytes_of(pages), {1, 0, kStorePage_bytes, crc32c(bytes_of(pages))}, layout,
               generation);
  expect(std::ranges::all_of(generation.copies,
                             [&](uint8_t copy) { return copy < layout.n_copies(); }));
}

void feed_mark(std::span<const std::byte> input) {
  auto pages = pages_of(input, kStorePage_bytes);
  seal(bytes_of(pages));
  const StripeIdentity identity = decode_mark(pages[0]);
  expect(identity.number > 0);
  if (identity.store.uuid.size() != kUuid_length) return;
  encode_mark(identity, pages[0]);
  const StripeIdentity again = decode_mark(pages[0]);
  expect(again.number == identity.number && again.store.run == identity.store.run);
}

}  // namespace
}  // namespace ferry

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ferry;
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  try {
    switch (data[0] % 4) {
      case 0:
        feed_superblock(input);
        break;
      case 1:
        feed_map(input);
        break;
      case 2:
        feed_table(input);
        break;
      default:
        feed_mark(input);
    }
  } catch (const StoreFormatError&) {
  }
  return 0;
}
