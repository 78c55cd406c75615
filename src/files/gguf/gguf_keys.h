#pragma once
// Values of a GGUF file's keys by kind, with the words of what is wrong. Private to the readers of
// GGUF models.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/files/gguf/gguf.h"

namespace ferry {

class GgufKeyReader {
 public:
  explicit GgufKeyReader(const GgufFile& file) : file_(file) {}

  /** nullptr where there is no such key; Error(data) where it is of another kind. */
  template <class T>
  const T* find(std::string_view key) const {
    const GgufValue* value = find_key(file_.keys(), key);
    if (!value) return nullptr;
    const T* content = std::get_if<T>(&value->content);
    if (!content) refuse("has a value of another kind as '" + std::string(key) + "'");
    return content;
  }
  int64_t integer(std::string_view key, std::optional<int64_t> otherwise = {}) const {
    return value_of<int64_t>(key, otherwise);
  }
  double number(std::string_view key, std::optional<double> otherwise = {}) const {
    return value_of<double>(key, otherwise);
  }
  std::string text(std::string_view key, std::optional<std::string> otherwise = {}) const {
    return value_of<std::string>(key, std::move(otherwise));
  }
  bool flag(std::string_view key, bool otherwise) const { return value_of<bool>(key, otherwise); }
  bool has(std::string_view key) const { return find_key(file_.keys(), key) != nullptr; }

  [[noreturn]] void refuse(const std::string& what,
                           std::string_view hint =
                               "take another file of the model, or its "
                               "Hugging Face directory") const {
    throw Error(Fault::data, "gguf.model", "'" + file_.path().string() + "' " + what, hint);
  }

 private:
  template <class T>
  T value_of(std::string_view key, std::optional<T> otherwise) const {
    if (const T* value = find<T>(key)) return *value;
    if (!otherwise) refuse("has no key '" + std::string(key) + "'");
    return *otherwise;
  }

  const GgufFile& file_;
};

}  // namespace ferry
