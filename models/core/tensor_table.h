#pragma once
// The tensor table: name, shape, type and decay group of every parameter of every block,
// and shape and type of everything a block's operations save, known without torch and without
// weights. Families fill it (models/bert/bert_table.h); allocation, plan, report, export and
// checkpoint all read it, and nothing else.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/core/long_position.h"
#include "models/core/storage.h"
#include "src/base/dtype.h"
#include "src/base/indexed.h"
#include "src/base/port.h"
#include "src/base/sharing.h"

namespace ferry {

/** The start value of a parameter that no checkpoint has. */
enum class Init : uint8_t {
  normal,
  zeros,
  ones,
  fan_in,  ///< uniform between -1 / sqrt(columns) and 1 / sqrt(columns), as transformers' linear
           ///< maps
  half,    ///< uniform between -0.5 and 0.5
  rows,    ///< means of rows of another parameter (RowsInit)
};

/** The spread of a parameter that starts normal. */
struct NormalInit {
  double factor = 1;      ///< of ModelTable::init_std
  int64_t zero_row = -1;  ///< the row of padding, which starts as zeros; -1: none
};

/** The start of a parameter by another one, which files have: each row is the mean of rows there. A
 * row that names none starts as Init::half has it. */
struct RowsInit {
  int block = 0, param = 0;
  std::vector<std::vector<int32_t>> rows;
};

/** One parameter of a block. It has the same element offset in every segment of its block that
 * holds it (weights; where it is trained gradients, master and the optimizer's states, too), a
 * multiple of 256 elements, so it starts on a 512-byte boundary in each type. */
struct ParamSpec {
  std::string name;            ///< inside the block: "attention.qkv.weight"
  std::vector<int64_t> shape;  ///< row-major
  bool decay = true;           ///< weight decay applies (not to biases and norms)
  Init init = Init::normal;
  NormalInit normal;                           ///< where `init` is that
  std::shared_ptr<const RowsInit> start_rows;  ///< the same
  bool trainable = true;                       ///< false: frozen; no step changes a bit of it
  int group = 0;           ///< an index of ModelTable::groups; set by BlockTable::add
  int64_t offset = 0;      ///< elements from the segment's start; set by BlockTable::arrange
  int64_t n_elements = 0;  ///< its room in a segment; set by BlockTable::add and set_storage()
  /** Frozen matrices that linear maps read may have another storage than compute. The bytes of such
   * a matrix fill n_elements of the type of compute. */
  MatrixStorage storage = {};

  int64_t n_values() const;  ///< product of shape
  int64_t row_values() const { return n_values() / shape[0]; }
  /** The places of codes and scales, where the storage is another than compute. */
  StoredParts stored(DType compute) const {
    return stored_parts(storage, shape[0], shape[1], compute);
  }
  /** The type and shape of the weights in memory; a quantised matrix is a row of bytes. */
  DType type(DType compute) const { return storage.type(compute); }
  std::vector<int64_t> stored_shape(DType compute) const {
    return storage.is_quantised() ? std::vector<int64_t>{stored(compute).back().end} : shape;
  }
  /** The backward pass computes its gradient. That of a frozen matrix would cost a product; that of
   * a frozen vector falls off other work, and goes to scratch. */
  bool has_grad() const { return trainable || shape.size() < 2; }
};

/** Parameters that are updated alike. */
struct UpdateGroup {
  bool decays = true;                   ///< the run's weight decay applies
  double lr_factor = 1;                 ///< a factor of the learning rate
  std::optional<double> learning_rate;  ///< in place of the run's; the schedule applies to it too
  std::optional<double> weight_decay;   ///< in place of the run's, whatever `decays` says

