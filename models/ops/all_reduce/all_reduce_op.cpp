#include "models/ops/all_reduce/all_reduce_op.h"

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {
namespace {

ValueId x_of(const OpCase& c) {
  return values_of<AllReduceValues>(c.op).x;
}

/** Room for the tensors of all ranks. LibTorch's sum of more than two takes fp32 sums beside it
 * where their 16 bits lie further apart than 32 bits count. */
ScratchNeed scratch_of_sum(const OpCase& c) {
  const int64_t n = c.rows(x_of(c)) * c.columns(x_of(c)),
                n_bytes = c.n_sharing() * c.compute_bytes(n);
  const bool takes_sums =
      c.n_sharing() > 2 && n_bytes > INT32_MAX && c.compute_bytes(1) < kF32_bytes;
  return {.forward_bytes = stacked_bytes(n_bytes),
          .library_bytes = takes_sums ? stacked_bytes(n * kF32_bytes) : 0};
}

void add_sum(BlockWork& work, const OpCase& c) {
  const int n_ranks = c.n_sharing();
  work.exchanged_bytes += (n_ranks - 1) * c.compute_bytes(c.rows(x_of(c)) * c.columns(x_of(c)));
  work.memory_bytes += c.traffic(x_of(c), n_ranks + 3);
  work.n_kernels += 3;
  work.n_operations += 2;
}

// Ranks that record a graph would not meet those that do not.
bool is_never_graph(const OpCase&) {
  return false;
}

}  // namespace

const OpDef kAllReduce = {
    .name = "all_reduce",
    .values = AllReduceValues<int>::kNames,
    .n_inputs = 1,
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<AllReduceValues>(op);
          p.pass_grad(v.x, p.take_grad(v.y));
        },
    .scratch = [](const OpCase& c, Part) { return scratch_of_sum(c); },
    .add_work = [](BlockWork& work, const OpCase& c, const Call&) { add_sum(work, c); },
    .may_be_graph = is_never_graph,
};

const OpDef kAllReduceGrad = {
    .name = "all_reduce_grad",
    .values = AllReduceValues<int>::kNames,
    .n_inputs = 1,
    .remake = [](PassPlanner& p, int op) { return p.remake(op); },
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<AllReduceValues>(op);
          const int dy = p.take_grad(v.y);
          const int dx = p.grad_place(v.x, /*adds=*/false, {dy}).place;
          p.call(p.op(), Part::backward, AllReduceGrads<int>{.dy = dy, .dx = dx});
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      if (part != Part::backward) return {};
      return scratch_of_sum(c);
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          if (call.part == Part::backward) return add_sum(work, c);
          work.memory_bytes += c.traffic(x_of(c), 2);
          ++work.n_kernels;
        },
    .may_be_graph = is_never_graph,
};

}  // namespace ferry::ops
