#include "src/text/unicode/graphemes.h"

namespace ferry::text {
namespace {

using enum GraphemeClass;

bool is_extend(GraphemeClass c) {
  return c == extend || c == conjunct_extend || c == linker;
}

/** Syllables of Hangul stay whole. */
bool joins_syllable(GraphemeClass before, GraphemeClass next) {
  switch (before) {
    case l:
      return next == l || next == v || next == lv || next == lvt;
    case v:
    case lv:
      return next == v || next == t;
    case t:
    case lvt:
      return next == t;
    default:
      return false;
  }
}

/** What a cluster was so far, as far as it says whether the next character belongs to it. */
class Cluster {
 public:
  explicit Cluster(GraphemeClass first) { add(first); }

  bool takes(GraphemeClass next) const {
    if (last_ == control || next == control) return false;
    if (is_extend(next) || next == zwj || next == spacing_mark) return true;
    if (last_ == prepend || joins_syllable(last_, next)) return true;
    if (next == pictograph) return emoji_ == Emoji::joiner;
    return next == consonant && linked_;
  }

  void add(GraphemeClass next) {
    const bool stays_conjunct = next == conjunct_extend || next == linker || next == zwj;
    linked_ = in_conjunct_ && stays_conjunct && (linked_ || next == linker);
    in_conjunct_ = next == consonant || (in_conjunct_ && stays_conjunct);
    if (next == pictograph)
      emoji_ = Emoji::picture;
    else if (emoji_ == Emoji::picture && next == zwj)
      emoji_ = Emoji::joiner;
    else if (emoji_ != Emoji::picture || !is_extend(next))
      emoji_ = Emoji::none;
    last_ = next;
  }

 private:
  enum class Emoji { none, picture, joiner };
  GraphemeClass last_ = other;
  Emoji emoji_ = Emoji::none;  // a picture and marks, or these and a joiner: where it ends
  bool in_conjunct_ = false;   // where it ends: an Indic consonant, marks and joiners
  bool linked_ = false;        // among them one that links it to the next consonant
};

}  // namespace

size_t cluster_end(std::string_view text, size_t begin, const GraphemeTable& table) {
  size_t end = begin;
  const char32_t first = next_code_point(text, end);
  if (first == '\r' && end < text.size() && text[end] == '\n') return end + 1;
  Cluster cluster(table.of(first));
  while (end < text.size()) {
    size_t next = end;
    const GraphemeClass c = table.of(next_code_point(text, next));
    if (!cluster.takes(c)) break;
    cluster.add(c);
    end = next;
  }
  return end;
}

}  // namespace ferry::text
