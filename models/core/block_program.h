#pragma once
// A block as a program: its forward written once, operations on named values, by a family with a
// BlockBuilder (block_builder.h). Everything else about the block follows from it: what its
// backward reads and so what is saved, the backward itself, scratch, work (pass_plan.h, compile.h).
// Torch-free.

#include <any>
#include <cstdint>
#include <string>
#include <vector>

#include "models/core/loss_kind.h"
#include "models/core/tensor_table.h"
#include "src/base/indexed.h"

namespace ferry {

inline constexpr int kNone = -1;

/** A tensor (rows, columns) that flows through a block. */
struct Value {
  std::string name;  ///< "attention.qkv"
  Rows rows;
  int64_t columns = 0;
  DType type = DType::f32;
  bool recomputed = false;  ///< selective recomputation makes it again: cheap for its size
  bool by_column = false;   ///< lies as (columns, rows)
  /** Indices of BlockProgram::ports. A value with a port lies between blocks; one that no operation
   * writes has come from there. */
  int port = kNone;
  int grad_port = kNone;  ///< there the backward finds the value's gradient, or leaves it
  /** There the backward finds what other blocks have added up of the gradient that it leaves. */
  int grad_before = kNone;
  /** Columns of another value, from `first_column` on, which has no others: it lies there. */
  int whole = kNone;
  int64_t first_column = 0;
};

/** Index into BlockProgram::values. */
using ValueId = int;
/** Index into the block's parameters, then what it borrows. */
using ParamId = int;

struct OpDef;
struct BlockProgram;

/** One operation. Its declaration says what its inputs, outputs and parameters are
 * (models/core/operation.h); kNone stands for an optional one that is not there. */
struct Op {
  const OpDef* def = nullptr;
  std::vector<ValueId> in, out;
  std::vector<ParamId> params;
  /** The stream that it works on: its first operand's. */
  int stream(const BlockProgram& program) const;
  /** Settings beside values and parameters: a struct of the operation's folder. */
  std::any attributes;

  template <class Attributes>
  const Attributes& with() const {
    return std::any_cast<const Attributes&>(attributes);
  }
  template <class Attributes>
  Attributes& with() {
    return std::any_cast<Attributes&>(attributes);
  }
};

struct BlockProgram {
  Indexed<Value> values;
  std::vector<Op> ops;
  Indexed<Port> ports;

  const Value& value(ValueId id) const { return values[id]; }
  const Op& op(int index) const { return ops[static_cast<size_t>(index)]; }
  /** The operation that writes the value, or its last part; kNone: it comes from another block. */
  int producer_of(ValueId id) const;
  /** The values that are its columns, in order; none where it is not taken apart. */
  std::vector<ValueId> parts_of(ValueId id) const;
  /** Operations write its parts, not the value as one. */
  bool is_joined(ValueId id) const;
  bool is_read_from_port(ValueId id) const { return producer_of(id) == kNone; }
};

struct GradientOps;

/** Facts about a run on which sizes depend. */
struct ProgramTarget {
  DType compute = DType::f32;
  AttentionBackend attention = AttentionBackend::cpu_math;
  int gpu_multiprocessors = 0;
  int64_t vocab_size = 0;
  Sharing sharing = {};  ///< of the ranks that share the block's work
  /** Every operation that can be written in others is written so (OpDef::compose). Tests compare
   * the result with the operation's own kernels. */
  bool composes_all = false;
  std::vector<MatrixStorage> storages =
      {};  ///< of the block's own parameters; none: all of compute
  /** Parameters that no step changes, borrowed ones too; none: all are trained. The backward leaves
   * out the gradients of frozen matrices, and the forward what these alone would read. */
  std::vector<bool> frozen = {};
  const GradientOps* gradients = nullptr;  ///< never null where passes are planned

  bool is_cuda() const { return attention != AttentionBackend::cpu_math; }
  bool is_frozen(ParamId param) const {
    const auto index = static_cast<size_t>(param);
    return index < frozen.size() && frozen[index];
  }
  MatrixStorage storage_of(ParamId param) const {
    const auto index = static_cast<size_t>(param);
    return index < storages.size() ? storages[index] : MatrixStorage();
  }
};

}  // namespace ferry
