#include "src/text/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "src/base/error.h"

namespace ferry::text {
namespace {

constexpr std::string_view kCategoryNames =
    "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCoCn";

constexpr uint32_t kSpaceCategories = category_bit(Category::Zs) | category_bit(Category::Zl) |
                                      category_bit(Category::Zp) | category_bit(Category::Cc_space);
constexpr uint32_t kAllCategories = (category_bit(Category::Cc_space) << 1) - 1;

/** "L" or "Lu"; 0 if there is no such category. */
uint32_t categories_named(std::string_view name) {
  uint32_t found = 0;
  for (size_t i = 0; i < kCategoryNames.size(); i += 2)
    if (!name.empty() && name.size() <= 2 && kCategoryNames.substr(i, name.size()) == name)
      found |= uint32_t{1} << (i / 2);
  if (found & category_bit(Category::Cc)) found |= category_bit(Category::Cc_space);
  return found;
}

/** Groups in groups: reading them calls itself. Known tokenizers have five. */
constexpr int kDepth_max = 64;
/** Known tokenizers' have about 1,000. */
constexpr size_t kExpression_bytes_max = 64 << 10;
/** Nodes from which a search may go back: it calls itself at each. */
constexpr size_t kBacktracking_max = 1000;

bool is_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

// --- sets ---

void CharSet::add(char32_t first, char32_t last) {
  ranges_.push_back({first, last});
}

bool CharSet::ignore_case() {
  if (categories_ != 0) return false;
  for (size_t i = 0, n = ranges_.size(); i < n; ++i) {
    const Range range = ranges_[i];
    for (char32_t c = range.first; c <= std::min<char32_t>(range.last, 'z'); ++c) {
      if (!is_letter(c)) continue;
      add(c ^ 0x20, c ^ 0x20);
      if ((c | 0x20) == 's') add(0x17F, 0x17F);    // long s
      if ((c | 0x20) == 'k') add(0x212A, 0x212A);  // the sign of kelvin
    }
    if (range.last >= 0x80) return false;
  }
  return true;
}

void CharSet::close(bool negated) {
  negated_ = negated;
  for (char32_t c = 0; c < 0x80; ++c)
    if (has_wide(c)) ascii_[c >> 6] |= uint64_t{1} << (c & 63);
  std::erase_if(ranges_, [](const Range& range) { return range.last < 0x80; });
}

bool CharSet::has_wide(char32_t c) const {
  if (categories_ & category_bit(CategoryTable::get().of(c))) return !negated_;
  for (const Range& range : ranges_)
    if (c >= range.first && c <= range.last) return !negated_;
  return negated_;
}

bool CharSet::may_have(uint32_t categories) const {
  return negated_ ? (categories & ~categories_) != 0
                  : (categories & categories_) != 0 || !ranges_.empty();
}

// --- the parser ---

/** Reads an expression into a tree, and links its nodes from the end. */
class Pattern::Parser {
 public:
  Parser(std::string_view expression, Pattern& pattern) : text_(expression), pattern_(pattern) {}

  void parse() {
    const Tree tree = alternatives(false);
    if (at_ < text_.size()) refuse("')' without '('");
    for (const Tree& branch : tree.parts)
      pattern_.branches_.push_back(link(branch, kAccept));
  }

 private:
  /** A sequence of parts, alternatives, a set or a look-ahead. */
  struct Tree {
    enum Kind { sequence, either, set, look } kind = sequence;
    std::vector<Tree> parts;
    int set_index = 0;
    int least = 1, most = 1;
    bool possessive = false, negated = false;
  };

  [[noreturn]] void refuse(std::string_view what) const {
    throw std::invalid_argument(fmt::format("byte {}: {} is not supported", at_, what));
  }

  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  char32_t take_character() {
    if (at_ == text_.size()) refuse("an unfinished expression");
    return next_code_point(text_, at_);
  }

  Tree alternatives(bool ignore_case) {
    Tree tree{.kind = Tree::either, .parts = {}};
    do
      tree.parts.push_back(sequence(ignore_case));
    while (take("|"));
    return tree;
  }

  Tree sequence(bool ignore_case) {
    Tree tree;
    char32_t before = 0;
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      // Oniguruma also takes the one letter that two fold to, such as the sharp s.
      const char32_t c = static_cast<unsigned char>(text_[at_]) | 0x20u;
      if (ignore_case && ((before == 's' && (c == 's' || c == 't')) ||
                          (before == 'f' && (c == 'f' || c == 'i' || c == 'l'))))
        refuse("a pair of letters that is also one letter, in any case,");
      before = c;
      tree.parts.push_back(item(ignore_case));
    }
    return tree;
  }

