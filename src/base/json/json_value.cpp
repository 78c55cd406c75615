#include "src/base/json/json_value.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace ferry {

using nlohmann::ordered_json;

JsonValue::JsonValue() : value_(std::make_unique<ordered_json>()) {}
JsonValue::JsonValue(ordered_json value)
    : value_(std::make_unique<ordered_json>(std::move(value))) {}
JsonValue::JsonValue(const JsonValue& other) : JsonValue(*other) {}
JsonValue::JsonValue(JsonValue&& other) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue& other) {
  return *this = JsonValue(other);
}
JsonValue& JsonValue::operator=(JsonValue&& other) noexcept = default;
JsonValue::~JsonValue() = default;

std::string JsonValue::line() const {
  return value_->dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ferry
