#pragma once
// The passes of a block, derived from its program: calls of its operations in order, and the place
// of every tensor that a call touches. Made once for a block by plan_passes(); ProgramBlock
// (program_block.cpp) runs the calls. Torch-free.

#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "models/core/block_program.h"
#include "models/core/operands.h"

namespace ferry {

/** Part of an operation. */
enum class Part : uint8_t {
  forward,
  remake,    ///< an output again, from what the forward kept: the same bits
  backward,  ///< the gradients of its inputs, and of parameters unless they come apart
  params,    ///< the gradients of its parameters
};

/** `port`: where other blocks leave or find the tensor. `columns`: a part of another place. */
enum class PlaceKind : uint8_t { port, saved, temp, columns };

/** A tensor that calls touch. */
struct PassPlace {
  PlaceKind kind{};
  ValueId value = kNone;     ///< but of a saved tensor: the value that it is, or whose gradient
  bool is_gradient = false;  ///< the gradient of the value, not the value
  Rows rows;                 ///< of a temporary, as its columns and type
  int64_t columns = 0;
  DType type = DType::f32;
  bool by_column = false;
  int port = kNone;                           ///< index into BlockProgram::ports
  int saved = kNone;                          ///< index into BlockPlan::saved
  int whole = kNone;                          ///< the place that this one is columns of
  int64_t first_column = 0;                   ///< of them
  int first_call = kNone, last_call = kNone;  ///< of a temporary
};

/** One call. */
struct Call {
  int op = kNone;  ///< BlockPlan::op_of() has it
  Part part{};
  std::span<const std::string_view> names;  ///< of its operands
  std::vector<int> places;                  ///< by name: indices into PassPlan::places, or kNone
  std::vector<int> states;                  ///< places of the tensors that the operation keeps
};

struct PassPlan {
  std::vector<PassPlace> places;
  std::vector<Call> calls;
};

/** A saved tensor: a value of the program, or a state of an operation. */
struct SavedTensor {
  ValueId value = kNone;  ///< kNone: a state
  int op = kNone, state = kNone;

  auto operator<=>(const SavedTensor&) const = default;
};

/** All passes of a block, and what its forward leaves for the others. */
struct BlockPlan {
  PassPlan forward, backward, recompute;
  std::vector<SavedTensor> saved;
  /** Operations that the program does not have: sums of gradients where the operation that gives
   * the second part cannot add to the first. Calls number them on from the program's. */
  std::vector<Op> added;

  const Op& op_of(const BlockProgram& program, const Call& call) const;
};

BlockPlan plan_passes(const BlockProgram& program, const ProgramTarget& target);

/** Where the temporaries of a pass lie in the scratch, for micro-batches up to a shape. */
struct PassScratch {
  std::vector<int64_t> offsets;       ///< by place: bytes, of temporaries
  std::vector<int64_t> call_offsets;  ///< by call: where the operation's own scratch begins
  int64_t n_bytes = 0;
  int64_t library_bytes = 0;
};
PassScratch lay_out(const PassPlan& pass,
                    const BlockPlan& plan,
                    const BlockProgram& program,
                    const ProgramTarget& target,
                    const BatchShape& shape);

/** Adds places and calls to a pass. Operations plan their parts with it (OpDef). */
class PassPlanner {
 public:
  PassPlanner(const BlockProgram& program,
              const ProgramTarget& target,
              std::vector<SavedTensor>& saved,
              PassPlan& pass)
      : program_(program), target_(target), saved_(saved), pass_(pass) {}

  /** The place of a value that the pass reads: a port, where the forward saved it, or a temporary
   * that is made again first. */
  int data(ValueId value);
  /** The tensors that the operation keeps beside its values (OpDef::states). */
  std::vector<int> states(int op);
  /** Plans Part::remake of an operation whose forward makes one value, with the forward's operands;
   * returns the value's place. */
  int remake(int op);
  /** The place of a part of a value in the place of the whole. */
  int part_at(int whole_place, ValueId part);
  /** A new temporary like the value: the value made again, or its gradient. */
  int temp_like(ValueId value);
  int gradient_like(ValueId value);
  /** A call of a part, with its struct of operands. */
  template <template <class> class Operands>
  void call(int op, Part part, const Operands<int>& operands, std::vector<int> states = {}) {
    add_call({op, part, Operands<int>::kNames, listed<Operands>(operands), std::move(states)});
  }
  const BlockProgram& program() const { return program_; }
  /** True of a parameter that is there and that steps change. */
  bool is_trained(int param) const { return param != kNone && !target_.is_frozen(param); }

 protected:
  /** The place of a value or its gradient at a port of the block. */
  int at_port(int port, ValueId value, bool is_gradient);
  int place_of_saved(const SavedTensor& tensor);
  int add_place(PassPlace place);
  void add_call(Call call);

