#include "src/text/json_fields.h"

#include <fmt/format.h>

#include <unordered_set>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/files/plain_file.h"

namespace ferry::text {
namespace {

constexpr std::string_view kFetchAgain = "is the download complete? fetch the model's files again";

}  // namespace

void fail(const std::filesystem::path& file, std::string_view what, std::string_view hint) {
  throw Error(Fault::data, "tokenizer.open", fmt::format("'{}': {}", file.string(), what), hint);
}

std::string read_file(const std::filesystem::path& file) {
  return read_text_file(file);
}

nlohmann::json parse_json(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  std::vector<std::unordered_set<std::string>> open_objects;  // the keys that each has so far
  auto refuse_duplicates = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open_objects.emplace_back();
    if (event == Event::object_end) open_objects.pop_back();
    if (event == Event::key && !open_objects.back().insert(value.get<std::string>()).second)
      fail(file, fmt::format("has '{}' twice", value.get<std::string>()), "keep one of them");
    return true;
  };
  try {
    return nlohmann::json::parse(bytes, refuse_duplicates);
  } catch (const nlohmann::json::exception& error) {
    fail(file, fmt::format("is not valid JSON of {} bytes: {}", bytes.size(), error.what()),
         kFetchAgain);
  }
}

void JsonField::fail(std::string_view what, std::string_view hint) const {
  text::fail(*file_, path_.empty() ? std::string(what) : fmt::format("\"{}\" {}", path_, what),
             hint);
}

void JsonField::wrong_type(std::string_view expected) const {
  fail(fmt::format("is of type {}, expected {}", value_->type_name(), expected), kFetchAgain);
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
  const auto found = object().find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonField(*file_, *found,
                   path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
}

JsonField JsonField::at(std::string_view key) const {
  std::optional<JsonField> field = find(key);
  if (!field) fail(fmt::format("has no \"{}\"", key), kFetchAgain);
  return *std::move(field);
}

JsonField JsonField::at(size_t index) const {
  return JsonField(*file_, value_->at(index), fmt::format("{}[{}]", path_, index));
}

size_t JsonField::array_size() const {
  if (!value_->is_array()) wrong_type("array");
  return value_->size();
}

std::string JsonField::string() const {
  if (!value_->is_string()) wrong_type("string");
  return value_->get<std::string>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) wrong_type("boolean");
  return value_->get<bool>();
}

int32_t JsonField::id() const {
  if (!value_->is_number_integer()) wrong_type("integer");
  const auto fits = value_->is_number_unsigned() && value_->get<uint64_t>() < INT32_MAX;
  if (!fits)
    fail(fmt::format("is {}, expected 0 to {}", value_->dump(), INT32_MAX - 1), kFetchAgain);
  return value_->get<int32_t>();
}

const nlohmann::json& JsonField::object() const {
  if (!value_->is_object()) wrong_type("object");
  return *value_;
}

std::pair<std::string, JsonField> JsonField::only() const {
  if (object().size() != 1)
    fail(fmt::format("has {} fields, expected one", value_->size()), kFetchAgain);
  const std::string key = value_->begin().key();
  return {key, at(key)};
}

}  // namespace ferry::text
