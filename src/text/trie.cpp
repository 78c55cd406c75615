#include "src/text/trie.h"

#include <algorithm>

namespace ferry::text {

/** Places the nodes breadth by depth: a node's children are found as ranges of the sorted keys. */
class Trie::Builder {
 public:
  Builder(const std::vector<std::pair<std::string_view, int32_t>>& keys, std::vector<Cell>& cells)
      : keys_(keys), cells_(cells) {}

  void build() {
    cells_.assign(512, Cell{});
    pending_.push_back({0, 0, keys_.size(), 0});
    while (!pending_.empty()) {
      const Node node = pending_.back();
      pending_.pop_back();
      place_children(node);
    }
    cells_.resize(end_);
    cells_.shrink_to_fit();
  }

 private:
  struct Node {
    int32_t cell;
    size_t first, last;  // its keys, [first, last)
    size_t depth;        // bytes they share
  };

  void place_children(Node node) {
    // The key that ends here sorts first.
    if (node.first < node.last && keys_[node.first].first.size() == node.depth)
      cells_[static_cast<size_t>(node.cell)].value = keys_[node.first++].second;
    if (node.first == node.last) return;

    children_.clear();
    for (size_t i = node.first; i < node.last; ++i) {
      const auto byte = static_cast<unsigned char>(keys_[i].first[node.depth]);
      if (children_.empty() || children_.back().byte != byte) children_.push_back({byte, i});
    }
    const int32_t base = find_base();
    cells_[static_cast<size_t>(node.cell)].base = base;
    for (size_t i = 0; i < children_.size(); ++i) {
      const int32_t child = base + children_[i].byte;
      cells_[static_cast<size_t>(child)].parent = node.cell;
      const size_t last = i + 1 < children_.size() ? children_[i + 1].first : node.last;
      pending_.push_back({child, children_[i].first, last, node.depth + 1});
    }
  }

  bool free(size_t cell) const {
    return cell >= cells_.size() || (cells_[cell].parent < 0 && cell != 0);
  }

  /** The lowest base from search_from_ on under which every child's cell is free. */
  int32_t find_base() {
    while (!free(search_from_))
      ++search_from_;
    const size_t first_byte = children_.front().byte;
    size_t tried = 0, taken = 0;
    for (size_t cell = std::max(search_from_, first_byte + 1);; ++cell, ++tried) {
      if (!free(cell)) {
        ++taken;
        continue;
      }
      const size_t base = cell - first_byte;
      bool fits = true;
      for (const Child& child : children_)
        fits = fits && free(base + child.byte);
      if (!fits) continue;
      // Cells that are nearly full are not searched again, or building takes a time that grows with
      // the square of the size.
      if (tried > 64 && taken * 20 > tried * 19) search_from_ = cell;
      if (base + 512 > cells_.size())
        cells_.resize(std::max(base + 512, cells_.size() + cells_.size() / 4));
      end_ = std::max(end_, base + 256);
      return static_cast<int32_t>(base);
    }
  }

  struct Child {
    unsigned char byte;
    size_t first;  // its first key
  };

  const std::vector<std::pair<std::string_view, int32_t>>& keys_;
  std::vector<Cell>& cells_;
  std::vector<Node> pending_;
  std::vector<Child> children_;
  size_t search_from_ = 1;
  size_t end_ = 256;  // of the cells that a step may look at
};

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> keys) {
  std::sort(keys.begin(), keys.end());
  Builder(keys, cells_).build();
}

}  // namespace ferry::text
