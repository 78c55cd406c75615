#pragma once
// Reading a JSON file whose fields are to be there and to have the right type: every failure
// becomes an Error that names the file and the field's path. Used by tokenizer_spec only.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace ferry::text {

/** An Error (data, "tokenizer.open") about a file. */
[[noreturn]] void fail(const std::filesystem::path& file,
                       std::string_view what,
                       std::string_view hint);

/** The bytes of a file. Throws Error (data) if it cannot be read. */
std::string read_file(const std::filesystem::path& file);

/** A place in a parsed file. It refers to the parsed value and to the file's path, which have to
 * outlive it. */
class JsonField {
 public:
  JsonField(const std::filesystem::path& file, const nlohmann::json& value, std::string path = {})
      : file_(&file), value_(&value), path_(std::move(path)) {}

  /** Fails if this is no object or has no such field. */
  JsonField at(std::string_view key) const;
  /** Empty if there is no such field, or null in it. */
  std::optional<JsonField> find(std::string_view key) const;
  JsonField at(size_t index) const;

  bool is_object() const { return value_->is_object(); }
  /** These fail if the type is another one. */
  size_t array_size() const;
  std::string string() const;
  bool boolean() const;
  int32_t id() const;  // from 0 to 2^31 - 2
  const nlohmann::json& object() const;
  /** The only field of an object, as serialised sum types have. */
  std::pair<std::string, JsonField> only() const;

  [[noreturn]] void fail(std::string_view what, std::string_view hint) const;

 private:
  [[noreturn]] void wrong_type(std::string_view expected) const;

  const std::filesystem::path* file_;
  const nlohmann::json* value_;
  std::string path_;
};

/** Parses a file; an object that has a key twice is refused. */
nlohmann::json parse_json(const std::filesystem::path& file);

}  // namespace ferry::text
