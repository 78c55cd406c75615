#pragma once
// TokenMap finds the id of a whole token. One open table of hashes and ids beside the tokens'
// bytes, so that a miss is mostly one load. Built once when a tokenizer is opened, then immutable.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::text {

class TokenMap {
 public:
  /** The token of each id. An empty one is not found; of equal ones the last is. */
  explicit TokenMap(const std::vector<std::string>& tokens) {
    slots_.resize(std::bit_ceil(2 * tokens.size() + 2));
    begins_.push_back(0);
    for (const std::string& token : tokens) {
      bytes_ += token;
      begins_.push_back(bytes_.size());
    }
    for (size_t id = 0; id < tokens.size(); ++id)
      if (!tokens[id].empty()) insert(static_cast<int32_t>(id));
  }

  /** -1 if there is none. */
  int32_t find(std::string_view token) const {
    const uint64_t hash = hash_of(token);
    const auto mark = static_cast<uint32_t>(hash >> 32);
    for (size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[i];
      if (slot.id < 0) return -1;
      if (slot.mark == mark && (*this)[slot.id] == token) return slot.id;
    }
  }

  /** The token of an id. */
  std::string_view operator[](int32_t id) const {
    const size_t begin = begins_[static_cast<size_t>(id)];
    return {bytes_.data() + begin, begins_[static_cast<size_t>(id) + 1] - begin};
  }

 private:
  struct Slot {
    uint32_t mark = 0;  // the upper half of the hash
    int32_t id = -1;    // -1: free
  };

  static uint64_t hash_of(std::string_view text) {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
    uint64_t hash = text.size() * kOdd;
    const auto mix = [&](uint64_t word) {
      hash = (hash ^ word) * kOdd;
      hash ^= hash >> 32;
    };
    size_t i = 0;
    uint64_t word = 0;
    for (; i + 8 <= text.size(); i += 8) {
      std::memcpy(&word, text.data() + i, 8);
      mix(word);
    }
    word = 0;
    std::memcpy(&word, text.data() + i, text.size() - i);
    mix(word);
    return hash * kOdd;
  }

  void insert(int32_t id) {
    const uint64_t hash = hash_of((*this)[id]);
    size_t i = hash & (slots_.size() - 1);
    while (slots_[i].id >= 0 && (*this)[slots_[i].id] != (*this)[id])
      i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {static_cast<uint32_t>(hash >> 32), id};
  }

  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  std::string bytes_;
  std::vector<size_t> begins_;  // of each token in bytes_, and the end
};

}  // namespace ferry::text
