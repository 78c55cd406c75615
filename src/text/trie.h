#pragma once
// Trie finds the longest of a fixed set of byte strings that begins a text: the vocabulary's words,
// its continuations, the added tokens. A double array: a node's child by byte b lies at base + b
// and names its parent, so a step is two loads and a lookup allocates nothing. Built once when a
// tokenizer is opened, then immutable.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::text {

class Trie {
 public:
  struct Match {
    int32_t value = -1;  // -1: no key begins the text
    size_t size = 0;     // bytes
  };

  /** A trie without keys. */
  Trie() : Trie(std::vector<std::pair<std::string_view, int32_t>>()) {}

  /** Keys that are not empty, each once, in any order, with values from 0. */
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> keys);

  /** The longest key that begins `text`. */
  Match longest_prefix(std::string_view text) const {
    Match match;
    int32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const int32_t child =
          cells_[static_cast<size_t>(node)].base + static_cast<unsigned char>(text[i]);
      const Cell& cell = cells_[static_cast<size_t>(child)];
      if (cell.parent != node) break;
      node = child;
      if (cell.value >= 0) match = {cell.value, i + 1};
    }
    return match;
  }

  /** Calls found(value, size) for each key that begins `text`, from the shortest to the longest. */
  template <typename Found>
  void each_prefix(std::string_view text, Found found) const {
    int32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const int32_t child =
          cells_[static_cast<size_t>(node)].base + static_cast<unsigned char>(text[i]);
      const Cell& cell = cells_[static_cast<size_t>(child)];
      if (cell.parent != node) return;
      node = child;
      if (cell.value >= 0) found(cell.value, i + 1);
    }
  }

 private:
  struct Cell {
    int32_t base =
        0;  // of the children; any, if there are none, as no cell names a leaf as its parent
    int32_t parent = -1;  // -1: free, and the root
    int32_t value = -1;
  };

  class Builder;
  std::vector<Cell> cells_;
};

}  // namespace ferry::text
