#pragma once
// The one reader of JSON. Text comes in from files, sockets and other programs, so it is taken for
// hostile: nesting, duplicate keys, numbers and text are checked while it is parsed, before a tree
// of it exists. JsonReader then takes values out by key and type; each refusal is an Error that
// names file, line and key. Readers that need no tree (safetensors headers) listen to JsonEvents.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry {

/** No file of ours or of Hugging Face nests deeper than ten; code that walks a tree calls itself.
 */
constexpr size_t kJson_depth_max = 64;

/** Why a text is not the JSON that Ferry reads. */
struct JsonFault {
  size_t byte = 0;   ///< in the text, of the first byte that is not understood
  int64_t line = 1;  ///< of that byte
  std::string what;  ///< "unexpected end of input", "nested deeper than 64", "has 'a' twice"
};

/** The values that a text holds, in its order. Each call comes after that part of the text was
 * checked; an exception leaves read_json(). */
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void integer(int64_t value) = 0;  ///< below zero
  virtual void natural(uint64_t value) = 0;
  /** Finite; also a whole number that 64 bits do not hold. `text`: as it was written. */
  virtual void number(double value, const std::string& text) = 0;
  virtual void text(std::string& value) = 0;
  virtual void begin_object() = 0;
  virtual void key(std::string& value) = 0;
  virtual void end_object() = 0;
  virtual void begin_list() = 0;
  virtual void end_list() = 0;
};

/** Reads a text, at most kJson_depth_max deep; nothing if all of it was read. Keys may repeat: who
 * listens knows. */
std::optional<JsonFault> read_json(std::string_view text, JsonEvents& events);

/** Makes a value of a text. An object that has a key twice is refused. After a fault `value` holds
 * what came before it. For lines of which the last may be half written; JsonReader::parse() for the
 * rest. */
std::optional<JsonFault> parse_json(std::string_view text, nlohmann::ordered_json& value);

/** The origin of a text, as errors name it. */
struct JsonSource {
  std::string file;   ///< name of the file
  std::string where;  ///< "room.action"
  std::string hint;   ///< what to do when it is damaged; may be empty
};

/**
 * A value in a parsed text, and its place. Cheap to copy; it keeps the whole text alive.
 *
 *     const auto config = JsonReader::parse(read_text_file(file), {file, "model.config", hint});
 *     const int64_t width = config.integer("hidden_size", 1, 1 << 16);
 *
 * All members but value() and is_...() throw Error(data): `'FILE': line 3: a.b[2] is "x", expected
 * a whole number from 1 to 65536`. A null counts as absent.
 */
class JsonReader {
 public:
  /** The whole of a text. */
  static JsonReader parse(std::string text, JsonSource source);
  /** A value made by the program: its errors name no line. */
  static JsonReader of(nlohmann::ordered_json value, JsonSource source);

  bool is_object() const;
  bool is_list() const;
  bool is_text() const;

  std::optional<JsonReader> find(std::string_view key) const;
  JsonReader at(std::string_view key) const;
  /** Each key of an object with its value, nulls too, in the order of the text. */
  std::vector<std::pair<std::string, JsonReader>> fields() const;
  /** The only field of an object, as serialised sum types have. */
  std::pair<std::string, JsonReader> only() const;
  /** The length of a list, and its elements. */
  size_t size() const;
  JsonReader at(size_t index) const;

  std::string text() const;
  std::vector<std::string> texts() const;
  bool flag() const;
  int64_t integer(int64_t least, int64_t most) const;
  double number(double least, double most) const;

  /** The same of a key; without a fallback it has to be there. */
  std::string text(std::string_view key, std::optional<std::string> fallback = {}) const;
  bool flag(std::string_view key, std::optional<bool> fallback = {}) const;
  int64_t integer(std::string_view key,
                  int64_t least,
                  int64_t most,
                  std::optional<int64_t> fallback = {}) const;
  double number(std::string_view key,
                double least,
                double most,
                std::optional<double> fallback = {}) const;

  /** Keys of this object that no call on this very reader asked for. */
  std::vector<std::string> unread_keys() const;

  /** "a.b[2] is 3, expected TEXT". */
  [[noreturn]] void refuse(std::string_view expectation,
                           std::optional<std::string_view> hint = {}) const;
  /** "a.b[2] WHAT", with the source's hint unless another one is given. */
  [[noreturn]] void fail(std::string_view what, std::optional<std::string_view> hint = {}) const;

  const nlohmann::ordered_json& value() const { return *value_; }
  /** The file's name. */
  const std::string& file() const;
  /** "a.b[2]"; empty for the whole. */
  const std::string& path() const { return path_; }

 private:
  struct Document;
  JsonReader(std::shared_ptr<const Document> document,
             const nlohmann::ordered_json& value,
             std::string path);

  const nlohmann::ordered_json* find_any(std::string_view key) const;
  [[noreturn]] void refuse_missing(std::string_view key, std::string_view expectation) const;
  JsonReader child(std::string_view key, const nlohmann::ordered_json& value) const;

  std::shared_ptr<const Document> document_;
  const nlohmann::ordered_json* value_;  ///< in document_
  std::string path_;
  mutable std::vector<std::string> asked_;
};

}  // namespace ferry
