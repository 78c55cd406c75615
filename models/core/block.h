#pragma once
// The interface between the engine and a family's forward pass (private header of the torch half).
// A Block is stateless: every call gets views of the weights (in a slot or resident) and of the
// memory for its activations, gradients and temporaries, and writes only there. It allocates
// nothing itself.

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/core/loss_kind.h"
#include "models/core/preference.h"
#include "models/core/tensor_table.h"

namespace ferry {

/** A stream of a micro-batch on the compute device: sequences laid end to end, then the dummy tail.
 */
struct StreamTensors {
  int64_t n_seqs = 0;       ///< sequences with the dummy tail's
  at::Tensor input_ids;     ///< (tokens) int32
  at::Tensor type_ids;      ///< (tokens) int32
  at::Tensor position_ids;  ///< (tokens) int32
  at::Tensor cu_seqlens;    ///< (n_seqs + 1) int32
  std::span<const int32_t> cu_seqlens_host;
  at::Tensor features;  ///< (tokens, StreamSpec::feature_columns) fp32; undefined: ids
};

/** The ranks that share a micro-batch. Their blocks run at the same time, and name their
 * messages in the same order. */
class SharingRanks {
 public:
  virtual ~SharingRanks() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  /** Sends memory of the compute device to each rank, and receives there, by rank; this rank's own
   * are empty. On a GPU the bytes move on the compute stream, else they have moved when the call
   * returns. */
  virtual void exchange(std::span<const std::span<const std::byte>> sends,
                        std::span<const std::span<std::byte>> receives) = 0;
};

/** Pairs of answers: the numbers of each sequence, and the weights that the loss gives its tokens.
 */
struct PreferenceTensors {
  const PreferenceRule* rule = nullptr;  ///< null: the loss is another
  at::Tensor inputs;                     ///< (n_seqs_real, kPreferenceInputs) fp32
  at::Tensor sums;                       ///< (n_seqs_real, kPreferenceSums) fp32
  at::Tensor token_weights;  ///< (tokens) fp32: the gradient of -log p of each token's label
};

/** One micro-batch on the compute device, as an operation sees it: the stream that it works on. */
struct BatchTensors : StreamTensors {
  BatchShape shape;
  int64_t n_seqs_real = 0;  ///< the same in all streams
  /** All streams of a model that has several; else empty. */
  std::vector<StreamTensors> streams;
  SharingRanks* sharing_ranks = nullptr;  ///< where several share the micro-batch
  double token_share = 1;  ///< its tokens' share of the step's: the weight of a loss by tokens
  /** A generation whose blocks keep keys and values has them, (n_seqs_real): each sequence's place
   * in KvCache, and its tokens that are there already. Where one has some, all have, and there is
   * no dummy tail. Empty: nothing is kept. */
  std::span<const int32_t> cache_places, cache_lengths;
  at::Tensor labels;  ///< (n_seqs_real) int32 | (n_seqs_real, n_labels) fp32 | (n_seqs_real) fp32 |
                      ///< (tokens) int32, -100 = none (of a causal language model the token that
                      ///< follows: the batch has them shifted) | question_answering: (n_seqs_real,
                      ///< 2) int32, the answer's first and last token counted from its sequence's
                      ///< first; below 0 is 0, past the sequence's end is none
  /** masked_lm, optional: (n) int32, the tokens that have a label, ascending. Given, the head works
   * on these rows alone; undefined, on all tokens. */
  at::Tensor label_rows;
  float loss_weight = 1;  ///< 1 / label items of the whole step: samples, label tokens, or starts
  /** 1 / ends of the whole step, of question_answering; with pairs of answers 1 / tokens of chosen
   * answers. */
  float end_loss_weight = 1;
  float grad_scale = 1;  ///< loss scale (a power of two)
  float label_smoothing = 0;
  PreferenceTensors preferences;
  at::Tensor class_weights;  ///< cross_entropy, optional: (n_labels) fp32; loss_weight is then 1 /
                             ///< the sum of those of the step's labels

