// nlohmann's parser does not call itself, and reports what it finds piece by piece. Only its
// pieces are used here: a tree is built by TreeBuilder, once depth and keys are known to be right.

#include "src/base/json/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "src/base/error.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** Walks over the text and notes how far the parser came. */
class Cursor {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor() = default;
  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }

 private:
  const char* at_ = nullptr;
  const char** reached_ = nullptr;
};

/** nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while
 * parsing value - unexpected end of input" from the last part on, short. */
std::string plain(std::string_view message) {
  for (const std::string_view lead : {"] ", ": ", " - "})
    if (const size_t at = message.find(lead); at != message.npos)
      message.remove_prefix(at + lead.size());
  constexpr size_t kShown = 160;
  std::string text(message.substr(0, kShown));
  return message.size() > kShown ? text + "..." : text;
}

/** Hands on what the parser finds, after the check of depth. */
class Listener : public nlohmann::json_sax<ordered_json> {
 public:
  Listener(JsonEvents& events, JsonFault& fault) : events_(events), fault_(fault) {}

  bool null() override { return events_.null(), true; }
  bool boolean(bool value) override { return events_.boolean(value), true; }
  bool number_integer(int64_t value) override { return events_.integer(value), true; }
  bool number_unsigned(uint64_t value) override { return events_.natural(value), true; }
  bool number_float(double value, const std::string& text) override {
    return events_.number(value, text), true;
  }
  bool string(std::string& value) override { return events_.text(value), true; }
  bool binary(ordered_json::binary_t&) override { return false; }  // JSON text has none
  bool start_object(size_t) override { return enter() && (events_.begin_object(), true); }
  bool key(std::string& value) override { return events_.key(value), true; }
  bool end_object() override { return --depth_, events_.end_object(), true; }
  bool start_array(size_t) override { return enter() && (events_.begin_list(), true); }
  bool end_array() override { return --depth_, events_.end_list(), true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    fault_.what = plain(error.what());
    return false;
  }

 private:
  bool enter() {
    if (++depth_ <= kJson_depth_max) return true;
    fault_.what = fmt::format("nested deeper than {}", kJson_depth_max);
    return false;
  }

  JsonEvents& events_;
  JsonFault& fault_;
  size_t depth_ = 0;
};

int64_t line_at(std::string_view text, size_t byte) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte), '\n');
}

/** The parse; `reached` follows it: one past the byte that was read last. */
std::optional<JsonFault> read_following(std::string_view text,
                                        const char*& reached,
                                        JsonEvents& events) {
  reached = text.data();
  const auto fault_at = [&](size_t byte, std::string what) {
    return JsonFault{byte, line_at(text, byte), std::move(what)};
  };
  // nlohmann takes it for the end.
  if (const size_t nul = text.find('\0'); nul != text.npos) return fault_at(nul, "has a NUL byte");
  JsonFault fault;
  Listener listener(events, fault);
  const Cursor begin(text.data(), &reached), end(text.data() + text.size(), &reached);
  if (ordered_json::sax_parse(begin, end, &listener)) return {};
  const size_t n_read = static_cast<size_t>(reached - text.data());
  return fault_at(n_read > 0 ? n_read - 1 : 0, std::move(fault.what));
}

/** Thrown by a listener to end a parse with a fault of its own. */
struct Refusal {
  std::string what;
};

/** The keys of an object, looked through while they are few. */
class Keys {
 public:
  /** False if it was there. */
  bool add(const ordered_json::object_t& so_far, const std::string& key) {
    if (all_.empty()) {
      if (so_far.size() < kFew)
        return std::ranges::none_of(so_far, [&](const auto& each) { return each.first == key; });
      for (const auto& each : so_far)
        all_.insert(each.first);
    }
    return all_.insert(key).second;
  }

 private:
  static constexpr size_t kFew = 16;
  std::unordered_set<std::string> all_;
};

/** nlohmann's own builder looks through all earlier keys for each one: minutes for a wide object.
 */
class TreeBuilder : public JsonEvents {
 public:
  explicit TreeBuilder(ordered_json& root) : next_(&root) {}

  void null() override { place(nullptr); }
  void boolean(bool value) override { place(value); }
  void integer(int64_t value) override { place(value); }
  void natural(uint64_t value) override { place(value); }
  void number(double value, const std::string&) override { place(value); }
  void text(std::string& value) override { place(std::move(value)); }
  void begin_object() override { open(ordered_json::object()); }
  void begin_list() override { open(ordered_json::array()); }
  void end_object() override { open_.pop_back(); }
  void end_list() override { open_.pop_back(); }
  void key(std::string& value) override {
    auto& object = open_.back().value->get_ref<ordered_json::object_t&>();
    if (!open_.back().keys.add(object, value)) throw Refusal{fmt::format("has '{}' twice", value)};
    next_ = &object.emplace_back(std::move(value), nullptr).second;
  }

