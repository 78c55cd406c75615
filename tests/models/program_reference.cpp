#include "tests/models/program_reference.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

#include "models/core/compile.h"
#include "models/ops/activation/activation_op.h"
#include "models/ops/add/add_op.h"
#include "models/ops/attention/attention_op.h"
#include "models/ops/dora/dora_op.h"
#include "models/ops/dropout/dropout_op.h"
#include "models/ops/embedding/embedding_op.h"
#include "models/ops/gate/gate_op.h"
#include "models/ops/head_norm/head_norm_op.h"
#include "models/ops/linear/linear_op.h"
#include "models/ops/low_rank/low_rank_op.h"
#include "models/ops/norm/norm_op.h"
#include "models/ops/phm/phm_op.h"
#include "models/ops/rms_norm/rms_norm_op.h"
#include "models/ops/rotary/rotary_op.h"
#include "models/ops/rows/rows_op.h"
#include "models/ops/tanh/tanh_op.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"
#include "src/base/error.h"
#include "tests/models/ops_case.h"

namespace ferry::test {
namespace {

template <class Attributes>
at::Tensor rms(const at::Tensor& x, const at::Tensor& weight, const Attributes& with) {
  return x * at::rsqrt((x * x).mean(-1, true) + static_cast<double>(with.eps)) *
         (weight + static_cast<double>(with.weight_offset));
}

at::Tensor layer_norm(const at::Tensor& x,
                      const at::Tensor& weight,
                      const at::Tensor& bias,
                      double eps) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred * at::rsqrt((centred * centred).mean(-1, true) + eps) * weight + bias;
}

at::Tensor capped(const at::Tensor& x, float cap) {
  return cap == 0 ? x : at::tanh(x / static_cast<double>(cap)) * static_cast<double>(cap);
}

at::Tensor plus(const at::Tensor& x, const at::Tensor& y) {
  return y.defined() ? x + y : x;
}

at::Tensor as_index(const at::Tensor& ids) {
  return ids.to(at::kLong);
}

}  // namespace

ProgramReference::ProgramReference(ModelRunner& runner) : table_(runner.table()) {
  for (size_t b = 0; b < table_.blocks.size(); ++b)
    for (size_t i = 0; i < table_.blocks[b].params.size(); ++i) {
      const std::pair<int, int> id(static_cast<int>(b), static_cast<int>(i));
      params_[id] =
          runner.param(id.first, id.second).to(at::kCPU, at::kDouble).clone().requires_grad_();
    }
}

at::Tensor ProgramReference::param(size_t block, ParamId id) {
  if (id == kNone) return {};
  const BlockTable& its = table_.blocks[block];
  const auto n_own = static_cast<ParamId>(its.params.size());
  if (id < n_own) return params_.at({static_cast<int>(block), id});
  const BorrowedParam& from = its.borrowed[id - n_own];
  return params_.at({from.block, from.param});
}

ProgramReference::Grads ProgramReference::grads() const {
  Grads grads;
  for (const auto& [id, value] : params_)
    grads[id] = value.grad().defined() ? value.grad().clone() : at::zeros_like(value);
  return grads;
}

at::Tensor ProgramReference::loss(const TestBatch& batch) {
  loss_ = at::zeros({}, at::kDouble);
  std::vector<at::Tensor> between(table_.values.size());
  for (size_t b = 0; b < table_.blocks.size(); ++b) {
    const BlockProgram& program = table_.blocks[b].compiled->program;
    program_ = &program;
    values_.assign(program.values.size(), {});
    const auto for_ports = [&](const auto& each) {
      for (size_t v = 0; v < program.values.size(); ++v)
        if (const int port = program.values[v].port; port != kNone) {
          const Port& its = program.ports[port];
          each(its.forward, between[static_cast<size_t>(its.value)], values_[v]);
        }
    };
    for_ports([](PortUse use, const at::Tensor& value, at::Tensor& here) {
      if (reads(use)) here = value;
    });
    for (const Op& op : program.ops)
      run(op, b, batch);
    for (size_t v = 0; v < program.values.size(); ++v)
      if (!values_[v].defined()) values_[v] = value(static_cast<ValueId>(v));
    for_ports([](PortUse use, at::Tensor& value, const at::Tensor& here) {
      if (writes(use)) value = here;
    });
  }
  return loss_;
}

