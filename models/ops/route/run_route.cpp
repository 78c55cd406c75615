#include <ATen/ATen.h>

#include "models/ops/route/route_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

/** The tokens' experts, made from the logits. */
struct Choice {
  at::Tensor probabilities;  ///< (tokens, experts) fp32
  at::Tensor chosen;         ///< (tokens, k) fp32, largest first
  at::Tensor experts;        ///< (tokens, k) int64
  at::Tensor sum;            ///< (tokens, 1) fp32, of the chosen ones
  at::Tensor order;          ///< (k * tokens) int64: routes, of tokens in order, as they are sorted
  at::Tensor sorted;         ///< (k * tokens) int64: their experts
};

Choice choose(const RouteAttributes& with, const at::Tensor& logits, Scratch& scratch) {
  const int64_t n = logits.size(0);
  Choice its;
  its.probabilities = scratch.take(logits.sizes(), at::kFloat);
  at::_softmax_out(its.probabilities, logits, -1, /*half_to_float=*/false);
  its.chosen = scratch.take({n, with.k}, at::kFloat);
  its.experts = scratch.take({n, with.k}, at::kLong);
  at::topk_out(its.chosen, its.experts, its.probabilities, with.k);
  its.sum = scratch.take({n, 1}, at::kFloat);
  at::sum_out(its.sum, its.chosen, {1}, /*keepdim=*/true);
  its.sorted = scratch.take({n * with.k}, at::kLong);
  its.order = scratch.take({n * with.k}, at::kLong);
  at::sort_out(its.sorted, its.order, its.experts.view({n * with.k}), /*stable=*/true, 0,
               /*descending=*/false);
  return its;
}

/** (experts) fp32: the share of the real tokens that go to each, times k. */
at::Tensor shares(const RouteAttributes& with, const at::Tensor& experts, Scratch& scratch) {
  at::Tensor shares = scratch.take({with.n_experts}, at::kFloat);
  for (int64_t e = 0; e < with.n_experts; ++e)
    shares.select(0, e).copy_(at::eq(experts, e).sum());
  return shares.div_(static_cast<double>(experts.size(0)));
}

int64_t n_real_tokens(const OpCall& c) {
  return c.batch.cu_seqlens_host[static_cast<size_t>(c.batch.n_seqs_real)];
}

void route_forward(const OpCall& c) {
  const auto& with = c.op.with<RouteAttributes>();
  const auto o = c.operands<RouteValues>();
  const Choice its = choose(with, o.logits, c.scratch);
  const int64_t n = its.order.size(0);
  at::Tensor tokens = c.scratch.take({n}, at::kLong);
  at::div_out(tokens, its.order, with.k, "floor");
  o.routes->view({n}).copy_(tokens);
  at::Tensor experts = c.scratch.take({with.n_experts + 1}, at::kLong);
  at::arange_out(experts, with.n_experts + 1);
  at::Tensor first = c.scratch.take({with.n_experts + 1}, at::kLong);
  at::searchsorted_out(first, its.sorted, experts);
  o.offsets->view({with.n_experts + 1}).copy_(first);
  its.chosen.div_(its.sum);
  at::Tensor weights = o.weights->view({n});
  at::index_select_out(weights, its.chosen.view({n}), 0, its.order);
  if (with.balance == 0 || !c.loss.defined()) return;
  const int64_t n_real = n_real_tokens(c);
  const at::Tensor share = shares(with, its.experts.narrow(0, 0, n_real), c.scratch);
  at::Tensor mean = c.scratch.take({with.n_experts}, at::kFloat);
  at::mean_out(mean, its.probabilities.narrow(0, 0, n_real), at::IntArrayRef{0});
  at::sum_out(c.loss, mean.mul_(share), at::IntArrayRef{0});
  c.loss.mul_(with.balance * static_cast<double>(with.n_experts) * c.batch.token_share);
}

void route_backward(const OpCall& c) {
  const auto& with = c.op.with<RouteAttributes>();
  const auto o = c.operands<RouteGrads>();
  const Choice its = choose(with, o.logits, c.scratch);
  const int64_t n = its.order.size(0), tokens = o.logits->size(0);
  // The weights lie in the order of the experts, the chosen probabilities in the order of tokens.
  at::Tensor place = c.scratch.take({n}, at::kLong), sorted = c.scratch.take({n}, at::kLong);
  at::sort_out(sorted, place, its.order, /*stable=*/true, 0, /*descending=*/false);
  at::Tensor d_weights = c.scratch.take({n}, at::kFloat);
  at::index_select_out(d_weights, o.d_weights->view({n}), 0, place);
  at::Tensor d_chosen = d_weights.view({tokens, with.k});
  its.chosen.div_(its.sum);
  at::Tensor products = c.scratch.take({tokens, with.k}, at::kFloat),
             mean = c.scratch.take({tokens, 1}, at::kFloat);
  at::mul_out(products, d_chosen, its.chosen);
  at::sum_out(mean, products, {1}, /*keepdim=*/true);
  d_chosen.sub_(mean).div_(its.sum);

  at::Tensor d_probabilities = c.scratch.take({tokens, with.n_experts}, at::kFloat).zero_();
  at::Tensor number = c.scratch.take({with.n_experts}, at::kLong);
  at::arange_out(number, with.n_experts);
  at::Tensor is_it = c.scratch.take({tokens, with.n_experts}, at::kFloat);
  for (int64_t j = 0; j < with.k; ++j) {
    at::eq_out(is_it, its.experts.narrow(1, j, 1), number);
    d_probabilities.addcmul_(is_it, d_chosen.narrow(1, j, 1));
  }
  if (with.balance != 0) {
    const int64_t n_real = n_real_tokens(c);
    at::Tensor share = shares(with, its.experts.narrow(0, 0, n_real), c.scratch);
    share.mul_(with.balance * static_cast<double>(with.n_experts) * c.batch.token_share *
               static_cast<double>(c.batch.grad_scale) / static_cast<double>(n_real));
    d_probabilities.narrow(0, 0, n_real).add_(share);
  }
  at::_softmax_backward_data_out(o.d_logits, d_probabilities, its.probabilities, -1, at::kFloat);
}

}  // namespace

void run_route(const OpCall& c) {
  if (c.part == Part::backward) return route_backward(c);
  route_forward(c);
}

}  // namespace ferry::ops
