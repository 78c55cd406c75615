#pragma once
// Decoder-only transformers of two builds: LLaMA's layers (RMSNorm, rotary positions, gated MLP)
// with all that its kin changed about them, and GPT-2's (LayerNorm, learned positions, plain MLP).
// A family's folder fills in the sizes and the names. Torch-free.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/blocks/block_builder.h"
#include "models/family.h"

namespace ferry {

enum class DecoderFamily : uint8_t { llama, gpt2 };

/** How transformers' class of a family reads rotary positions. */
struct RopeReading {
  std::string_view theta_key = "rope_theta";
  double theta = 10000;  ///< where no key has it
  std::string_view partial_key = "partial_rotary_factor";
  double partial = 1;  ///< where no key has it
  /** The class turns a part of each head; else whole heads, whatever the factor says. */
  bool turns_part = false;
  /** original_max_position_embeddings beside the scaling, in whose place it is taken. */
  bool has_original_beside = true;
  int64_t original_positions = 0;  ///< where that key is absent; 0: none
  /** "su" and "yarn" are older names of longrope, the only scaling that there is. */
  bool is_longrope_alone = false;
  /** rope_parameters may have one for each type of layers, which the family's own code reads. */
  bool is_of_each_layer_type = false;
};

/** Widths and counts as Hugging Face's LlamaConfig names them; GPT-2's are translated. */
struct DecoderConfig {
  DecoderFamily family = DecoderFamily::llama;
  int64_t vocab_size = 0;
  int64_t padding_row = -1;  ///< ModelTable::padding_row
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;  ///< a divisor of num_attention_heads; GPT-2 has as many
  int64_t intermediate_size = 0;
  int64_t max_position_embeddings = 0;
  bool tie_word_embeddings = false;  ///< the head's matrix is the embeddings'; GPT-2: always
  float norm_eps = 1e-5f;
  double rope_theta = 10000;    ///< LLaMA, where `rope` says nothing
  float hidden_dropout = 0;     ///< GPT-2: of embeddings and both branches; StableLM: of the MLP
  float attention_dropout = 0;  ///< of attention probabilities
  float head_dropout = 0.1f;    ///< before the logits of tokens' labels
  float initializer_range = 0.02f;
  Activation activation = Activation::gelu;  ///< GPT-2's; LLaMA's gate is `gate`

