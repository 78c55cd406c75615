#pragma once
// BERT with its heads: parameters, Hugging Face names, and the program of every block. Torch-free.

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

}  // namespace ferry
