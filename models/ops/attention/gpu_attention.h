#pragma once
// Attention's operands, and LibTorch's two kernels of it on a GPU (private to models/ops);
// attention.h has the shapes.

#include <ATen/core/Tensor.h>

#include <span>

#include "models/core/block.h"
#include "models/ops/attention/attention.h"
#include "models/ops/captures/captured_generator.h"

namespace ferry::ops {

/** Operands of attention_forward(). */
struct AttentionForward {
  const Attention& attention;
  const BatchTensors& batch;
  const at::Tensor& qkv;
  std::span<at::Tensor> state;
  at::Tensor& context;
  Scratch& scratch;
};
/** Operands of attention_backward(). */
struct AttentionBackward {
  const Attention& attention;
  const BatchTensors& batch;
  const at::Tensor& d_context;
  const at::Tensor& qkv;
  std::span<at::Tensor> state;
  const at::Tensor& context;
  at::Tensor& d_qkv;
  const at::Tensor& d_bias;
  Scratch& scratch;
};

}  // namespace ferry::ops

namespace ferry::ops::gpu {

/** LibTorch's kernels draw from the device's default generator: key and offset fix the mask. The
 * caller holds the lock until the kernel is launched. */
[[nodiscard]] GeneratorLock seed_generator(const at::Tensor& on,
                                           Dropout dropout,
                                           uint64_t offset = 0);

/** The longest sequence as flash attention is told it: its kernels work on up to 128 rows at a
 * time, so that lengths between them are one CUDA graph and give the same bits. */
int64_t flash_length(const BatchTensors& batch);

void flash_forward(const AttentionForward& its);
void flash_backward(const AttentionBackward& its);
void efficient_forward(const AttentionForward& its);
void efficient_backward(const AttentionBackward& its);
void capped_forward(const AttentionForward& its);
void capped_backward(const AttentionBackward& its);

}  // namespace ferry::ops::gpu
