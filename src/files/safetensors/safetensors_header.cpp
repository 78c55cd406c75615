#include "src/files/safetensors/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "src/base/bytes.h"
#include "src/base/json/json_reader.h"

namespace ferry {
namespace {

/** Builds the entries while the text is parsed: a header of 100 MB of brackets costs no tree, and a
 * second key of the same name is seen, which a tree would hide. Depth 1 is the header, 2 a tensor
 * or __metadata__, 3 its lists. */
class HeaderParser : public JsonEvents {
 public:
  Header take() { return std::move(header_); }

  void null() override {
    if (depth_ == 1 && in_metadata_) return;  // some converters write it where they have none
    unexpected("null");
  }
  void boolean(bool) override { unexpected("a boolean"); }
  void number(double, const std::string& text) override { unexpected("the number " + text); }
  void integer(int64_t value) override { unexpected(fmt::format("the number {}", value)); }

  void natural(uint64_t value) override {
    if (list_ == List::none) unexpected(fmt::format("the number {}", value));
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      throw HeaderError{fmt::format("tensor '{}': the number {} is too large", entry_.name, value)};
    (list_ == List::shape ? entry_.shape : offsets_).push_back(static_cast<int64_t>(value));
  }

  void text(std::string& value) override {
    if (depth_ == 2 && in_metadata_) {
      header_.metadata[key_] = value;
      return;
    }
    if (depth_ != 2 || key_ != "dtype") unexpected("a string");
    auto type = parse_stored_type(value);
    if (!type)
      throw HeaderError{fmt::format("tensor '{}' has the unknown type '{}'", entry_.name, value)};
    entry_.type = *type;
  }

  void begin_object() override {
    if (depth_ > 1 || list_ != List::none) unexpected("an object");
    ++depth_;
    fields_.clear();
  }

  void key(std::string& value) override {
    if (depth_ == 1) {
      if (!names_.insert(value).second)
        throw HeaderError{fmt::format("the name '{}' appears twice", value)};
      in_metadata_ = value == "__metadata__";
      entry_ = {.name = value};
      offsets_.clear();
    } else {
      if (!fields_.insert(value).second)
        throw HeaderError{fmt::format("'{}': the key '{}' appears twice", entry_.name, value)};
      if (!in_metadata_ && value != "dtype" && value != "shape" && value != "data_offsets")
        throw HeaderError{fmt::format("tensor '{}' has the unknown key '{}'", entry_.name, value)};
      key_ = value;
    }
  }

  void end_object() override {
    if (--depth_ == 1 && !in_metadata_) finish_entry();
  }

  void begin_list() override {
    if (depth_ != 2 || in_metadata_ || list_ != List::none || key_ == "dtype") unexpected("a list");
    list_ = key_ == "shape" ? List::shape : List::offsets;
  }

  void end_list() override { list_ = List::none; }

 private:
  enum class List { none, shape, offsets };

  [[noreturn]] void unexpected(std::string_view found) const {
    if (depth_ == 0) throw HeaderError{fmt::format("the header is {}, expected an object", found)};
    throw HeaderError{fmt::format("'{}' holds {} where dtype, shape and data_offsets are expected",
                                  entry_.name, found)};
  }

  void finish_entry() {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (!fields_.contains(field))
        throw HeaderError{fmt::format("tensor '{}' has no {}", entry_.name, field)};
    if (offsets_.size() != 2)
      throw HeaderError{
          fmt::format("tensor '{}' has {} data_offsets, expected 2", entry_.name, offsets_.size())};
    entry_.begin_bytes = offsets_[0];
    entry_.end_bytes = offsets_[1];
    auto expected = stored_bytes(entry_.type, entry_.shape);
    if (!expected)
      throw HeaderError{fmt::format("tensor '{}': {} {} is not a possible size", entry_.name,
                                    name_of(entry_.type), format_shape(entry_.shape))};
    if (entry_.end_bytes < entry_.begin_bytes || entry_.end_bytes - entry_.begin_bytes != *expected)
      throw HeaderError{
          fmt::format("tensor '{}': {} {} takes {} bytes, but its data_offsets are [{}, {}]",
                      entry_.name, name_of(entry_.type), format_shape(entry_.shape), *expected,
                      entry_.begin_bytes, entry_.end_bytes)};
    header_.entries.push_back(std::move(entry_));
  }

  Header header_;
  HeaderEntry entry_;
  std::vector<int64_t> offsets_;
  std::unordered_set<std::string> names_;
  std::set<std::string> fields_;
  std::string key_;
  int depth_ = 0;
  bool in_metadata_ = false;
  List list_ = List::none;
};

}  // namespace

Header parse_header(std::string_view text) {
  if (!text.starts_with('{')) throw HeaderError{"the header does not start with '{'"};
  HeaderParser parser;
  if (const auto fault = read_json(text, parser))
    throw HeaderError{
        fmt::format("the header is not valid JSON at byte {}: {}", fault->byte, fault->what)};
  Header header = parser.take();
  std::sort(header.entries.begin(), header.entries.end(),
            [](const HeaderEntry& a, const HeaderEntry& b) {
              return std::pair(a.begin_bytes, a.end_bytes) < std::pair(b.begin_bytes, b.end_bytes);
            });
  int64_t end_bytes = 0;
  for (const HeaderEntry& entry : header.entries) {
    if (entry.begin_bytes != end_bytes)
      throw HeaderError{fmt::format(
          "tensor '{}' starts at byte {}, expected {}: {}", entry.name, entry.begin_bytes,
          end_bytes,
          entry.begin_bytes < end_bytes ? "tensors overlap" : "bytes belong to no tensor")};
    end_bytes = entry.end_bytes;
  }
  return header;
}

std::optional<int64_t> stored_bytes(StoredType type, std::span<const int64_t> shape) {
  int64_t n_elements = 1;
  for (int64_t size : shape) {
    auto product = checked_mul(n_elements, size);
    if (!product) return std::nullopt;
    n_elements = *product;
  }
  auto n_bits = checked_mul(n_elements, bits_of(type));
  if (!n_bits || *n_bits % 8 != 0) return std::nullopt;
  return *n_bits / 8;
}

std::string format_header(const Header& header) {
  // An ordered tree keeps the tensors in the order of their bytes, as the reference writes them.
  nlohmann::ordered_json tree = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) tree["__metadata__"] = header.metadata;
  std::string text = tree.dump();
  text.pop_back();
  for (const HeaderEntry& entry : header.entries) {
    nlohmann::ordered_json value;
    value["dtype"] = name_of(entry.type);
    value["shape"] = entry.shape;
    value["data_offsets"] = {entry.begin_bytes, entry.end_bytes};
    // Not one big ordered_json: its insertion looks through all earlier keys.
    fmt::format_to(std::back_inserter(text), "{}{}:{}", text.size() > 1 ? "," : "",
                   nlohmann::ordered_json(entry.name).dump(), value.dump());
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace ferry