  bool operator==(const UpdateGroup&) const = default;
};

/** A parameter that lives in another block and is used here too (tied embeddings). */
struct BorrowedParam {
  int block = 0;
  int param = 0;
};

/** The shape of a stream of a micro-batch: sequences laid end to end. */
struct StreamShape {
  int64_t tokens = 0;      ///< dummy tail included
  int64_t n_seqs_max = 0;  ///< sequences, dummy ones included
  int64_t max_length = 0;  ///< longest sequence

  bool operator==(const StreamShape&) const = default;
};

/** The shape of a micro-batch as far as memory goes. Its numbers are of the first
 * stream, or of the stream that an operation works on. */
struct BatchShape {
  int64_t tokens = 0;      ///< one of the few token-count sizes, dummy tail included
  int64_t n_seqs_max = 0;  ///< sequences, dummy ones included
  int64_t max_length = 0;  ///< longest sequence
  /** All streams of a model that has several; else empty. */
  std::vector<StreamShape> streams = {};

  StreamShape stream(int index) const {
    if (streams.empty()) return {tokens, n_seqs_max, max_length};
    return streams[static_cast<size_t>(index)];
  }
  /** The same micro-batch for an operation that works on this stream. */
  BatchShape seen_from(int index) const {
    const StreamShape its = stream(index);
    return {its.tokens, its.n_seqs_max, its.max_length, streams};
  }
  bool operator==(const BatchShape&) const = default;
};

/** The part of a micro-batch that each of `n` ranks has which share its tokens: as many tokens
 * each, of the first stream. The second stream is the whole micro-batch, as attention sees it. */
BatchShape part_of_tokens(const BatchShape& whole, int n);

/** A stream of a model's batches: texts of ids, or rows of numbers that were made before (frames,
 * patches, embeddings). Sequence i of each stream belongs to the same sample. */
struct StreamSpec {
  std::string name;
  int64_t feature_columns = 0;  ///< columns of such rows; 0: the stream has ids
};

enum class RowKind : uint8_t {
  tokens,
  sequences,
  labelled,  ///< the tokens that have a label
  routed,    ///< the tokens that a router sends to one of its experts: at most all
  constant,  ///< the same number in each micro-batch
};

/** The rows of a value: `factor` for each token or sequence of a stream, one for each labelled
 * token.
 */
struct Rows {
  RowKind kind = RowKind::tokens;
  int stream = 0;  ///< index of ModelTable::streams
  /** A routed token goes to `factor` of `n_experts` experts; constant rows are `factor`. */
  int64_t factor = 1;
  int64_t n_experts = 1;

  static constexpr Rows constant(int64_t n) { return {.kind = RowKind::constant, .factor = n}; }
  bool operator==(const Rows&) const = default;
};

/** The rows of a value in a micro-batch of this shape, at most. */
int64_t rows_of(const Rows& rows, const BatchShape& shape);

/** A tensor of a micro-batch that blocks leave for others: (rows, columns). */
struct ModelValue {
  std::string name;  ///< "output of layer.3"
  int64_t columns = 0;
  DType type = DType::f32;
  Rows rows;
  bool by_column = false;  ///< lies as (columns, rows)
  int gradient = -1;       ///< the value that is the gradient of this one; -1: it has none

