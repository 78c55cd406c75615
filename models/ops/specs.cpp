#include "models/ops/specs.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/ops/scratch_sizes.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

using ops::stacked_bytes;

/** The share of tokens that have a label where a language model predicts what is masked. */
constexpr int64_t kLabelled_percent = 15;

/** An operation in a micro-batch of this shape. */
struct Sizes {
  const BlockProgram& program;
  const Op& op;
  const ProgramTarget& target;
  const BatchShape& shape;

  int64_t rows(ValueId value) const { return rows_of(program.value(value).rows, shape); }
  int64_t columns(ValueId value) const { return program.value(value).columns; }
  /** Bytes of n elements of the compute type. */
  int64_t compute_bytes(int64_t n) const {
    return round_up(n * static_cast<int64_t>(size_of(target.compute)), kTensorAlignment_bytes);
  }
  int64_t column_sum(ValueId value) const {
    return stacked_bytes(ops::column_sum_scratch_bytes(rows(value), columns(value)));
  }
  /** Rows that are worked on: of those with a label as many as usual. */
  int64_t worked_rows(ValueId value) const {
    const int64_t n = rows(value);
    return program.value(value).rows == Rows::labelled
               ? std::max<int64_t>(1, n * kLabelled_percent / 100)
               : n;
  }
  /** Bytes that n passes over a value read or write. */
  int64_t traffic(ValueId value, int n) const {
    return n * compute_bytes(worked_rows(value) * columns(value));
  }
};

ValueId sum_of(const Op& op) {  // of a norm: what it normalises
  if (op.kind == OpKind::norm) return op.in[0];
  return op.out[0] == kNone ? op.in[0] : op.out[0];
}

// --- embedding: remake [y], backward [dy] ---

OpSpec embedding() {
  return {.remake =
              [](PassPlanner& p, int op) {
                const int y = p.temp_like(p.program().op(op).out[0]);
                p.call(op, Part::remake, {y});
                return y;
              },
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                p.call(p.op(), Part::backward, {p.take_grad(op.out[0])});
              },
          .scratch = [](const BlockProgram& program, const Op& op, Part part,
                        const ProgramTarget& target, const BatchShape& shape) -> ScratchNeed {
            if (part != Part::backward) return {};
            const Sizes s{program, op, target, shape};
            return {.forward_bytes = stacked_bytes(ops::embedding_backward_scratch_bytes(
                        s.rows(op.out[0]), s.columns(op.out[0]), target.is_cuda()))};
          },
          .add_work =
              [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
                 const ProgramTarget& target, const BatchShape& shape) {
                const Sizes s{program, op, target, shape};
                const auto n_tables = static_cast<int>(
                    std::ranges::count_if(op.params, [](ParamId param) { return param != kNone; }));
                if (part != Part::backward) {
                  work.memory_bytes += s.traffic(op.out[0], n_tables + 1);
                  ++work.n_kernels;
                  return;
                }
                // Sums into tables that are cleared first.
                work.memory_bytes += s.traffic(op.out[0], 3 * n_tables) +
                                     s.compute_bytes(op.with.n_table_rows * s.columns(op.out[0]));
                work.compared_pairs += n_tables * shape.tokens * shape.tokens;
                work.n_kernels += 4 * n_tables;
              }};
}

// --- linear: backward [dy, dx, sum?], params [dy, x] ---

