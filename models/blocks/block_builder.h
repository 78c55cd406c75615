#pragma once
// A family is written in this: it adds blocks to a model's table, their parameters with Hugging
// Face names, and the forward of each as operations on values. end() derives the rest. Torch-free.
//
//   ModelBuilder builder(model, "model.", target);
//   BlockBuilder block = builder.block("layer.0", BlockKind::layer);
//   ValueId x = block.input();
//   ValueId y = block.rms_norm("attention.norm", x, {"model.layers.0.input_layernorm.weight"},
//   eps);
//   ...
//   block.end(y);

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/blocks/vocabulary_cut.h"
#include "models/core/operation.h"
#include "models/core/tensor_table.h"
#include "models/ops/activation_kind.h"
#include "models/ops/attention/attention_op.h"
#include "models/ops/cross_attention/cross_attention_op.h"
#include "models/ops/embedding/embedding_op.h"
#include "models/ops/linear/linear_op.h"
#include "models/ops/rotary/rotary_op.h"
#include "models/ops/route/route_op.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"

namespace ferry {

/** A parameter's tensor in a Hugging Face file. */
struct HfName {
  std::string name;
  bool optional = false;    ///< may be absent (a new head): it is initialised then
  bool transposed = false;  ///< (columns, rows) in the file
  HfRowGroups groups;       ///< the order of its rows where it is not ours
  std::vector<std::string> also_named;
};

/** The words that files have in place of a prefix of names. */
struct PrefixInFiles {
  std::string written;              ///< as transformers writes it; empty: the prefix itself
  std::vector<std::string> others;  ///< of files that are read
};

class ModelBuilder;

/** One block. Values are (rows, columns) of the compute type unless said. */
class BlockBuilder {
 public:
  /** Rows of a matrix that are a tensor of their own in the file, above each other. */
  using HfRows = std::vector<std::pair<HfName, int64_t>>;

  // Parameters. Matrices decay and start normal; biases and norms do neither.
  ParamId matrix(const std::string& name,
                 int64_t rows,
                 int64_t columns,
                 HfName hf,
                 const NormalInit& normal = {});
  ParamId matrix(const std::string& name, int64_t columns, const HfRows& hf);
  ParamId bias(const std::string& name, int64_t n, HfName hf);
  ParamId bias(const std::string& name, const HfRows& hf);
  /** `init`: zeros where the weights count from one. */
  ParamId norm_weight(const std::string& name, int64_t n, HfName hf, Init init = Init::ones);
  /** A parameter of another block; `hf`: the name that a file may have for it here. */
  ParamId borrow(int block, int param, const std::string& hf = {});
  /** A table of words: a matrix, or where that is too large (vocabulary_cut.h) pieces of it in
   * blocks of their own. Only embedding() and vocabulary_loss() take it. */
  ParamId words(const std::string& name,
                int64_t rows,
                int64_t columns,
                HfName hf,
                const NormalInit& normal = {});
  /** The words of the embeddings; `hf`: the name that a file may have for them here. */
  ParamId borrow_words(const std::string& hf = {});
  /** A bias of each word's logits, once the block has the words. */
  ParamId word_bias(const std::string& name, int64_t n, HfName hf);

