#pragma once
// The torch half of the operations: one call of a pass, on tensors. Each folder has the run_...()
// of its operation, which operations.cpp lists.

#include <fmt/format.h>

#include <array>
#include <bit>
#include <span>

#include "models/core/block.h"
#include "models/core/operation.h"
#include "src/base/error.h"

namespace ferry {

/** An operand: a tensor of the caller's, undefined where the operand is not there. */
class TensorRef {
 public:
  TensorRef() = default;
  explicit TensorRef(at::Tensor& tensor) : tensor_(&tensor) {}
  operator at::Tensor&() const { return *tensor_; }
  at::Tensor& operator*() const { return *tensor_; }
  at::Tensor* operator->() const { return tensor_; }

 private:
  at::Tensor* tensor_ = nullptr;
};

/** The rows [first, first + n) of an expert, among the routes that a router has sorted. */
struct RoutedRows {
  int64_t first = 0, n = 0;
};

/** One call. */
struct OpCall {
  const Op& op;
  const ProgramTarget& target;
  Part part{};
  std::span<const std::string_view> names;
  std::span<at::Tensor> places;  ///< by name
  std::span<at::Tensor> states;
  BlockMemory& memory;
  const RandomKey& key;
  const BatchTensors& batch;  ///< seen from the operation's stream
  const RoutedRows& routed;   ///< of an expert's tokens
  LossKind loss_kind{};
  at::Tensor& loss;    ///< of the forward of a block that has one
  at::Tensor& logits;  ///< of a head's forward
  Scratch& scratch;

  /** Those of a block whose work several share. */
  SharingRanks& sharing_ranks() const {
    FERRY_CHECK(batch.sharing_ranks && batch.sharing_ranks->world() == target.sharing.n_ranks(),
                "a block of {} ranks runs alone", target.sharing.n_ranks());
    return *batch.sharing_ranks;
  }
  template <template <class> class Operands>
  Operands<TensorRef> operands() const {
    FERRY_CHECK(names.data() == Operands<int>::kNames.data(), "{} is run with other operands",
                op.def->name);
    return of<Operands>(places);
  }
  template <template <class> class States>
  States<TensorRef> kept() const {
    return of<States>(states);
  }
  template <template <class> class Params>
  Params<TensorRef> params() const {
    return of<Params>(memory.params, op.params);
  }
  template <template <class> class Params>
  Params<TensorRef> grads() const {
    return of<Params>(memory.grads, op.params);
  }

 private:
  template <template <class> class Operands>
  static Operands<TensorRef> of(std::span<at::Tensor> tensors) {
    std::array<TensorRef, kOperands<Operands>> refs;
    for (size_t i = 0; i < refs.size(); ++i)
      refs[i] = TensorRef(tensors[i]);
    return std::bit_cast<Operands<TensorRef>>(refs);
  }
  template <template <class> class Params>
  static Params<TensorRef> of(std::vector<at::Tensor>& tensors, const std::vector<ParamId>& ids) {
    static at::Tensor none;
    std::array<TensorRef, kOperands<Params>> refs;
    for (size_t i = 0; i < refs.size(); ++i)
      refs[i] = TensorRef(ids[i] == kNone ? none : tensors[ids[i]]);
    return std::bit_cast<Params<TensorRef>>(refs);
  }
};

}  // namespace ferry