OpSpec linear() {
  return {.plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int index = p.op(), dy = p.take_grad(op.out[0]);
                p.pass_grad(op.in[1], dy);
                p.when_there(op.in[0], dy, [&p, index, dy](int x) {
                  p.call(index, Part::params, {dy, x});
                });
                const auto [dx, sum] = p.grad_place(op.in[0], /*adds=*/true);
                p.call(index, Part::backward, {dy, dx, sum});
              },
          .scratch = [](const BlockProgram& program, const Op& op, Part part,
                        const ProgramTarget& target, const BatchShape& shape) -> ScratchNeed {
            if (part != Part::params || op.params[1] == kNone || op.with.sums_bias) return {};
            return {.forward_bytes = Sizes{program, op, target, shape}.column_sum(op.out[0])};
          },
          .add_work =
              [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
                 const ProgramTarget& target, const BatchShape& shape) {
                const Sizes s{program, op, target, shape};
                const int64_t rows = s.worked_rows(op.in[0]), inner = s.columns(op.in[0]),
                              columns = s.columns(op.out[0]);
                ++work.n_kernels;
                if (part == Part::params) {
                  work.products.push_back({columns, rows, inner});
                  if (op.params[1] != kNone && !op.with.sums_bias) {
                    work.memory_bytes += s.traffic(op.out[0], 1);
                    work.n_kernels += 2;
                  }
                  return;
                }
                if (part == Part::backward) {
                  work.products.push_back({rows, columns, inner});
                  return;
                }
                work.products.push_back({rows, inner, columns});
                if (op.in[1] == kNone) return;
                work.memory_bytes += s.traffic(op.out[0], 2);  // LibTorch copies the residual
                ++work.n_kernels;
                ++work.n_operations;
              }};
}

// --- norms: remake [z, states..., y], backward [dy, z, states..., sum?, dz, da?] ---

template <int kStates>
int remake_norm(PassPlanner& p, int op) {
  const Op& norm = p.program().op(op);
  std::vector<int> places = {p.data(sum_of(norm))};
  for (int s = 0; s < kStates; ++s)
    places.push_back(p.state(op, s));
  const int y = p.temp_like(norm.out.back());
  places.push_back(y);
  p.call(op, Part::remake, std::move(places));
  return y;
}

template <int kStates>
void plan_norm_backward(BackwardPlanner& p, const Op& op) {
  const bool has_sum = op.kind != OpKind::norm && op.out[0] != kNone;
  const int dy = p.take_grad(op.out.back()), d_sum = has_sum ? p.take_grad(op.out[0]) : kNone;
  std::vector<int> places = {dy, p.data(sum_of(op))};
  for (int s = 0; s < kStates; ++s)
    places.push_back(p.state(p.op(), s));
  if (!has_sum) {
    const auto [dz, sum] = p.grad_place(op.in[0], /*adds=*/true, {dy});
    places.insert(places.end(), {sum, dz, kNone});
  } else {
    // The gradient of the sum is the residual's, and but for dropout that of what was added to it.
    const int dz = p.grad_place(op.in[1], /*adds=*/false, {d_sum, dy}).place;
    int da = kNone;
    if (op.kind == OpKind::residual_norm)
      da = p.grad_place(op.in[0], /*adds=*/false).place;
    else
      p.pass_grad(op.in[0], dz);
    places.insert(places.end(), {d_sum, dz, da});
  }
  p.call(p.op(), Part::backward, std::move(places));
}

OpSpec norm(OpKind kind) {
  OpSpec spec;
  const bool is_rms = kind == OpKind::rms_norm;
  spec.states = [](const BlockProgram& program, const Op& op, const ProgramTarget&,
                   const BatchShape& shape) -> std::vector<SavedSpec> {
    const Value& y = program.value(op.out.back());
    const int64_t rows = rows_of(y.rows, shape);
    if (op.kind == OpKind::rms_norm) return {{y.name + ".rstd", {rows}, DType::f32}};
    return {{y.name + ".mean", {rows}, DType::f32}, {y.name + ".rstd", {rows}, DType::f32}};
  };
  spec.remake = is_rms ? remake_norm<1> : remake_norm<2>;
  spec.plan_backward = is_rms ? plan_norm_backward<1> : plan_norm_backward<2>;
  spec.in_place = {{0, 0}};
  spec.scratch = [](const BlockProgram& program, const Op& op, Part part,
                    const ProgramTarget& target, const BatchShape& shape) -> ScratchNeed {
    if (part != Part::backward) return {};
    const Sizes s{program, op, target, shape};
    const int64_t T = s.rows(op.out.back()), W = s.columns(op.out.back());
    return {.forward_bytes =
                stacked_bytes(op.kind == OpKind::rms_norm
                                  ? ops::rms_norm_backward_scratch_bytes(T, W, target.is_cuda())
                                  : ops::norm_backward_scratch_bytes(T, W, target.is_cuda()))};
  };
  spec.add_work = [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
                     const ProgramTarget& target, const BatchShape& shape) {
    const Sizes s{program, op, target, shape};
    const bool has_sum = op.kind != OpKind::norm && op.out[0] != kNone;
    const bool is_backward = part == Part::backward;
    const int n_rows = part == Part::remake ? 2 : is_backward ? 4 : has_sum ? 4 : 2;
    work.memory_bytes += s.traffic(op.out.back(), n_rows);
    work.n_kernels += !is_backward ? 1 : op.kind == OpKind::residual_norm ? 3 : 2;
  };
  return spec;
}