at::Tensor ProgramReference::value(ValueId id) const {
  if (const at::Tensor& here = values_[static_cast<size_t>(id)]; here.defined()) return here;
  const Value& its = program_->value(id);
  if (its.whole != kNone) {
    const at::Tensor whole = value(its.whole);
    return whole.defined() ? whole.narrow(1, its.first_column, its.columns) : whole;
  }
  std::vector<at::Tensor> parts;
  for (const ValueId part : program_->parts_of(id))
    if (const at::Tensor& here = values_[static_cast<size_t>(part)]; here.defined())
      parts.push_back(here);
  return parts.empty() ? at::Tensor() : at::cat(parts, 1);
}

void ProgramReference::run(const Op& op, size_t block, const TestBatch& batch) {
  const auto in = [&](size_t i) { return op.in[i] == kNone ? at::Tensor() : value(op.in[i]); };
  const auto out = [&](size_t i, const at::Tensor& value) {
    if (op.out[i] != kNone) values_[static_cast<size_t>(op.out[i])] = value;
  };
  const auto p = [&](size_t i) { return param(block, op.params[i]); };
  const auto norm_eps = [&] {
    const auto& with = op.with<ops::NormAttributes>();
    FERRY_CHECK(with.dropout == 0, "dropout in a reference");
    return static_cast<double>(with.eps);
  };
  const std::map<const OpDef*, std::function<void()>> references = {
      {&ops::kEmbedding, [&] { out(0, embedding(op, block, batch)); }},
      {&ops::kLinear,
       [&] {
         const auto factor = static_cast<double>(op.with<ops::LinearAttributes>().factor);
         out(0, plus(plus(in(0).matmul(p(0).t()), p(1)) * factor, in(1)));
       }},
      {&ops::kLowRank,
       [&] {
         const auto& with = op.with<ops::LowRankAttributes>();
         const auto n = static_cast<int64_t>(with.parts.size());
         at::Tensor y = in(0).clone();
         int64_t row = 0;
         for (int64_t i = 0; i < n; ++i) {
           const ops::LowRankPart& part = with.parts[static_cast<size_t>(i)];
           const at::Tensor h = in(1).chunk(n, 1)[static_cast<size_t>(i)];
           y.narrow(1, part.first, part.n)
               .add_(h.matmul(p(0).narrow(0, row, part.n).t()), static_cast<double>(with.factor));
           row += part.n;
         }
         out(0, y);
       }},
      {&ops::kDoraScale,
       [&] {
         const auto& with = op.with<ops::DoraScaleAttributes>();
         const at::Tensor w = p(0), a = p(1), b = p(2), m = p(3);
         at::Tensor scale = in(0).defined() ? in(0).clone() : at::ones({2, w.size(0)}, at::kDouble);
         int64_t row = 0, row_of_a = 0;
         for (const ops::LowRankPart& part : with.parts) {
           const at::Tensor sum =
               w.narrow(0, part.first, part.n) +
               b.narrow(0, row, part.n).matmul(a.narrow(0, row_of_a, with.rank)) *
                   static_cast<double>(with.factor);
           scale.select(0, 0)
               .narrow(0, part.first, part.n)
               .copy_(m.narrow(0, row, part.n) / sum.norm(2, 1).detach());
           row += part.n;
           row_of_a += with.rank;
         }
         out(0, scale);
       }},
      {&ops::kDora,
       [&] {
         const auto factor = static_cast<double>(op.with<ops::DoraAttributes>().bias_factor);
         at::Tensor y = in(0) * in(1).select(0, 0);
         if (in(2).defined()) y = in(2) + y - in(3);
         out(0, p(0).defined() ? y + p(0) * factor : y);
       }},
      {&ops::kPhm,
       [&] {
         const auto& with = op.with<ops::PhmAttributes>();
         at::Tensor h;
         for (int64_t i = 0; i < with.n; ++i)
           h = plus(at::kron(p(0)[i].view({with.n, with.n}), at::outer(p(1)[i], p(2)[i])), h);
         out(0, plus(in(0).matmul(h), p(3)) * static_cast<double>(with.factor));
       }},
      {&ops::kDropout, [&] { out(0, in(0)); }},
      {&ops::kTanh, [&] { out(0, at::tanh(in(0))); }},
      {&ops::kNorm, [&] { out(0, layer_norm(in(0), p(0), p(1), norm_eps())); }},
      {&ops::kResidualNorm,
       [&] {
         const at::Tensor z = plus(in(0), p(2)) + in(1);
         out(0, z);
         out(1, layer_norm(z, p(0), p(1), norm_eps()));
       }},
      {&ops::kRmsNorm,
       [&] {
         const at::Tensor z = plus(in(0), in(1));
         out(0, z);
         out(1, rms(z, p(0), op.with<ops::RmsNormAttributes>()));
       }},
      {&ops::kHeadNorm, [&] { out(0, head_norm(op, block, batch)); }},
      {&ops::kRotary, [&] { out(0, rotary(op, batch)); }},
      {&ops::kAttention, [&] { out(0, attention(op, batch)); }},
      {&ops::kActivation,
       [&] {
         const at::Tensor h = plus(in(0), p(0));
         out(0, h);
         out(1, ops::activation_of(op.with<ops::ActivationAttributes>().kind, h));
       }},
      {&ops::kGate,
       [&] {
         const int64_t n = in(0).size(1) / 2;
         out(0, ops::activation_of(op.with<ops::GateAttributes>().kind, in(0).narrow(1, 0, n)) *
                    in(0).narrow(1, n, n));
       }},
      {&ops::kDropoutResidual,
       [&] {
         FERRY_CHECK(op.with<ops::DropoutAttributes>().dropout == 0, "dropout in a reference");
         out(0, plus(in(0), p(0)) + in(1));
       }},
      {&ops::kAdd, [&] { out(0, in(0) + in(1)); }},
      {&ops::kLabelledRows,
       [&] {
         out(0, batch.tensors.label_rows.defined()
                    ? in(0).index_select(0, as_index(batch.tensors.label_rows))
                    : in(0));
       }},
      {&ops::kVocabularyLoss, [&] { loss_ = loss_ + vocabulary_loss(op, block, batch); }},
  };
  const auto found = references.find(op.def);
  FERRY_CHECK(found != references.end(), "no reference of {}", op.def->name);
  found->second();
}

