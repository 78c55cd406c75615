#pragma once
// The operations that ops_bench times: each direction as Ferry does it, and the same composed of
// plain LibTorch calls, on the same inputs. LibTorch's backward is autograd's, over a graph that is
// made once.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/core/block.h"
#include "models/ops/dropout_mask.h"

namespace ferry::ops_bench {

/** Llama has no dropout and no biases. */
enum class Family : uint8_t { bert, gpt2, llama };

/** Widths of a model and its micro-batch. */
struct Sizes {
  int64_t tokens = 0;   ///< T: sequences of one length, end to end
  int64_t length = 0;   ///< of each
  int64_t width = 0;    ///< W
  int64_t inner = 0;    ///< F: of the MLP
  int64_t n_heads = 0;  ///< of queries
  int64_t n_kv_heads = 0;
  int64_t vocab = 0;      ///< V
  int64_t head_rows = 0;  ///< tokens with a label
  int64_t n_params = 0;   ///< of one layer, for what works on its gradients and states
  Family family = Family::bert;

  /** Causal, and every token has a label. */
  bool is_decoder() const { return family != Family::bert; }
  int64_t head_width() const { return width / n_heads; }
  int64_t qkv_width() const { return (n_heads + 2 * n_kv_heads) * head_width(); }  // Q
};

/** The setup that every operation is made for. */
struct Setup {
  Sizes sizes;
  at::Device device{at::kCPU};
  at::ScalarType type = at::kFloat;
  AttentionBackend attention = AttentionBackend::cpu_math;
  float p = 0;  ///< of dropout

  bool cuda() const { return device.is_cuda(); }
  ops::Dropout dropout() const { return {.p = p, .key = 77}; }

  at::Tensor random(at::IntArrayRef shape, double std = 1) const;
  at::Tensor random_ints(int64_t below, int64_t n) const;
  /** For results: NaN wherever nothing is written. */
  at::Tensor room(at::IntArrayRef shape) const;
  at::Tensor room_f32(at::IntArrayRef shape) const;
};

struct Workspace {
  at::Tensor bytes;
  Scratch scratch;

  Workspace(const Setup& setup, int64_t n_bytes);
};

using Tensors = std::vector<at::Tensor>;
using Formula = std::function<Tensors(const Tensors&)>;
/** Runs, or queues on the current stream; what it has written. */
using Call = std::function<Tensors()>;

struct Direction {
  std::string name;     ///< forward, backward, recompute or update
  int64_t n_bytes = 0;  ///< what must cross memory: each input read once, each result written once
  Call ferry;
  Call libtorch;  ///< the same results in the same order
  /** Ferry's results as LibTorch has them, where that is something else. */
  Formula as_libtorch;
};

struct Operation {
  std::string name;
  std::vector<Direction> directions;
};
using MakeOperation = Operation (*)(const Setup&);

/** The parts of which both directions of a differentiable operation are made. */
struct Differentiable {
  std::string name;
  Tensors inputs;  ///< whose gradients the backward gives
  Formula libtorch;
  Call forward;  ///< Ferry's
  int64_t forward_bytes;
  Tensors d_outputs;
  Call backward;  ///< Ferry's
  int64_t backward_bytes;
};
Operation operation_of(const Differentiable& its);

int64_t bytes_of(const Tensors& tensors);

/** Row by row: GELU, norms, dropout, residual sums, rotary positions, gates. */
std::vector<MakeOperation> row_operations(const Sizes& sizes);
/** Embedding, attention, rows with labels, LM head. */
std::vector<MakeOperation> token_operations(const Sizes& sizes);
/** Gradient norm with its overflow test, fp32 accumulation, AdamW. */
std::vector<MakeOperation> update_operations();

}  // namespace ferry::ops_bench