// --- attention: backward [d_context, qkv, context, states..., d_qkv] ---

ops::AttentionHeads heads_of(const Op& op) {
  return {.n_heads = op.with.n_heads,
          .n_kv_heads = op.with.n_kv_heads,
          .head_width = op.with.head_width};
}

OpSpec attention() {
  return {
      .states =
          [](const BlockProgram&, const Op& op, const ProgramTarget& target,
             const BatchShape& shape) {
            return ops::attention_saved(target.attention, target.compute, shape, op.with.n_heads);
          },
      .plan_backward =
          [](BackwardPlanner& p, const Op& op) {
            std::vector<int> places = {p.take_grad(op.out[0]), p.data(op.in[0]), p.data(op.out[0])};
            const size_t n =
                ops::attention_saved(p.target().attention, p.target().compute, {}, op.with.n_heads)
                    .size();
            for (size_t s = 0; s < n; ++s)
              places.push_back(p.state(p.op(), static_cast<int>(s)));
            places.push_back(p.grad_place(op.in[0], /*adds=*/false).place);
            p.call(p.op(), Part::backward, std::move(places));
          },
      .scratch = [](const BlockProgram& program, const Op& op, Part part,
                    const ProgramTarget& target, const BatchShape& shape) -> ScratchNeed {
        const ScratchNeed need = ops::attention_scratch(target.attention, target.compute, shape,
                                                        heads_of(op), target.gpu_multiprocessors);
        if (part == Part::forward)
          return {.forward_bytes = need.forward_bytes, .library_bytes = need.library_bytes};
        const int64_t bias =
            op.with.sums_bias ? Sizes{program, op, target, shape}.column_sum(op.in[0]) : 0;
        return {.forward_bytes = std::max(need.backward_bytes, bias),
                .library_bytes = need.library_bytes};
      },
      .add_work =
          [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
             const ProgramTarget& target, const BatchShape& shape) {
            const Sizes s{program, op, target, shape};
            work.attention_tokens = shape.tokens;
            work.attention_length = shape.max_length;
            work.attention_width = heads_of(op).width();
            work.attention_causal = op.with.causal;
            if (part == Part::forward) {
              work.n_kernels += 4;  // with copies of what it returns
              work.n_operations += 4;
              return;
            }
            work.memory_bytes += s.traffic(op.in[0], 2);  // three gradients are put together
            work.n_kernels += 6 + (op.with.sums_bias ? 3 : 0);
            work.n_operations += 2 + (op.with.sums_bias ? 1 : 0);
          }};
}

// --- what works on each element ---

/** backward [dy, dx]; in place. */
OpSpec rotary() {
  return {.in_place = {{0, 0}},
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int dy = p.take_grad(op.out[0]);
                const int dx = p.grad_place(op.in[0], /*adds=*/false, {dy}).place;
                FERRY_CHECK(dx == dy, "rotary positions are turned back in place");
                p.call(p.op(), Part::backward, {dy, dx});
              },
          .add_work =
              [](BlockWork& work, const BlockProgram& program, const Op& op, Part,
                 const ProgramTarget& target, const BatchShape& shape) {
                work.memory_bytes += Sizes{program, op, target, shape}.traffic(op.out[0], 2);
                ++work.n_kernels;
              }};
}