  int64_t n_bytes(const BatchShape& shape) const;
};

/** The kind of kernels that run the attention; it decides what attention saves. Part of a run's
 * identity. */
enum class AttentionBackend : uint8_t { cpu_math, flash, memory_efficient };
constexpr std::string_view name_of(AttentionBackend backend) {
  constexpr std::string_view kNames[] = {"cpu_math", "flash", "memory_efficient"};
  return kNames[static_cast<size_t>(backend)];
}

/** A tensor that a block's forward leaves for its backward. */
struct SavedSpec {
  std::string name;  ///< "attention.qkv"
  std::vector<int64_t> shape;
  DType dtype = DType::f32;
  bool recomputed =
      false;  ///< cheap for its size: Block::recompute_selected() makes it again from the others
  int64_t n_elements() const;
  int64_t n_bytes() const { return n_elements() * static_cast<int64_t>(size_of(dtype)); }
};

/** Temporaries of one forward and one backward, and what the attention entry allocates by itself.
 */
struct ScratchNeed {
  int64_t forward_bytes = 0;
  int64_t backward_bytes = 0;
  int64_t library_bytes =
      0;  ///< returned by ATen entries that allocate; from Ferry's own allocator
};

/** The work of one forward or one backward pass of a block, for the planner's cost model. */
struct BlockWork {
  /** A product (rows, inner) x (inner, columns): 2 * rows * inner * columns FLOPs. */
  struct Product {
    int64_t rows = 0, inner = 0, columns = 0;
    double flops() const {
      return 2.0 * static_cast<double>(rows) * static_cast<double>(inner) *
             static_cast<double>(columns);
    }
    bool operator==(const Product&) const = default;
  };
  std::vector<Product> products;
  int64_t attention_tokens = 0;   ///< 0: none
  int64_t attention_length = 0;   ///< tokens of the sequences, which attend to all of themselves
  int64_t attention_width = 0;    ///< elements of all heads
  bool attention_causal = false;  ///< a token attends to itself and those before it
  int64_t attention_window = 0;   ///< so many of them, itself among them; 0: all
  int64_t memory_bytes = 0;       ///< bytes that the other operations read and write
  int64_t compared_pairs = 0;     ///< token pairs, by which a GPU finds equal rows of a table
  int64_t exchanged_bytes = 0;    ///< bytes that go to the ranks which share the work
  /** About, since where blocks are small launches are what takes time: all kernels, products among
   * them; those that are LibTorch's operations, products not among them. */
  int n_kernels = 0, n_operations = 0;

  /** A linear layer's products: one forward; backward one for its input and one for its weights. */
  void add_linear(bool backward, int64_t rows, int64_t inner, int64_t columns);
  /** 4 * length * width for each token forward, 2.5 times that backward (it makes the scores anew);
   * where attention is causal half of both, and of a tile of 128 on the diagonal all; in a window
   * no more than it and a tile. */
  double attention_flops(bool backward) const {
    constexpr double kTile = 128;
    const auto length = static_cast<double>(std::max<int64_t>(attention_length, 1));
    double share = attention_causal ? std::min(1.0, (length + kTile) / (2 * length)) : 1.0;
    if (attention_window > 0)
      share = std::min(share, (static_cast<double>(attention_window) + kTile) / length);
    return (backward ? 10.0 : 4.0) * share * static_cast<double>(attention_tokens) *
           static_cast<double>(attention_length) * static_cast<double>(attention_width);
  }
  double flops(bool backward) const {
    double sum = attention_flops(backward);
    for (const Product& product : products)
      sum += product.flops();
    return sum;
  }
  bool operator==(const BlockWork&) const = default;
};

struct CompiledBlock;

enum class BlockKind : uint8_t { embeddings, layer, head };
/** "embeddings" */
constexpr std::string_view name_of(BlockKind kind) {
  constexpr std::string_view kNames[] = {"embeddings", "layer", "head"};
  return kNames[static_cast<size_t>(kind)];
}

/** The place of a block among those that share a large table of words
 * (models/blocks/vocabulary_cut.h). */
struct VocabularyPiece {
  int index = 0, n_pieces = 1;

