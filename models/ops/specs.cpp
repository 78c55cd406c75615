#include "models/ops/specs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "models/ops/scratch_sizes.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

using ops::stacked_bytes;

/** The share of tokens that have a label where a language model predicts what is masked. */
constexpr int64_t kLabelled_percent = 15;

ValueId sum_of(const Op& op) {  // of a norm: what it normalises
  if (op.kind == OpKind::norm) return op.in[0];
  return op.out[0] == kNone ? op.in[0] : op.out[0];
}

// --- embedding: remake [words?, y], backward [dy, d_words?] ---

OpSpec embedding() {
  return {.remake =
              [](PassPlanner& p, int op) {
                const Op& of = p.program().op(op);
                std::vector<int> places;
                for (ValueId words : of.in)
                  places.push_back(p.data(words));
                const int y = p.temp_like(of.out[0]);
                places.push_back(y);
                p.call(op, Part::remake, std::move(places));
                return y;
              },
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                std::vector<int> places = {p.take_grad(op.out[0])};
                for (ValueId words : op.in)
                  places.push_back(p.grad_place(words, /*adds=*/false).place);
                p.call(p.op(), Part::backward, std::move(places));
              },
          .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
            if (part != Part::backward) return {};
            return {.forward_bytes = stacked_bytes(ops::embedding_backward_scratch_bytes(
                        c.rows(c.op.out[0]), c.columns(c.op.out[0]), c.target.is_cuda()))};
          },
          .add_work =
              [](BlockWork& work, const OpCase& c, const Call& call) {
                const auto n_tables = static_cast<int>(std::ranges::count_if(
                    c.op.params, [](ParamId param) { return param != kNone; }));
                const auto n_given = static_cast<int>(c.op.in.size());
                if (call.part != Part::backward) {
                  work.memory_bytes += c.traffic(c.op.out[0], n_given + n_tables + 1);
                  ++work.n_kernels;
                  return;
                }
                work.memory_bytes += c.traffic(c.op.out[0], 2 * n_given);
                work.n_kernels += n_given;
                // Sums into tables that are cleared first.
                work.memory_bytes +=
                    c.traffic(c.op.out[0], 3 * n_tables) +
                    c.compute_bytes(c.op.with.n_table_rows * c.columns(c.op.out[0]));
                work.compared_pairs += n_tables * c.shape.tokens * c.shape.tokens;
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
          .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
            if (part != Part::params || c.op.params[1] == kNone || c.op.with.sums_bias) return {};
            return {.forward_bytes = c.column_sum_bytes(c.op.out[0])};
          },
          .add_work =
              [](BlockWork& work, const OpCase& c, const Call& call) {
                const int64_t rows = c.worked_rows(c.op.in[0]), inner = c.columns(c.op.in[0]),
                              columns = c.columns(c.op.out[0]);
                ++work.n_kernels;
                if (call.part == Part::params) {
                  work.products.push_back({columns, rows, inner});
                  if (c.op.params[1] != kNone && !c.op.with.sums_bias) {
                    work.memory_bytes += c.traffic(c.op.out[0], 1);
                    work.n_kernels += 2;
                  }
                  return;
                }
                if (call.part == Part::backward) {
                  work.products.push_back({rows, columns, inner});
                  // A part of the gradient that is there already is read, too.
                  if (call.places[2] != kNone) work.memory_bytes += c.traffic(c.op.in[0], 1);
                  return;
                }
                work.products.push_back({rows, inner, columns});
                if (c.op.in[1] == kNone) return;
                work.memory_bytes += c.traffic(c.op.out[0], 2);  // LibTorch copies the residual
                ++work.n_kernels;
                ++work.n_operations;
              }};
}

// --- norms: remake [z, states..., y], backward [dy, z, states..., sum?, dz, da?] ---

bool has_sum(const Op& op) {
  return op.kind != OpKind::norm && op.out[0] != kNone;
}

