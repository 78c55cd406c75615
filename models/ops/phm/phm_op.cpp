#include "models/ops/phm/phm_op.h"

#include <fmt/format.h>

#include "models/ops/column_sum.h"

namespace ferry::ops {
namespace {

/** Sizes of what a call makes of the parameters. */
struct Sizes {
  int64_t n, in, out;
  explicit Sizes(const OpCase& c)
      : n(c.op.with<PhmAttributes>().n),
        in(c.columns(values_of<PhmValues>(c.op).x)),
        out(c.columns(values_of<PhmValues>(c.op).y)) {}
};

}  // namespace

const OpDef kPhm = {
    .name = "phm",
    .values = PhmValues<int>::kNames,
    .n_inputs = 1,
    .params = PhmParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<PhmAttributes>();
          return fmt::format("factor {}, {} terms", with.factor, with.n);
        },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<PhmValues>(op);
          const int index = p.op(), dy = p.take_grad(v.y);
          p.when_there(v.x, dy, [&p, index, dy](int x) {
            p.call(index, Part::params, PhmGrads<int>{.dy = dy, .x = x, .dx = kNone});
          });
          const int dx = p.grad_place(v.x, /*adds=*/false).place;
          p.call(index, Part::backward, PhmGrads<int>{.dy = dy, .x = kNone, .dx = dx});
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      const Sizes its(c);
      const int64_t pairs = its.in * its.out;
      int64_t n_bytes =
          stacked_bytes(its.n * its.n * its.n * kF32_bytes, its.in * kF32_bytes,
                        its.out * kF32_bytes, pairs / its.n * kF32_bytes, pairs * kF32_bytes) +
          c.compute_bytes(pairs);
      if (part == Part::params)
        n_bytes += stacked_bytes(pairs / its.n * kF32_bytes, its.n * its.n * its.n * kF32_bytes,
                                 its.in * kF32_bytes, its.out * kF32_bytes) +
                   column_sum_bytes(c, values_of<PhmValues>(c.op).y);
      return {.forward_bytes = n_bytes};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const Sizes its(c);
          const int64_t rows = c.worked_rows(values_of<PhmValues>(c.op).x),
                        terms = its.in * its.out / its.n;
          if (call.part == Part::forward)
            work.products.push_back({rows, its.in, its.out});
          else if (call.part == Part::backward)
            work.products.push_back({rows, its.out, its.in});
          else
            work.products.push_back({its.in, rows, its.out});
          work.products.push_back({its.n * its.n, its.n, terms});
          work.n_kernels += call.part == Part::params ? 16 : 8;
          work.n_operations += call.part == Part::params ? 12 : 6;
        },
};

}  // namespace ferry::ops