  /** The output of the block before. */
  ValueId input();
  /** A value that another block leaves (an index of ModelTable::values). Where several blocks read
   * one, they add up its gradient in the value's type. */
  ValueId read(int value);
  /** Leaves the value for blocks that read() the number that this returns. */
  int leave(ValueId value);
  /** The rows of numbers of the block's stream. */
  ValueId features(const std::string& name);
  /** The parameter as a value of fp32, for blocks that read it. */
  ValueId table(const std::string& name, ParamId table);
  /** Rows of the tables by the batch's ids, positions and types, added up; as wide as the tables,
   * which may be narrower than the model. Some may be kNone, but not both of the first. */
  ValueId embedding(const std::string& name,
                    ParamId word,
                    ParamId position,
                    ParamId type,
                    const ops::EmbeddingRule& rows = {});
  /** Takes a value apart: columns of it, one part after the other, which are all of it. Linear maps
   * read them, and each is read. Nothing else reads the value. */
  std::vector<ValueId> split(ValueId whole,
                             const std::vector<std::pair<std::string, int64_t>>& parts);
  /** Outputs of linear maps side by side, as one value that they write. Nothing else reads them. */
  ValueId join(const std::string& name, const std::vector<ValueId>& parts);
  /** factor * (x w^T + bias) + residual; both may be kNone. */
  ValueId linear(const std::string& name,
                 ValueId x,
                 ParamId weight,
                 ParamId bias = kNone,
                 ValueId residual = kNone,
                 float factor = 1);
  /** A linear map into what ranks that share the layer have of it, of each part of its rows.
   * Without such ranks it is linear(). */
  ValueId linear_to_ranks(const std::string& name,
                          ValueId x,
                          ParamId weight,
                          ParamId bias,
                          const std::vector<ops::SharedHeads>& parts);
  /** A linear map whose input columns are spread over the ranks, and its sum over them. */
  ValueId linear_from_ranks(const std::string& name,
                            ValueId x,
                            ParamId weight,
                            ParamId bias = kNone,
                            ValueId residual = kNone,
                            float factor = 1);
  /** f(x w^T + bias) as a linear_to_ranks(): returns the argument of f, and the result. */
  std::pair<ValueId, ValueId> activated_to_ranks(const std::string& name,
                                                 const std::string& map_name,
                                                 Activation kind,
                                                 ValueId x,
                                                 ParamId weight,
                                                 ParamId bias);
  /** dropout(LayerNorm(z)). */
  ValueId norm(const std::string& name,
               ValueId z,
               ParamId weight,
               ParamId bias,
               float eps,
               float dropout = 0,
               int random = 0);
  /** z = dropout(a + bias of a) + residual, y = LayerNorm(z): returns (z, y). */
  std::pair<ValueId, ValueId> residual_norm(const std::string& sum_name,
                                            const std::string& name,
                                            ValueId a,
                                            ParamId bias_of_a,
                                            ValueId residual,
                                            ParamId weight,
                                            ParamId bias,
                                            float eps,
                                            float dropout,
                                            int random);
  /** Weights may count from `weight_offset` (Gemma: 1), added in fp32. */
  ValueId rms_norm(
      const std::string& name, ValueId z, ParamId weight, float eps, float weight_offset = 0);
  /** z = a + residual, y = RMSNorm(z): returns (z, y). */
  std::pair<ValueId, ValueId> residual_rms_norm(const std::string& sum_name,
                                                const std::string& name,
                                                ValueId a,
                                                ValueId residual,
                                                ParamId weight,
                                                float eps,
                                                float weight_offset = 0);
  using Heads = ops::AttentionHeads;
  /** The heads that each rank has of these, where ranks share the layer. */
  Heads heads_of_rank(const Heads& heads) const;
  /** Queries, keys and values, as ranks share them. */
  static std::vector<ops::SharedHeads> shared_qkv(const Heads& heads);
  /** Queries and keys of qkv turned by their positions, the first columns of each head where the
   * table has fewer pairs; pairs are (i, i + half), or where interleaved (2 i, 2 i + 1). */
  ValueId rotary(const std::string& name,
                 ValueId qkv,
                 const Heads& heads,
                 RopeTable rope,
                 bool interleaved = false);
  /** Rotary positions after an RMSNorm of each head of queries and keys; the weights are head_width
   * long. The backward makes the result again, so of qkv only what comes in is kept. */
  ValueId head_norm(const std::string& name,
                    ValueId qkv,
                    const Heads& heads,
                    ParamId q_weight,
                    ParamId k_weight,
                    float eps,
                    RopeTable rope,
                    float weight_offset = 0);
  /** The context, n_heads * head_width wide. Ranks that share tokens work on all of these, each for
   * its heads. */
  ValueId attention(const std::string& name,
                    ValueId qkv,
                    const Heads& heads,
                    bool causal,
                    float dropout,
                    int random,
                    const ops::ScoreRule& scores = {});
  /** The context of q over the keys and values of kv, which may be another stream's. `bias`: of the
   * buckets of distances, or kNone. */
  ValueId cross_attention(const std::string& name,
                          ValueId q,
                          ValueId kv,
                          ValueId bias,
                          ops::CrossAttentionAttributes with);
  /** The routes of the tokens to experts, which are blocks of their own. */
  struct Routes {
    int routes = kNone, offsets = kNone, weights = kNone;  ///< values of the model
    ops::RouteAttributes with;
  };
  Routes route(ValueId logits, const ops::RouteAttributes& with);
  /** The rows of x that the routes send to the expert. */
  ValueId take_routed(const std::string& name, ValueId x, const Routes& routes, int64_t expert);
  /** Adds an expert's rows, each times its weight, to the output of the block that has ended last.
   */
  void add_routed(ValueId x, const Routes& routes, int64_t expert);
  /** f(a + bias), and in between h = a + bias: returns (h, g). The bias may be kNone. */
  std::pair<ValueId, ValueId> activation(const std::string& name,
                                         Activation kind,
                                         ValueId a,
                                         ParamId bias);
  /** f(gate) * up of gate_up = (gate, up). */
  ValueId gate(const std::string& name, Activation kind, ValueId gate_up);
  /** dropout(a + bias) + residual. */
  ValueId dropout_residual(const std::string& name,
                           ValueId a,
                           ParamId bias,
                           ValueId residual,
                           float dropout,
                           int random);
  /** a + b. */
  ValueId add(const std::string& name, ValueId a, ValueId b);
  ValueId copy(const std::string& name, ValueId x);
  /** x itself where nothing is dropped. */
  ValueId dropout(const std::string& name, ValueId x, float dropout, int random);
  /** The first token of each sequence. */
  ValueId first_rows(const std::string& name, ValueId x);
  /** The last token of each sequence. */
  ValueId last_rows(const std::string& name, ValueId x);
  /** The tokens that have a label, or all where the batch names none. */
  ValueId labelled_rows(const std::string& name, ValueId x);
  ValueId tanh(const std::string& name, ValueId x);
  /** x w^T + bias in fp32; `by_column`: lies as (columns, rows). */
  ValueId logits(ValueId x, ParamId weight, ParamId bias, bool by_column = false);
  /** The loss of each sequence or token by its label, as the run's LossKind says. */
  void label_loss(ValueId logits);
  void span_loss(ValueId logits);
  /** The vocabulary's logits in pieces, by their rule, and the loss. */
  void vocabulary_loss(ValueId t, ParamId word, ParamId bias, const ops::LogitsRule& rule = {});

