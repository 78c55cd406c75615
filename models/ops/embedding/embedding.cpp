#include "models/ops/embedding/embedding.h"

#include "models/ops/dispatch.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

void embedding_forward(const BatchTensors& batch,
                       const at::Tensor& word,
                       const at::Tensor& position,
                       const at::Tensor& type,
                       at::Tensor& sum,
                       float word_scale,
                       int64_t first_word) {
  if (!word.defined()) {
    BatchTensors positions = batch;
    positions.input_ids = batch.position_ids;
    return embedding_forward(positions, position, {}, type, sum);
  }
  const EmbeddingForward its = {.extent = extent_of(sum),
                                .word_scale = word_scale,
                                .first_word = first_word,
                                .n_words = word.size(0),
                                .ids = ints_of(batch.input_ids),
                                .type_ids = ints_of(batch.type_ids),
                                .position_ids = ints_of(batch.position_ids),
                                .word_table = data_of(word),
                                .type_table = data_of(type),
                                .position_table = data_of(position),
                                .sum = data_of(sum)};
  kernels_for(sum, kCpuEmbedding, kCudaEmbedding).embedding_forward(its, launch_on(sum));
}

void add_embeddings(const BatchTensors& batch,
                    const at::Tensor& words,
                    const at::Tensor& position,
                    const at::Tensor& type,
                    at::Tensor& sum) {
  const EmbeddingForward its = {.extent = extent_of(sum),
                                .type_ids = ints_of(batch.type_ids),
                                .position_ids = ints_of(batch.position_ids),
                                .word_table = data_of(words),
                                .type_table = data_of(type),
                                .position_table = data_of(position),
                                .sum = data_of(sum)};
  kernels_for(sum, kCpuEmbedding, kCudaEmbedding).embedding_forward(its, launch_on(sum));
}

void embedding_backward(const at::Tensor& ids,
                        const at::Tensor& dx,
                        at::Tensor& d_table,
                        Scratch& scratch,
                        float scale,
                        int64_t first_row) {
  if (!d_table.defined()) return;
  const EmbeddingBackward its = {.extent = extent_of(dx),
                                 .scale = scale,
                                 .ids = ints_of(ids),
                                 .first_row = first_row,
                                 .n_rows = d_table.size(0),
                                 .dx = data_of(dx),
                                 .d_table = data_of(d_table)};
  const ScratchScope scope(scratch);
  void* order = take_bytes(
      scratch, embedding_backward_scratch_bytes(its.extent.T, its.extent.W, on_cuda(dx)));
  kernels_for(dx, kCpuEmbedding, kCudaEmbedding).embedding_backward(its, launch_on(dx, order));
}

}  // namespace ferry::ops
