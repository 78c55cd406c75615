#pragma once
// An operation of a block's program. A folder of models/ops declares the operation: names of its
// operands, tensors that its backward needs, the calls of its backward, scratch and work. The torch
// half of the folder runs it (models/ops/run.h). Torch-free.

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/core/block_program.h"
#include "models/core/operands.h"
#include "models/core/pass_plan.h"

namespace ferry {

// --- the operands of an operation of a program ---

/** The values that the forward of an operation reads and writes. Allocates nothing, since the work
 * of a pass is asked for at each step. */
template <template <class> class Forward>
Forward<ValueId> values_of(const Op& op) {
  std::array<ValueId, kOperands<Forward>> values{};
  std::ranges::copy(op.out, std::ranges::copy(op.in, values.begin()).out);
  return std::bit_cast<Forward<ValueId>>(values);
}

template <template <class> class Params>
Params<ParamId> params_of(const Op& op) {
  return named<Params, ParamId>(op.params);
}

/** Of an operation without parameters. */
template <class T>
struct NoParams {
  static constexpr std::array<std::string_view, 0> kNames = {};
};

// --- the declaration ---

/** An operation of a program in a micro-batch up to a shape. */
struct OpCase {
  const BlockProgram& program;
  const Op& op;
  const ProgramTarget& target;
  BatchShape shape;  ///< seen from the operation's stream

  OpCase(const BlockProgram& program,
         const Op& op,
         const ProgramTarget& target,
         const BatchShape& shape);
  int64_t rows(ValueId value) const { return rows_of(program.value(value).rows, shape); }
  int64_t columns(ValueId value) const { return program.value(value).columns; }
  int n_sharing() const { return target.sharing.n_ranks(); }
  /** Rows that are worked on: where only those with a label are, as many as usually have one. */
  int64_t worked_rows(ValueId value) const;
  /** Bytes of n elements of the compute type. */
  int64_t compute_bytes(int64_t n) const;
  /** Bytes that n passes over a value read or write. */
  int64_t traffic(ValueId value, int n) const {
    return n * compute_bytes(worked_rows(value) * columns(value));
  }
};

/** A program while an operation of it is written in others. */
struct Composition {
  BlockProgram& program;
  std::vector<Op>& ops;  ///< takes the operations, in their order

  /** A new value like another one. */
  ValueId like(const std::string& name, ValueId value) {
    Value its = program.value(value);
    its = {.name = name, .rows = its.rows, .columns = its.columns, .type = its.type};
    program.values.push_back(std::move(its));
    return static_cast<ValueId>(program.values.size()) - 1;
  }
};

struct OpDef {
  std::string_view name;
  /** The operands of its forward: so many inputs, then the outputs. kNone stands for an optional
   * one that is not there. */
  std::span<const std::string_view> values;
  size_t n_inputs = 0;
  std::span<const std::string_view> params;

  /** Its attributes as a text that tells any two apart; null: it has none. */
  std::string (*attributes)(const Op&) = nullptr;
  /** The tensors that it keeps beside its values: calls of all parts have them. */
  std::vector<SavedSpec> (*states)(const OpCase&) = nullptr;
  /** Plans Part::remake of the last output and returns its place; null: it is not cheap. */
  int (*remake)(PassPlanner&, int op) = nullptr;
  /** Its backward makes the last output again on its way. */
  bool remakes_in_backward = false;
  /** The first output may take the memory of the first input. */
  bool in_place = false;
  /** Its matrix may have another storage than compute (ParamSpec::storage). */
  bool reads_stored = false;
  void (*plan_backward)(BackwardPlanner&, const Op&) = nullptr;
  /** The scratch of a call of any part, as forward_bytes, and library_bytes. */
  ScratchNeed (*scratch)(const OpCase&, Part) = nullptr;
  void (*add_work)(BlockWork&, const OpCase&, const Call&) = nullptr;
  /** Writes it in other operations, which train before it has kernels; null: it is one of those
   * that others are written in. */
  void (*compose)(Composition&, const Op&) = nullptr;
  /** True where its kernels cannot do this operation; null: they do all. */
  bool (*lacks_kernels)(const Op&, const ProgramTarget&) = nullptr;
  /** False where its calls depend on the length of each sequence; null: they never do. */
  bool (*may_be_graph)(const OpCase&) = nullptr;
};

/** An operation by its forward's operands and its parameters. */
template <template <class> class Forward, template <class> class Params = NoParams>
Op make_op(const OpDef& def,
           const Forward<ValueId>& values,
           const Params<ParamId>& params = {},
           std::any attributes = {}) {
  const std::vector<ValueId> all = listed<Forward>(values);
  const auto outputs = all.begin() + static_cast<std::ptrdiff_t>(def.n_inputs);
  return {&def,
          {all.begin(), outputs},
          {outputs, all.end()},
          listed<Params>(params),
          std::move(attributes)};
}

}  // namespace ferry
