#pragma once
// A hash of bytes that come piece by piece: the same bytes, however they are cut, and only those,
// give the same. Of sequences of tokens, and of whole files.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "src/data/hash.h"

namespace ferry {

class ContentHash {
 public:
  void add(std::span<const std::byte> bytes) {
    n_bytes_ += bytes.size();
    if (n_open_ > 0) {
      const size_t n = std::min(bytes.size(), sizeof open_ - n_open_);
      fill(bytes.first(n));
      bytes = bytes.subspan(n);
      if (n_open_ < sizeof open_) return;
      mix(open_);
      open_ = n_open_ = 0;
    }
    for (; bytes.size() >= sizeof open_; bytes = bytes.subspan(sizeof open_)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      mix(word);
    }
    fill(bytes);
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  /** A text and where it ends. */
  void add_text(std::string_view text) {
    add(text);
    add_number(text.size());
  }
  void add_number(uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }

  uint64_t value() const { return hash_key(mix64(state_ + open_), n_bytes_); }

 private:
  void mix(uint64_t word) { state_ = mix64(state_ + 0x9e3779b97f4a7c15 + word); }
  void fill(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    std::memcpy(reinterpret_cast<std::byte*>(&open_) + n_open_, bytes.data(), bytes.size());
    n_open_ += bytes.size();
  }

  uint64_t state_ = 0, n_bytes_ = 0;
  uint64_t open_ = 0;  // bytes that make no whole word yet, others 0
  size_t n_open_ = 0;
};

}  // namespace ferry
