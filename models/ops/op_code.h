#pragma once
// The torch half of each kind of operation: the call of a pass on tensors. Places are in the order
// of models/ops/specs.h.

#include <span>

#include "models/block.h"
#include "models/core/pass_plan.h"

namespace ferry {

/** One call. Tensors that are not there are undefined. */
struct OpCall {
  const Op& op;
  const ProgramTarget& target;
  Part part{};
  std::span<at::Tensor> places;
  BlockMemory& memory;
  const RandomKey& key;
  const BatchTensors& batch;
  LossKind loss_kind{};
  at::Tensor& loss;    ///< of a head's forward
  at::Tensor& logits;  ///< of a head's forward
  Scratch& scratch;

  const at::Tensor& param(size_t i) const { return of(memory.params, i); }
  at::Tensor& grad(size_t i) const { return of(memory.grads, i); }

 private:
  at::Tensor& of(std::vector<at::Tensor>& tensors, size_t i) const;
};

/** Runs the call. */
void run_op(const OpCall& call);

}  // namespace ferry