  /** A stream by its index in ModelTable::streams. */
  const StreamTensors& stream(int index) const {
    if (streams.empty()) return *this;
    return streams[static_cast<size_t>(index)];
  }
  /** The same micro-batch for an operation that works on this stream. */
  BatchTensors seen_from(int index) const {
    BatchTensors its = *this;
    static_cast<StreamTensors&>(its) = stream(index);
    its.shape = shape.seen_from(index);
    return its;
  }
};

/** LibTorch's name of a type. */
at::ScalarType scalar_type_of(DType type);

/** Bump allocator over a fixed region; what it gave is void after reset(). */
class Scratch {
 public:
  Scratch(void* base, int64_t capacity_bytes, at::Device device)
      : base_(base), capacity_bytes_(capacity_bytes), device_(device) {}
  /** A tensor of this shape on the next 512-byte boundary; FERRY_CHECK fails past the capacity. */
  at::Tensor take(at::IntArrayRef shape, at::ScalarType dtype);
  void reset() { used_bytes_ = 0; }
  /** A tensor at a place that was planned; take() is not to give it away. */
  at::Tensor at(int64_t offset_bytes, at::IntArrayRef shape, at::ScalarType dtype);
  /** The bytes that are taken now; giving them to `rewind` later voids everything taken since. */
  int64_t mark() const { return used_bytes_; }
  void rewind(int64_t mark) { used_bytes_ = mark; }
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  void* base_;
  int64_t capacity_bytes_;
  at::Device device_;
  int64_t used_bytes_ = 0;
  int64_t peak_bytes_ = 0;
};

/** Gives back, at the end of the C++ scope, the scratch that an operation took. Work queued on the
 * compute stream before may still read it; work queued after runs later. */
class ScratchScope {
 public:
  explicit ScratchScope(Scratch& scratch) : scratch_(scratch), mark_(scratch.mark()) {}
  ~ScratchScope() { scratch_.rewind(mark_); }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

 private:
  Scratch& scratch_;
  int64_t mark_;
};

/** Random numbers of one block in one micro-batch: dropout off when !training. */
struct RandomKey {
  bool training = false;
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t micro_batch = 0;  ///< its place in the step, from 0
  /** The place in the micro-batch of the first token that this rank has of it. The masks of its
   * rows are those that the micro-batch has as a whole. */
  int64_t first_token = 0;
  int block = 0;
  /** GPU memory that holds of(operation) at [operation] when the graph runs, while a block's work
   * is recorded into a CUDA graph. */
  const uint64_t* on_gpu = nullptr;
  /** The Philox key of one operation of the block. */
  uint64_t of(int operation) const;
};

/** The keys (after rotary positions) and values of sequences that a model goes on with: a token
 * goes through the model once, and later ones see it here. Undefined: none are kept. */
struct KvCache {
  at::Tensor keys, values;  ///< (places, kv heads, tokens, head width) each; compute type
};

struct BlockMemory {
  std::vector<at::Tensor> params;  ///< table order, then borrowed ones; compute type
  /** The same order, compute type; backward overwrites every one but the undefined: a frozen
   * matrix's is not computed. */
  std::vector<at::Tensor> grads;
  std::vector<at::Tensor> saved;  ///< table order, with room for the run's most sequences
  KvCache cache;                  ///< of the block's attention
  BatchShape room;                ///< the largest micro-batch that scratch and saved are for
  Scratch* scratch = nullptr;     ///< reset by the engine before each call
};

/** One block of a model. Thread-compatible; called with the compute stream current. */
class Block {
 public:
  virtual ~Block() = default;
  using Ports = std::span<const at::Tensor>;
  /** The numbers that decide whether a CUDA graph of the forward or backward pass is right for a
   * call. It is right for every call with the same memory, token count and numbers here: nothing
   * but random keys and the content of memory differs. None: no graph can be. */
  using GraphShape = std::array<int64_t, 2>;
  virtual std::optional<GraphShape> graph_shape(const BatchTensors&) const { return std::nullopt; }
  /** `ports`: tensors by BlockTable::ports, (rows, columns) of the value's type or by columns;
   * undefined where the pass does not use the port. A block with a loss writes its contribution
   * (fp32 scalar, weighed already) to `loss` if defined. A head writes logits to `logits` if
   * defined: (n_seqs, n_labels) fp32, (tokens, n_labels) where they are the tokens', or of a
   * language model (rows, vocabulary) fp32 where rows are the tokens or label_rows. A multi-label
   * or regression sample's loss is the mean over its labels. */
  virtual void forward(const RandomKey& key,
                       const BatchTensors& batch,
                       BlockMemory& memory,
                       Ports ports,
                       at::Tensor& loss,
                       at::Tensor& logits) = 0;
  /** A gradient that the block alone reads may be clobbered. */
  virtual void backward(const RandomKey& key,
                        const BatchTensors& batch,
                        BlockMemory& memory,
                        Ports ports) = 0;
  /** Selective recomputation: writes the activations that the table calls recomputed, from the
   * other activations and from what the forward reads. They get the bits that the forward wrote.
   * Full recomputation calls forward() again. */
  virtual void recompute_selected(const BatchTensors&, BlockMemory&, Ports /*ports*/) {}
};

/** The block's code for this table entry. */
std::unique_ptr<Block> make_block(const ModelTable& model, int block, LossKind loss);

}  // namespace ferry