  std::string name = "llama";   ///< of the family
  std::string stem = "Llama";   ///< of "LlamaForCausalLM"
  std::string classifier_stem;  ///< the same of a classifier of texts; empty: stem
  PrefixInFiles model_prefix;   ///< in place of "model."
  int64_t head_dim = 0;         ///< 0: hidden_size / num_attention_heads
  RopeReading rope_reading;
  std::optional<RopeSpec> rope;         ///< positions of the layers
  std::optional<RopeSpec> window_rope;  ///< and of those with a window, where it is another
  Activation gate = Activation::silu;   ///< of the gated MLP
  bool reads_attention_bias = true;     ///< the class looks at attention_bias
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool has_tag_bias = true;    ///< of the logits of tokens' labels
  bool is_fused = false;       ///< q, k, v are one tensor of the file, gate and up another (Phi-3)
  bool norms_heads = false;    ///< an RMSNorm of each head of queries and keys (Qwen3, Gemma 3)
  bool norms_outputs = false;  ///< an RMSNorm of each branch before it is added (Gemma 2 and 3)
  bool has_layer_norms = false;  ///< LayerNorms in place of RMSNorms (StableLM)
  /** Attention and MLP both take the layer's first norm, and are added up together (StableLM).
   * In GPT-NeoX each takes another norm. */
  bool is_parallel = false;
  float norm_offset = 0;  ///< norms' weights count from it (Gemma: 1)
  ops::EmbeddingRule embedding;
  float branch_factor = 1;             ///< of what each branch adds (Granite)
  double score_scale = 0;              ///< of attention; 0: 1 / sqrt(head width)
  float score_cap = 0;                 ///< of attention's scores; 0: none (Gemma 2)
  ops::LogitsRule logits;              ///< of the vocabulary (Gemma 2, Granite)
  int64_t window = 0;                  ///< tokens that a layer with a window sees
  std::vector<bool> layer_has_window;  ///< empty: all where `window` is set
};

/** Blocks: "embeddings", "layer.0", ..., "head". A shape that the operations cannot compute is our
 * bug: FERRY_CHECK. */
ModelTable make_decoder(const DecoderConfig& config, const TableOptions& options);
/** The same with the head of a language model, whatever the options say. */
ModelTable make_decoder_table(const DecoderConfig& config, const TableOptions& options);

/** The operations of a decoder that draw random numbers. */
enum DecoderRandom {
  decoder_embedding_dropout,
  decoder_attention_probs,
  decoder_attention_output,
  decoder_layer_output,
  decoder_head_dropout
};

/** A layer of LLaMA's build. */
void add_llama_layer(ModelBuilder& builder,
                     int64_t index,
                     const DecoderConfig& config,
                     const ModelTable& model);

/** A layer of GPT-2's build. Names are those of Hugging Face, without ".weight" and ".bias". */
struct GptLayer {
  std::string attention_norm, mlp_norm, output, up, down;
  std::vector<std::string> qkv;  ///< one tensor, or those of query, key and value
  bool has_transposed = false;   ///< the file has its matrices the other way round (Conv1D)
  double residual_factor = 1;    ///< NormalInit::factor of the matrices that end its branches
};
void add_gpt_layer(ModelBuilder& builder,
                   int64_t index,
                   const GptLayer& layer,
                   const DecoderConfig& config,
                   const ModelTable& model);

/** The embeddings of a decoder, then dropout. Names are those of Hugging Face. */
struct DecoderEmbeddings {
  std::string word, position;  ///< position is empty: positions are not learned
  ops::EmbeddingRule rule;
  bool drops = true;
  std::string projection;  ///< from narrow rows of words to the model's width; empty: none
  int64_t word_width = 0;  ///< of those rows
};
void add_decoder_embeddings(ModelBuilder& builder,
                            const ModelTable& model,
                            const DecoderEmbeddings& its);

/** The head of a decoder: the last norm, then the vocabulary on all tokens, of which those without
 * a label give no loss; the logits of each text's last token; or those of each token, for its label
 * or for the places of an answer. Names are those of Hugging Face, without ".weight" and ".bias".
 */
struct DecoderHead {
  std::string norm;        ///< empty: none
  bool is_rms = false;     ///< an RMSNorm, else a LayerNorm
  float norm_offset = 0;   ///< of an RMSNorm
  std::string projection;  ///< from the model's width to that of narrow rows of words; empty: none
  int64_t word_width = 0;  ///< of those rows
  std::string vocabulary = "lm_head";
  bool is_tied = false;             ///< the vocabulary's matrix is the embeddings'
  ops::LogitsRule logits;           ///< of the vocabulary
  bool has_bias = false;            ///< of the vocabulary
  std::string tags = "classifier";  ///< the map to the logits of tokens' labels
  bool has_tag_bias = true;
};
void add_decoder_head(ModelBuilder& builder, const ModelTable& model, const DecoderHead& head);
/** A model with another head than a vocabulary's ignores these weights of a language model. */
void leave_other_logits(ModelTable& model, std::initializer_list<const char*> names);

/** A decoder's table without blocks yet; dropouts of the options come first. Refuses with
 * FERRY_CHECK what no operation computes. */
ModelTable start_decoder(const DecoderConfig& config, const TableOptions& options);

/** One of LLaMA's kin, before its configuration is read: the values that hold where that says
 * nothing. Numbers of 0 have to be there. */
DecoderConfig llama_kin(std::string name, std::string stem);
/** The keys that LLaMA and its kin share; `kin` has the family's own. Rotary positions come from
 * rope_parameters or rope_scaling, and from keys beside these. `gate`: the key of the
 * gated MLP's function. Throws Error(data) as Family::table does. */
DecoderConfig read_llama_like(const JsonReader& config,
                              const TableOptions& options,
                              DecoderConfig kin,
                              std::string_view gate = "hidden_act");
/** classifier_dropout, or else hidden_dropout, as transformers reads them for tokens' labels;
 * `otherwise` where the configuration has neither, which is the default of the class. */
float read_head_dropout(const JsonReader& config, const TableOptions& options, float otherwise);
/** Names of a family whose model that answers questions begins with "transformer." in files. */
PrefixInFiles prefix_of_answers(const TableOptions& options);
/** rope_scaling, or else rope_parameters, where one of them is there and not empty. */
std::optional<JsonReader> find_rope(const JsonReader& config);
/** Rotary positions of heads so wide, as `rope` (what find_rope() gives, or a part of that) and the
 * configuration say. */
RopeSpec read_rope(const JsonReader& config,
                   const std::optional<JsonReader>& rope,
                   int64_t head_width,
                   int64_t max_positions,
                   const RopeReading& reading);
/** layer_types: which layers have a window; `otherwise` where the key is absent. */
std::vector<bool> read_layers_with_window(const JsonReader& config,
                                          int64_t n_layers,
                                          std::vector<bool> otherwise);

/** sliding_window: tokens that a layer with a window sees; 0 for null, which is none. */
int64_t read_window(const JsonReader& config, int64_t otherwise);

/** The window that layers from max_window_layers on have, where use_sliding_window says so (Qwen).
 */
void read_window_of_last_layers(const JsonReader& config, DecoderConfig& its);

/** The heads of decoders, as far as transformers has them: families take a part. */
struct DecoderHeads {
  using enum HeadKind;
  static constexpr HeadKind kAll[] = {causal_lm, classification, token_classification,
                                      question_answering};
  static constexpr HeadKind kWithoutTags[] = {causal_lm, classification, question_answering};
  static constexpr std::span kWithoutAnswers = std::span(kAll).first<3>();
  static constexpr std::span kOfTexts = std::span(kAll).first<2>();
  static constexpr std::span kOfWords = std::span(kAll).first<1>();
};

// Shapes that Ferry is measured with.

/** Llama's layers: 3,015 M parameters. */
DecoderConfig llama_3g();
/** GPT-2's layers: 12,845 M parameters. */
DecoderConfig gpt2_13g();

}  // namespace ferry