  bool is_first() const { return index == 0; }
  bool is_last() const { return index == n_pieces - 1; }
};

/** One block: what is paged as one. Order in ModelTable::blocks is forward order. */
struct BlockTable {
  std::string name;  ///< "embeddings", "layer.0", "head"; pieces: "embeddings.0", "head.0"
  BlockKind kind = BlockKind::layer;
  std::optional<VocabularyPiece> piece;
  int random_block = 0;  ///< RandomKey::block: its number in the model without pieces
  Indexed<ParamSpec> params;
  Indexed<BorrowedParam> borrowed;
  Indexed<Port> ports;             ///< of ModelTable::values
  bool has_loss = false;           ///< its forward gives a part of the loss
  int64_t n_segment_elements = 0;  ///< elements of its weights, padding included
  int64_t n_trained_elements = 0;  ///< elements of the trained prefix, padding included
  /** Saved tensors for a micro-batch of this shape, in the order the block's code expects them. */
  std::function<std::vector<SavedSpec>(const BatchShape&)> saved;
  std::function<ScratchNeed(const BatchShape&)> scratch;
  /** The work on one micro-batch of this shape, all of its sequences as long as the longest. */
  std::function<BlockWork(const BatchShape&, bool backward)> work;
  /** The work of Block::recompute_selected(); none where no activation is recomputed. */
  std::function<BlockWork(const BatchShape&)> recompute_work;
  /** The program that the code of the block runs (models/core/compile.h). */
  std::shared_ptr<const CompiledBlock> compiled;

  /** Appends a parameter that is trained, behind the others; returns its index. */
  int add(std::string name, std::vector<int64_t> shape, bool decay, Init init);
  /** Sets the offsets: trained parameters first, then the frozen ones, each in their order. To be
   * called when ParamSpec::trainable has changed. */
  void arrange();
  int64_t n_params() const;  ///< without padding
};

/** The order of a fused tensor's rows: the file has for each group its rows of every part (for each
 * head its query, key and value), ours has each part with the rows of all groups. None: the file's
 * rows are ours. */
struct HfRowGroups {
  int64_t n_groups = 0;
  std::vector<int64_t> part_rows;  ///< rows of each part in one group

  bool operator==(const HfRowGroups&) const = default;
};

/** The place of a parameter in a Hugging Face checkpoint: rows [row_begin, row_begin + rows) of
 * ours are the whole tensor `hf_name` (a fused qkv matrix has three such entries), or of a large
 * table of words the rows from `file_row` on: its entries follow each other in that order. */
struct HfEntry {
  std::string hf_name;
  int block = 0;
  int param = 0;
  int64_t row_begin = 0;
  int64_t rows = 0;
  int64_t file_row = 0;
  std::vector<int64_t> hf_shape;  ///< of the file's tensor
  bool optional = false;  ///< may be absent in the file (a new head): then it is initialised
  /** The file has it as (columns, rows), the other way round than a linear layer's (GPT-2's
   * Conv1D): hf_shape is the file's. */
  bool transposed = false;
  HfRowGroups groups;
  /** The storage in which the files that the model begins with have it, where a run can keep it;
   * compute: they have values. */
  Storage in_files = Storage::compute;
  /** A run with adapters writes it. All else stays in the files of the model that it began with. */
  bool is_delta = false;
  /** Other names checkpoints use ("bert." prefix or none, gamma/beta), in order of preference. One
   * of them beside `hf_name` in the same file is a duplicate, no surprise. */
  std::vector<std::string> also_named;
  /** Names of matrices that are this one (a language model's head), which a file may have, too. */
  std::vector<std::string> tied_names;