at::Tensor ProgramReference::embedding(const Op& op, size_t block, const TestBatch& batch) {
  const BatchTensors& b = batch.tensors;
  const ops::EmbeddingRule& rows = op.with<ops::EmbeddingAttributes>().rows;
  at::Tensor sum;
  const auto add = [&](size_t i, const at::Tensor& ids, double scale) {
    const at::Tensor table = param(block, op.params[i]);
    if (table.defined()) sum = plus(table.index_select(0, as_index(ids)) * scale, sum);
  };
  add(0, b.input_ids, static_cast<double>(rows.word_scale));
  add(1, b.position_ids + rows.position_offset, 1);
  add(2, b.type_ids, 1);
  return sum;
}

/** (tokens, heads, width), the first columns turned by the tokens' positions. */
at::Tensor ProgramReference::turned(const RopeTable& rope,
                                    bool interleaved,
                                    const at::Tensor& heads,
                                    const TestBatch& batch) {
  const auto n_pairs = static_cast<int64_t>(rope.frequencies.size());
  const at::Tensor frequencies = at::tensor(rope.frequencies).to(at::kDouble);
  FERRY_CHECK(rope.long_frequencies.empty(), "the reference has one set of frequencies");
  const at::Tensor angle =
      (batch.tensors.position_ids.to(at::kDouble).unsqueeze(1) * frequencies).unsqueeze(1);
  const auto factor = static_cast<double>(rope.factor);
  const at::Tensor cos = angle.cos() * factor, sin = angle.sin() * factor;
  const at::Tensor x = heads.narrow(2, 0, 2 * n_pairs);
  const at::Tensor pairs = interleaved
                               ? x.reshape({x.size(0), x.size(1), n_pairs, 2})
                               : x.reshape({x.size(0), x.size(1), 2, n_pairs}).transpose(2, 3);
  const at::Tensor a = pairs.select(3, 0), c = pairs.select(3, 1);
  const at::Tensor both = at::stack({a * cos - c * sin, c * cos + a * sin}, 3);
  const at::Tensor flat = (interleaved ? both : both.transpose(2, 3)).flatten(2);
  return at::cat({flat, heads.narrow(2, 2 * n_pairs, heads.size(2) - 2 * n_pairs)}, 2);
}