 private:
  struct Open {
    ordered_json* value;
    Keys keys;
  };

  ordered_json* place(ordered_json value) {
    if (!open_.empty() && open_.back().value->is_array()) {
      auto& list = open_.back().value->get_ref<ordered_json::array_t&>();
      return &list.emplace_back(std::move(value));
    }
    *next_ = std::move(value);
    return next_;
  }
  void open(ordered_json value) { open_.push_back({place(std::move(value)), {}}); }

  ordered_json* next_;  ///< of the whole, or of the key that came last
  std::vector<Open> open_;
};

/** Stops at the value that comes after so many. */
class ValueCounter : public JsonEvents {
 public:
  struct Found {};
  explicit ValueCounter(size_t n_before) : n_left_(n_before) {}
  void null() override { count(); }
  void boolean(bool) override { count(); }
  void integer(int64_t) override { count(); }
  void natural(uint64_t) override { count(); }
  void number(double, const std::string&) override { count(); }
  void text(std::string&) override { count(); }
  void begin_object() override { count(); }
  void begin_list() override { count(); }
  void end_object() override {}
  void end_list() override {}
  void key(std::string&) override {}

 private:
  void count() {
    if (n_left_-- == 0) throw Found();
  }
  size_t n_left_;
};

/** How many values of a tree come before one of them; false if it is not there. */
bool count_before(const ordered_json& tree, const ordered_json* wanted, size_t& n_before) {
  if (&tree == wanted) return true;
  ++n_before;
  if (!tree.is_structured()) return false;
  return std::ranges::any_of(
      tree, [&](const ordered_json& each) { return count_before(each, wanted, n_before); });
}

/** A value as a message shows it: short, whatever the file holds. */
std::string shown(const ordered_json& value) {
  constexpr size_t kShown = 60;
  std::string text =
      value.dump(-1, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace);
  return text.size() > kShown ? text.substr(0, kShown - 3) + "..." : text;
}

}  // namespace

std::optional<JsonFault> read_json(std::string_view text, JsonEvents& events) {
  const char* reached = nullptr;
  return read_following(text, reached, events);
}

std::optional<JsonFault> parse_json(std::string_view text, ordered_json& value) {
  const char* reached = nullptr;
  value = nullptr;
  TreeBuilder builder(value);
  try {
    return read_following(text, reached, builder);
  } catch (Refusal& refusal) {
    const size_t byte = static_cast<size_t>(reached - text.data()) - 1;
    return JsonFault{byte, line_at(text, byte), std::move(refusal.what)};
  }
}

struct JsonReader::Document {
  JsonSource source;
  std::string text;  ///< empty when the program made the value
  ordered_json value = nullptr;

  /** Found by reading it once more: only errors need it. 0 without a text. */
  int64_t line_of(const ordered_json* wanted) const {
    size_t n_before = 0;
    if (text.empty() || !count_before(value, wanted, n_before)) return 0;
    ValueCounter counter(n_before);
    const char* reached = nullptr;
    try {
      read_following(text, reached, counter);
    } catch (ValueCounter::Found&) {
      return line_at(text, static_cast<size_t>(reached - text.data()) - 1);
    }
    return 0;
  }
};

JsonReader::JsonReader(std::shared_ptr<const Document> document,
                       const ordered_json& value,
                       std::string path)
    : document_(std::move(document)), value_(&value), path_(std::move(path)) {}

JsonReader JsonReader::parse(std::string text, JsonSource source) {
  auto document = std::make_shared<Document>();
  document->source = std::move(source);
  document->text = std::move(text);
  if (const auto fault = parse_json(document->text, document->value))
    throw Error(Fault::data, document->source.where,
                fmt::format("'{}' is not valid JSON: line {}: {}", document->source.file,
                            fault->line, fault->what),
                document->source.hint);
  const ordered_json& value = document->value;
  return JsonReader(std::move(document), value, {});
}

JsonReader JsonReader::of(ordered_json value, JsonSource source) {
  auto document = std::make_shared<Document>();
  document->source = std::move(source);
  document->value = std::move(value);
  const ordered_json& root = document->value;
  return JsonReader(std::move(document), root, {});
}

bool JsonReader::is_object() const {
  return value_->is_object();
}
bool JsonReader::is_list() const {
  return value_->is_array();
}
bool JsonReader::is_text() const {
  return value_->is_string();
}

