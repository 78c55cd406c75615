#pragma once
// Normalizers that put text in the place of other text: Replace of a pattern's matches, Prepend,
// Strip of white space at the ends, Lowercase, StripAccents.

#include <memory>
#include <string>
#include <utility>

#include "src/text/pattern.h"
#include "src/text/registry.h"

namespace ferry::text {

class Replace final : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);
  void normalize(NormalizedText& text) const override;

 private:
  Pattern pattern_;
  std::string content_;
};

/** Puts a text before one that is not empty. */
class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);
  void normalize(NormalizedText& text) const override;

 private:
  std::string prefix_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right, std::shared_ptr<const CharTable> table)
      : left_(left), right_(right), table_(std::move(table)) {}
  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);
  void normalize(NormalizedText& text) const override;

 private:
  bool left_, right_;
  std::shared_ptr<const CharTable> table_;
};

class Lowercase final : public Normalizer {
 public:
  explicit Lowercase(std::shared_ptr<const CharTable> table) : table_(std::move(table)) {}
  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);
  void normalize(NormalizedText& text) const override;

 private:
  std::shared_ptr<const CharTable> table_;
};

/** Removes combining marks; those of composed letters stay. */
class StripAccents final : public Normalizer {
 public:
  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);
  void normalize(NormalizedText& text) const override;
};

}  // namespace ferry::text