at::Tensor ProgramReference::rotary(const Op& op, const TestBatch& batch) const {
  const auto& with = op.with<ops::RotaryAttributes>();
  const auto [q, k, v] = heads_of(op, with.heads);
  return at::cat({turned(with.rope, with.interleaved, q, batch),
                  turned(with.rope, with.interleaved, k, batch), v},
                 1)
      .flatten(1);
}

at::Tensor ProgramReference::head_norm(const Op& op, size_t block, const TestBatch& batch) {
  const auto& with = op.with<ops::HeadNormAttributes>();
  const auto [q, k, v] = heads_of(op, with.heads);
  const at::Tensor normed_q = rms(q, param(block, op.params[0]), with),
                   normed_k = rms(k, param(block, op.params[1]), with);
  return at::cat({turned(with.rope, false, normed_q, batch),
                  turned(with.rope, false, normed_k, batch), v},
                 1)
      .flatten(1);
}

/** Queries, keys and values of the operation's input: (tokens, heads, width) each. */
std::array<at::Tensor, 3> ProgramReference::heads_of(const Op& op,
                                                     const ops::AttentionHeads& of) const {
  const at::Tensor qkv = value(op.in[0]);
  const at::Tensor heads = qkv.view({qkv.size(0), of.n_heads + 2 * of.n_kv_heads, of.head_width});
  return {heads.narrow(1, 0, of.n_heads), heads.narrow(1, of.n_heads, of.n_kv_heads),
          heads.narrow(1, of.n_heads + of.n_kv_heads, of.n_kv_heads)};
}

/** Each sequence by itself. */
at::Tensor ProgramReference::attention(const Op& op, const TestBatch& batch) {
  const auto& with = op.with<ops::AttentionAttributes>();
  FERRY_CHECK(with.dropout == 0, "dropout in a reference");
  const int64_t H = with.heads.n_heads, K = with.heads.n_kv_heads, d = with.heads.head_width;
  const at::Tensor qkv = value(op.in[0]);
  std::vector<at::Tensor> contexts;
  for (size_t s = 0; s + 1 < batch.cu_seqlens.size(); ++s) {
    const int64_t begin = batch.cu_seqlens[s], n = batch.cu_seqlens[s + 1] - begin;
    const at::Tensor heads = qkv.narrow(0, begin, n).view({n, H + 2 * K, d}).transpose(0, 1);
    const at::Tensor q = heads.narrow(0, 0, H);
    const at::Tensor k = heads.narrow(0, H, K).repeat_interleave(H / K, 0);
    const at::Tensor v = heads.narrow(0, H + K, K).repeat_interleave(H / K, 0);
    const double scale =
        with.scores.scale != 0 ? with.scores.scale : 1 / std::sqrt(static_cast<double>(d));
    at::Tensor scores = capped(q.matmul(k.transpose(1, 2)) * scale, with.scores.soft_cap);
    const at::Tensor all = at::ones({n, n}, at::kBool);
    if (with.causal) scores = scores.masked_fill(all.triu(1), -INFINITY);
    if (with.causal && with.scores.window > 0)
      scores = scores.masked_fill(all.tril(-with.scores.window), -INFINITY);
    contexts.push_back(at::softmax(scores, -1).matmul(v).transpose(0, 1).reshape({n, H * d}));
  }
  return at::cat(contexts);
}

at::Tensor ProgramReference::vocabulary_loss(const Op& op, size_t block, const TestBatch& batch) {
  const at::Tensor t = value(op.in[0]);
  at::Tensor labels = as_index(batch.tensors.labels);
  if (batch.tensors.label_rows.defined())
    labels = labels.index_select(0, as_index(batch.tensors.label_rows));
  at::Tensor logits = plus(t.matmul(param(block, op.params[0]).t()), param(block, op.params[1]));
  const ops::LogitsRule& rule = op.with<ops::VocabularyAttributes>().rule;
  logits = capped(logits.narrow(1, 0, table_.vocab_size) * static_cast<double>(rule.factor),
                  rule.soft_cap);
  constexpr int64_t kNoLabel = -100;
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, kNoLabel) *
         static_cast<double>(batch.tensors.loss_weight);
}

}  // namespace ferry::test
