#include "src/chat/jinja/python_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/text/unicode/unicode.h"

namespace ferry::chat {

using jinja::is_val;
using jinja::mk_val;
using jinja::value;

namespace {

struct Utf8 {
  char32_t code;
  size_t n_bytes;
};

/** The code point at a place of valid UTF-8. */
Utf8 code_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  const size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (n == 1 || at + n > text.size()) return {first, 1};
  char32_t code = first & (0xff >> (n + 1));
  for (size_t i = 1; i < n; ++i)
    code = code << 6 | (byte(i) & 0x3f);
  return {code, n};
}

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

std::string text_repr(const std::string& text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const auto [code, n] = code_at(text, i);
    if (code == '\n')
      out += "\\n";
    else if (code == '\r')
      out += "\\r";
    else if (code == '\t')
      out += "\\t";
    else if (code == '\\' || code == static_cast<char32_t>(quote))
      out += '\\', out += static_cast<char>(code);
    else if (code < 0x20 || code == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(code));
    else if (code >= 0x80 && code <= 0xa0)
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(code));
    else if (code == 0xad || (code != ' ' && is_python_space(code)) ||
             (code >= 0x200b && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
             (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
             (code >= 0xe000 && code <= 0xf8ff))
      out += code <= 0xff ? fmt::format("\\x{:02x}", static_cast<uint32_t>(code))
                          : fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
    else
      out += text.substr(i, n);
    i += n;
  }
  return out + quote;
}

void append_json_text(const std::string& text, bool ensure_ascii, std::string& out) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const auto [code, n] = code_at(text, i);
    switch (code) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (code < 0x20 || (ensure_ascii && code >= 0x7f && code < 0x10000))
          out += fmt::format("\\u{:04x}", static_cast<uint32_t>(code));
        else if (ensure_ascii && code >= 0x10000)
          out += fmt::format("\\u{:04x}\\u{:04x}",
                             0xd800 + ((static_cast<uint32_t>(code) - 0x10000) >> 10),
                             0xdc00 + ((static_cast<uint32_t>(code) - 0x10000) & 0x3ff));
        else
          out += text.substr(i, n);
    }
    i += n;
  }
  out += '"';
}

void append_json(const value& v, const JsonStyle& style, size_t depth, std::string& out) {
  const auto line = [&](size_t at) {
    if (style.indent < 0) return;
    out += '\n';
    out.append(at * static_cast<size_t>(style.indent), ' ');
  };
  if (v->is_none()) {
    out += "null";
  } else if (is_val<jinja::value_bool>(v)) {
    out += v->as_bool() ? "true" : "false";
  } else if (is_val<jinja::value_int>(v)) {
    out += std::to_string(v->as_int());
  } else if (is_val<jinja::value_float>(v)) {
    const std::string text = float_repr(v->as_float());
    out += text == "nan" ? "NaN" : text == "inf" ? "Infinity" : text == "-inf" ? "-Infinity" : text;
  } else if (is_text(v)) {
    append_json_text(text_of(v), style.ensure_ascii, out);
  } else if (is_list(v) && !is_val<std::shared_ptr<Generator>>(v)) {
    out += '[';
    bool is_first = true;
    for (const value& item : v->as_array()) {
      if (!is_first) out += style.item_separator;
      is_first = false;
      line(depth + 1);
      append_json(item, style, depth + 1, out);
    }
    if (!is_first) line(depth);
    out += ']';
  } else if (is_val<jinja::value_object>(v)) {
    auto pairs = v->as_ordered_object();
    if (style.sort_keys)
      std::ranges::stable_sort(pairs, {}, [](const auto& pair) { return python_str(pair.first); });
    out += '{';
    bool is_first = true;
    for (const auto& [key, item] : pairs) {
      if (!is_first) out += style.item_separator;
      is_first = false;
      line(depth + 1);
      if (is_text(key)) {
        append_json_text(text_of(key), style.ensure_ascii, out);
      } else {
        if (is_list(key)) raise("a key of JSON is no text");
        out += '"';
        append_json(key, style, depth, out);
        out += '"';
      }
      out += style.key_separator;
      append_json(item, style, depth + 1, out);
    }
    if (!is_first) line(depth);
    out += '}';
  } else {
    raise(fmt::format("a value of type {} is not JSON serializable", v->type()));
  }
}

bool is_number(const value& v) {
  return is_val<jinja::value_int>(v) || is_val<jinja::value_float>(v) ||
         is_val<jinja::value_bool>(v);
}

// --- Methods of str

