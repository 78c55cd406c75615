#pragma once
// Values of the engine as Python has them: how they print, compare and become JSON. The engine is
// more lenient than Jinja2, and a text that differs from transformers' would be learnt in silence.
// Private to src/chat/jinja.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/runtime.h"

namespace ferry::chat {

/** Map, select and their like give it: it can be gone through, and nothing else. */
struct Generator : jinja::value_array_t {
  std::string type() const override { return "Generator"; }
  bool as_bool() const override { return true; }
};

/** The filter safe gives it: a text added to it is escaped for HTML, as in Jinja2. */
struct Safe : jinja::value_string_t {
  explicit Safe(const std::string& text) : jinja::value_string_t(text) {}
};

/** Thrown where Python would raise, or where the engine's answer would not be Python's. */
[[noreturn]] void raise(const std::string& what);

jinja::value value_of(const nlohmann::ordered_json& json);
std::string text_of(const jinja::value& value);  ///< of a string
bool is_text(const jinja::value& value);
bool is_list(const jinja::value& value);  ///< lists, tuples and generators
jinja::value make_text(std::string text);
jinja::value make_safe(const std::string& text);
/** str(value) escaped for HTML, unless it is safe. */
std::string html_of(const jinja::value& value);

/** str(value), of an undefined one "". */
std::string python_str(const jinja::value& value);
std::string python_repr(const jinja::value& value);
bool python_equal(const jinja::value& a, const jinja::value& b);
/** a in b. */
bool python_in(const jinja::value& a, const jinja::value& b);

struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false;
  int indent = -1;  ///< below 0: all in one line
  std::string item_separator = ", ", key_separator = ": ";
};
/** json.dumps(value). */
std::string python_json(const jinja::value& value, const JsonStyle& style);

/** The text's characters, a piece of UTF-8 each. */
std::vector<std::string> characters_of(std::string_view text);
/** str.isspace() of a code point. */
bool is_python_space(char32_t c);

/** str.lower(). */
std::string in_lower_case(const std::string& text);

/** A method of str: null where Python has one and this has not, or where it has none. */
using TextMethod = jinja::value (*)(const std::string& text, const jinja::func_args& args);
TextMethod text_method(std::string_view name);

/** Elements [start, stop) in steps, as Python's slices count. */
template <typename Items>
Items python_slice(const Items& items,
                   const jinja::value& start,
                   const jinja::value& stop,
                   const jinja::value& step) {
  const auto is_given = [](const jinja::value& v) { return v && !v->is_none(); };
  const auto n = static_cast<int64_t>(items.size());
  const int64_t by = is_given(step) ? step->as_int() : 1;
  if (by == 0) raise("slice step cannot be zero");
  const auto place = [&](const jinja::value& v, int64_t otherwise) {
    if (!is_given(v)) return otherwise;
    int64_t at = v->as_int();
    if (at < 0) at += n;
    return by > 0 ? std::clamp<int64_t>(at, 0, n) : std::clamp<int64_t>(at, -1, n - 1);
  };
  const int64_t begin = place(start, by > 0 ? 0 : n - 1), end = place(stop, by > 0 ? n : -1);
  Items out;
  for (int64_t i = begin; by > 0 ? i < end : i > end; i += by)
    out.push_back(items[static_cast<size_t>(i)]);
  return out;
}

}  // namespace ferry::chat
