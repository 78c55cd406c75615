#pragma once
// What a file of a store says of itself: the store that it is of, and its number among the store's
// files. The first file begins with the superblock of the store; each further one ends with a mark,
// a page behind its stripes. A file is written or removed only where this proves whose it is:
// run.json, which names the files, may come from somebody else.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "offload/store/store_format.h"

namespace ferry::runs {

/** Whose a file is. */
struct StripeIdentity {
  StoreIdentity store;
  size_t number = 0;  ///< of the file, in the order of the stripes
};

/** Bytes of a mark. */
inline constexpr int64_t kMark_bytes = kStorePage_bytes;

/** Fills a page. */
void encode_mark(const StripeIdentity& identity, StorePage& page);
/** Throws StoreFormatError. */
StripeIdentity decode_mark(const StorePage& page);

/** What the file says, which may be in use; nothing where it is no store's, where its head or mark
 * is damaged, or where an older Ferry made it as a further file of a store. A link says nothing,
 * wherever it leads. Throws Error(machine) where the file cannot be read. */
std::optional<StripeIdentity> stripe_in(const std::filesystem::path& file);

/** True for the file of that number of the store. */
bool is_stripe_of(const std::string& uuid, size_t number, const std::filesystem::path& file);

/** Writes the mark behind the stripes of a store's further file, which have `stripe_bytes`, until
 * it is safe on disk. Throws Error(machine), DiskFull where the drive is full. */
void write_mark(const std::filesystem::path& file,
                int64_t stripe_bytes,
                const StripeIdentity& identity);

}  // namespace ferry::runs