value argument(const jinja::func_args& args, size_t place, const char* name) {
  value v = args.get_kwarg(name, nullptr);
  size_t n = 0;
  for (const value& arg : args.get_args())
    if (!is_val<jinja::value_kwarg>(arg) && n++ == place && !v) v = arg;
  return v && v->is_none() ? nullptr : v;
}

std::string text_argument(const jinja::func_args& args, size_t place, const char* name) {
  const value v = argument(args, place, name);
  if (!v || !is_text(v)) raise(fmt::format("the argument {} is no text", name));
  return text_of(v);
}

std::string strip(const std::string& text, const jinja::func_args& args, bool left, bool right) {
  const value given = argument(args, 0, "chars");
  const std::vector<std::string> all = characters_of(text);
  const auto chars = given ? characters_of(text_of(given)) : std::vector<std::string>();
  const auto goes = [&](const std::string& c) {
    return given ? std::ranges::count(chars, c) > 0 : is_python_space(code_at(c, 0).code);
  };
  size_t begin = 0, end = all.size();
  while (left && begin < end && goes(all[begin]))
    ++begin;
  while (right && end > begin && goes(all[end - 1]))
    --end;
  std::string out;
  for (size_t i = begin; i < end; ++i)
    out += all[i];
  return out;
}

value split_by_space(const std::string& text, int64_t n_most, bool from_right) {
  struct Word {
    size_t begin, end;
  };
  std::vector<Word> words;
  bool is_in = false;
  for (size_t i = 0; i < text.size();) {
    const auto [code, n] = code_at(text, i);
    const bool is_space = is_python_space(code);
    if (!is_space && !is_in) words.push_back({i, i});
    is_in = !is_space;
    i += n;
    if (is_in) words.back().end = i;
  }
  auto out = mk_val<jinja::value_array>();
  const auto most = n_most < 0 ? words.size() : static_cast<size_t>(n_most);
  if (words.size() > most + 1) {
    if (from_right) {
      const size_t n_left = words.size() - most;
      words[n_left - 1].begin = words.front().begin;
      words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(n_left - 1));
    } else {
      // The last word keeps the blanks inside of it.
      words[most].end = words.back().end;
      words.resize(most + 1);
    }
  }
  for (const Word& word : words)
    out->push_back(make_text(text.substr(word.begin, word.end - word.begin)));
  return out;
}

value split(const std::string& text, const jinja::func_args& args, bool from_right) {
  const value by = argument(args, 0, "sep"), most = argument(args, 1, "maxsplit");
  int64_t n_left = most ? most->as_int() : -1;
  if (!by) return split_by_space(text, n_left, from_right);
  const std::string separator = text_of(by);
  if (separator.empty()) raise("empty separator");
  std::vector<std::string> parts;
  std::string rest = text;
  for (; n_left != 0; --n_left) {
    const size_t at = from_right ? rest.rfind(separator) : rest.find(separator);
    if (at == rest.npos) break;
    const size_t behind = at + separator.size();
    parts.push_back(from_right ? rest.substr(behind) : rest.substr(0, at));
    rest = from_right ? rest.substr(0, at) : rest.substr(behind);
  }
  parts.push_back(rest);
  if (from_right) std::ranges::reverse(parts);
  auto out = mk_val<jinja::value_array>();
  for (std::string& part : parts)
    out->push_back(make_text(std::move(part)));
  return out;
}

}  // namespace

std::string in_lower_case(const std::string& of) {
  std::string out;
  for (size_t i = 0; i < of.size();) {
    const auto [code, n] = code_at(of, i);
    // Its lower case goes by the letters around it.
    if (code == U'\u03a3') raise("the lower case of a sigma is not known here");
    const text::Mapping changed = text::lower_case(code);
    if (changed.size == 0) out += of.substr(i, n);
    for (const char32_t c : changed)
      text::append_utf8(out, c);
    i += n;
  }
  return out;
}

namespace {

/** Upper case beyond ASCII goes by tables that are not here. */
std::string in_case(std::string text, bool upper) {
  if (!upper) return in_lower_case(text);
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    raise("the upper case of letters beyond ASCII is not known here");
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c ^ 0x20);
  return text;
}

bool ends_so(const std::string& text, const value& with, bool at_start) {
  if (with && is_list(with))
    return std::ranges::any_of(with->as_array(),
                               [&](const value& v) { return ends_so(text, v, at_start); });
  if (!with || !is_text(with)) raise("startswith and endswith take a text");
  return at_start ? text.starts_with(text_of(with)) : text.ends_with(text_of(with));
}

value make_bool(bool is) {
  return mk_val<jinja::value_bool>(is);
}

