#pragma once
// A family of transformers: the models of one model_type of Hugging Face. It reads their
// config.json, and writes each block's forward (models/blocks/block_builder.h). models/families.cpp
// lists them all; nothing else knows one family from another. Torch-free.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/blocks/vocabulary_cut.h"
#include "models/core/tensor_table.h"
#include "src/base/json/json_reader.h"

namespace ferry {

/** The choices of a run that a table depends on. */
struct TableOptions {
  HeadKind head = HeadKind::classification;
  int64_t n_labels = 2;  ///< labels of a classification head, of sequences or tokens
  DType compute = DType::f32;
  AttentionBackend attention = AttentionBackend::cpu_math;
  std::optional<float> hidden_dropout;  ///< these three: in place of the configuration's
  std::optional<float> attention_dropout;
  std::optional<float> classifier_dropout;
  /** Decides what the backward pass of flash attention allocates. It is more than any GPU has, so
   * that a plan holds on all of them. */
  int gpu_multiprocessors = 192;
  Sharing sharing = {};
  /** Elements from which on a table of words is cut. */
  int64_t piece_elements_max = kPieceElements_max;
  VocabularyCut cut;  ///< set by make_table()
};

struct DecoderConfig;

struct Family {
  std::string_view model_type;  ///< of config.json
  bool is_decoder = false;      ///< a token sees only those before it
  std::span<const HeadKind> heads;
  /** The ends of names of tensors that old files have and no release of transformers writes any
   * more: masks, positions and frequencies, which follow from the configuration. */
  std::span<const std::string_view> old_buffers = {};
  /** Blocks: "embeddings", "layer.0", ..., "head". Throws Error(data) that names file and key for a
   * key that is missing, of a wrong type or out of range, or for a value that Ferry does not
   * compute. The head is one of `heads`. */
  ModelTable (*table)(const JsonReader& config, const TableOptions& options);
  /** The same configuration as the settings of a decoder (models/decoder/decoder_table.h), for
   * formats of other programs that write them down. Null where nobody asks for them. */
  DecoderConfig (*decoder)(const JsonReader& config, const TableOptions& options) = nullptr;
};

std::span<const Family> families();
/** Throws Error(data) where the family is none of Ferry's. */
const Family& family_of(const JsonReader& config);

/** One of Family::old_buffers; no tensor of a family that is none of Ferry's. */
bool is_old_buffer(std::string_view model_type, std::string_view name);

/** The head that a model's files have: a prompt's is the family's language model. */
HeadKind head_in_files(const Family& family, HeadKind head);

/** The family's table, with a head that it has, of a configuration that holds nothing else that
 * could change what the model computes: else Error(data) names the key, or Error(usage) the head.
 */
ModelTable make_table(const JsonReader& config, const TableOptions& options);

/** "classification", ... as the option task and errors name heads. */
std::string_view name_of(HeadKind head);
/** transformers' class of a model with the head: "Bert" gives "BertForMaskedLM". */
std::string architecture_of(std::string_view stem, HeadKind head);

}  // namespace ferry