  Tree item(bool ignore_case) {
    Tree tree = atom(ignore_case);
    const bool is_set = tree.kind == Tree::set;
    if (take("?")) {
      tree.least = 0;
    } else if (take("*")) {
      tree.least = 0;
      tree.most = kUnlimited;
    } else if (take("+")) {
      tree.most = kUnlimited;
    } else if (take("{")) {
      counts(tree);
      if (at_ < text_.size() && text_[at_] == '+') refuse("a quantifier of a quantifier");
    } else {
      return tree;
    }
    if (take("+")) tree.possessive = true;
    if (at_ < text_.size() && (text_[at_] == '?' || text_[at_] == '*' || text_[at_] == '+'))
      refuse("a quantifier that takes as little as it can, or of a quantifier,");
    if (!is_set && (tree.kind == Tree::look || tree.possessive || tree.most > 1))
      refuse("a quantifier other than '?' of a group");
    return tree;
  }

  void counts(Tree& tree) {
    const bool has_least = at_ < text_.size() && text_[at_] != ',';
    tree.least = has_least ? number() : 0;
    tree.most = tree.least;
    if (take(",")) tree.most = at_ < text_.size() && text_[at_] == '}' ? kUnlimited : number();
    if (!take("}") || tree.most < tree.least || tree.most == 0) refuse("this '{'");
  }

  int number() {
    int value = 0;
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && value < 100000)
      value = value * 10 + (text_[at_++] - '0');
    if (at_ == begin) refuse("this '{'");
    return value;
  }

  Tree atom(bool ignore_case) {
    if (take("(")) {
      if (++depth_ > kDepth_max) refuse("so many groups in groups");
      Tree tree;
      if (take("?=") || take("?!")) {
        tree.kind = Tree::look;
        tree.negated = text_[at_ - 1] == '!';
        tree.parts.push_back(alternatives(ignore_case));
      } else if (take("?:")) {
        tree = alternatives(ignore_case);
      } else if (take("?i:")) {
        tree = alternatives(true);
      } else if (at_ < text_.size() && text_[at_] == '?') {
        refuse("this kind of group");
      } else {
        tree = alternatives(ignore_case);
      }
      if (!take(")")) refuse("'(' without ')'");
      --depth_;
      return tree;
    }
    CharSet set;
    bool negated = false;
    if (take("[")) {
      negated = take("^");
      for (bool first = true; !take("]"); first = false)
        class_item(set, first);
    } else if (take("\\")) {
      escape(set);
    } else if (take(".")) {
      set.add('\n', '\n');
      negated = true;
    } else {
      const char32_t c = take_character();
      if (c == '^' || c == '$' || c == '*' || c == '+' || c == '?' || c == '{')
        refuse(fmt::format("this '{}'", static_cast<char>(c)));
      set.add(c, c);
    }
    if (ignore_case && !set.ignore_case()) refuse("ignoring the case of other letters than a to z");
    set.close(negated);
    pattern_.sets_.push_back(std::move(set));
    return {
        .kind = Tree::set, .parts = {}, .set_index = static_cast<int>(pattern_.sets_.size()) - 1};
  }

  void class_item(CharSet& set, bool first) {
    if (take("\\")) {
      if (const char32_t c = escape(set); c != 0) range_from(c, set);
      return;
    }
    const char32_t c = take_character();
    if (c == '[' || (c == '&' && at_ < text_.size() && text_[at_] == '&') || (c == '-' && !first))
      refuse(fmt::format("this '{}' in a class", static_cast<char>(c)));
    range_from(c, set);
  }

