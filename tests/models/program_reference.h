#pragma once
// Interprets a model's block programs in fp64 with autograd: the operations' definitions, written
// plainly, beside which kernels and what is derived from the programs can be looked at. Language
// models without dropout.

#include <ATen/core/Tensor.h>

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "models/core/block.h"
#include "models/core/block_program.h"
#include "models/ops/rotary/rotary_op.h"
#include "tests/models/model_runner.h"

namespace ferry::test {

class ProgramReference {
 public:
  /** The parameters are those of the runner, as they are now. */
  explicit ProgramReference(ModelRunner& runner);

  /** The loss of a micro-batch, fp64. */
  at::Tensor loss(const TestBatch& batch);
  /** By block and parameter: sums over all losses that went backward. */
  using Grads = std::map<std::pair<int, int>, at::Tensor>;
  Grads grads() const;

 private:
  at::Tensor param(size_t block, ParamId id);
  /** A value of the block that runs; it may be a part of another value, or lie in parts. */
  at::Tensor value(ValueId id) const;
  void run(const Op& op, size_t block, const TestBatch& batch);
  at::Tensor embedding(const Op& op, size_t block, const TestBatch& batch);
  at::Tensor attention(const Op& op, const TestBatch& batch);
  at::Tensor rotary(const Op& op, const TestBatch& batch) const;
  at::Tensor head_norm(const Op& op, size_t block, const TestBatch& batch);
  std::array<at::Tensor, 3> heads_of(const Op& op, const ops::AttentionHeads& of) const;
  static at::Tensor turned(const RopeTable& rope,
                           bool interleaved,
                           const at::Tensor& heads,
                           const TestBatch& batch);
  at::Tensor vocabulary_loss(const Op& op, size_t block, const TestBatch& batch);

  const ModelTable& table_;
  std::map<std::pair<int, int>, at::Tensor> params_;  // fp64 leaves
  const BlockProgram* program_ = nullptr;             // of the block that runs
  std::vector<at::Tensor> values_;                    // as operations have written them
  at::Tensor loss_;
};

}  // namespace ferry::test