  /** Selective recomputation makes the value again: it is large for what it costs. */
  void recompute(ValueId value);
  /** The block's output is `y`; kNone: the block ends in a loss. */
  void end(ValueId y = kNone);

  int64_t columns_of(ValueId id) const { return program_.value(id).columns; }

 private:
  friend class ModelBuilder;
  /** A tensor whose rows lie in pieces. */
  struct TableOfRows {
    std::string name;
    std::vector<int64_t> shape;
    HfName hf;
    Init init = Init::normal;
    NormalInit normal;
  };
  /** Rows of a table of words, from `first` on, and the parameter that they are. */
  struct WordRows {
    int block = 0;
    ParamId param = 0;
    int64_t first = 0, n = 0;
  };

  BlockBuilder(
      ModelBuilder& model, std::string name, BlockKind kind, int random_block, int stream = 0)
      : model_(model), stream_(stream) {
    table_.name = std::move(name);
    table_.kind = kind;
    table_.random_block = random_block;
  }
  std::vector<std::string> spellings(const std::string& name) const;
  /** The tensor of a file that is the parameter. */
  HfEntry entry_of(const HfName& of, ParamId param, std::vector<int64_t> shape) const;
  ParamId add(
      const std::string& name, std::vector<int64_t> shape, bool decay, Init init, const HfRows& hf);
  ValueId value(std::string name, const Rows& rows, int64_t columns);
  ValueId like(const std::string& name, ValueId x);
  /** Adds an operation: its forward's operands and its parameters by name. */
  template <template <class> class Forward, template <class> class Params = NoParams>
  Op& op(const OpDef& def, const Forward<ValueId>& values, const Params<ParamId>& params = {}) {
    program_.ops.push_back(make_op(def, values, params));
    return program_.ops.back();
  }
  ValueId rows(const OpDef& def, const std::string& name, RowKind kind, ValueId x);
  /** Writes a linear map of so many columns; its y is new. */
  ValueId linear(const std::string& name,
                 int64_t columns,
                 ops::LinearValues<ValueId> values,
                 const ops::LinearParams<ParamId>& params,
                 const ops::LinearAttributes& with);
  /** The linear map that writes the value; null: another operation does. */
  Op* linear_before(ValueId value);
  /** The heads of each of so many ranks. */
  Heads own_heads(const Heads& heads, int n_ranks) const;
  /** A bias of keys adds the same to all scores of a row, which softmax does not see: where a
   * linear map writes them, its gradient is zero there. */
  void still_keys(ValueId value, const Heads& heads, const ops::ScoreRule& scores);

