#pragma once
// ByteLevel gives the model bytes. Before that it may put a blank in front of a text that has none,
// and cut it as GPT-2 does, into words with the blank before them.

#include <memory>
#include <optional>
#include <utility>

#include "src/text/pre_tokenizers/split.h"
#include "src/text/registry.h"

namespace ferry::text {

/** Puts a blank before each piece that begins with none. */
void put_blank_before(Pieces& pieces);

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex);

  static std::unique_ptr<PreTokenizer> read(const JsonReader& section, const StageContext& context);

  void split(Pieces& pieces, size_t enough) const override;
  bool gives_bytes() const override { return true; }
  /** Does it put a blank before a text that begins with none? */
  bool adds_prefix_space() const { return add_prefix_space_; }
  /** The same with another first blank. */
  std::unique_ptr<PreTokenizer> with_prefix_space(bool add_prefix_space) const {
    return std::make_unique<ByteLevel>(add_prefix_space, words_.has_value());
  }

 private:
  bool add_prefix_space_;
  std::optional<Split> words_;
};

}  // namespace ferry::text
