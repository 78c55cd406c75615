#pragma once
// The passes of a block, derived from its program: calls of its operations in order, and the place
// of every tensor that a call touches. Made once for a block by plan_passes(); ProgramBlock
// (program_block.cpp) runs the calls. Torch-free.

#include <functional>
#include <initializer_list>
#include <map>
#include <vector>

#include "models/core/block_program.h"

namespace ferry {

/** Part of an operation. */
enum class Part : uint8_t {
  forward,
  remake,    ///< an output again, from what the forward kept: the same bits
  backward,  ///< the gradients of its inputs, and of parameters unless they come apart
  params,    ///< the gradients of its parameters
};

enum class PlaceKind : uint8_t { input, output, grad_output, grad_input, saved, temp };

/** A tensor that calls touch. */
struct PassPlace {
  PlaceKind kind{};
  Rows rows = Rows::tokens;  ///< of a temporary, as its columns and type
  int64_t columns = 0;
  DType type = DType::f32;
  bool by_column = false;
  int saved = kNone;                          ///< index into BlockPlan::saved
  int first_call = kNone, last_call = kNone;  ///< of a temporary
};

/** One call; `places` have the order that the operation's kind and part say (ops/specs.h). */
struct Call {
  int op = kNone;
  Part part{};
  std::vector<int> places;  ///< indices into PassPlan::places; kNone: not there
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
                    const BlockProgram& program,
                    const ProgramTarget& target,
                    const BatchShape& shape);

/** Rows of a value in a micro-batch of this shape, at most. */
int64_t rows_of(Rows rows, const BatchShape& shape);

/** Adds places and calls to a pass. Operations plan their parts with it (OpSpec). */
class PassPlanner {
 public:
  PassPlanner(const BlockProgram& program,
              const ProgramTarget& target,
              std::vector<SavedTensor>& saved,
              PassPlan& pass)
      : program_(program), target_(target), saved_(saved), pass_(pass) {}

  /** The place of a value that the pass reads: the block's input, where the forward saved it, or a
   * temporary that is made again first. */
  int data(ValueId value);
  /** The tensors that the operation keeps beside its values (OpSpec::states). */
  std::vector<int> states(int op);
  /** A new temporary like the value. */
  int temp_like(ValueId value);
  void call(int op, Part part, std::vector<int> places);
  const BlockProgram& program() const { return program_; }

 protected:
  int fixed(PlaceKind kind);
  int place_of_saved(const SavedTensor& tensor);
  int add_place(PassPlace place);

  const BlockProgram& program_;
  const ProgramTarget& target_;
  std::vector<SavedTensor>& saved_;
  PassPlan& pass_;
  std::map<ValueId, int> made_;  ///< values that were made again, and are there

 private:
  std::map<PlaceKind, int> fixed_;
  std::map<SavedTensor, int> places_of_saved_;
};

/** Plans the backward pass, the last operation first. */
class BackwardPlanner : public PassPlanner {
 public:
  using PassPlanner::PassPlanner;
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
   * `over` names the places: the first that nobody else reads is taken. `adds`: it can add. */
  GradPlace grad_place(ValueId input, bool adds, std::initializer_list<int> over = {});
  /** The place that is written beside a loss: gradients that other blocks have added up. */
  int grad_so_far() { return fixed(PlaceKind::grad_output); }
  /** The gradient of the input is what lies there, unchanged. */
  void pass_grad(ValueId input, int place);
  int op() const { return op_; }

 private:
  struct Waiting {
    int gradient;
    std::function<void(int)> emit;
  };
  /** A temporary that becomes the gradient of the block's input lies there from the start. */
  void write_straight_to_grad_input();
  void end_op();

  int op_ = kNone;
  std::map<ValueId, int> grads_;      // what there is of a value's gradient
  std::map<ValueId, int> n_readers_;  // operations that have not given their part of it
  std::map<int, int> n_users_;        // by place: gradients and waiting calls that read it later
  std::map<ValueId, std::vector<Waiting>> waiting_;
  std::map<ValueId, int> products_;  // of the operation that is planned now
  int over_input_ = kNone;           // what the last part of the input's gradient is written over
};

}  // namespace ferry