int remake_norm(PassPlanner& p, int op) {
  const Op& norm = p.program().op(op);
  std::vector<int> places = {p.data(sum_of(norm))};
  std::ranges::copy(p.states(op), std::back_inserter(places));
  const int y = p.temp_like(norm.out.back());
  places.push_back(y);
  p.call(op, Part::remake, std::move(places));
  return y;
}

void plan_norm_backward(BackwardPlanner& p, const Op& op) {
  const int dy = p.take_grad(op.out.back());
  const int d_sum = has_sum(op) ? p.take_grad(op.out[0]) : kNone;
  std::vector<int> places = {dy, p.data(sum_of(op))};
  std::ranges::copy(p.states(p.op()), std::back_inserter(places));
  if (!has_sum(op)) {
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

/** LayerNorm or RMSNorm, alone or of a sum that it makes. */
OpSpec norm() {
  OpSpec spec;
  spec.states = [](const OpCase& c) -> std::vector<SavedSpec> {
    const Value& y = c.program.value(c.op.out.back());
    const int64_t rows = rows_of(y.rows, c.shape);
    if (c.op.kind == OpKind::rms_norm) return {{y.name + ".rstd", {rows}, DType::f32}};
    return {{y.name + ".mean", {rows}, DType::f32}, {y.name + ".rstd", {rows}, DType::f32}};
  };
  spec.remake = remake_norm;
  spec.plan_backward = plan_norm_backward;
  spec.in_place = {{0, 0}};
  spec.scratch = [](const OpCase& c, Part part) -> ScratchNeed {
    if (part != Part::backward) return {};
    const int64_t T = c.rows(c.op.out.back()), W = c.columns(c.op.out.back());
    return {.forward_bytes =
                stacked_bytes(c.op.kind == OpKind::rms_norm
                                  ? ops::rms_norm_backward_scratch_bytes(T, W, c.target.is_cuda())
                                  : ops::norm_backward_scratch_bytes(T, W, c.target.is_cuda()))};
  };
  spec.add_work = [](BlockWork& work, const OpCase& c, const Call& call) {
    const bool is_backward = call.part == Part::backward;
    const int n_rows = call.part == Part::remake ? 2 : is_backward || has_sum(c.op) ? 4 : 2;
    work.memory_bytes += c.traffic(c.op.out.back(), n_rows);
    work.n_kernels += !is_backward ? 1 : c.op.kind == OpKind::residual_norm ? 3 : 2;
  };
  return spec;
}

// --- head norm: remake [qkv, rstd, y], backward [dy, qkv, rstd], in place ---

int remake_head_norm(PassPlanner& p, int op) {
  const Op& norm = p.program().op(op);
  const int qkv = p.data(norm.in[0]), rstd = p.states(op)[0], y = p.temp_like(norm.out[0]);
  p.call(op, Part::remake, {qkv, rstd, y});
  return y;
}

OpSpec head_norm() {
  return {.states = [](const OpCase& c) -> std::vector<SavedSpec> {
            const Value& y = c.program.value(c.op.out[0]);
            return {{y.name + ".rstd",
                     {rows_of(y.rows, c.shape), c.op.with.n_heads + c.op.with.n_kv_heads},
                     DType::f32}};
          },
          .remake = remake_head_norm,
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int dy = p.take_grad(op.out[0]), qkv = p.data(op.in[0]);
                const int dx = p.grad_place(op.in[0], /*adds=*/false, {dy}).place;
                FERRY_CHECK(dx == dy, "heads' gradients are turned back in place");
                p.call(p.op(), Part::backward, {dy, qkv, p.states(p.op())[0]});
              },
          .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
            if (part != Part::backward) return {};
            return {.forward_bytes = stacked_bytes(ops::head_norm_backward_scratch_bytes(
                        c.rows(c.op.out[0]), c.op.with.head_width, c.target.is_cuda()))};
          },
          .add_work =
              [](BlockWork& work, const OpCase& c, const Call& call) {
                const bool is_backward = call.part == Part::backward;
                work.memory_bytes += c.traffic(c.op.out[0], is_backward ? 5 : 4);
                work.n_kernels += is_backward ? 3 : 2;
              }};
}

// --- attention: backward [d_context, qkv, context, states..., d_qkv] ---

