#include "src/text/normalizers/bert_normalizer.h"

#include <optional>
#include <utility>

#include "src/text/normalizers/canonical_order.h"

namespace ferry::text {

BertNormalizer::BertNormalizer(BertNormalizerOptions options,
                               std::shared_ptr<const CharTable> table)
    : options_(options), table_(std::move(table)) {
  for (size_t i = 0; i < ascii_.size(); ++i) {
    const auto c = static_cast<char>(i);
    const uint8_t flags = table_->flags(static_cast<char32_t>(i));
    if (options_.clean_text && (flags & CharTable::kRemoved))
      ascii_[i] = kDrop;
    else if (options_.clean_text && (flags & CharTable::kSpace))
      ascii_[i] = ' ';
    else if (options_.lowercase && c >= 'A' && c <= 'Z')
      ascii_[i] = static_cast<char>(c - 'A' + 'a');
    else
      ascii_[i] = c;
  }
}

std::unique_ptr<Normalizer> BertNormalizer::read(const JsonReader& section,
                                                 const StageContext& context) {
  BertNormalizerOptions options;
  options.clean_text = section.flag("clean_text");
  options.handle_chinese_chars = section.flag("handle_chinese_chars");
  options.lowercase = section.flag("lowercase");
  const std::optional<JsonReader> strip = section.find("strip_accents");
  options.strip_accents = strip ? strip->flag() : options.lowercase;
  return std::make_unique<BertNormalizer>(options, context.table);
}

/** One pass over a text: each character in Hugging Face's order is cleaned, set apart if Chinese,
 * decomposed, stripped, lowered. */
template <typename Out>
class BertNormalizer::Pass {
 public:
  Pass(const BertNormalizer& normalizer, Out& out)
      : options_(normalizer.options_),
        table_(*normalizer.table_),
        ascii_(normalizer.ascii_),
        out_(out),
        order_(Strip{this}) {}

  void run() {
    const std::string_view text = out_.source();
    for (size_t i = 0; i < text.size();) {
      const size_t at = i;
      if (static_cast<unsigned char>(text[i]) >= 0x80) {
        const char32_t c = next_code_point(text, i);
        append(c, out_.origin(at, i));
        continue;
      }
      do
        ++i;
      while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80);
      append_ascii(at, i);
    }
    order_.flush();
  }

 private:
  void append_ascii(size_t begin, size_t end) {
    const std::string_view text = out_.source();
    if constexpr (!Out::aligned) {
      while (begin < end && !kept(text[begin]))
        ++begin;
      if (begin == end) return;
      order_.flush();  // a starter comes
      out_.map(begin, end, [this](char byte, char& c) {
        c = ascii_[static_cast<unsigned char>(byte)];
        return c != kDrop || kept(byte);
      });
    } else {
      for (size_t i = begin; i < end; ++i) {
        if (!kept(text[i])) continue;
        const Span origin = out_.origin(i, i + 1);
        order_.pass(origin);
        out_.put(ascii_[static_cast<unsigned char>(text[i])], origin);
      }
    }
  }

  bool kept(char byte) const {
    return ascii_[static_cast<unsigned char>(byte)] != kDrop || (byte == 0 && !options_.clean_text);
  }

  /** One character beyond ASCII. */
  void append(char32_t c, Span origin) {
    const uint8_t flags = table_.flags(c);
    if (options_.clean_text) {
      if (flags & CharTable::kRemoved) return;
      if (flags & CharTable::kSpace) {
        blank(origin);
        return;
      }
    }
    const bool apart = options_.handle_chinese_chars && (flags & CharTable::kCjk);
    if (apart) blank(origin);
    if (options_.strip_accents)
      decompose(c, flags, origin);
    else
      append_lowered(c, origin);
    if (apart) blank(origin);
  }

  void blank(Span origin) {
    order_.pass(origin);
    out_.put(' ', origin);
  }

  void decompose(char32_t c, uint8_t flags, Span origin) {
    Mapping points;
    if (flags & CharTable::kDecomposes)
      points = decomposition(c);
    else
      points = {{c}, 1};
    bool first = true;
    for (const char32_t point : points) {
      const uint8_t point_flags = table_.flags(point);
      const bool combines = point_flags & CharTable::kCombines;
      // Accents go. Where origins are kept they first take their places in the order, as Hugging
      // Face strips them after it.
      if (Out::aligned || !combines || !(point_flags & CharTable::kAccent))
        order_.add(point, combines ? combining_class(point) : 0, origin, first);
      first = false;
    }
  }

  void append_lowered(char32_t c, Span origin) {
    if (!options_.lowercase || !(table_.flags(c) & CharTable::kHasLower)) {
      out_.put(c, origin);
      return;
    }
    for (const char32_t lower : lower_case(c))
      out_.put(lower, origin);
  }

  struct Strip {
    Pass* pass;
    void operator()(char32_t c, Span origin) const {
      if (!(pass->table_.flags(c) & CharTable::kAccent)) pass->append_lowered(c, origin);
    }
  };

  const BertNormalizerOptions& options_;
  const CharTable& table_;
  const std::array<char, 128>& ascii_;
  Out& out_;
  CanonicalOrder<Strip> order_;
};

void BertNormalizer::normalize(NormalizedText& text) const {
  text.rewrite([this](auto& out) { Pass(*this, out).run(); });
}

}  // namespace ferry::text