  /** The entry is all of the file's tensor. */
  bool is_whole() const { return rows == file_rows(); }
  bool is_first_part() const { return file_row == 0; }
  bool is_last_part() const { return file_row + rows == file_rows(); }
  int64_t file_rows() const { return transposed ? hf_shape.back() : hf_shape.front(); }
};

/** The names of an entry in files, in order of preference. */
std::vector<std::string> names_of(const HfEntry& entry);

/** The kind of a model's head, which decides the shapes of labels and logits (models/core/block.h).
 */
enum class HeadKind : uint8_t {
  classification,        ///< labels of each sequence
  masked_lm,             ///< a word of the vocabulary for each token
  token_classification,  ///< a label of each token
  question_answering,    ///< the places where the answer starts and ends in each sequence
  causal_lm,             ///< the next word of the vocabulary after each token
  prompt,  ///< labels of each sequence, by words at one of its places (models/core/prompt.h)
};

/** Over the vocabulary: logits exist in pieces alone. */
constexpr bool is_language_model(HeadKind head) {
  return head == HeadKind::masked_lm || head == HeadKind::causal_lm;
}

/** Logits of each token, not of each sequence. */
constexpr bool has_token_logits(HeadKind head) {
  return head == HeadKind::token_classification || head == HeadKind::question_answering;
}

struct ModelTable {
  std::string family;           ///< "bert"
  std::string hf_architecture;  ///< transformers' class of it: "BertForTokenClassification"
  HeadKind head = HeadKind::classification;
  int64_t width = 0;       ///< elements of the hidden states between blocks
  int64_t head_width = 0;  ///< of attention
  float norm_eps = 0;
  DType compute = DType::f32;
  AttentionBackend attention = AttentionBackend::cpu_math;
  float hidden_dropout = 0;
  float attention_dropout = 0;
  float head_dropout = 0;
  float init_std = 0.02f;
  int64_t max_positions = 0;
  int64_t long_from = 0;  ///< see kLongPosition; 0: positions never have it
  int64_t vocab_size = 0;
  int64_t n_soft_tokens = 0;  ///< tokens with rows of their own; their ids follow the vocabulary's
  int64_t padding_row = -1;   ///< of the words; -1: none
  int64_t n_token_types = 0;  ///< type ids are below it; 0: the model does not read them
  int64_t n_labels = 0;       ///< logits of a sequence or token; 0 for a language-model head
  /** With ranks that share tokens, the first stream has a rank's own tokens, and the second one has
   * all. */
  Sharing sharing = {};
  std::vector<StreamSpec> streams = {{.name = "tokens"}};  ///< the first has the labels
  Indexed<BlockTable> blocks;
  Indexed<ModelValue> values;  ///< between blocks
  std::vector<int> backwards;  ///< all blocks in the order of their backwards
  std::vector<UpdateGroup> groups = {{.decays = true}, {.decays = false}};
  std::vector<HfEntry> hf_names;
  bool has_preferences = false;  ///< a language model that is trained on pairs of answers
  bool has_deltas = false;       ///< some of the tensors are of an adapter (HfEntry::is_delta)
  std::vector<std::string>
      hf_ignored;  ///< names a checkpoint may carry that the model does not use

  int64_t n_params() const;
  int64_t n_trainable_params() const;
  const ParamSpec& param_of(const HfEntry& entry) const {
    return blocks[entry.block].params[entry.param];
  }
};

/** True of a tensor that a run writes into its files. A run with adapters writes the adapters'
 * tensors alone. */
inline bool is_saved(const ModelTable& model, const HfEntry& entry) {
  return !model.has_deltas || entry.is_delta;
}

/** Bytes of scratch for the gradients of frozen vectors: the most of one block. Nobody reads them.
 */
int64_t unwanted_grad_bytes(const ModelTable& model);

/** The shape of the whole micro-batch of which a rank has this part. */
BatchShape whole_batch(const ModelTable& model, const BatchShape& part);

/** Bytes of saved tensors laid one after another, each on a 512-byte boundary. */
int64_t laid_out_bytes(const std::vector<SavedSpec>& specs);
/** The bytes of the recomputed activations, in a region of their own. */
int64_t recomputed_bytes(const std::vector<SavedSpec>& specs);

/** The number of graphs that are kept at most: each takes about 0.13 MiB of GPU memory beside the
 * plan's. */
inline constexpr int kBlockGraphs_max = 256;

/** True where a GPU records this pass and replays it as a CUDA graph, since launching its kernels
 * one by one may take longer than they do. Only layers with flash attention do: other work differs
 * from call to call (Block::graph_shape). */
bool runs_as_graph(const ModelTable& model, int block, const BatchShape& batch, bool backward);

}  // namespace ferry