using Args = const jinja::func_args&;
struct NamedMethod {
  std::string_view name;
  TextMethod method;
};
constexpr NamedMethod kMethods[] = {
    {"strip", [](const std::string& t, Args a) { return make_text(strip(t, a, true, true)); }},
    {"lstrip", [](const std::string& t, Args a) { return make_text(strip(t, a, true, false)); }},
    {"rstrip", [](const std::string& t, Args a) { return make_text(strip(t, a, false, true)); }},
    {"split", [](const std::string& t, Args a) { return split(t, a, false); }},
    {"rsplit", [](const std::string& t, Args a) { return split(t, a, true); }},
    {"upper", [](const std::string& t, Args) { return make_text(in_case(t, true)); }},
    {"lower", [](const std::string& t, Args) { return make_text(in_case(t, false)); }},
    {"capitalize",
     [](const std::string& t, Args) {
       std::string out = in_case(t, false);
       if (!out.empty()) out.replace(0, 1, in_case(out.substr(0, 1), true));
       return make_text(std::move(out));
     }},
    {"title",
     [](const std::string& t, Args) {
       std::string out = in_case(t, false);
       for (size_t i = 0; i < out.size(); ++i)
         if (i == 0 || !((out[i - 1] | 0x20) >= 'a' && (out[i - 1] | 0x20) <= 'z'))
           out.replace(i, 1, in_case(out.substr(i, 1), true));
       return make_text(std::move(out));
     }},
    {"startswith", [](const std::string& t,
                      Args a) { return make_bool(ends_so(t, argument(a, 0, "prefix"), true)); }},
    {"endswith", [](const std::string& t,
                    Args a) { return make_bool(ends_so(t, argument(a, 0, "suffix"), false)); }},
    {"find",
     [](const std::string& t, Args a) -> value {
       const size_t at = t.find(text_argument(a, 0, "sub"));
       const int64_t place =
           at == t.npos ? -1 : static_cast<int64_t>(characters_of(t.substr(0, at)).size());
       return mk_val<jinja::value_int>(place);
     }},
    {"count",
     [](const std::string& t, Args a) -> value {
       const std::string sought = text_argument(a, 0, "sub");
       if (sought.empty()) raise("count of an empty text");
       int64_t n = 0;
       for (size_t at = 0; (at = t.find(sought, at)) != t.npos; at += sought.size())
         ++n;
       return mk_val<jinja::value_int>(n);
     }},
    {"replace",
     [](const std::string& t, Args a) -> value {
       const std::string from = text_argument(a, 0, "old"), to = text_argument(a, 1, "new");
       const value most = argument(a, 2, "count");
       if (from.empty()) raise("replace of an empty text");
       int64_t n_left = most ? most->as_int() : -1;
       std::string out;
       size_t at = 0;
       for (size_t found; n_left != 0 && (found = t.find(from, at)) != t.npos; --n_left) {
         out.append(t, at, found - at).append(to);
         at = found + from.size();
       }
       return make_text(out.append(t, at));
     }},
    {"removeprefix",
     [](const std::string& t, Args a) {
       const std::string with = text_argument(a, 0, "prefix");
       return make_text(t.starts_with(with) ? t.substr(with.size()) : t);
     }},
    {"removesuffix",
     [](const std::string& t, Args a) {
       const std::string with = text_argument(a, 0, "suffix");
       return make_text(t.ends_with(with) ? t.substr(0, t.size() - with.size()) : t);
     }},
    {"join",
     [](const std::string& t, Args a) -> value {
       const value items = argument(a, 0, "iterable");
       if (!items || !is_list(items)) raise("join takes a list");
       std::string out;
       bool is_first = true;
       for (const value& item : items->as_array()) {
         if (!is_text(item)) raise("join found what is no text");
         if (!is_first) out += t;
         is_first = false;
         out += text_of(item);
       }
       return make_text(std::move(out));
     }},
};

}  // namespace

void raise(const std::string& what) {
  throw jinja::raised_exception(what);
}

value value_of(const nlohmann::ordered_json& json) {
  if (json.is_null()) return mk_val<jinja::value_none>();
  if (json.is_boolean()) return make_bool(json.get<bool>());
  if (json.is_number_integer()) return mk_val<jinja::value_int>(json.get<int64_t>());
  if (json.is_number()) return mk_val<jinja::value_float>(json.get<double>());
  if (json.is_string()) return make_text(json.get_ref<const std::string&>());
  if (json.is_array()) {
    auto list = mk_val<jinja::value_array>();
    for (const auto& item : json)
      list->push_back(value_of(item));
    return list;
  }
  auto object = mk_val<jinja::value_object>();
  for (const auto& [key, item] : json.items())
    object->insert(key, value_of(item));
  return object;
}

