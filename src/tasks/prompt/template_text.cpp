#include "src/tasks/prompt/template_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr std::string_view kTemplateText = "config.template";
constexpr std::string_view kTemplateExample =
    R"(write it as in '{"placeholder": "text_a"} It was {"mask"}.')";

[[noreturn]] void refuse(const std::string& what, std::string_view hint = kTemplateExample) {
  throw Error(Fault::usage, kTemplateText, what, hint);
}

/** A value in braces: a text, a whole number, true or false; none of null. */
struct FieldValue {
  enum class Kind : uint8_t { none, text, number, flag } kind = Kind::none;
  std::string text;
  int64_t number = 0;
  bool flag = false;
};
using Field = std::pair<std::string, FieldValue>;

/** Reads the inside of braces, in which people write JSON or Python. */
class FieldReader {
 public:
  FieldReader(std::string_view inside, std::string_view whole) : rest_(inside), whole_(whole) {}

  std::vector<Field> run() {
    std::vector<Field> fields;
    for (skip(); !rest_.empty(); skip()) {
      Field& field = fields.emplace_back(quoted(), FieldValue());
      skip();
      if (take(':')) field.second = value();
      skip();
      if (!take(',') && !rest_.empty()) fail();
    }
    return fields;
  }

 private:
  [[noreturn]] void fail() const {
    refuse(fmt::format("'{}' of the template is no list of keys with values", whole_));
  }
  void skip() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string quoted() {
    if (rest_.empty() || (rest_[0] != '"' && rest_[0] != '\'')) fail();
    const char quote = rest_[0];
    std::string text;
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) {
        rest_.remove_prefix(i + 1);
        return text;
      }
      if (rest_[i] == '\\' && i + 1 < rest_.size()) ++i;
      text += rest_[i];
    }
    fail();
  }
  FieldValue value() {
    skip();
    if (rest_.starts_with('"') || rest_.starts_with('\''))
      return {.kind = FieldValue::Kind::text, .text = quoted()};
    const std::string_view word = rest_.substr(0, rest_.find_first_of(", \t\n"));
    rest_.remove_prefix(word.size());
    if (word == "null" || word == "None") return {};
    for (const auto& [name, flag] :
         {std::pair{"true", true}, {"True", true}, {"false", false}, {"False", false}})
      if (word == name) return {.kind = FieldValue::Kind::flag, .text = {}, .flag = flag};
    FieldValue number = {.kind = FieldValue::Kind::number, .text = {}};
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), number.number);
    if (error != std::errc() || end != word.data() + word.size()) fail();
    return number;
  }

  std::string_view rest_, whole_;
};

/** One part in braces, by its fields. */
class PartReader {
 public:
  PartReader(std::vector<Field> fields, std::string_view whole)
      : fields_(std::move(fields)), whole_(whole) {}

  TemplatePart run() {
    TemplatePart part;
    if (const auto name = find("placeholder")) {
      part.kind = TemplatePartKind::text;
      part.text = text_of(text(*name, "placeholder"));
      part.may_be_cut = flag("shortenable", true);
    } else if (find("mask")) {
      part.kind = TemplatePartKind::mask;
    } else if (has("soft") || has("soft_id")) {
      part.kind = TemplatePartKind::soft;
      read_soft(part);
    } else if (const auto special = find("special")) {
      part.kind = TemplatePartKind::special;
      part.words = text(*special, "special");
    } else if (const auto words = find("text")) {
      part.words = text(*words, "text");
    } else if (find("meta")) {
      refuse(fmt::format("'{}' of the template names a column beside the two texts", whole_),
             "a template sees text_a and text_b: --text-column and --text-pair-column choose them");
    }
    for (const Field& field : fields_)
      if (std::ranges::find(used_, field.first) == used_.end())
        refuse(fmt::format("'{}' of the template has the key '{}'", whole_, field.first),
               "it knows placeholder, mask, soft, soft_id, duplicate, same, special, text and "
               "shortenable");
    return part;
  }

