#pragma once
// A YAML file as a tree of texts with their lines. The only face of yaml-cpp. Files of strangers
// come in: size, depth and the number of nodes are bounded, and aliases count as often as they are
// used.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry {

struct YamlNode {
  // Defined where the node is complete: clang looks at the vectors of nodes in here otherwise.
  YamlNode();
  YamlNode(const YamlNode& other);
  YamlNode(YamlNode&& other) noexcept;
  YamlNode& operator=(const YamlNode& other);
  YamlNode& operator=(YamlNode&& other) noexcept;
  ~YamlNode();

  enum class Kind : uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  int64_t line = 1;
  std::string text;             // of a scalar, as it stands: what type it has is for its key to say
  std::vector<YamlNode> items;  // of a list
  std::vector<std::pair<std::string, YamlNode>> fields;  // of a map, in the file's order

  bool is_null() const { return kind == Kind::null; }
  /** The field of a map; null where there is none. */
  const YamlNode* find(std::string_view key) const;
  /** A scalar as it stands; lists and maps in YAML's short form, shortened. */
  std::string shown() const;
};

/** `text` is that of `file`. Throws Error(usage) with file and line: no YAML, several documents, a
 * key that stands twice, too deep, too many nodes. A plain `null`, `~` or nothing is null. */
YamlNode parse_yaml(const std::string& text, const std::filesystem::path& file);

}  // namespace ferry
