#include "src/files/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <set>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr int kDepth_max = 16;
constexpr int kNodes_max = 20000;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file) {}

  YamlNode read(const YAML::Node& node, int depth = 0) {
    YamlNode result;
    result.line = line_of(node.Mark());
    if (depth > kDepth_max) refuse(result.line, fmt::format("nested deeper than {}", kDepth_max));
    if (++n_nodes_ > kNodes_max)
      refuse(result.line, fmt::format("more than {} values", kNodes_max));
    if (node.IsSequence()) {
      result.kind = YamlNode::Kind::list;
      for (const YAML::Node& item : node)
        result.items.push_back(read(item, depth + 1));
    } else if (node.IsMap()) {
      result.kind = YamlNode::Kind::map;
      std::set<std::string> keys;
      for (const auto& entry : node) {
        const int64_t line = line_of(entry.first.Mark());
        if (!entry.first.IsScalar()) refuse(line, "a key that is no text");
        if (!keys.insert(entry.first.Scalar()).second)
          refuse(line, fmt::format("'{}' stands there twice", entry.first.Scalar()));
        result.fields.emplace_back(entry.first.Scalar(), read(entry.second, depth + 1));
        result.fields.back().second.line = line;
      }
    } else if (node.IsScalar()) {
      result.kind = YamlNode::Kind::scalar;
      result.text = node.Scalar();
    }
    return result;
  }

  [[noreturn]] void refuse(int64_t line, const std::string& what) const {
    throw Error(Fault::usage, "config.file", fmt::format("{}:{}: {}", file_.string(), line, what),
                "a setting a line, as learning_rate: 1e-5");
  }

  static int64_t line_of(const YAML::Mark& mark) { return mark.is_null() ? 1 : mark.line + 1; }

 private:
  const std::filesystem::path& file_;
  int n_nodes_ = 0;
};

}  // namespace

YamlNode::YamlNode() = default;
YamlNode::YamlNode(const YamlNode& other) = default;
YamlNode::YamlNode(YamlNode&& other) noexcept = default;
YamlNode& YamlNode::operator=(const YamlNode& other) = default;
YamlNode& YamlNode::operator=(YamlNode&& other) noexcept = default;
YamlNode::~YamlNode() = default;

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, node] : fields)
    if (name == key) return &node;
  return nullptr;
}

std::string YamlNode::shown() const {
  constexpr size_t kParts_max = 4;
  std::string parts;
  const auto add = [&](size_t i, const std::string& part) {
    if (i < kParts_max) parts += (i > 0 ? ", " : "") + part;
    if (i == kParts_max) parts += ", ...";
  };
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::scalar:
      return text;
    case Kind::list:
      for (size_t i = 0; i < items.size(); ++i)
        add(i, items[i].shown());
      return "[" + parts + "]";
    case Kind::map:
      for (size_t i = 0; i < fields.size(); ++i)
        add(i, fields[i].first + ": " + fields[i].second.shown());
      return "{" + parts + "}";
  }
  return {};
}

YamlNode parse_yaml(const std::string& text, const std::filesystem::path& file) {
  Reader reader(file);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) reader.refuse(1, "it holds several documents");
    return documents.empty() ? YamlNode() : reader.read(documents.front());
  } catch (const YAML::Exception& error) {
    reader.refuse(Reader::line_of(error.mark), error.msg);
  }
}

}  // namespace ferry
