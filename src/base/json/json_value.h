#pragma once
// A JSON value that a class or structure keeps, so that headers need nlohmann/json_fwd.hpp only.
// The file that looks into it includes <nlohmann/json.hpp>.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ferry {

/** Owns a value, null at first; a copy is a copy of the value. */
class JsonValue {
 public:
  JsonValue();
  JsonValue(nlohmann::ordered_json value);  // NOLINT: as the value that it is
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;  ///< the other may then only be destroyed or assigned to
  JsonValue& operator=(const JsonValue& other);
  JsonValue& operator=(JsonValue&& other) noexcept;
  ~JsonValue();

  nlohmann::ordered_json& operator*() { return *value_; }
  const nlohmann::ordered_json& operator*() const { return *value_; }
  nlohmann::ordered_json* operator->() { return value_.get(); }
  const nlohmann::ordered_json* operator->() const { return value_.get(); }

  /** The value as one line, with its end. Bytes of texts that are not UTF-8 become U+FFFD. */
  std::string line() const;

 private:
  std::unique_ptr<nlohmann::ordered_json> value_;
};

}  // namespace ferry
