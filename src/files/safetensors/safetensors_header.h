#pragma once
// The JSON header of a safetensors file: text -> checked entries, entries -> text. Private to
// src/files; the reader and the writer share it so that they cannot disagree.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/files/safetensors/safetensors.h"

namespace ferry {

inline constexpr int64_t kMaxHeader_bytes =
    100'000'000;  // the reference implementation's own limit

struct HeaderEntry {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<int64_t> shape;
  int64_t begin_bytes = 0, end_bytes = 0;  // from the end of the header
};

struct Header {
  std::vector<HeaderEntry> entries;  // ascending by bytes
  std::map<std::string, std::string> metadata;
};

/** Parses and checks everything that does not need the file's size: syntax, duplicate keys, types,
 * shape against offsets, no gap and no overlap. Throws std::string-carrying HeaderError with one
 * plain sentence. */
Header parse_header(std::string_view text);

struct HeaderError {
  std::string what;
};

/** Bytes of a tensor; nullopt when it leaves int64 or is no whole number of bytes. Dimensions are
 * >= 0. */
std::optional<int64_t> stored_bytes(StoredType type, std::span<const int64_t> shape);

/** The header text, padded with spaces to a multiple of 8. */
std::string format_header(const Header& header);

}  // namespace ferry