  /** A character of a class, and if a range begins there, the rest of it. */
  void range_from(char32_t first, CharSet& set) {
    char32_t last = first;
    if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
      ++at_;
      CharSet unused;
      last = take("\\") ? escape(unused) : take_character();
      if (last < first) refuse("a range of a class that ends before it begins");
    } else {
      take_last_dash(set);
    }
    set.add(first, last);
  }

  void take_last_dash(CharSet& set) {
    if (text_.substr(at_).starts_with("-]")) {
      ++at_;
      set.add('-', '-');
    }
  }

  /** Reads the part after a backslash: adds a set, or adds a character and returns it; else 0. */
  char32_t escape(CharSet& set) {
    const char32_t c = take_character();
    switch (c) {
      case 's':
        set.add_categories(kSpaceCategories);
        return 0;
      case 'S':
        set.add_categories(kAllCategories & ~kSpaceCategories);
        return 0;
      case 'd':
        set.add_categories(category_bit(Category::Nd));
        return 0;
      case 'D':
        set.add_categories(kAllCategories & ~category_bit(Category::Nd));
        return 0;
      case 'p':
      case 'P':
        category(set, c == 'P');
        return 0;
      default:
        break;
    }
    const char32_t one = escaped_character(c);
    set.add(one, one);
    return one;
  }

  void category(CharSet& set, bool negated) {
    if (!take("{")) refuse("a category without '{'");
    const size_t end = std::min(text_.find('}', at_), text_.size());
    std::string_view name = text_.substr(at_, end - at_);
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    const uint32_t named = categories_named(name);
    if (named == 0 || end == text_.size()) refuse(fmt::format("the class '{}'", name));
    set.add_categories(negated ? kAllCategories & ~named : named);
    at_ = end + 1;
  }

  char32_t escaped_character(char32_t c) {
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'u':
        return hexadecimal(4);
      case 'x':
        return hexadecimal(2);
      default:
        break;
    }
    if (is_letter(c) || (c >= '0' && c <= '9') || c >= 0x80)
      refuse(fmt::format("the escape at this place"));
    return c;
  }

  char32_t hexadecimal(size_t n) {
    char32_t value = 0;
    for (size_t i = 0; i < n; ++i) {
      const char32_t c = take_character();
      const bool is_digit = c >= '0' && c <= '9';
      if (!is_digit && !((c | 0x20) >= 'a' && (c | 0x20) <= 'f')) refuse("this number");
      value = value * 16 + (is_digit ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (value == 0) refuse("the character 0");
    return value;
  }

  /** Makes the nodes of a tree, and returns the first; `next` follows. */
  int link(const Tree& tree, int next) {
    auto add = [&](Node node) {
      pattern_.nodes_.push_back(std::move(node));
      return static_cast<int>(pattern_.nodes_.size()) - 1;
    };
    switch (tree.kind) {
      case Tree::set:
        return add({.kind = Node::set,
                    .possessive = tree.possessive,
                    .set_index = tree.set_index,
                    .least = tree.least,
                    .most = tree.most,
                    .next = next,
                    .branches = {}});
      case Tree::look:
        return add({.kind = Node::look,
                    .negated = tree.negated,
                    .next = next,
                    .branches = {link(tree.parts[0], kAccept)}});
      case Tree::sequence:
        for (auto part = tree.parts.rbegin(); part != tree.parts.rend(); ++part)
          next = link(*part, next);
        return next;
      case Tree::either:
        break;
    }
    Node node{.kind = Node::branch, .branches = {}};
    for (const Tree& part : tree.parts)
      node.branches.push_back(link(part, next));
    if (tree.least == 0) node.branches.push_back(next);
    return add(std::move(node));
  }

  std::string_view text_;
  Pattern& pattern_;
  size_t at_ = 0;
  int depth_ = 0;
};

// --- the pattern ---

Pattern::Pattern(std::string_view expression) {
  if (expression.size() > kExpression_bytes_max)
    throw std::invalid_argument(fmt::format("it has {} bytes, at most {} are supported",
                                            expression.size(), kExpression_bytes_max));
  Parser(expression, *this).parse();
  check_size();
  index_branches();
}

void Pattern::check_size() const {
  const auto n = static_cast<size_t>(std::ranges::count_if(
      nodes_, [](const Node& node) { return node.kind != Node::set || node.gives_back(); }));
  if (n > kBacktracking_max)
    throw std::invalid_argument(fmt::format(
        "it has {} quantifiers and groups, at most {} are supported", n, kBacktracking_max));
}

Pattern Pattern::literal(std::string_view text) {
  Pattern pattern;
  for (size_t end = text.size(); end > 0;) {
    const char32_t c = previous_code_point(text, end);
    const int n_before = static_cast<int>(pattern.nodes_.size());
    CharSet& set = pattern.sets_.emplace_back();
    set.add(c, c);
    set.close(false);
    pattern.nodes_.push_back({.set_index = n_before, .next = n_before - 1, .branches = {}});
  }
  pattern.branches_.push_back(static_cast<int>(pattern.nodes_.size()) - 1);
  pattern.index_branches();
  return pattern;
}

void Pattern::index_branches() {
  if (branches_.size() > 32) throw std::invalid_argument("it has more than 32 alternatives");
  const std::vector<bool> empty = empty_nodes();
  for (const int branch : branches_)
    if (branch == kAccept || empty[static_cast<size_t>(branch)])
      throw std::invalid_argument("it matches the empty text");
  const auto bits_of = [&](const std::vector<bool>& begins) {
    uint32_t bits = 0;
    for (size_t k = 0; k < branches_.size(); ++k)
      if (begins[static_cast<size_t>(branches_[k])]) bits |= uint32_t{1} << k;
    return bits;
  };
  for (unsigned char c = 0; c < 0x80; ++c)
    ascii_branches_[c] =
        bits_of(beginning_nodes(empty, [c](const CharSet& set) { return set.has_ascii(c); }));
  for (size_t category = 0; category < wide_branches_.size(); ++category)
    wide_branches_[category] = bits_of(beginning_nodes(
        empty, [category](const CharSet& set) { return set.may_have(uint32_t{1} << category); }));
}

/** Nodes from which the end may be reached without a character. */
std::vector<bool> Pattern::empty_nodes() const {
  std::vector<bool> empty(nodes_.size());
  const auto is_empty = [&](int index) {
    return index == kAccept || empty[static_cast<size_t>(index)];
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    empty[i] = node.kind == Node::branch
                   ? std::ranges::any_of(node.branches, is_empty)
                   : (node.kind == Node::look || node.least == 0) && is_empty(node.next);
  }
  return empty;
}

/** Nodes from which on a match may begin with a character that `holds` says a set holds. */
template <typename Holds>
std::vector<bool> Pattern::beginning_nodes(const std::vector<bool>& empty, Holds holds) const {
  std::vector<bool> begins(nodes_.size());
  const auto may_begin = [&](int index) {
    return index == kAccept || begins[static_cast<size_t>(index)];
  };
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (empty[i])
      begins[i] = true;
    else if (node.kind == Node::branch)
      begins[i] = std::ranges::any_of(node.branches, may_begin);
    else
      begins[i] = (node.kind == Node::set && holds(sets_[static_cast<size_t>(node.set_index)])) ||
                  ((node.kind == Node::look || node.least == 0) && may_begin(node.next));
  }
  return begins;
}

