#pragma once
// The embeddings' tables on tensors, which are dense and, but for ids, of one type.

#include <ATen/core/Tensor.h>

#include "models/block.h"

namespace ferry::ops {

/** sum (T, W) = the three tables' rows of each token; position and type may be undefined. */
void embedding_forward(const BatchTensors& batch,
                       const at::Tensor& word,
                       const at::Tensor& position,
                       const at::Tensor& type,
                       at::Tensor& sum);
/** d_table (n, W) = for each row the sum of dx over the tokens with that id, in token order;
 * nothing where it is undefined. */
void embedding_backward(const at::Tensor& ids,
                        const at::Tensor& dx,
                        at::Tensor& d_table,
                        Scratch& scratch);

}  // namespace ferry::ops
