#pragma once
// A block as a program: its forward written once, operations on named values, by a family with a
// BlockBuilder (block_builder.h). Everything else about the block follows from it: what its
// backward reads and so what is saved, the backward itself, scratch, work (pass_plan.h, compile.h).
// Torch-free.

#include <cstdint>
#include <string>
#include <vector>

#include "models/loss_kind.h"
#include "models/ops/activation/activation_kind.h"
#include "models/ops/rotary/rope_frequencies.h"
#include "models/tensor_table.h"

namespace ferry {

/** The rows of a value: one for each token, each sequence, or each token that has a label. */
enum class Rows : uint8_t { tokens, sequences, labelled };

/** A tensor (rows, columns) that flows through a block. */
struct Value {
  std::string name;  ///< "attention.qkv"
  Rows rows = Rows::tokens;
  int64_t columns = 0;
  DType type = DType::f32;
  bool recomputed = false;  ///< selective recomputation makes it again: cheap for its size
  bool by_column = false;   ///< lies as (columns, rows)
};

/** Index into BlockProgram::values; 0 is the block's input (where it has one). */
using ValueId = int;
/** Index into the block's parameters, then what it borrows. */
using ParamId = int;
inline constexpr int kNone = -1;

enum class OpKind : uint8_t {
  embedding,
  linear,
  norm,
  residual_norm,
  rms_norm,
  head_norm,
  attention,
  rotary,
  activation,
  gate,
  dropout_residual,
  add,
  dropout,
  first_rows,
  labelled_rows,
  last_rows,
  tanh,
  logits,
  label_loss,
  span_loss,
  vocabulary_loss,
  vocabulary_piece,
};

/** The rows that an embedding adds up. */
struct EmbeddingRule {
  int64_t position_offset = 0;  ///< the row of position 0; rows before it are never read
  float word_scale = 1;         ///< rounded to the compute type, as transformers does (Gemma)
};

/** Scores of attention. */
struct ScoreRule {
  double scale = 0;    ///< 0: 1 / sqrt(head width)
  int64_t window = 0;  ///< of a causal attention: tokens that one sees, itself the last; 0: all
  float soft_cap = 0;  ///< scores s become cap * tanh(s / cap) (Gemma 2); 0: they do not
};

/** The settings of an operation beside its values and parameters. Each kind reads its own. */
struct OpAttributes {
  float eps = 0;            ///< of a norm
  float weight_offset = 0;  ///< of an RMSNorm or head norm: weights count from it
  float dropout = 0;        ///< probability
  int random = 0;  ///< RandomKey::of takes it: one number for each operation of a block that draws
  int64_t n_heads = 0, n_kv_heads = 0, head_width = 0;  ///< of attention and rotary positions
  bool causal = false;
  float soft_cap = 0;  ///< of a vocabulary's logits
  ScoreRule scores;    ///< of attention
  Activation activation{};
  RopeTable rope;            ///< of rotary positions
  bool interleaved = false;  ///< of rotary positions: a pair is two neighbours
  /** Set in attention and in the linear map before it: attention's backward sums the gradient of
   * the map's bias, too (the bias is attention's parameter as well). */
  bool sums_bias = false;
  EmbeddingRule rows;        ///< of an embedding
  int64_t n_table_rows = 0;  ///< of an embedding: rows of all its tables
  int64_t first_word = 0;    ///< of a table of words that is a piece: the word of its first row
  VocabularyPiece piece;     ///< of a vocabulary's piece
  bool by_column = false;    ///< logits that lie as (columns, rows)
};

/** One operation. Its kind says what its inputs, outputs and parameters are (models/ops/specs.cpp);
 * kNone stands for an optional one that is not there. */
struct Op {
  OpKind kind{};
  std::vector<ValueId> in, out;
  std::vector<ParamId> params;
  OpAttributes with;
};

struct BlockProgram {
  std::vector<Value> values;
  std::vector<Op> ops;
  bool has_input = true;   ///< false: a block that reads ids
  ValueId output = kNone;  ///< kNone: a head, which ends in a loss

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  const Op& op(int index) const { return ops[static_cast<size_t>(index)]; }
  /** The operation that writes the value; kNone: it is the block's input. */
  int producer_of(ValueId id) const;
};

/** Facts about the run that sizes depend on. */
struct ProgramTarget {
  DType compute = DType::f32;
  AttentionBackend attention = AttentionBackend::cpu_math;
  int gpu_multiprocessors = 0;
  int64_t vocab_size = 0;

  bool is_cuda() const { return attention != AttentionBackend::cpu_math; }
};

}  // namespace ferry
