#pragma once
// The blocks that BERT and its kin share: a layer with LayerNorms behind attention and MLP (Devlin
// et al. 2018), and the heads that transformers puts on it. Families give sizes and names.
// Torch-free.

#include <optional>
#include <string>

#include "models/core/block_builder.h"
#include "models/family.h"

namespace ferry {

/** One layer. Names are those of Hugging Face, without ".weight" and ".bias". */
struct EncoderLayer {
  int64_t width = 0, intermediate = 0, n_heads = 0;
  Activation activation = Activation::gelu;
  std::string query, key, value, attention_output, attention_norm, up, down, norm;
};

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
void add_text_classifier(ModelBuilder& builder,
                         const ModelTable& model,
                         const TextClassifier& head);

/** Dropout, and the logits of each token. */
void add_token_classifier(ModelBuilder& builder, const ModelTable& model);

/** One linear map to two logits a token: start and end of the answer. */
void add_question_answering(ModelBuilder& builder, const ModelTable& model, bool drops = false);

/** Dense, gelu, norm, then the embeddings' matrix and a bias, on the tokens that have a label. */
struct MaskedLmHead {
  int64_t width = 0;  ///< of the embeddings' rows
  Activation activation = Activation::gelu;
  std::string dense, norm, bias, decoder;
};
void add_masked_lm(ModelBuilder& builder, const ModelTable& model, const MaskedLmHead& head);

/** The outputs of a head. */
int64_t n_labels_of(const TableOptions& options);

}  // namespace ferry
