#pragma once
// The torch-free half of each kind of operation: what it keeps for its backward, what its backward
// reads and writes, its scratch and its work. Places of its calls, in this order (x? may be
// absent):
//
//   kind              in            out      parameters               forward
//   embedding         words?        y        word?, position?, type?  words?, y
//   linear            x, residual?  y        weight, bias?            x, residual?, y
//   norm              z             y        weight, bias             z, y, mean, rstd
//   residual_norm     a, residual   z, y     weight, bias, bias of a? a, residual, z, y, mean, rstd
//   rms_norm          a, residual?  z?, y    weight                   a, residual?, z?, y, rstd
//   head_norm         qkv           y        weight of q, of k        qkv, y, rstd
//   attention         qkv           context  -                        qkv, context, states...
//   rotary            qkv           rotated  -                        rotated (the same memory)
//   activation        a             h, g     bias?                    a, h, g
//   gate              gate_up       y        -                        gate_up, y
//   dropout_residual  a, residual   y        bias?                    a, residual, y
//   add               a, b          y        -                        a, b, y
//   dropout, first_rows, last_rows, labelled_rows, tanh:  x -> y      x, y
//   logits            x             logits   weight, bias?            x, logits
//   label_loss        logits        -        -                        logits
//   span_loss         logits        -        -                        logits, lse
//   vocabulary_loss   t             -        word, bias?              t, lse
//   vocabulary_piece  t             -        word, bias?              t
//
// Other parts are listed where they are planned (specs.cpp).

#include "models/core/pass_plan.h"

namespace ferry {

/** An operation of a program in a micro-batch up to a shape. */
struct OpCase {
  const BlockProgram& program;
  const Op& op;
  const ProgramTarget& target;
  BatchShape shape;

  int64_t rows(ValueId value) const { return rows_of(program.value(value).rows, shape); }
  int64_t columns(ValueId value) const { return program.value(value).columns; }
  /** Rows that are worked on: where only those with a label are, as many as usually have one. */
  int64_t worked_rows(ValueId value) const;
  /** Bytes of n elements of the compute type. */
  int64_t compute_bytes(int64_t n) const;
  /** Bytes that n passes over a value read or write. */
  int64_t traffic(ValueId value, int n) const {
    return n * compute_bytes(worked_rows(value) * columns(value));
  }
  /** Scratch of the sum over a value's rows. */
  int64_t column_sum_bytes(ValueId value) const;
};

struct OpSpec {
  /** The tensors that it keeps beside its values. */
  std::vector<SavedSpec> (*states)(const OpCase&) = nullptr;
  /** Plans Part::remake of the last output and returns its place; null: it is not cheap. */
  int (*remake)(PassPlanner&, int op) = nullptr;
  /** Its backward makes the last output again on its way. */
  bool remakes_in_backward = false;
  /** Outputs that may take the memory of an input: (output, input), by index. */
  std::vector<std::pair<int, int>> in_place;
  void (*plan_backward)(BackwardPlanner&, const Op&) = nullptr;
  /** forward_bytes of any part: what it takes of the scratch; library_bytes. */
  ScratchNeed (*scratch)(const OpCase&, Part) = nullptr;
  void (*add_work)(BlockWork&, const OpCase&, const Call&) = nullptr;
};

const OpSpec& spec_of(OpKind kind);

}  // namespace ferry