JsonReader JsonReader::child(std::string_view key, const ordered_json& value) const {
  return JsonReader(document_, value,
                    path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
}

const ordered_json* JsonReader::find_any(std::string_view key) const {
  if (!is_object()) refuse("an object");
  asked_.emplace_back(key);
  const auto found = value_->find(std::string(key));
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  const ordered_json* found = find_any(key);
  if (!found) return {};
  return child(key, *found);
}

JsonReader JsonReader::at(std::string_view key) const {
  const ordered_json* found = find_any(key);
  if (!found) refuse_missing(key, "a value");
  return child(key, *found);
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::fields() const {
  if (!is_object()) refuse("an object");
  std::vector<std::pair<std::string, JsonReader>> all;
  for (const auto& [key, value] : value_->items()) {
    asked_.push_back(key);
    all.emplace_back(key, child(key, value));
  }
  return all;
}

std::pair<std::string, JsonReader> JsonReader::only() const {
  auto all = fields();
  if (all.size() != 1) fail(fmt::format("has {} fields, expected one", all.size()));
  return std::move(all.front());
}

size_t JsonReader::size() const {
  if (!is_list()) refuse("a list");
  return value_->size();
}

JsonReader JsonReader::at(size_t index) const {
  if (index >= size()) fail(fmt::format("has {} items, expected more", size()));
  return JsonReader(document_, (*value_)[index], fmt::format("{}[{}]", path_, index));
}

std::string JsonReader::text() const {
  if (!is_text()) refuse("a text");
  return value_->get<std::string>();
}

std::vector<std::string> JsonReader::texts() const {
  if (!is_list() || !std::ranges::all_of(*value_, [](const auto& e) { return e.is_string(); }))
    refuse("a list of texts");
  return value_->get<std::vector<std::string>>();
}

bool JsonReader::flag() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

namespace {

std::string whole_number(int64_t least, int64_t most) {
  return fmt::format("a whole number from {} to {}", least, most);
}
std::string any_number(double least, double most) {
  return fmt::format("a number from {:g} to {:g}", least, most);
}

}  // namespace

int64_t JsonReader::integer(int64_t least, int64_t most) const {
  // A number above int64 is kept unsigned; get<int64_t> would wrap it.
  const bool fits = value_->is_number_integer() &&
                    !(value_->is_number_unsigned() &&
                      value_->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) &&
                    value_->get<int64_t>() >= least && value_->get<int64_t>() <= most;
  if (!fits) refuse(whole_number(least, most));
  return value_->get<int64_t>();
}

double JsonReader::number(double least, double most) const {
  const double number = value_->is_number() ? value_->get<double>() : std::nan("");
  if (!(number >= least && number <= most)) refuse(any_number(least, most));
  return number;
}

std::string JsonReader::text(std::string_view key, std::optional<std::string> fallback) const {
  if (const auto found = find(key)) return found->text();
  if (!fallback) refuse_missing(key, "a text");
  return *std::move(fallback);
}

bool JsonReader::flag(std::string_view key, std::optional<bool> fallback) const {
  if (const auto found = find(key)) return found->flag();
  if (!fallback) refuse_missing(key, "true or false");
  return *fallback;
}

int64_t JsonReader::integer(std::string_view key,
                            int64_t least,
                            int64_t most,
                            std::optional<int64_t> fallback) const {
  if (const auto found = find(key)) return found->integer(least, most);
  if (!fallback) refuse_missing(key, whole_number(least, most));
  return *fallback;
}

double JsonReader::number(std::string_view key,
                          double least,
                          double most,
                          std::optional<double> fallback) const {
  if (const auto found = find(key)) return found->number(least, most);
  if (!fallback) refuse_missing(key, any_number(least, most));
  return *fallback;
}

std::vector<std::string> JsonReader::unread_keys() const {
  std::vector<std::string> unread;
  if (is_object())
    for (const auto& [key, value] : value_->items())
      if (std::ranges::find(asked_, key) == asked_.end()) unread.push_back(key);
  return unread;
}

void JsonReader::refuse(std::string_view expectation, std::optional<std::string_view> hint) const {
  fail(fmt::format("is {}, expected {}", shown(*value_), expectation), hint);
}

void JsonReader::refuse_missing(std::string_view key, std::string_view expectation) const {
  JsonReader(document_, *value_,
             path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key))
      .fail(fmt::format("is missing, expected {}", expectation));
}

void JsonReader::fail(std::string_view what, std::optional<std::string_view> hint) const {
  const JsonSource& source = document_->source;
  const int64_t line = document_->line_of(value_);
  throw Error(
      Fault::data, source.where,
      fmt::format("'{}': {}{} {}", source.file, line > 0 ? fmt::format("line {}: ", line) : "",
                  path_.empty() ? "the whole" : path_, what),
      hint.value_or(source.hint));
}

const std::string& JsonReader::file() const {
  return document_->source.file;
}

}  // namespace ferry