/** backward [dg, h, dh, g?]. */
OpSpec gelu() {
  return {.remakes_in_backward = true,
          .in_place = {{0, 0}},
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int dg = p.take_grad(op.out[1]), h = p.data(op.out[0]);
                const int dh = p.grad_place(op.in[0], /*adds=*/false, {dg}).place;
                p.call(p.op(), Part::backward, {dg, h, dh, p.by_product(op.out[1])});
              },
          .scratch = [](const BlockProgram& program, const Op& op, Part part,
                        const ProgramTarget& target, const BatchShape& shape) -> ScratchNeed {
            if (part != Part::backward) return {};
            return {.forward_bytes = Sizes{program, op, target, shape}.column_sum(op.out[0])};
          },
          .add_work =
              [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
                 const ProgramTarget& target, const BatchShape& shape) {
                const bool is_backward = part == Part::backward;
                work.memory_bytes +=
                    Sizes{program, op, target, shape}.traffic(op.out[0], is_backward ? 4 : 3);
                work.n_kernels += is_backward ? 2 : 1;
              }};
}

/** backward [dy, gate_up, d_gate_up, y?]. */
OpSpec silu_gate() {
  return {
      .remakes_in_backward = true,
      .plan_backward =
          [](BackwardPlanner& p, const Op& op) {
            const int dy = p.take_grad(op.out[0]), gate_up = p.data(op.in[0]);
            const int d_gate_up = p.grad_place(op.in[0], /*adds=*/false).place;
            p.call(p.op(), Part::backward, {dy, gate_up, d_gate_up, p.by_product(op.out[0], dy)});
          },
      .add_work =
          [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
             const ProgramTarget& target, const BatchShape& shape) {
            work.memory_bytes += Sizes{program, op, target, shape}.traffic(
                op.out[0], part == Part::backward ? 6 : 3);
            ++work.n_kernels;
          }};
}

/** backward [dy, da]. */
OpSpec dropout_residual() {
  return {.in_place = {{0, 0}},
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int dy = p.take_grad(op.out[0]);
                p.pass_grad(op.in[1], dy);
                p.call(p.op(), Part::backward, {dy, p.grad_place(op.in[0], /*adds=*/false).place});
              },
          .scratch = [](const BlockProgram& program, const Op& op, Part part,
                        const ProgramTarget& target, const BatchShape& shape) -> ScratchNeed {
            if (part != Part::backward) return {};
            return {.forward_bytes = Sizes{program, op, target, shape}.column_sum(op.out[0])};
          },
          .add_work =
              [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
                 const ProgramTarget& target, const BatchShape& shape) {
                const bool is_backward = part == Part::backward;
                work.memory_bytes +=
                    Sizes{program, op, target, shape}.traffic(op.out[0], is_backward ? 2 : 3);
                work.n_kernels += is_backward ? 2 : 1;
              }};
}

template <bool kRemakes>
int remake_from_input(PassPlanner& p, int op) {
  const Op& of = p.program().op(op);
  const int x = p.data(of.in[0]), y = p.temp_like(of.out[0]);
  p.call(op, Part::remake, {x, y});
  return y;
}

/** remake [x, y], backward [dy, dx]. The gradient of an operation that is not `in_place` goes to a
 * place of its own. */
OpSpec simple(bool in_place) {
  OpSpec spec;
  spec.remake = remake_from_input<true>;
  if (in_place) spec.in_place = {{0, 0}};
  spec.plan_backward = in_place ? [](BackwardPlanner& p, const Op& op) {
    const int dy = p.take_grad(op.out[0]);
    p.call(p.op(), Part::backward, {dy, p.grad_place(op.in[0], /*adds=*/false, {dy}).place});
  } : [](BackwardPlanner& p, const Op& op) {
    const int dy = p.take_grad(op.out[0]);
    p.call(p.op(), Part::backward, {dy, p.grad_place(op.in[0], /*adds=*/false).place});
  };
  spec.add_work = [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
                     const ProgramTarget& target, const BatchShape& shape) {
    const Sizes s{program, op, target, shape};
    // Rows that are not named get a gradient of zero.
    const bool fills = part == Part::backward && op.kind != OpKind::dropout;
    work.memory_bytes += s.traffic(op.out[0], 2) + (fills ? s.traffic(op.in[0], 1) : 0);
    work.n_kernels += fills ? 2 : 1;
  };
  return spec;
}