ops::AttentionHeads heads_of(const Op& op) {
  return {.n_heads = op.with.n_heads,
          .n_kv_heads = op.with.n_kv_heads,
          .head_width = op.with.head_width};
}

/** No attention kernel of LibTorch's caps scores. */
bool is_capped_on_gpu(const OpCase& c) {
  return c.op.with.scores.soft_cap > 0 && c.target.is_cuda();
}

OpSpec attention() {
  return {
      .states = [](const OpCase& c) -> std::vector<SavedSpec> {
        if (is_capped_on_gpu(c)) return {};
        return ops::attention_saved(c.target.attention, c.target.compute, c.shape,
                                    c.op.with.n_heads);
      },
      .plan_backward =
          [](BackwardPlanner& p, const Op& op) {
            std::vector<int> places = {p.take_grad(op.out[0]), p.data(op.in[0]), p.data(op.out[0])};
            std::ranges::copy(p.states(p.op()), std::back_inserter(places));
            places.push_back(p.grad_place(op.in[0], /*adds=*/false).place);
            p.call(p.op(), Part::backward, std::move(places));
          },
      .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
        const ScratchNeed need =
            is_capped_on_gpu(c)
                ? ops::capped_attention_scratch(c.target.compute, c.shape, heads_of(c.op))
                : ops::attention_scratch(c.target.attention, c.target.compute, c.shape,
                                         heads_of(c.op), c.target.gpu_multiprocessors);
        if (part == Part::forward)
          return {.forward_bytes = need.forward_bytes, .library_bytes = need.library_bytes};
        const int64_t bias = c.op.with.sums_bias ? c.column_sum_bytes(c.op.in[0]) : 0;
        return {.forward_bytes = std::max(need.backward_bytes, bias),
                .library_bytes = need.library_bytes};
      },
      .add_work =
          [](BlockWork& work, const OpCase& c, const Call& call) {
            work.attention_tokens = c.shape.tokens;
            work.attention_length = c.shape.max_length;
            work.attention_width = heads_of(c.op).width();
            work.attention_causal = c.op.with.causal;
            work.attention_window = c.op.with.scores.window;
            if (is_capped_on_gpu(c)) {
              // Products and probabilities go through memory, and each head of keys by itself.
              const bool is_backward = call.part == Part::backward;
              const int64_t n_scores = c.shape.tokens * c.shape.max_length * c.op.with.n_heads;
              work.memory_bytes += (is_backward ? 8 : 4) * n_scores * ops::kF32_bytes;
              work.n_kernels += static_cast<int>(c.shape.n_seqs_max * c.op.with.n_kv_heads) *
                                (is_backward ? 12 : 4);
            }
            if (call.part == Part::forward) {
              work.n_kernels += 4;  // with copies of what it returns
              work.n_operations += 4;
              return;
            }
            work.memory_bytes += c.traffic(c.op.in[0], 2);  // three gradients are put together
            work.n_kernels += 6 + (c.op.with.sums_bias ? 3 : 0);
            work.n_operations += 2 + (c.op.with.sums_bias ? 1 : 0);
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
              [](BlockWork& work, const OpCase& c, const Call&) {
                work.memory_bytes += c.traffic(c.op.out[0], 2);
                ++work.n_kernels;
              }};
}

/** The sum of the gradient of a bias, which the backward makes beside its own work. */
ScratchNeed bias_scratch(const OpCase& c, Part part) {
  if (part != Part::backward || c.op.params[0] == kNone) return {};
  return {.forward_bytes = c.column_sum_bytes(c.op.out[0])};
}

/** backward [dg, h, dh, g?]. */
OpSpec activation() {
  return {.remakes_in_backward = true,
          .in_place = {{0, 0}},
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int dg = p.take_grad(op.out[1]), h = p.data(op.out[0]);
                const int dh = p.grad_place(op.in[0], /*adds=*/false, {dg}).place;
                p.call(p.op(), Part::backward, {dg, h, dh, p.by_product(op.out[1])});
              },
          .scratch = bias_scratch,
          .add_work =
              [](BlockWork& work, const OpCase& c, const Call& call) {
                const bool is_backward = call.part == Part::backward;
                work.memory_bytes += c.traffic(c.op.out[0], is_backward ? 4 : 3);
                work.n_kernels += is_backward && c.op.params[0] != kNone ? 2 : 1;
              }};
}