  const BlockProgram& program_;
  const ProgramTarget& target_;
  std::vector<SavedTensor>& saved_;
  PassPlan& pass_;
  std::map<ValueId, int> made_;  ///< values that were made again, and are there

 private:
  std::map<int, int> at_ports_;                   ///< by port
  std::map<std::pair<int, ValueId>, int> parts_;  ///< by place of the whole
  std::map<SavedTensor, int> places_of_saved_;
};

/** The operations that a backward adds to those of its program. */
struct GradientOps {
  /** The sum of two parts of a value's gradient, and a copy of the gradient. */
  Op (*sum_of)(ValueId value);
  Op (*copy_of)(ValueId value);
  /** Their calls, with places. */
  void (*add)(PassPlanner&, int op, int a, int b, int sum);
  void (*copy)(PassPlanner&, int op, int from, int to);
};

/** Plans the backward pass, the last operation first. */
class BackwardPlanner : public PassPlanner {
 public:
  /** `added`: takes the operations that the program does not have (BlockPlan::added). */
  BackwardPlanner(const BlockProgram& program,
                  const ProgramTarget& target,
                  std::vector<SavedTensor>& saved,
                  PassPlan& pass,
                  std::vector<Op>& added)
      : PassPlanner(program, target, saved, pass), added_(added) {}
  void run();

  /** The gradient of an output of the operation that is planned now; kNone where nobody reads that
   * output. */
  int take_grad(ValueId output);
  /** Calls `emit` with the place of the value once it is there: now, or after the backward of the
   * operation that makes it again on its way. The gradient stays as it is until then. */
  void when_there(ValueId value, int gradient, std::function<void(int place)> emit);
  /** The place for an output that this backward makes again on its way; kNone where nobody waits
   * for it. It is `over`, if that is given and nobody else reads what is there. */
  int by_product(ValueId output, int over = kNone);

  struct GradPlace {
    int place = kNone;  ///< where the gradient goes
    int sum = kNone;    ///< a part of the gradient that is there already, to be added; may be place
  };
  /** The place for the gradient of an input. Where the operation can write over what it reads,
   * `over` names the places: the first that nobody else reads is taken. `adds`: it can add. Where
   * it cannot and a part is there already, its part gets a place of its own, and both are added
   * once the operation has run. */
  GradPlace grad_place(ValueId input, bool adds, std::initializer_list<int> over = {});
  /** The gradient of the input is what lies there, unchanged. */
  void pass_grad(ValueId input, int place);
  int op() const { return op_; }

 private:
  struct Waiting {
    int gradient;
    std::function<void(int)> emit;
  };
  /** Two parts of a gradient that are added once the operation has run. */
  struct Addition {
    ValueId value;
    int sum, part, place;
  };
  /** The place for the sum of what is there of the input's gradient and of another part. */
  int place_of_sum(ValueId input, int part, bool is_last);
  void add_later(ValueId input, int part, bool is_last);
  /** The value comes from another block, which wants its gradient. */
  bool leaves_grad(ValueId value) const {
    return program_.value(value).grad_port != kNone && program_.is_read_from_port(value);
  }
  /** The place where the block leaves the gradient of such a value. */
  int grad_at_port(ValueId value) {
    return at_port(program_.value(value).grad_port, value, /*is_gradient=*/true);
  }
  /** Takes what other blocks have left of gradients. */
  void begin_at_ports();
  /** The whole gradient of a value that is taken apart, once its parts have theirs. */
  int take_grad_of_parts(ValueId whole);
  /** A part of the gradient of a value that operations write in parts. */
  int take_part_of_grad(ValueId part);
  /** A new place for a gradient: of a part in the gradient of the whole. */
  int new_grad_place(ValueId input);
  /** Leaves the gradient in another place, too. */
  void copy_grad(ValueId value, int from, int to);
  /** Adds an operation that the program does not have, and returns its number. */
  int add_op(Op op);
  /** The gradient of a value of another block lies where that block looks for it. */
  void end_at_port(ValueId value);
  /** A temporary that becomes such a gradient lies there from the start. */
  void write_straight_to_ports();
  void end_op();

  int op_ = kNone;
  std::map<ValueId, int> grads_;      // what there is of a value's gradient
  std::map<ValueId, int> n_readers_;  // operations that have not given their part of it
  std::map<int, int> n_users_;        // by place: gradients and waiting calls that read it later
  std::map<ValueId, std::vector<Waiting>> waiting_;
  std::map<ValueId, int> wholes_;            // gradients of values that are taken apart
  std::map<ValueId, size_t> n_parts_taken_;  // of the gradients of values that are joined
  std::map<ValueId, int> products_;          // of the operation that is planned now
  std::vector<Addition> additions_;          // the same
  std::vector<Op>& added_;
  std::map<ValueId, int> over_;  // what the last part of a gradient that leaves is written over
};

}  // namespace ferry