/** backward [dy, y, dx]. */
OpSpec tanh() {
  return {.in_place = {{0, 0}},
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int dy = p.take_grad(op.out[0]), y = p.data(op.out[0]);
                p.call(p.op(), Part::backward,
                       {dy, y, p.grad_place(op.in[0], /*adds=*/false, {dy}).place});
              },
          .add_work =
              [](BlockWork& work, const BlockProgram& program, const Op& op, Part,
                 const ProgramTarget& target, const BatchShape& shape) {
                work.memory_bytes += Sizes{program, op, target, shape}.traffic(op.out[0], 3);
                ++work.n_kernels;
                ++work.n_operations;
              }};
}

// --- heads: logits backward [d_logits, x, dx], losses backward [logits | t, lse?, gradient] ---

OpSpec logits() {
  return {
      .plan_backward =
          [](BackwardPlanner& p, const Op& op) {
            const int dy = p.take_grad(op.out[0]), x = p.data(op.in[0]);
            p.call(p.op(), Part::backward, {dy, x, p.grad_place(op.in[0], /*adds=*/false).place});
          },
      .scratch = [](const BlockProgram& program, const Op& op, Part part,
                    const ProgramTarget& target, const BatchShape& shape) -> ScratchNeed {
        const Sizes s{program, op, target, shape};
        const Value& out = program.value(op.out[0]);
        const int64_t n = s.rows(op.out[0]) * out.columns;
        // Logits by column are turned round; those of 16 bits are rounded.
        const int64_t rounded = target.compute == DType::f32 ? 0 : s.compute_bytes(n);
        if (part == Part::forward)
          return {.forward_bytes =
                      rounded + (out.by_column ? stacked_bytes(n * ops::kF32_bytes) : 0)};
        if (out.by_column) return {.forward_bytes = s.compute_bytes(n)};
        return {.forward_bytes = rounded + s.column_sum(op.out[0])};
      },
      .add_work =
          [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
             const ProgramTarget& target, const BatchShape& shape) {
            const Sizes s{program, op, target, shape};
            work.add_linear(part == Part::backward, s.rows(op.in[0]), s.columns(op.in[0]),
                            s.columns(op.out[0]));
            work.memory_bytes += s.traffic(op.in[0], 2);
            work.n_kernels += part == Part::backward ? 5 : 2;
            work.n_operations += part == Part::backward ? 3 : 1;
          }};
}

OpSpec label_loss() {
  return {.plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                p.call(p.op(), Part::backward,
                       {p.data(op.in[0]), p.grad_place(op.in[0], /*adds=*/false).place});
              },
          .scratch =
              [](const BlockProgram& program, const Op& op, Part, const ProgramTarget& target,
                 const BatchShape& shape) {
                const Sizes s{program, op, target, shape};
                return ops::cross_entropy_scratch(s.rows(op.in[0]), s.columns(op.in[0]));
              },
          .add_work =
              [](BlockWork& work, const BlockProgram&, const Op&, Part part, const ProgramTarget&,
                 const BatchShape&) {
                work.n_kernels += part == Part::backward ? 10 : 7;
                work.n_operations += part == Part::backward ? 10 : 7;
              }};
}