/** backward [dy, gate_up, d_gate_up, y?]. */
OpSpec gate() {
  return {
      .remakes_in_backward = true,
      .plan_backward =
          [](BackwardPlanner& p, const Op& op) {
            const int dy = p.take_grad(op.out[0]), gate_up = p.data(op.in[0]);
            const int d_gate_up = p.grad_place(op.in[0], /*adds=*/false).place;
            p.call(p.op(), Part::backward, {dy, gate_up, d_gate_up, p.by_product(op.out[0], dy)});
          },
      .add_work =
          [](BlockWork& work, const OpCase& c, const Call& call) {
            work.memory_bytes += c.traffic(c.op.out[0], call.part == Part::backward ? 6 : 3);
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
          .scratch = bias_scratch,
          .add_work =
              [](BlockWork& work, const OpCase& c, const Call& call) {
                const bool is_backward = call.part == Part::backward;
                work.memory_bytes += c.traffic(c.op.out[0], is_backward ? 2 : 3);
                work.n_kernels += is_backward && c.op.params[0] != kNone ? 2 : 1;
              }};
}

/** No backward: the gradients of both are the sum's. */
OpSpec add() {
  return {.in_place = {{0, 0}},
          .plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int dy = p.take_grad(op.out[0]);
                for (ValueId input : op.in)
                  p.pass_grad(input, dy);
              },
          .add_work =
              [](BlockWork& work, const OpCase& c, const Call&) {
                work.memory_bytes += c.traffic(c.op.out[0], 3);
                ++work.n_kernels;
              }};
}

int remake_from_input(PassPlanner& p, int op) {
  const Op& of = p.program().op(op);
  const int x = p.data(of.in[0]), y = p.temp_like(of.out[0]);
  p.call(op, Part::remake, {x, y});
  return y;
}

/** remake [x, y], backward [dy, dx]. */
OpSpec simple(bool in_place) {
  OpSpec spec;
  spec.remake = remake_from_input;
  if (in_place) spec.in_place = {{0, 0}};
  spec.plan_backward = [](BackwardPlanner& p, const Op& op) {
    const int dy = p.take_grad(op.out[0]);
    const int over = spec_of(op.kind).in_place.empty() ? kNone : dy;
    p.call(p.op(), Part::backward, {dy, p.grad_place(op.in[0], /*adds=*/false, {over}).place});
  };
  spec.add_work = [](BlockWork& work, const OpCase& c, const Call& call) {
    // Rows that are not named get a gradient of zero.
    const bool fills = call.part == Part::backward && c.op.kind != OpKind::dropout;
    work.memory_bytes += c.traffic(c.op.out[0], 2) + (fills ? c.traffic(c.op.in[0], 1) : 0);
    work.n_kernels += fills ? 2 : 1;
  };
  return spec;
}

/** The numbers of the rows lie in scratch. */
OpSpec last_rows() {
  OpSpec spec = simple(/*in_place=*/false);
  spec.scratch = [](const OpCase& c, Part) -> ScratchNeed {
    const int64_t n_bytes = c.shape.n_seqs_max * static_cast<int64_t>(sizeof(int32_t));
    return {.forward_bytes = stacked_bytes(n_bytes)};
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
              [](BlockWork& work, const OpCase& c, const Call&) {
                work.memory_bytes += c.traffic(c.op.out[0], 3);
                ++work.n_kernels;
                ++work.n_operations;
              }};
}

// --- heads: logits backward [d_logits, x, dx], losses backward [logits | t, lse?, gradient],
// vocabulary_piece backward [t, sum before?, sum or gradient] ---

