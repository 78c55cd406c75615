#pragma once
// The tensor table of BERT with its heads: parameters, Hugging Face names, saved tensors and
// scratch of every block. Torch-free; models/bert/bert.cpp computes what is declared here, and
// indexes parameters and saved tensors by the enums below.

#include <cstdint>
#include <optional>

#include "models/bert/bert_config.h"
#include "models/tensor_table.h"

namespace ferry {

/** BERT has every kind of head. */
using BertHead = HeadKind;

struct BertTableOptions {
  BertHead head = BertHead::classification;
  int64_t n_labels = 2;  ///< labels of a classification head, of sequences or tokens
  DType compute = DType::f32;
  AttentionBackend attention = AttentionBackend::cpu_math;
  std::optional<float> hidden_dropout;  ///< these three: in place of the configuration's
  std::optional<float> attention_dropout;
  std::optional<float> classifier_dropout;
  /** Decides what the backward pass of flash attention allocates. It is more than any GPU has, so
   * that a plan holds on all of them. */
  int gpu_multiprocessors = 192;
};

/** Blocks: "embeddings", "layer.0", ..., "head". */
ModelTable make_bert_table(const BertConfig& config, const BertTableOptions& options);

namespace bert {

// Parameters and saved tensors by their place in the block. W: width, F: intermediate size, V:
// vocabulary, L: labels, H: heads.
namespace embeddings {
enum Param { word, position, token_type, norm_weight, norm_bias };
enum Saved { mean, rstd };
}  // namespace embeddings

namespace layer {
enum Param {
  qkv_weight,              // (3W, W)
  qkv_bias,                // (3W)
  attention_dense_weight,  // (W, W)
  attention_dense_bias,    // (W)
  attention_norm_weight,   // (W)
  attention_norm_bias,     // (W)
  up_weight,               // (F, W)
  up_bias,                 // (F)
  down_weight,             // (W, F)
  down_bias,               // (W)
  norm_weight,             // (W)
  norm_bias,               // (W)
};
enum Saved {
  qkv,              // (T, 3W)
  context,          // (T, W): what attention gives
  attention_sum,    // (T, W): before the first norm
  attention_mean,   // (T) fp32
  attention_rstd,   // (T) fp32
  up,               // (T, F): before gelu
  sum,              // (T, W): before the second norm
  mean,             // (T) fp32
  rstd,             // (T) fp32
  attention_state,  // the tensors that attention itself keeps; one or two
                    // (models/ops/scratch_sizes.h)
};
}  // namespace layer

namespace classifier {
enum Param { pooler_weight, pooler_bias, weight, bias };
enum Saved {
  pooled,  // (n_seqs, W): after tanh, before dropout
  logits,  // (n_seqs, L) fp32
};
}  // namespace classifier

namespace token_classifier {
enum Param { weight, bias };
enum Saved { logits };  // (T, L) fp32
}  // namespace token_classifier

namespace question_answering {
enum Param { weight, bias };  // of the start, of the end
enum Saved {
  logits,  // (2, T) fp32: of every token as the start, then as the end
  lse,     // (n_seqs, 2) fp32: log of the sum of exponentials over a sequence
};
}  // namespace question_answering

namespace masked_lm {
/** `word` is borrowed from the embeddings. */
enum Param { dense_weight, dense_bias, norm_weight, norm_bias, decoder_bias, word };
enum Saved {
  dense,  // (T, W): before gelu
  gelu,   // (T, W): before the norm
  mean,   // (T) fp32
  rstd,   // (T) fp32
  lse,    // (T) fp32: log of the sum of exponentials of a row's logits
};
}  // namespace masked_lm

/** Operations of a block that draw random numbers: RandomKey::of takes these. */
enum Operation { embedding_dropout, attention_probs, attention_output, layer_output, head_dropout };

}  // namespace bert
}  // namespace ferry