OpSpec span_loss() {
  return {.states = [](const BlockProgram& program, const Op& op, const ProgramTarget&,
                       const BatchShape& shape) -> std::vector<SavedSpec> {
            return {{"lse", {shape.n_seqs_max, program.value(op.in[0]).columns}, DType::f32}};
          },
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int logits = p.data(op.in[0]), lse = p.state(p.op(), 0);
                p.call(p.op(), Part::backward,
                       {logits, lse, p.grad_place(op.in[0], /*adds=*/false).place});
              },
          .scratch = [](const BlockProgram&, const Op&, Part part, const ProgramTarget& target,
                        const BatchShape& shape) -> ScratchNeed {
            const int64_t losses = ops::span_loss_scratch_bytes(shape.n_seqs_max, target.is_cuda());
            // The sum of the losses, and what ATen adds it up in.
            return {
                .forward_bytes = part == Part::forward ? losses : 0,
                .library_bytes = target.is_cuda() ? stacked_bytes(ops::kF32_bytes) + losses : 0};
          },
          .add_work =
              [](BlockWork& work, const BlockProgram&, const Op&, Part part, const ProgramTarget&,
                 const BatchShape&) {
                work.n_kernels += part == Part::backward ? 7 : 6;
                work.n_operations += part == Part::backward ? 7 : 6;
              }};
}

OpSpec vocabulary_loss() {
  return {
      .states = [](const BlockProgram& program, const Op& op, const ProgramTarget&,
                   const BatchShape& shape) -> std::vector<SavedSpec> {
        return {{"lse", {rows_of(program.value(op.in[0]).rows, shape)}, DType::f32}};
      },
      .plan_backward =
          [](BackwardPlanner& p, const Op& op) {
            const int t = p.data(op.in[0]), lse = p.state(p.op(), 0);
            p.call(p.op(), Part::backward, {t, lse, p.grad_place(op.in[0], /*adds=*/false).place});
          },
      .scratch = [](const BlockProgram& program, const Op& op, Part part,
                    const ProgramTarget& target, const BatchShape& shape) -> ScratchNeed {
        const Sizes s{program, op, target, shape};
        const int64_t rows = s.rows(op.in[0]);
        const ScratchNeed need =
            ops::vocabulary_scratch(target.compute, rows, target.vocab_size, s.columns(op.in[0]),
                                    target.is_cuda(), op.params[1] != kNone);
        const int64_t labels = program.value(op.in[0]).rows == Rows::labelled
                                   ? stacked_bytes(rows * static_cast<int64_t>(sizeof(int32_t)))
                                   : 0;
        return {.forward_bytes =
                    labels + (part == Part::forward ? need.forward_bytes : need.backward_bytes),
                .library_bytes = need.library_bytes};
      },
      .add_work =
          [](BlockWork& work, const BlockProgram& program, const Op& op, Part part,
             const ProgramTarget& target, const BatchShape& shape) {
            const Sizes s{program, op, target, shape};
            const bool is_backward = part == Part::backward;
            const int64_t rows = s.worked_rows(op.in[0]), width = s.columns(op.in[0]),
                          vocab = target.vocab_size;
            const auto n_chunks =
                static_cast<int>((vocab + ops::kVocabChunk - 1) / ops::kVocabChunk);
            // The backward pass recomputes a chunk's logits, too. Logits are written and read; or
            // they are recomputed, turned into their gradient and read twice.
            if (is_backward) work.add_linear(false, rows, width, vocab);
            work.add_linear(is_backward, rows, width, vocab);
            work.memory_bytes += (is_backward ? 5 : 2) * s.compute_bytes(rows * vocab);
            const int n_operations = n_chunks * (is_backward ? 2 : 1) + 8;
            work.n_operations += n_operations;
            work.n_kernels += n_operations + n_chunks * (is_backward ? 3 : 1);
          }};
}

}  // namespace

const OpSpec& spec_of(OpKind kind) {
  static const OpSpec specs[] = {embedding(),
                                 linear(),
                                 norm(OpKind::norm),
                                 norm(OpKind::residual_norm),
                                 norm(OpKind::rms_norm),
                                 attention(),
                                 rotary(),
                                 gelu(),
                                 silu_gate(),
                                 dropout_residual(),
                                 simple(/*in_place=*/true),
                                 simple(/*in_place=*/false),
                                 simple(/*in_place=*/false),
                                 tanh(),
                                 logits(),
                                 label_loss(),
                                 span_loss(),
                                 vocabulary_loss()};
  return specs[static_cast<size_t>(kind)];
}

}  // namespace ferry
