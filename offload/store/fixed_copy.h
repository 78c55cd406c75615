#pragma once
// Superblock and map: each lies twice in a store, at places that never change. Private to the
// store.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "offload/store/store.h"
#include "offload/store/store_requests.h"
#include "src/base/error.h"

namespace ferry {

inline constexpr auto kSuperblock_pages =
    static_cast<size_t>(StoreLayout::superblock_bytes() / kStorePage_bytes);

struct ExtentStore::FixedCopy {
  std::string name;  ///< "copy 1 of the superblock"
  int64_t offset = 0;
  std::vector<StorePage> right;  ///< what it should be
};

/** Reads bytes and decodes them. Nothing, and the fault as text, where the drive cannot read them
 * or they are not what they should be. */
template <typename Decode>
auto try_decode(
    Disk& disk, int64_t offset, std::span<std::byte> to, std::string& fault, Decode decode)
    -> std::optional<decltype(decode())> {
  try {
    read_now(disk, offset, to);
    return decode();
  } catch (const StoreFormatError& error) {
    fault = error.what();
  } catch (const Error& error) {
    fault = error.what();
  }
  return {};
}

}  // namespace ferry