bool is_text(const value& v) {
  return is_val<jinja::value_string>(v);
}
bool is_list(const value& v) {
  return is_val<jinja::value_array>(v);
}
std::string text_of(const value& v) {
  if (!is_text(v)) raise(fmt::format("{} is no text", v->type()));
  return v->as_string().str();
}
value make_text(std::string text) {
  return mk_val<jinja::value_string>(text);
}
value make_safe(const std::string& text) {
  return std::make_shared<Safe>(text);
}

std::string html_of(const value& v) {
  const std::string text = python_str(v);
  if (is_val<Safe>(v)) return text;
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string python_str(const value& v) {
  if (is_text(v)) return text_of(v);
  if (v->is_undefined()) return {};
  return python_repr(v);
}

std::string python_repr(const value& v) {
  if (is_text(v)) return text_repr(text_of(v));
  if (v->is_none()) return "None";
  if (is_val<jinja::value_bool>(v)) return v->as_bool() ? "True" : "False";
  if (is_val<jinja::value_int>(v)) return std::to_string(v->as_int());
  if (is_val<jinja::value_float>(v)) return float_repr(v->as_float());
  if (v->is_undefined()) return "Undefined";
  if (is_list(v) && !is_val<std::shared_ptr<Generator>>(v)) {
    const bool is_tuple = is_val<jinja::value_tuple>(v);
    std::string out(1, is_tuple ? '(' : '[');
    for (size_t i = 0; i < v->as_array().size(); ++i)
      out += (i > 0 ? ", " : "") + python_repr(v->as_array()[i]);
    if (is_tuple && v->as_array().size() == 1) out += ',';
    return out + (is_tuple ? ')' : ']');
  }
  if (is_val<jinja::value_object>(v)) {
    std::string out = "{";
    for (const auto& [key, item] : v->as_ordered_object())
      out += (out.size() > 1 ? ", " : "") + python_repr(key) + ": " + python_repr(item);
    return out + "}";
  }
  raise(fmt::format("a value of type {} is not printed", v->type()));
}

bool python_equal(const value& a, const value& b) {
  if (a->is_undefined() || b->is_undefined()) return a->is_undefined() && b->is_undefined();
  if (is_number(a) && is_number(b)) {
    const auto is_whole = [](const value& v) { return !is_val<jinja::value_float>(v); };
    const auto whole = [](const value& v) {
      return is_val<jinja::value_bool>(v) ? static_cast<int64_t>(v->as_bool()) : v->as_int();
    };
    if (is_whole(a) && is_whole(b)) return whole(a) == whole(b);
    const auto number = [&](const value& v) {
      return is_whole(v) ? static_cast<double>(whole(v)) : v->as_float();
    };
    return number(a) == number(b);
  }
  if (is_text(a) && is_text(b)) return text_of(a) == text_of(b);
  if (is_list(a) && is_list(b)) {
    if (is_val<jinja::value_tuple>(a) != is_val<jinja::value_tuple>(b)) return false;
    return std::ranges::equal(a->as_array(), b->as_array(), python_equal);
  }
  if (is_val<jinja::value_object>(a) && is_val<jinja::value_object>(b)) {
    const auto &left = a->as_ordered_object(), &right = b->as_ordered_object();
    return left.size() == right.size() && std::ranges::all_of(left, [&](const auto& pair) {
             return std::ranges::any_of(right, [&](const auto& other) {
               return python_equal(pair.first, other.first) &&
                      python_equal(pair.second, other.second);
             });
           });
  }
  if (a->is_none() || b->is_none()) return a->is_none() && b->is_none();
  return a.get() == b.get();
}

bool python_in(const value& a, const value& b) {
  if (b->is_undefined()) return false;
  if (is_list(b))
    return std::ranges::any_of(b->as_array(), [&](const value& v) { return python_equal(a, v); });
  if (is_text(b)) {
    if (!is_text(a)) raise("'in <string>' requires a string");
    return text_of(b).find(text_of(a)) != std::string::npos;
  }
  if (is_val<jinja::value_object>(b))
    return std::ranges::any_of(b->as_ordered_object(),
                               [&](const auto& pair) { return python_equal(a, pair.first); });
  raise(fmt::format("a value of type {} is not iterable", b->type()));
}

std::string python_json(const value& v, const JsonStyle& style) {
  std::string out;
  append_json(v, style, 0, out);
  return out;
}

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size();) {
    const size_t n = code_at(text, i).n_bytes;
    out.emplace_back(text.substr(i, n));
    i += n;
  }
  return out;
}

bool is_python_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

TextMethod text_method(std::string_view name) {
  const auto found = std::ranges::find(kMethods, name, &NamedMethod::name);
  return found == std::end(kMethods) ? nullptr : found->method;
}

}  // namespace ferry::chat
