#pragma once
// Models that no family has, made of what families are made of: a T5 with cross-attention and a
// bias that all layers share, and a Mixtral whose experts are blocks of their own. They prove that
// blocks can be so; names of parameters are those of transformers' classes.

#include <string_view>

#include "models/core/tensor_table.h"

namespace ferry::test {

enum class Made {
  encoder_decoder,  ///< T5ForConditionalGeneration, whose streams and head have one table of words
  encoder_decoder_of_features,  ///< the same; its encoder reads rows of numbers in place of ids
  experts,  ///< MixtralForCausalLM of four experts, two a token, with balance loss
};
inline constexpr std::string_view kMadeNames[] = {"encoder_decoder", "encoder_decoder_of_features",
                                                  "experts"};

/** Sizes that the tests of transformers' classes know, too. */
struct MadeSizes {
  int64_t vocab = 211, width = 64, layers = 2, heads = 4, inner = 96;
  int64_t buckets = 8, max_distance = 20;            ///< of the encoder-decoder
  int64_t kv_heads = 2, experts = 4, per_token = 2;  ///< of the experts
  double balance = 0.02;
};

ModelTable made_model(Made which, DType compute, AttentionBackend attention);

}  // namespace ferry::test
