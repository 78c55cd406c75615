#pragma once
// The five stages of a tokenizer, as Hugging Face `tokenizers` has them: normalizer, pre-tokenizer,
// model, post-processor, decoder. registry.h makes each of a section of tokenizer.json by the name
// of its type; Tokenizer calls them in this order. All are immutable, so any thread may call them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/pieces.h"

namespace ferry::text {

/** Rewrites a text: case, accents, white space. */
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void normalize(NormalizedText& text) const = 0;
};

/** Cuts a text into the pieces that the model sees one by one. */
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  /** Cuts each of the pieces further. It may stop where there are `enough` of them, and drop the
   * rest of the text. */
  virtual void split(Pieces& pieces, size_t enough) const = 0;

  /** Does the model see the pieces' bytes, each as the letter that stands for it in GPT-2's
   * vocabulary? */
  virtual bool gives_bytes() const { return false; }

  /** Does it ask where pieces came from? */
  virtual bool needs_origins() const { return false; }
};

/** Where a model puts its tokens. */
struct TokenSink {
  std::vector<int32_t>& ids;
  std::vector<Span>* spans;  // of the pieces' text, for each id; null: nobody asks

  void push(int32_t id, size_t begin, size_t end) const {
    ids.push_back(id);
    if (spans) spans->push_back(span_of(begin, end));
  }
};

/** Turns pieces into tokens of its vocabulary. */
class Model {
 public:
  virtual ~Model() = default;

  /** Appends the tokens of the pieces; stops after the piece that brings the ids to `enough` or
   * more. */
  virtual void encode(const Pieces& pieces, size_t enough, TokenSink out) const = 0;

  /** Has every piece a token at least? */
  virtual bool fills_every_piece() const = 0;
};

/** The tokens of one text or pair in order: runs of special tokens, and the places of the texts. */
struct Template {
  struct Piece {
    int text = -1;             // 0: the first text, 1: the second, -1: special tokens
    std::vector<int32_t> ids;  // of the special tokens
    int32_t type_id = 0;
  };
  std::vector<Piece> pieces;

  int64_t n_special() const {
    int64_t n = 0;
    for (const Piece& piece : pieces)
      n += static_cast<int64_t>(piece.ids.size());
    return n;
  }
};

/** The tokens of one text before others are put around them. */
struct TextTokens {
  std::string_view text;             // the original
  std::span<const int32_t> ids;      // (tokens)
  std::span<Span> offsets;           // (tokens), in the original
  std::span<const std::string> all;  // the token of every id
  const std::vector<bool>& added;    // of every id: is it sought in the text?
};

/** Puts special tokens around texts, and corrects offsets. */
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  /** Where special tokens go; null: it adds none. */
  virtual const Template* single() const { return nullptr; }
  virtual const Template* pair() const { return nullptr; }
  virtual void trim(TextTokens) const {}
};

/** Makes text of tokens. */
class Decoder {
 public:
  virtual ~Decoder() = default;
  /** Rewrites the tokens so that joined they are the text. */
  virtual void decode(std::vector<std::string>& tokens) const = 0;
};

}  // namespace ferry::text