OpSpec logits() {
  return {
      .plan_backward =
          [](BackwardPlanner& p, const Op& op) {
            const int dy = p.take_grad(op.out[0]), x = p.data(op.in[0]);
            p.call(p.op(), Part::backward, {dy, x, p.grad_place(op.in[0], /*adds=*/false).place});
          },
      .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
        const Value& out = c.program.value(c.op.out[0]);
        const int64_t n = c.rows(c.op.out[0]) * out.columns;
        // Logits by column are turned round; those of 16 bits are rounded.
        const int64_t rounded = c.target.compute == DType::f32 ? 0 : c.compute_bytes(n);
        if (part == Part::forward)
          return {.forward_bytes =
                      rounded + (out.by_column ? stacked_bytes(n * ops::kF32_bytes) : 0)};
        if (out.by_column) return {.forward_bytes = c.compute_bytes(n)};
        return {.forward_bytes = rounded + c.column_sum_bytes(c.op.out[0])};
      },
      .add_work =
          [](BlockWork& work, const OpCase& c, const Call& call) {
            work.add_linear(call.part == Part::backward, c.rows(c.op.in[0]), c.columns(c.op.in[0]),
                            c.columns(c.op.out[0]));
            work.memory_bytes += c.traffic(c.op.in[0], 2);
            work.n_kernels += call.part == Part::backward ? 5 : 2;
            work.n_operations += call.part == Part::backward ? 3 : 1;
          }};
}

OpSpec label_loss() {
  return {.plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                p.call(p.op(), Part::backward,
                       {p.data(op.in[0]), p.grad_place(op.in[0], /*adds=*/false).place});
              },
          .scratch =
              [](const OpCase& c, Part) {
                return ops::cross_entropy_scratch(c.rows(c.op.in[0]), c.columns(c.op.in[0]));
              },
          .add_work =
              [](BlockWork& work, const OpCase&, const Call& call) {
                work.n_kernels += call.part == Part::backward ? 10 : 7;
                work.n_operations += call.part == Part::backward ? 10 : 7;
              }};
}

OpSpec span_loss() {
  return {
      .states = [](const OpCase& c) -> std::vector<SavedSpec> {
        return {{"lse", {c.shape.n_seqs_max, c.program.value(c.op.in[0]).columns}, DType::f32}};
      },
      .plan_backward =
          [](BackwardPlanner& p, const Op& op) {
            const int logits = p.data(op.in[0]), lse = p.states(p.op())[0];
            p.call(p.op(), Part::backward,
                   {logits, lse, p.grad_place(op.in[0], /*adds=*/false).place});
          },
      .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
        const int64_t losses = ops::span_loss_scratch_bytes(c.shape.n_seqs_max, c.target.is_cuda());
        // The sum of the losses, and what ATen adds it up in.
        return {.forward_bytes = part == Part::forward ? losses : 0,
                .library_bytes = c.target.is_cuda() ? stacked_bytes(ops::kF32_bytes) + losses : 0};
      },
      .add_work =
          [](BlockWork& work, const OpCase&, const Call& call) {
            work.n_kernels += call.part == Part::backward ? 7 : 6;
            work.n_operations += call.part == Part::backward ? 7 : 6;
          }};
}

/** Bytes of the labels of the rows that have one. */
int64_t label_bytes(const OpCase& c) {
  if (c.program.value(c.op.in[0]).rows != Rows::labelled) return 0;
  return stacked_bytes(c.rows(c.op.in[0]) * static_cast<int64_t>(sizeof(int32_t)));
}

/** Adds the work on the logits of so many words. */
void add_work_of_words(BlockWork& work, const OpCase& c, const Call& call, int64_t n_words) {
  const bool is_backward = call.part == Part::backward;
  const int64_t rows = c.worked_rows(c.op.in[0]), width = c.columns(c.op.in[0]);
  const auto n_chunks = static_cast<int>((n_words + ops::kVocabChunk - 1) / ops::kVocabChunk);
  // The backward pass recomputes a chunk's logits, too. Logits are written and read; or they are
  // recomputed, turned into their gradient and read twice.
  if (is_backward) work.add_linear(false, rows, width, n_words);
  work.add_linear(is_backward, rows, width, n_words);
  const bool is_capped = c.op.with.soft_cap > 0;  // which reads and writes them once more
  work.memory_bytes +=
      ((is_backward ? 5 : 2) + (is_capped ? 2 : 0)) * c.compute_bytes(rows * n_words);
  if (is_capped) work.n_kernels += n_chunks;
  const int n_operations = n_chunks * (is_backward ? 2 : 1) + 8;
  work.n_operations += n_operations;
  work.n_kernels += n_operations + n_chunks * (is_backward ? 3 : 1);
}

