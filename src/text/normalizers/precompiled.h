#pragma once
// The normalizers that SentencePiece's models bring along. Precompiled replaces characters by a map
// that the model holds: a double array of 32-bit units finds the text to replace, its leaves say
// where the replacement begins in a blob of texts that each end with a 0. Nmt drops control
// characters and makes blanks of odd white space.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/registry.h"

namespace ferry::text {

class Precompiled final : public Normalizer {
 public:
  /** The map's bytes. Throws std::invalid_argument that says what is wrong with them. */
  explicit Precompiled(std::string_view charsmap);

  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);

  void normalize(NormalizedText& text) const override;

 private:
  template <typename Keep, typename Put>
  void each_change(std::string_view text, Keep keep, Put put) const;
  void check_leaves() const;
  int32_t find(std::string_view chunk) const;
  std::string_view replacement(int32_t place) const { return replacements_.data() + place; }

  std::vector<uint32_t> units_;
  std::string replacements_;
  std::array<int32_t, 128> ascii_;  // places of the replacements, -1: the character stays
};

class Nmt final : public Normalizer {
 public:
  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);
  void normalize(NormalizedText& text) const override;
};

}  // namespace ferry::text
