#pragma once
// Unicode's normal forms NFD, NFC, NFKD and NFKC, with the decompositions of `tokenizers`, and
// Sequence, which calls normalizers one after the other. Only the parts of a text that may change
// are looked at closely: what is between two characters that stay by themselves.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/text/registry.h"

namespace ferry::text {

class NormalForm final : public Normalizer {
 public:
  NormalForm(bool compatible, bool composes, std::shared_ptr<const CharTable> table);

  /** The type says which. */
  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);

  void normalize(NormalizedText& text) const override;

 private:
  /** A character on its way, with its change as ChangeWriter takes it. */
  struct Point {
    char32_t c;
    int combining_class;
    int change;
  };

  bool is_stable(char32_t c) const { return !unstable_[c]; }
  void decompose(std::string_view part, std::vector<Point>& points) const;
  void add(char32_t c, int change, std::vector<Point>& points) const;
  static void compose(std::vector<Point>& points);

  bool compatible_, composes_;
  std::shared_ptr<const CharTable> table_;
  std::vector<bool> unstable_;  // by code point: it may change, or what is before it
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> parts)
      : parts_(std::move(parts)) {}

  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);

  void normalize(NormalizedText& text) const override {
    for (const auto& part : parts_)
      part->normalize(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace ferry::text
