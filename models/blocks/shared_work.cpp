// Rules of ranks that share work, and the part of BlockBuilder that writes their layers.

#include "models/blocks/shared_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/blocks/block_builder.h"
#include "models/ops/all_reduce/all_reduce_op.h"
#include "models/ops/all_to_all/all_to_all_op.h"
#include "models/ops/ring_attention/ring_attention_op.h"
#include "src/base/error.h"

namespace ferry {

void share_work(ModelTable& model, const Sharing& sharing) {
  model.sharing = sharing;
  if (sharing.sp_size == 1) return;
  if (!is_language_model(model.head) && model.head != HeadKind::token_classification)
    throw Error(
        Fault::usage, "config.sp_size",
        fmt::format("sp_size is {}, and the head of this task reads whole texts", sharing.sp_size),
        "leave sp_size out: the GPUs share the samples or the blocks");
  model.streams = {{.name = "tokens of this rank"}, {.name = "tokens of all ranks"}};
}

void check_shares(const ModelTable& model, int64_t n, const char* what) {
  const int n_ranks = model.sharing.n_ranks();
  if (n % n_ranks == 0) return;
  const char* const key = model.sharing.tp_size > 1 ? "tp_size" : "sp_size";
  throw Error(Fault::usage, fmt::format("config.{}", key),
              fmt::format("{} is {}, and the model has {} {}", key, n_ranks, n, what),
              fmt::format("{} is a divisor of that number", key));
}

// --- layers ---

ValueId BlockBuilder::linear_to_ranks(const std::string& name,
                                      ValueId x,
                                      ParamId weight,
                                      ParamId bias,
                                      const std::vector<ops::SharedHeads>& parts) {
  const int n_ranks = model_.model_.sharing.tp_size;
  if (n_ranks == 1) return linear(name, x, weight, bias);
  const ValueId input = like(name + ".input", x);
  op(ops::kAllReduceGrad, ops::AllReduceValues<ValueId>{.x = x, .y = input});
  std::vector<ValueId> of_parts;
  int64_t first = 0;
  for (const ops::SharedHeads& rows : parts) {
    const int64_t n = rows.n_own(n_ranks);
    if (rows.head_width == 1) check_shares(model_.model_, rows.columns, "columns of a layer");
    const ops::WeightPart part = {.first = std::exchange(first, first + rows.columns),
                                  .n = n,
                                  .n_sharers = static_cast<int>(n * n_ranks / rows.columns)};
    of_parts.push_back(
        linear(parts.size() == 1 ? name : fmt::format("{}.{}", name, of_parts.size()), part.n,
               {.x = input, .residual = kNone, .y = kNone}, {.weight = weight, .bias = bias},
               {.rows = part}));
  }
  FERRY_CHECK(first == rows_of_param(weight), "parts of {} rows of {}", first,
              rows_of_param(weight));
  return of_parts.size() == 1 ? of_parts.front() : join(name, of_parts);
}

ValueId BlockBuilder::linear_from_ranks(const std::string& name,
                                        ValueId x,
                                        ParamId weight,
                                        ParamId bias,
                                        ValueId residual,
                                        float factor) {
  if (model_.model_.sharing.tp_size == 1) return linear(name, x, weight, bias, residual, factor);
  const std::string sum_name = residual == kNone ? name : name + ".sum";
  const ValueId part =
      linear(name + ".part", rows_of_param(weight), {.x = x, .residual = kNone, .y = kNone},
             {.weight = weight, .bias = bias}, {.factor = factor, .columns = {.n = columns_of(x)}});
  const ValueId sum = like(sum_name, part);
  op(ops::kAllReduce, ops::AllReduceValues<ValueId>{.x = part, .y = sum});
  return residual == kNone ? sum : add(name, sum, residual);
}

std::pair<ValueId, ValueId> BlockBuilder::activated_to_ranks(const std::string& name,
                                                             const std::string& map_name,
                                                             Activation kind,
                                                             ValueId x,
                                                             ParamId weight,
                                                             ParamId bias) {
  if (model_.model_.sharing.tp_size == 1)
    return activation(name, kind, linear(map_name, x, weight), bias);
  const ValueId mapped = linear_to_ranks(map_name, x, weight, bias, {{rows_of_param(weight)}});
  return activation(name, kind, mapped, kNone);
}

BlockBuilder::Heads BlockBuilder::own_heads(const Heads& heads, int n_ranks) const {
  check_shares(model_.model_, heads.n_heads, "heads of attention");
  if (n_ranks % heads.n_kv_heads != 0)  // else each head is of several ranks
    check_shares(model_.model_, heads.n_kv_heads, "heads of keys and values");
  return {.n_heads = heads.n_heads / n_ranks,
          .n_kv_heads = std::max<int64_t>(heads.n_kv_heads / n_ranks, 1),
          .head_width = heads.head_width};
}

BlockBuilder::Heads BlockBuilder::heads_of_rank(const Heads& heads) const {
  const int n_ranks = model_.model_.sharing.tp_size;
  return n_ranks == 1 ? heads : own_heads(heads, n_ranks);
}

std::vector<ops::SharedHeads> BlockBuilder::shared_qkv(const Heads& heads) {
  const ops::SharedHeads kv = {heads.n_kv_heads * heads.head_width, heads.head_width};
  return {{heads.width(), heads.head_width}, kv, kv};
}

void BlockBuilder::still_keys(ValueId value, const Heads& heads, const ops::ScoreRule& scores) {
  Op* const map = linear_before(value);
  if (!map || scores.soft_cap > 0) return;  // a cap makes softmax see it
  const int64_t n = heads.n_kv_heads * heads.head_width;
  const bool has_queries = columns_of(value) > n;
  map->with<ops::LinearAttributes>().keys = {has_queries ? heads.width() : 0, n};
}

bool BlockBuilder::attends_in_ring(const Heads& heads) const {
  const Sharing& sharing = model_.model_.sharing;
  const int n = sharing.sp_size;
  const bool can_share =
      heads.n_heads % n == 0 && (n % heads.n_kv_heads == 0 || heads.n_kv_heads % n == 0);
  return sharing.sp_attention == SpAttention::ring ||
         (sharing.sp_attention == SpAttention::automatic && !can_share);
}

ValueId BlockBuilder::ring_attention(const std::string& name,
                                     ValueId qkv,
                                     const Heads& heads,
                                     bool causal,
                                     float dropout,
                                     int random,
                                     const ops::ScoreRule& scores) {
  if (scores.soft_cap > 0)
    throw Error(Fault::usage, "config.sp_attention",
                fmt::format("a {} model caps its scores, and attention in a ring cannot",
                            model_.model_.family),
                "choose an sp_size that divides its heads, with sp_attention = heads");
  const ValueId y = value(name, program_.value(qkv).rows, heads.width());
  op(ops::kRingAttention, ops::AttentionValues<ValueId>{.qkv = qkv, .context = y}).attributes =
      ops::AttentionAttributes{
          .heads = heads, .causal = causal, .scores = scores, .dropout = dropout, .random = random};
  return y;
}

ValueId BlockBuilder::exchange_tokens(const std::string& name,
                                      ValueId x,
                                      const std::vector<ops::SharedHeads>& parts,
                                      bool to_heads) {
  const ops::AllToAllAttributes with = {
      .n_ranks = model_.model_.sharing.sp_size, .to_heads = to_heads, .parts = parts};
  int64_t n_all = 0;
  for (const ops::SharedHeads& part : parts)
    n_all += part.columns;
  const ValueId y = value(name, {.stream = to_heads ? 1 : 0}, to_heads ? with.n_own() : n_all);
  op(ops::kAllToAll, ops::AllToAllValues<ValueId>{.x = x, .y = y}).attributes = with;
  return y;
}

}  // namespace ferry
