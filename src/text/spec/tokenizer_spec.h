#pragma once
// TokenizerSpec is what a model directory's files say about its tokenizer, checked:
// read_tokenizer_spec reads them, the Tokenizer is built from it. No other code knows the files'
// formats.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "src/text/added_tokens.h"
#include "src/text/stages.h"

namespace ferry {
class JsonReader;
}

namespace ferry::text {

class KnownTokens;

struct TokenizerSpec {
  std::filesystem::path file;  // the one that it was read from, for messages
  std::shared_ptr<const CharTable> table = std::make_shared<const CharTable>();
  std::vector<std::string> vocabulary;  // the model's token of each id; no two equal
  size_t n_holes = 0;                   // ids of it without a token, which are empty
  std::vector<AddedToken>
      added;  // an id is the vocabulary's of the same content, or KnownTokens::next_id()

  std::shared_ptr<const Normalizer> normalizer;         // null: the text as it is
  std::shared_ptr<const PreTokenizer> pre_tokenizer;    // null: one piece
  std::shared_ptr<const Model> model;                   // always there
  std::shared_ptr<const PostProcessor> post_processor;  // null: nothing is added
  std::shared_ptr<const Decoder> decoder;               // null: tokens with blanks between them

  bool truncates_left = false;  // texts that are too long lose their beginning

  /** The names of the special tokens; they need not be in the vocabulary. */
  std::string cls = "[CLS]", sep = "[SEP]", pad = "[PAD]", unk = "[UNK]", mask = "[MASK]", bos, eos;
};

/** Is there a file that read_tokenizer_spec reads? */
bool has_tokenizer(const std::filesystem::path& model_dir);

/** Does transformers go by tokenizer_config.json's add_prefix_space, whatever tokenizer.json says?
 * Off where that says nothing. */
bool has_configured_prefix_space(const std::filesystem::path& model_dir);

/** The files in a directory that read_tokenizer_spec may read, by name; of config.json it takes the
 * type of model. */
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& model_dir);

/** Reads `tokenizer.json`, or else `vocab.txt`, `vocab.json` with `merges.txt`, a file of ranks or
 * a SentencePiece model, and `tokenizer_config.json` if it is there. Throws Error (data). */
TokenizerSpec read_tokenizer_spec(const std::filesystem::path& model_dir);

/** The parts of it: each reads spec.file. `config`: tokenizer_config.json's, or null. Where that
 * has no added_tokens_decoder, as releases before 4.34 wrote it, it has the keys of
 * special_tokens_map.json, too, and under kAddedTokensFile what that file holds. */
inline constexpr const char* kAddedTokensFile = "added_tokens.json";
void read_tokenizer_json(const JsonReader* config, TokenizerSpec& spec);
void read_vocab_txt(const JsonReader* config, TokenizerSpec& spec);
void read_vocab_merges(const std::filesystem::path& model_dir,
                       const JsonReader* config,
                       TokenizerSpec& spec);

void read_sentence_piece(const std::filesystem::path& model_dir,
                         const JsonReader* config,
                         TokenizerSpec& spec);
void read_rank_file(const std::filesystem::path& model_dir,
                    const JsonReader* config,
                    TokenizerSpec& spec);

/** Is the file one of tiktoken's, by its first line? */
bool holds_ranks(const std::filesystem::path& file);

/** The tokenizer's class in tokenizer_config.json, without "Fast"; if it has none, the type of
 * model in config.json. Either may be empty. */
struct TokenizerClass {
  std::string name, model_type;
};
TokenizerClass read_class(const std::filesystem::path& model_dir, const JsonReader* config);

/** An Error (data): no stages are known for the class. */
[[noreturn]] void fail_unknown_class(const std::filesystem::path& file,
                                     const TokenizerClass& found);

/** The names of the special tokens in tokenizer_config.json: "[CLS]", or {"content": "[CLS]"}. */
void read_names(const JsonReader& config, TokenizerSpec& spec);

/** Beginning and end as the configuration wants them; `adds_bos`: if it does not say. */
std::unique_ptr<PostProcessor> bos_and_eos(const JsonReader* config,
                                           bool adds_bos,
                                           const KnownTokens& known,
                                           const TokenizerSpec& spec);

/** The names of special tokens that go with vocab.json and merges.txt unless others are given. */
void set_byte_level_names(const std::filesystem::path& model_dir,
                          const JsonReader* config,
                          TokenizerSpec& spec);

/** Adds the tokens of the configuration, then its special ones, as transformers does. `fills_gaps`:
 * ids between those that are given become reserved tokens. */
void add_configured_tokens(const JsonReader* config,
                           KnownTokens& known,
                           TokenizerSpec& spec,
                           bool fills_gaps = false);
/** Adds the special tokens of the spec that the vocabulary has: a tokenizer's class names them
 * where no file does. */
void add_usual_tokens(KnownTokens& known, TokenizerSpec& spec);

/** Gives the spec a token beyond its model's vocabulary, or one of it that is sought in the text.
 */
void add_token(AddedToken token, KnownTokens& known, TokenizerSpec& spec);

}  // namespace ferry::text
