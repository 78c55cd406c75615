#pragma once
// The blocks that BERT and its kin share: a layer with LayerNorms behind attention and MLP (Devlin
// et al. 2018), and the heads that transformers puts on it. Families give sizes and names.
// Torch-free.

#include <optional>
#include <string>
#include <string_view>

#include "models/blocks/block_builder.h"
#include "models/family.h"

namespace ferry {

/** One layer. Names are those of Hugging Face, without ".weight" and ".bias". */
struct EncoderLayer {
  int64_t width = 0, intermediate = 0, n_heads = 0;
  Activation activation = Activation::gelu;
  bool is_causal = false;  ///< a token sees only itself and those before it
  std::string query, key, value, attention_output, attention_norm, up, down, norm;
};

/** With BERT's names; `stem` is "bert", "roberta", ... */
EncoderLayer bert_like_layer(
    const std::string& stem, int64_t index, int64_t width, int64_t intermediate, int64_t n_heads);

/** The operations of a model that draw random numbers, beside those of its embeddings. */
enum EncoderRandom {
  embedding_dropout,
  attention_probs,
  attention_output,
  layer_output,
  head_dropout,
  second_head_dropout
};

/** Norms and dropouts are as the table says. */
void add_encoder_layer(ModelBuilder& builder,
                       int64_t index,
                       const EncoderLayer& layer,
                       const ModelTable& model);

/** A LayerNorm's parameters in a file; very old checkpoints say gamma and beta. */
HfName norm_weight_name(const std::string& hf, bool optional = false);
HfName norm_bias_name(const std::string& hf, bool optional = false);

/** The classifier of texts: dropout, dense, an activation, dropout, logits of each text's first
 * token. */
struct TextClassifier {
  std::string dense, logits;
  std::optional<Activation> activation;  ///< nullopt: tanh
  bool drops_first = false;
};

/** Dense, gelu, norm, then the embeddings' matrix and a bias, on the tokens that have a label. */
struct MaskedLmHead {
  int64_t width = 0;  ///< of the embeddings' rows
  Activation activation = Activation::gelu;
  std::string dense, norm, bias, decoder;
};

/** The last block, by the model's head. A head of token labels is dropout and the logits of each
 * token; one of answers is a linear map to two logits a token, start and end, which may drop first.
 */
struct EncoderHeads {
  TextClassifier classifier;
  MaskedLmHead masked_lm;
  bool answers_drop = false;
};
void add_encoder_head(ModelBuilder& builder, const ModelTable& model, const EncoderHeads& heads);

/** The facts of an encoder that its table begins with. */
struct EncoderFacts {
  std::string family, stem;  ///< "bert", "Bert" of "BertForMaskedLM"
  int64_t width = 0, n_heads = 0, max_positions = 0, vocab_size = 0;
  int64_t padding_row = -1;   ///< ModelTable::padding_row
  int64_t n_token_types = 0;  ///< 0: types of tokens are not read
  float norm_eps = 1e-12f, init_std = 0.02f;
  float hidden_dropout = 0, attention_dropout = 0;
  std::optional<float> head_dropout;  ///< absent: hidden_dropout
};
/** Refuses what no encoder of Ferry's computes: a decoder, relative positions, and for a masked
 * language model a head with a matrix of its own. */
void check_encoder(const JsonReader& config, const TableOptions& options);
/** A table without blocks yet; dropouts of the options come first. */
ModelTable start_encoder(const EncoderFacts& facts, const TableOptions& options);

/** Family::old_buffers of encoders. */
inline constexpr std::string_view kEncoderBuffers[] = {"embeddings.position_ids",
                                                       "embeddings.token_type_ids"};

/** The heads of encoders. */
inline constexpr HeadKind kEncoderHeads[] = {HeadKind::classification, HeadKind::masked_lm,
                                             HeadKind::token_classification,
                                             HeadKind::question_answering};

}  // namespace ferry
