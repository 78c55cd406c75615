#pragma once
// The texts that flow from stage to stage of a tokenizer. NormalizedText is a part of a text as the
// normalizers leave it, with the bytes of the original that each of its bytes came from; Pieces
// adds the words that the pre-tokenizers cut it into. Origins are kept only where offsets are
// wanted: training goes without. Owned by the caller of encode, so that its memory is kept.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/unicode/unicode.h"

namespace ferry::text {

/** Bytes [begin, end) of a text. */
struct Span {
  uint32_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
  size_t size() const { return end - begin; }
};

inline Span span_of(size_t begin, size_t end) {
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

/** The most that a tokenizer may make of a text of so many bytes. Normal forms make eleven of one;
 * only replacements of a tokenizer that means harm, one after the other, come here. */
inline size_t most_bytes_of(size_t n_bytes) {
  constexpr size_t kLeast = 1 << 20, kTimes = 64;
  return kLeast + kTimes * n_bytes;
}
/** Throws Error(data): a text became larger than that. */
[[noreturn]] void refuse_growth(size_t n_bytes);

class NormalizedText {
 public:
  NormalizedText() = default;
  /** A copy is empty: it keeps no memory of the other's. */
  NormalizedText(const NormalizedText&) {}
  NormalizedText& operator=(const NormalizedText&) { return *this; }

  /** A part of the original, where it begins at byte `at`. The part has to outlive this. */
  void assign(std::string_view part, size_t at, bool aligned, bool continues = false) {
    text_ = part;
    at_ = at;
    aligned_ = aligned;
    continues_ = continues;
    origins_ = nullptr;
    n_bytes_max_ = most_bytes_of(part.size());
  }

  /** Bytes [begin, end) of another one, which has to outlive this as it is. */
  void assign(const NormalizedText& whole, size_t begin, size_t end);

  std::string_view text() const { return text_; }
  /** Where in the original the part begins. */
  size_t at() const { return at_; }
  /** Are origins known? */
  bool aligned() const { return aligned_; }
  /** It begins inside of a longer text that was cut: nothing is put in front of it. */
  bool continues() const { return continues_; }

  /** The bytes of the original that text()[begin, end) came from: whole characters. It has to be
   * aligned, begin < end. */
  Span origin(size_t begin, size_t end) const;

  /** Writes a new text: `body` is called with a Rewriter, of which `if constexpr (aligned)` says
   * whether it wants origins. */
  template <typename Body>
  void rewrite(Body body);

 private:
  template <bool>
  friend class Rewriter;

  std::string_view text_;
  const Span* origins_ = nullptr;  // of each byte; null: the text is the original's
  size_t at_ = 0;
  size_t n_bytes_max_ = most_bytes_of(0);  // that it may become
  bool aligned_ = false, continues_ = false;
  std::string bytes_, next_bytes_;  // of the text that was written last, and is being written
  std::vector<Span> origins_kept_, next_origins_;
};

/** Writes the new text of a NormalizedText from left to right. */
template <bool kAligned>
class Rewriter {
 public:
  static constexpr bool aligned = kAligned;

  explicit Rewriter(NormalizedText& text) : text_(text) {
    text_.next_bytes_.clear();
    text_.next_bytes_.reserve(text_.text_.size());
    text_.next_origins_.clear();
  }

  /** The old text. */
  std::string_view source() const { return text_.text_; }
  /** The bytes of the original that source()[begin, end) came from. */
  Span origin(size_t begin, size_t end) const {
    if constexpr (kAligned)
      return text_.origin(begin, end);
    else
      return {};
  }

  void put(char byte, Span origin) {
    text_.next_bytes_.push_back(byte);
    if constexpr (kAligned) text_.next_origins_.push_back(origin);
  }
  void put(char32_t c, Span origin) {
    append_utf8(text_.next_bytes_, c);
    if (text_.next_bytes_.size() > text_.n_bytes_max_) refuse_growth(text_.n_bytes_max_);
    if constexpr (kAligned) text_.next_origins_.resize(text_.next_bytes_.size(), origin);
  }
  /** All of the bytes come from `origin`. */
  void put(std::string_view bytes, Span origin) {
    text_.next_bytes_ += bytes;
    if (text_.next_bytes_.size() > text_.n_bytes_max_) refuse_growth(text_.n_bytes_max_);
    if constexpr (kAligned) text_.next_origins_.resize(text_.next_bytes_.size(), origin);
  }
  /** Bytes of the old text, one for one: map(byte, c) sets c, and says whether it stays. Without
   * origins. */
  template <typename Map>
  void map(size_t begin, size_t end, Map map) {
    static_assert(!kAligned);
    std::string& bytes = text_.next_bytes_;
    const size_t size = bytes.size();
    bytes.resize(size + (end - begin));
    char* next = bytes.data() + size;
    for (size_t i = begin; i < end; ++i)
      next += map(text_.text_[i], *next);
    bytes.resize(static_cast<size_t>(next - bytes.data()));
  }
  /** Bytes of the old text as they are, each from where it came. */
  void keep(size_t begin, size_t end) {
    text_.next_bytes_ += source().substr(begin, end - begin);
    if constexpr (kAligned)
      for (size_t i = begin; i < end; ++i)
        text_.next_origins_.push_back(origin(i, i + 1));
  }
  /** How much is written. */
  size_t size() const { return text_.next_bytes_.size(); }

 private:
  NormalizedText& text_;
};

template <typename Body>
void NormalizedText::rewrite(Body body) {
  if (aligned_) {
    Rewriter<true> out(*this);
    body(out);
  } else {
    Rewriter<false> out(*this);
    body(out);
  }
  bytes_.swap(next_bytes_);
  origins_kept_.swap(next_origins_);
  text_ = bytes_;
  origins_ = aligned_ ? origins_kept_.data() : nullptr;
}

struct Pieces {
  NormalizedText text;
  std::vector<Span> spans;  // of text.text(), none empty, in order

  /** The text is one piece, or none if it is empty. */
  void start() {
    spans.clear();
    if (!text.text().empty()) spans.push_back(span_of(0, text.text().size()));
  }

  /** The piece begins inside of a longer text that was cut. */
  bool continues(Span piece) const { return piece.begin == 0 && text.continues(); }

  /** Cuts each piece anew: cut(piece) pushes its parts to spans. */
  template <typename Cut>
  void refine(Cut cut) {
    before_.swap(spans);
    spans.clear();
    for (const Span piece : before_)
      cut(piece);
  }

  /** Writes the text anew piece by piece: write(out, piece) puts what becomes of it. */
  template <typename Write>
  void rewrite(Write write) {
    before_.swap(spans);
    spans.clear();
    text.rewrite([&](auto& out) {
      for (const Span piece : before_) {
        const size_t begin = out.size();
        write(out, piece);
        if (out.size() > begin) spans.push_back(span_of(begin, out.size()));
      }
    });
  }

 private:
  std::vector<Span> before_;
};

}  // namespace ferry::text
