#include "models/core/block_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "models/core/compile.h"
#include "models/ops/activation/activation_op.h"
#include "models/ops/add/add_op.h"
#include "models/ops/dropout/dropout_op.h"
#include "models/ops/gate/gate_op.h"
#include "models/ops/head_norm/head_norm_op.h"
#include "models/ops/label_loss/label_loss_op.h"
#include "models/ops/linear/linear_op.h"
#include "models/ops/logits/logits_op.h"
#include "models/ops/norm/norm_op.h"
#include "models/ops/rms_norm/rms_norm_op.h"
#include "models/ops/rows/rows_op.h"
#include "models/ops/span_loss/span_loss_op.h"
#include "models/ops/tanh/tanh_op.h"
#include "models/ops/vocabulary_loss/vocabulary_op.h"
#include "src/base/error.h"

namespace ferry {
namespace {

int64_t sum_of_rows(const BlockBuilder::HfRows& hf) {
  int64_t rows = 0;
  for (const auto& [of, n] : hf)
    rows += n;
  return rows;
}

/** Borrowed parameters have numbers from here on until the block's own are all there. */
constexpr ParamId kBorrowed = 1 << 16;

}  // namespace

BlockBuilder ModelBuilder::block(std::string name, BlockKind kind) {
  BlockTable table;
  table.name = std::move(name);
  table.kind = kind;
  table.random_block = static_cast<int>(model_.blocks.size());
  model_.blocks.push_back(std::move(table));
  return {*this, static_cast<int>(model_.blocks.size()) - 1};
}

BlockTable& BlockBuilder::table() {
  return model_.model_.blocks[static_cast<size_t>(index_)];
}

// --- parameters ---

/** The names of a tensor in files, the one that is written first. */
std::vector<std::string> BlockBuilder::spellings(const std::string& name) const {
  const std::string& prefix = model_.prefix_;
  if (prefix.empty() || !name.starts_with(prefix)) return {name};
  const std::string rest = name.substr(prefix.size());
  std::vector<std::string> names = {name, rest};
  if (const std::string& written = model_.in_files_.written; !written.empty() && written != prefix)
    names.insert(names.begin(), written + rest);
  for (const std::string& other : model_.in_files_.others)
    names.push_back(other + rest);
  return names;
}

ParamId BlockBuilder::add(
    const std::string& name, std::vector<int64_t> shape, bool decay, Init init, const HfRows& hf) {
  const ParamId param = table().add(name, shape, decay, init);
  int64_t row = 0;
  for (const auto& [of, rows] : hf) {
    HfEntry entry;
    entry.block = index_;
    entry.param = param;
    entry.row_begin = row;
    entry.rows = rows;
    entry.hf_shape = shape;
    entry.hf_shape[0] = rows;
    if (of.transposed) std::ranges::reverse(entry.hf_shape);
    entry.transposed = of.transposed;
    entry.groups = of.groups;
    entry.optional = of.optional;
    std::vector<std::string> names = spellings(of.name);
    for (const std::string& other : of.also_named)
      std::ranges::move(spellings(other), std::back_inserter(names));
    entry.hf_name = names.front();
    entry.also_named.assign(names.begin() + 1, names.end());
    model_.model_.hf_names.push_back(std::move(entry));
    row += rows;
  }
  return param;
}

ParamId BlockBuilder::matrix(
    const std::string& name, int64_t rows, int64_t columns, HfName hf, const NormalInit& normal) {
  const ParamId param = add(name, {rows, columns}, true, Init::normal, {{std::move(hf), rows}});
  table().params[static_cast<size_t>(param)].normal = normal;
  return param;
}

ParamId BlockBuilder::matrix(const std::string& name, int64_t columns, const HfRows& hf) {
  return add(name, {sum_of_rows(hf), columns}, true, Init::normal, hf);
}

ParamId BlockBuilder::bias(const std::string& name, int64_t n, HfName hf) {
  return add(name, {n}, false, Init::zeros, {{std::move(hf), n}});
}

ParamId BlockBuilder::bias(const std::string& name, const HfRows& hf) {
  return add(name, {sum_of_rows(hf)}, false, Init::zeros, hf);
}

ParamId BlockBuilder::norm_weight(const std::string& name, int64_t n, HfName hf, Init init) {
  return add(name, {n}, false, init, {{std::move(hf), n}});
}

ParamId BlockBuilder::borrow(int block, int param, const std::string& hf) {
  table().borrowed.push_back({block, param});
  if (!hf.empty())
    for (HfEntry& entry : model_.model_.hf_names)
      if (entry.block == block && entry.param == param) entry.tied_names.push_back(hf);
  return kBorrowed + static_cast<ParamId>(table().borrowed.size()) - 1;
}

const std::vector<int64_t>& BlockBuilder::shape_of_param(ParamId id) {
  if (id < kBorrowed) return table().params[static_cast<size_t>(id)].shape;
  const BorrowedParam& b = table().borrowed[static_cast<size_t>(id - kBorrowed)];
  return model_.model_.blocks[static_cast<size_t>(b.block)]
      .params[static_cast<size_t>(b.param)]
      .shape;
}

// --- values and operations ---

ValueId BlockBuilder::value(std::string name, Rows rows, int64_t columns) {
  program_.values.push_back(
      {.name = std::move(name), .rows = rows, .columns = columns, .type = model_.model_.compute});
  return static_cast<ValueId>(program_.values.size()) - 1;
}

ValueId BlockBuilder::like(const std::string& name, ValueId x) {
  const Value& v = program_.value(x);
  return value(name, v.rows, v.columns);
}

Op& BlockBuilder::add_op(Op op) {
  program_.ops.push_back(std::move(op));
  return program_.ops.back();
}

ValueId BlockBuilder::input() {
  FERRY_CHECK(program_.values.empty(), "the input is a block's first value");
  return value("input", Rows::tokens, model_.model_.width);
}

ValueId BlockBuilder::embedding(const std::string& name,
                                ParamId word,
                                ParamId position,
                                ParamId type,
                                const ops::EmbeddingRule& rows) {
  FERRY_CHECK(program_.values.empty() || !program_.has_input, "an embedding reads no value");
  program_.has_input = false;
  const ParamId first = word == kNone ? position : word;
  const ValueId y = value(name, Rows::tokens, shape_of_param(first)[1]);
  ops::EmbeddingAttributes with = {.rows = rows};
  for (ParamId param : {word, position, type})
    if (param != kNone) with.n_table_rows += rows_of_param(param);
  op(ops::kEmbedding, ops::EmbeddingValues<ValueId>{.words = kNone, .y = y},
     ops::EmbeddingParams<ParamId>{.word = word, .position = position, .type = type})
      .attributes = with;
  return y;
}

ValueId BlockBuilder::linear(
    const std::string& name, ValueId x, ParamId weight, ParamId bias, ValueId residual) {
  const ValueId y = value(name, program_.value(x).rows, rows_of_param(weight));
  op(ops::kLinear, ops::LinearValues<ValueId>{.x = x, .residual = residual, .y = y},
     ops::LinearParams<ParamId>{.weight = weight, .bias = bias})
      .attributes = ops::LinearAttributes{};
  return y;
}

ValueId BlockBuilder::norm(const std::string& name,
                           ValueId z,
                           ParamId weight,
                           ParamId bias,
                           float eps,
                           float dropout,
                           int random) {
  const ValueId y = like(name, z);
  op(ops::kNorm, ops::NormValues<ValueId>{.z = z, .y = y},
     ops::LayerNormParams<ParamId>{.weight = weight, .bias = bias})
      .attributes = ops::NormAttributes{.eps = eps, .dropout = dropout, .random = random};
  return y;
}

std::pair<ValueId, ValueId> BlockBuilder::residual_norm(const std::string& sum_name,
                                                        const std::string& name,
                                                        ValueId a,
                                                        ParamId bias_of_a,
                                                        ValueId residual,
                                                        ParamId weight,
                                                        ParamId bias,
                                                        float eps,
                                                        float dropout,
                                                        int random) {
  const ValueId z = like(sum_name, a), y = like(name, a);
  op(ops::kResidualNorm,
     ops::ResidualNormValues<ValueId>{.a = a, .residual = residual, .z = z, .y = y},
     ops::ResidualNormParams<ParamId>{.weight = weight, .bias = bias, .bias_of_a = bias_of_a})
      .attributes = ops::NormAttributes{.eps = eps, .dropout = dropout, .random = random};
  return {z, y};
}

ValueId BlockBuilder::rms_norm(
    const std::string& name, ValueId z, ParamId weight, float eps, float weight_offset) {
  const ValueId y = like(name, z);
  op(ops::kRmsNorm, ops::RmsNormValues<ValueId>{.a = z, .residual = kNone, .z = kNone, .y = y},
     ops::RmsNormParams<ParamId>{.weight = weight})
      .attributes = ops::RmsNormAttributes{.eps = eps, .weight_offset = weight_offset};
  return y;
}

std::pair<ValueId, ValueId> BlockBuilder::residual_rms_norm(const std::string& sum_name,
                                                            const std::string& name,
                                                            ValueId a,
                                                            ValueId residual,
                                                            ParamId weight,
                                                            float eps,
                                                            float weight_offset) {
  const ValueId z = like(sum_name, a), y = like(name, a);
  op(ops::kRmsNorm, ops::RmsNormValues<ValueId>{.a = a, .residual = residual, .z = z, .y = y},
     ops::RmsNormParams<ParamId>{.weight = weight})
      .attributes = ops::RmsNormAttributes{.eps = eps, .weight_offset = weight_offset};
  return {z, y};
}

ValueId BlockBuilder::rotary(
    const std::string& name, ValueId qkv, const Heads& heads, RopeTable rope, bool interleaved) {
  const ValueId y = like(name, qkv);
  op(ops::kRotary, ops::RotaryValues<ValueId>{.qkv = qkv, .y = y}).attributes =
      ops::RotaryAttributes{.heads = heads, .rope = std::move(rope), .interleaved = interleaved};
  return y;
}

ValueId BlockBuilder::head_norm(const std::string& name,
                                ValueId qkv,
                                const Heads& heads,
                                ParamId q_weight,
                                ParamId k_weight,
                                float eps,
                                RopeTable rope,
                                float weight_offset) {
  const ValueId y = like(name, qkv);
  op(ops::kHeadNorm, ops::HeadNormValues<ValueId>{.qkv = qkv, .y = y},
     ops::HeadNormParams<ParamId>{.q_weight = q_weight, .k_weight = k_weight})
      .attributes = ops::HeadNormAttributes{
      .eps = eps, .weight_offset = weight_offset, .heads = heads, .rope = std::move(rope)};
  return y;
}

ValueId BlockBuilder::attention(const std::string& name,
                                ValueId qkv,
                                const Heads& heads,
                                bool causal,
                                float dropout,
                                int random,
                                const ops::ScoreRule& scores) {
  const ValueId y = value(name, program_.value(qkv).rows, heads.n_heads * heads.head_width);
  ops::AttentionAttributes with = {
      .heads = heads, .causal = causal, .scores = scores, .dropout = dropout, .random = random};
  ops::AttentionParams<ParamId> params = {.bias = kNone};
  if (const int before = program_.producer_of(qkv); before != kNone)
    if (Op& map = program_.ops[static_cast<size_t>(before)]; map.def == &ops::kLinear) {
      params.bias = params_of<ops::LinearParams>(map).bias;
      map.with<ops::LinearAttributes>().sums_bias = with.sums_bias = params.bias != kNone;
    }
  op(ops::kAttention, ops::AttentionValues<ValueId>{.qkv = qkv, .context = y}, params).attributes =
      with;
  return y;
}

std::pair<ValueId, ValueId> BlockBuilder::activation(const std::string& name,
                                                     Activation kind,
                                                     ValueId a,
                                                     ParamId bias) {
  const ValueId h = like(program_.value(a).name, a), g = like(name, a);
  op(ops::kActivation, ops::ActivationValues<ValueId>{.a = a, .h = h, .g = g},
     ops::ActivationParams<ParamId>{.bias = bias})
      .attributes = ops::ActivationAttributes{.kind = kind};
  return {h, g};
}

ValueId BlockBuilder::gate(const std::string& name, Activation kind, ValueId gate_up) {
  const ValueId y = value(name, program_.value(gate_up).rows, columns_of(gate_up) / 2);
  op(ops::kGate, ops::GateValues<ValueId>{.gate_up = gate_up, .y = y}).attributes =
      ops::GateAttributes{.kind = kind};
  return y;
}

ValueId BlockBuilder::dropout_residual(
    const std::string& name, ValueId a, ParamId bias, ValueId residual, float dropout, int random) {
  const ValueId y = like(name, a);
  op(ops::kDropoutResidual,
     ops::DropoutResidualValues<ValueId>{.a = a, .residual = residual, .y = y},
     ops::DropoutResidualParams<ParamId>{.bias = bias})
      .attributes = ops::DropoutAttributes{.dropout = dropout, .random = random};
  return y;
}

ValueId BlockBuilder::add(const std::string& name, ValueId a, ValueId b) {
  const ValueId y = like(name, a);
  op(ops::kAdd, ops::AddValues<ValueId>{.a = a, .b = b, .y = y});
  return y;
}

ValueId BlockBuilder::dropout(const std::string& name, ValueId x, float dropout, int random) {
  if (dropout == 0) return x;
  const ValueId y = like(name, x);
  op(ops::kDropout, ops::DropoutValues<ValueId>{.x = x, .y = y}).attributes =
      ops::DropoutAttributes{.dropout = dropout, .random = random};
  return y;
}

ValueId BlockBuilder::rows(const OpDef& def, const std::string& name, Rows rows, ValueId x) {
  const ValueId y = value(name, rows, columns_of(x));
  op(def, ops::RowsValues<ValueId>{.x = x, .y = y});
  return y;
}

ValueId BlockBuilder::first_rows(const std::string& name, ValueId x) {
  return rows(ops::kFirstRows, name, Rows::sequences, x);
}

ValueId BlockBuilder::last_rows(const std::string& name, ValueId x) {
  return rows(ops::kLastRows, name, Rows::sequences, x);
}

ValueId BlockBuilder::labelled_rows(const std::string& name, ValueId x) {
  return rows(ops::kLabelledRows, name, Rows::labelled, x);
}

ValueId BlockBuilder::tanh(const std::string& name, ValueId x) {
  const ValueId y = like(name, x);
  op(ops::kTanh, ops::TanhValues<ValueId>{.x = x, .y = y});
  return y;
}

ValueId BlockBuilder::logits(ValueId x, ParamId weight, ParamId bias, bool by_column) {
  const ValueId y = value("logits", program_.value(x).rows, rows_of_param(weight));
  program_.values.back().type = DType::f32;
  program_.values.back().by_column = by_column;
  op(ops::kLogits, ops::LogitsValues<ValueId>{.x = x, .logits = y},
     ops::LogitsParams<ParamId>{.weight = weight, .bias = bias})
      .attributes = ops::LogitsAttributes{.by_column = by_column};
  return y;
}

void BlockBuilder::label_loss(ValueId logits) {
  op(ops::kLabelLoss, ops::LabelLossValues<ValueId>{.logits = logits});
}

void BlockBuilder::span_loss(ValueId logits) {
  op(ops::kSpanLoss, ops::SpanLossValues<ValueId>{.logits = logits});
}

void BlockBuilder::vocabulary_loss(ValueId t, ParamId word, ParamId bias, float soft_cap) {
  op(ops::kVocabularyLoss, ops::VocabularyValues<ValueId>{.t = t},
     ops::VocabularyParams<ParamId>{.word = word, .bias = bias})
      .attributes = ops::VocabularyAttributes{.soft_cap = soft_cap};
}

void BlockBuilder::recompute(ValueId value) {
  program_.values[static_cast<size_t>(value)].recomputed = true;
}

void BlockBuilder::end(ValueId y) {
  program_.output = y;
  FERRY_CHECK(y == kNone || columns_of(y) == model_.model_.width, "'{}' ends {} wide", table().name,
              columns_of(y));
  const auto n_own = static_cast<ParamId>(table().params.size());
  for (Op& op : program_.ops)
    for (ParamId& param : op.params)
      if (param >= kBorrowed) param += n_own - kBorrowed;
  const ModelTable& model = model_.model_;
  compile(std::move(program_),
          {.compute = model.compute,
           .attention = model.attention,
           .gpu_multiprocessors = model_.gpu_multiprocessors_,
           .vocab_size = model.vocab_size},
          table());
}

}  // namespace ferry