OpSpec vocabulary_loss() {
  return {
      .states = [](const OpCase& c) -> std::vector<SavedSpec> {
        return {{"lse", {rows_of(c.program.value(c.op.in[0]).rows, c.shape)}, DType::f32}};
      },
      .plan_backward =
          [](BackwardPlanner& p, const Op& op) {
            const int t = p.data(op.in[0]), lse = p.states(p.op())[0];
            p.call(p.op(), Part::backward, {t, lse, p.grad_place(op.in[0], /*adds=*/false).place});
          },
      .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
        const int64_t rows = c.rows(c.op.in[0]);
        const ScratchNeed need = ops::vocabulary_scratch(
            c.target.compute, rows, c.target.vocab_size, c.columns(c.op.in[0]), c.target.is_cuda(),
            c.op.params[1] != kNone);
        return {.forward_bytes = label_bytes(c) +
                                 (part == Part::forward ? need.forward_bytes : need.backward_bytes),
                .library_bytes = need.library_bytes};
      },
      .add_work = [](BlockWork& work, const OpCase& c,
                     const Call& call) { add_work_of_words(work, c, call, c.target.vocab_size); }};
}

/** It keeps and adds up in values that all pieces share (BlockMemory::logits_state). */
OpSpec vocabulary_piece() {
  return {.plan_backward =
              [](BackwardPlanner& p, const Op& op) {
                const int t = p.data(op.in[0]);
                const int before = op.with.piece.is_first() ? kNone : p.grad_so_far();
                p.call(p.op(), Part::backward,
                       {t, before, p.grad_place(op.in[0], /*adds=*/false).place});
              },
          .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
            const ScratchNeed need = ops::vocabulary_piece_scratch(
                c.target.compute, c.rows(c.op.in[0]), c.op.with.n_table_rows, c.columns(c.op.in[0]),
                c.target.is_cuda(), c.op.params[1] != kNone);
            return {.forward_bytes = label_bytes(c) + (part == Part::forward ? need.forward_bytes
                                                                             : need.backward_bytes),
                    .library_bytes = need.library_bytes};
          },
          .add_work =
              [](BlockWork& work, const OpCase& c, const Call& call) {
                add_work_of_words(work, c, call, c.op.with.n_table_rows);
              }};
}

}  // namespace

int64_t OpCase::worked_rows(ValueId value) const {
  const int64_t n = rows(value);
  if (program.value(value).rows != Rows::labelled) return n;
  return std::max<int64_t>(1, n * kLabelled_percent / 100);
}

int64_t OpCase::compute_bytes(int64_t n) const {
  return round_up(n * static_cast<int64_t>(size_of(target.compute)), kTensorAlignment_bytes);
}

int64_t OpCase::column_sum_bytes(ValueId value) const {
  return stacked_bytes(ops::column_sum_scratch_bytes(rows(value), columns(value)));
}

const OpSpec& spec_of(OpKind kind) {
  static const OpSpec specs[] = {embedding(),
                                 linear(),
                                 norm(),
                                 norm(),
                                 norm(),
                                 head_norm(),
                                 attention(),
                                 rotary(),
                                 activation(),
                                 gate(),
                                 dropout_residual(),
                                 add(),
                                 simple(/*in_place=*/true),
                                 simple(/*in_place=*/false),
                                 simple(/*in_place=*/false),
                                 last_rows(),
                                 tanh(),
                                 logits(),
                                 label_loss(),
                                 span_loss(),
                                 vocabulary_loss(),
                                 vocabulary_piece()};
  return specs[static_cast<size_t>(kind)];
}

}  // namespace ferry