  // Layers of ranks that share work (shared_work.cpp).
  /** Own tokens with all heads become all tokens with own heads, or the other way. */
  /** Ranks that share tokens keep theirs in attention of these heads. */
  bool attends_in_ring(const Heads& heads) const;
  /** Throws Error(usage) where scores are capped. */
  ValueId ring_attention(const std::string& name,
                         ValueId qkv,
                         const Heads& heads,
                         bool causal,
                         float dropout,
                         int random,
                         const ops::ScoreRule& scores);
  ValueId exchange_tokens(const std::string& name,
                          ValueId x,
                          const std::vector<ops::SharedHeads>& parts,
                          bool to_heads);
  const std::vector<int64_t>& shape_of_param(ParamId id);
  int64_t rows_of_param(ParamId id) { return shape_of_param(id)[0]; }

  /** The block's forward gives a part of the loss, by this value of the first stream. */
  void add_loss(ValueId of);
  int add_port(Port port);
  /** A new value of the program that lies at the port. */
  ValueId value_at(int port);
  /** The forward leaves `y` as a new value of the model, which the next block's input() is. */
  void write_output(ValueId y, const std::string& name);
  /** The forward leaves `y` so in the value that the next block's input() is. */
  void leave_output(ValueId y, PortUse use);
  /** Gives the value this port, and its gradient a port where the backward reads it. */
  void leave_at(ValueId y, const Port& port);
  /** Gives ports to the gradients of the values that the block reads. */
  void leave_gradients();
  void check_parts() const;
  /** Adds the block to the model; returns its index. */
  int close();

  // A table of words in pieces (vocabulary_pieces.cpp).
  HfEntry add_rows(const TableOfRows& of, const WordRows& rows, ParamId& param);
  std::vector<WordRows> rows_of_pieces() const;
  BlockBuilder piece(VocabularyPiece piece) const;
  ValueId look_up_pieces(const std::string& name, const ops::EmbeddingRule& rule);
  void end_in_pieces(ValueId t, ParamId bias, const ops::LogitsRule& rule);
  /** Stands for a parameter that lies in pieces. */
  static constexpr ParamId kInPieces = 1 << 17;

  ModelBuilder& model_;
  int stream_ = 0;  ///< of its embeddings or features
  BlockTable table_;
  std::vector<HfEntry> hf_;
  BlockProgram program_;
  bool is_closed_ = false;
  std::optional<ParamId> own_words_;  ///< of the embeddings, where they are whole
  std::optional<TableOfRows> words_, word_bias_;
  bool borrows_pieces_ = false;
};

/** Adds blocks to a table whose numbers (width, compute type, ...) are set. */
class ModelBuilder {
 public:
  /** Files of bare models have names without the prefix. */
  ModelBuilder(ModelTable& model,
               std::string prefix,
               int gpu_multiprocessors,
               const VocabularyCut& cut = {},
               PrefixInFiles in_files = {})
      : model_(model),
        prefix_(std::move(prefix)),
        in_files_(std::move(in_files)),
        gpu_multiprocessors_(gpu_multiprocessors),
        cut_(cut) {}
  /** Blocks follow each other in the order in which they end. `stream`: of its embeddings
   * or features. */
  BlockBuilder block(std::string name, BlockKind kind, int stream = 0);
  /** The output of the block that ended last, for BlockBuilder::read(). */
  int output() const { return hidden_; }

 private:
  friend class BlockBuilder;
  /** Adds a value of the model; returns its index. */
  int add(ModelValue value);
  /** The same with its gradient. */
  int add_with_gradient(const ModelValue& value, const std::string& name);
  const ModelValue& value(int id) const { return model_.values[id]; }
  /** A file may have this name for the parameter, too. */
  void name_tied(int block, ParamId param, const std::string& hf);
  /** Another block that ends later reads the value: it leaves its gradient first, and this block
   * adds to that. */
  void add_to_gradient(int block, int gradient);
  ProgramTarget target() const;

  ModelTable& model_;
  std::string prefix_;
  PrefixInFiles in_files_;
  int gpu_multiprocessors_;
  VocabularyCut cut_;
  int n_blocks_ = 0;                               ///< without pieces
  int hidden_ = kNone;                             ///< the output of the last block
  std::vector<BlockBuilder::WordRows> word_rows_;  ///< of the embeddings
  std::vector<int> last_readers_;  ///< by value: the last block that read it; kNone: none has
};

}  // namespace ferry
