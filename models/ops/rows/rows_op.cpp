#include "models/ops/rows/rows_op.h"

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

namespace {

void plan_rows_backward(BackwardPlanner& p, const Op& op) {
  const auto v = values_of<RowsValues>(op);
  RowsGrads<int> places = {.dy = p.take_grad(v.y), .dx = kNone};
  places.dx = p.grad_place(v.x, /*adds=*/false).place;
  p.call(p.op(), Part::backward, places);
}

void add_rows_work(BlockWork& work, const OpCase& c, const Call& call) {
  const auto v = values_of<RowsValues>(c.op);
  const bool fills = call.part == Part::backward;
  work.memory_bytes += c.traffic(v.y, 2) + (fills ? c.traffic(v.x, 1) : 0);
  work.n_kernels += fills ? 2 : 1;
}

/** The numbers of the last rows lie in scratch. */
ScratchNeed last_rows_scratch(const OpCase& c, Part) {
  const int64_t n_bytes = c.shape.n_seqs_max * static_cast<int64_t>(sizeof(int32_t));
  return {.forward_bytes = stacked_bytes(n_bytes)};
}

constexpr OpDef rows_def(std::string_view name,
                         ScratchNeed (*scratch)(const OpCase&, Part) = nullptr) {
  OpDef def;
  def.name = name;
  def.values = RowsValues<int>::kNames;
  def.n_inputs = 1;
  def.remake = [](PassPlanner& p, int op) { return p.remake(op); };
  def.plan_backward = plan_rows_backward;
  def.scratch = scratch;
  def.add_work = add_rows_work;
  return def;
}

}  // namespace

const OpDef kFirstRows = rows_def("first_rows");
const OpDef kLastRows = rows_def("last_rows", last_rows_scratch);
const OpDef kLabelledRows = rows_def("labelled_rows");
const OpDef kAskedRows = rows_def("asked_rows");

}  // namespace ferry::ops