 private:
  bool has(std::string_view key) const {
    return std::ranges::find(fields_, key, &Field::first) != fields_.end();
  }
  std::optional<FieldValue> find(std::string_view key) {
    const auto found = std::ranges::find(fields_, key, &Field::first);
    if (found == fields_.end()) return std::nullopt;
    used_.push_back(key);
    return found->second;
  }
  std::string text(const FieldValue& value, std::string_view key) const {
    if (value.kind != FieldValue::Kind::text)
      refuse(fmt::format("'{}' of the template wants a text for {}", whole_, key));
    return value.text;
  }
  bool flag(std::string_view key, bool otherwise) {
    const auto value = find(key);
    if (!value) return otherwise;
    if (value->kind != FieldValue::Kind::flag)
      refuse(fmt::format("'{}' of the template wants true or false for {}", whole_, key));
    return value->flag;
  }
  std::optional<int64_t> number(std::string_view key) {
    const auto value = find(key);
    if (!value) return std::nullopt;
    return checked(value->kind == FieldValue::Kind::number ? value->number : 0, key);
  }
  int64_t checked(int64_t number, std::string_view key) const {
    constexpr int64_t kMost = 10'000;
    if (number < 1 || number > kMost)
      refuse(fmt::format("'{}' of the template wants a number from 1 to {} for {}", whole_, kMost,
                         key));
    return number;
  }
  int text_of(const std::string& name) const {
    if (name == "text_a" || name == "text") return 0;
    if (name == "text_b" || name == "text_pair") return 1;
    refuse(fmt::format("'{}' of the template names a placeholder '{}'", whole_, name),
           "there are text_a and text_b, which --text-column and --text-pair-column choose");
  }
  void read_soft(TemplatePart& part) {
    const auto words = find("soft");
    std::optional<int64_t> n;
    if (words && words->kind == FieldValue::Kind::number)
      n = checked(words->number, "soft");
    else if (words && words->kind != FieldValue::Kind::none)
      part.words = text(*words, "soft");
    part.soft_id = number("soft_id");
    if (const auto more = number("duplicate")) n = more;
    part.are_same = flag("same", false);
    if (n && !part.words.empty())
      refuse(fmt::format("'{}' of the template has as many soft tokens as its words have", whole_),
             "leave out duplicate, or the words");
    part.n_soft = n.value_or(1);
  }

  std::vector<Field> fields_;
  std::string_view whole_;
  std::vector<std::string_view> used_;
};

/** The end of the braces that begin at `begin`; texts in quotes may hold some. */
size_t end_of_braces(std::string_view text, size_t begin) {
  char quote = '\0';
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (quote != '\0') {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == quote)
        quote = '\0';
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    } else if (text[i] == '}') {
      return i;
    }
  }
  refuse(fmt::format("a brace of the template does not close: '{}'", text.substr(begin)));
}

void check_parts(const std::vector<TemplatePart>& parts) {
  const auto count = [&](TemplatePartKind kind) {
    return std::ranges::count(parts, kind, &TemplatePart::kind);
  };
  const auto n_masks = count(TemplatePartKind::mask);
  if (n_masks == 0)
    refuse("the template asks for no word", R"(write {"mask"} where the word is to stand)");
  if (n_masks > 1)
    refuse(fmt::format("the template asks for {} words", n_masks),
           R"(write {"mask"} once: labels stand for one word)");
  if (count(TemplatePartKind::text) == 0)
    refuse("the template shows no text of the data",
           R"(write {"placeholder": "text_a"} where it is to stand)");
}

}  // namespace

std::vector<TemplatePart> read_template(std::string_view text) {
  std::vector<TemplatePart> parts;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = std::min(text.find_first_not_of(' ', i), text.size());
    const bool after_blank = begin > i;
    if (begin == text.size()) break;
    TemplatePart part;
    if (text[begin] == '{') {
      const size_t end = end_of_braces(text, begin);
      const std::string_view whole = text.substr(begin, end + 1 - begin);
      FieldReader fields(whole.substr(1, whole.size() - 2), whole);
      part = PartReader(fields.run(), whole).run();
      i = end + 1;
    } else {
      i = std::min(text.find('{', begin), text.size());
      std::string_view words = text.substr(begin, i - begin);
      const size_t last = words.find_last_not_of(' ');
      i -= words.size() - last - 1;  // blanks before braces belong to what they hold
      part.words = words.substr(0, last + 1);
    }
    part.after_blank = after_blank;
    parts.push_back(std::move(part));
  }
  check_parts(parts);
  return parts;
}

}  // namespace ferry