namespace {

[[noreturn]] void refuse_steps(std::string_view text) {
  constexpr size_t kShown_bytes = 40;
  const std::string_view shown = text.substr(0, kShown_bytes);
  throw Error(Fault::data, "tokenizer.encode",
              fmt::format("a pattern of the tokenizer tries too many ways through the text '{}{}'",
                          shown, shown.size() < text.size() ? "..." : ""),
              "is tokenizer.json as its maker wrote it? Such a pattern may come of a stranger");
}

}  // namespace

/** The end of the match that begins at `begin`, or kNone. */
size_t Pattern::match(std::string_view text, size_t begin, int64_t& n_steps_left) const {
  uint32_t branches;
  const auto byte = static_cast<unsigned char>(text[begin]);
  if (byte < 0x80) {
    branches = ascii_branches_[byte];
  } else {
    size_t at = begin;
    const Category category = CategoryTable::get().of(next_code_point(text, at));
    branches = wide_branches_[static_cast<size_t>(category)];
  }
  for (; branches != 0; branches &= branches - 1) {
    const int branch = branches_[static_cast<size_t>(std::countr_zero(branches))];
    const size_t end = run(branch, text, begin, n_steps_left);
    if (end != kNone) return end;
  }
  return kNone;
}

/** Calls itself only where it may have to come back, which check_size() bounds. */
size_t Pattern::run(int index, std::string_view text, size_t at, int64_t& n_steps_left) const {
  while (index != kAccept) {
    if (--n_steps_left < 0) refuse_steps(text);
    const Node& node = nodes_[static_cast<size_t>(index)];
    if (node.kind == Node::branch) {
      for (const int branch : node.branches)
        if (const size_t end = run(branch, text, at, n_steps_left); end != kNone) return end;
      return kNone;
    }
    if (node.kind == Node::set) {
      if (node.gives_back()) return run_set(node, text, at, n_steps_left);
      if (take(node, text, at, n_steps_left) < static_cast<size_t>(node.least)) return kNone;
    } else if ((run(node.branches[0], text, at, n_steps_left) != kNone) == node.negated) {
      return kNone;
    }
    index = node.next;
  }
  return at;
}

/** Passes over the characters of the set that are there, as many as the node may take; returns
 * their number. */
size_t Pattern::take(const Node& node,
                     std::string_view text,
                     size_t& at,
                     int64_t& n_steps_left) const {
  const CharSet& set = sets_[static_cast<size_t>(node.set_index)];
  int n = 0;
  while (n < node.most && at < text.size()) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      if (!set.has_ascii(byte)) break;
      ++at;
    } else {
      size_t after = at;
      if (!set.has_wide(next_code_point(text, after))) break;
      at = after;
    }
    ++n;
  }
  n_steps_left -= n;
  return static_cast<size_t>(n);
}

/** Takes all characters of the set that are there, then fewer, until the rest matches too. */
size_t Pattern::run_set(const Node& node,
                        std::string_view text,
                        size_t at,
                        int64_t& n_steps_left) const {
  const auto least = static_cast<size_t>(node.least);
  size_t n = take(node, text, at, n_steps_left);
  if (n < least) return kNone;
  if (node.next == kAccept) return at;
  for (;; --n) {
    const size_t end = run(node.next, text, at, n_steps_left);
    if (end != kNone || n == least) return end;
    previous_code_point(text, at);
  }
}

}  // namespace ferry::text
