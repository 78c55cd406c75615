#pragma once
// The bytes of a store that say what lies where (store.md): superblock, map, tables of extents, and
// the marks of its files. They may be torn, damaged or made up: each decode_...() checks every
// number before it is used, and throws StoreFormatError. The store writes and reads them, and
// src/runs/store the marks; nobody else knows them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "offload/store/store_layout.h"

namespace ferry {

inline constexpr size_t kCheckpointName_max = 63;
inline constexpr size_t kRunName_max = 255;
inline constexpr size_t kUuid_length = 32;

/** Memory that a drive reads and writes directly. */
struct alignas(kStorePage_bytes) StorePage {
  std::byte bytes[kStorePage_bytes];
};
inline std::span<std::byte> bytes_of(std::vector<StorePage>& pages) {
  return std::as_writable_bytes(std::span(pages));
}

/** The run whose states a store holds. */
struct StoreIdentity {
  std::string run;   ///< the run's id
  std::string uuid;  ///< drawn when the store is made: 32 hexadecimal digits
};

/** Why bytes are not what they should be: "its checksum is wrong". */
class StoreFormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/** Written once, when the store is made. */
struct Superblock {
  StoreIdentity identity;
  int n_kept = 0;
  std::vector<StoredSegment> segments;
};
/** Fills the whole area, StoreLayout::superblock_bytes(). */
void encode_superblock(const Superblock& superblock, std::span<std::byte> area);
Superblock decode_superblock(std::span<const std::byte> area);

/** The store that a file belongs to, and its place there. */
struct StripeIdentity {
  StoreIdentity store;
  size_t number = 0;  ///< of the file, in the order of the stripes
};
inline constexpr int64_t kMark_bytes = kStorePage_bytes;
/** The page behind the stripes of each file but the first. */
void encode_mark(const StripeIdentity& identity, StorePage& page);
StripeIdentity decode_mark(const StorePage& page);

/** The table of a generation that is kept. */
struct KeptGeneration {
  int64_t generation = 0;  ///< from 1 on
  int table = 0;           ///< where it lies, among StoreLayout::n_tables()
  int64_t table_bytes = 0;
  uint32_t table_crc = 0;

  bool operator==(const KeptGeneration&) const = default;
};
struct Pin {
  std::string name;
  KeptGeneration kept;
};
/** The generations that a store has. */
struct StoreMap {
  int64_t sequence = 0;      ///< grows with each map that is written
  KeptGeneration committed;  ///< generation 0: there is none yet
  std::vector<Pin> pins;     ///< in the order in which they were pinned
};
void encode_map(const StoreMap& map, std::string_view uuid, StorePage& page);
StoreMap decode_map(const StorePage& page, std::string_view uuid, const StoreLayout& layout);

/** An extent that has no bytes yet. */
inline constexpr uint8_t kNoCopy = 0xFF;

/** A state of all segments: where the bytes of each extent lie, and their checksums. */
struct Generation {
  int64_t number = 0;
  std::string metadata;
  std::vector<uint8_t> copies;  ///< by StoreLayout::index_of()
  std::vector<uint32_t> crcs;   ///< the same
  std::string damage;           ///< why its table cannot be used; empty: it can
};
/** Fills the beginning of `area` and returns its bytes: whole pages. */
int64_t encode_table(const Generation& generation,
                     const StoreLayout& layout,
                     std::span<std::byte> area);
/** `generation` has room for all extents of the layout; its volatile ones have no bytes. */
void decode_table(std::span<const std::byte> table,
                  const KeptGeneration& kept,
                  const StoreLayout& layout,
                  Generation& generation);

}  // namespace ferry
