#include "models/blocks/block_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "models/blocks/shared_work.h"
#include "models/core/compile.h"
#include "models/ops/activation/activation_op.h"
#include "models/ops/add/add_op.h"
#include "models/ops/dropout/dropout_op.h"
#include "models/ops/features/features_op.h"
#include "models/ops/gate/gate_op.h"
#include "models/ops/head_norm/head_norm_op.h"
#include "models/ops/label_loss/label_loss_op.h"
#include "models/ops/logits/logits_op.h"
#include "models/ops/norm/norm_op.h"
#include "models/ops/rms_norm/rms_norm_op.h"
#include "models/ops/routed/routed_op.h"
#include "models/ops/rows/rows_op.h"
#include "models/ops/span_loss/span_loss_op.h"
#include "models/ops/table/table_op.h"
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

// --- values between blocks ---

BlockBuilder ModelBuilder::block(std::string name, BlockKind kind, int stream) {
  return {*this, std::move(name), kind, n_blocks_++, stream};
}

int ModelBuilder::add(ModelValue value) {
  model_.values.push_back(std::move(value));
  last_readers_.push_back(kNone);
  return static_cast<int>(model_.values.size()) - 1;
}

int ModelBuilder::add_with_gradient(const ModelValue& value, const std::string& name) {
  ModelValue output = value, gradient = value;
  output.name = "output of " + name;
  gradient.name = "gradient of " + name;
  output.gradient = static_cast<int>(model_.values.size()) + 1;
  const int id = add(std::move(output));
  add(std::move(gradient));
  return id;
}

void ModelBuilder::name_tied(int block, ParamId param, const std::string& hf) {
  if (hf.empty()) return;
  for (HfEntry& entry : model_.hf_names)
    if (entry.block == block && entry.param == param) entry.tied_names.push_back(hf);
}

void ModelBuilder::add_to_gradient(int block, int gradient) {
  BlockTable& table = model_.blocks[block];
  BlockProgram program = table.compiled->program;
  for (Value& value : program.values) {
    if (value.grad_port == kNone) continue;
    Port& port = program.ports[value.grad_port];
    if (port.value != gradient) continue;
    port.backward = PortUse::changes;
    value.grad_before = value.grad_port;
  }
  compile(std::move(program), target(), table);
}

ProgramTarget ModelBuilder::target() const {
  static constexpr GradientOps kGradients = {
      .sum_of =
          [](ValueId value) {
            return make_op(ops::kAdd, ops::AddValues<ValueId>{.a = value, .b = value, .y = value});
          },
      .copy_of =
          [](ValueId value) {
            return make_op(ops::kDropout, ops::DropoutValues<ValueId>{.x = value, .y = value}, {},
                           ops::DropoutAttributes{});
          },
      .add =
          [](PassPlanner& planner, int op, int a, int b, int sum) {
            planner.call(op, Part::forward, ops::AddValues<int>{.a = a, .b = b, .y = sum});
          },
      .copy =
          [](PassPlanner& planner, int op, int from, int to) {
            planner.call(op, Part::forward, ops::DropoutValues<int>{.x = from, .y = to});
          }};
  return {.compute = model_.compute,
          .attention = model_.attention,
          .gpu_multiprocessors = gpu_multiprocessors_,
          .vocab_size = model_.vocab_size,
          .sharing = model_.sharing,
          .gradients = &kGradients};
}

int BlockBuilder::add_port(Port port) {
  program_.ports.push_back(port);
  return static_cast<int>(program_.ports.size()) - 1;
}

ValueId BlockBuilder::value_at(int port) {
  const ModelValue& of = model_.value(program_.ports[port].value);
  program_.values.push_back({.name = of.name,
                             .rows = of.rows,
                             .columns = of.columns,
                             .type = of.type,
                             .by_column = of.by_column,
                             .port = port});
  return static_cast<ValueId>(program_.values.size()) - 1;
}

ValueId BlockBuilder::input() {
  // The first block of a stack by itself has no other before it.
  if (model_.hidden_ == kNone)
    model_.hidden_ = model_.add_with_gradient(
        {.columns = model_.model_.width, .type = model_.model_.compute}, "what comes before");
  const ValueId x = read(model_.hidden_);
  program_.values[x].name = "input";
  return x;
}

ValueId BlockBuilder::read(int value) {
  for (ValueId id = 0; id < static_cast<ValueId>(program_.values.size()); ++id)
    if (const int port = program_.value(id).port;
        port != kNone && program_.ports[port].value == value)
      return id;
  return value_at(add_port({value, PortUse::reads, PortUse::reads}));
}

void BlockBuilder::write_output(ValueId y, const std::string& name) {
  const Value its = program_.value(y);
  model_.hidden_ = model_.add_with_gradient(
      {.columns = its.columns, .type = its.type, .rows = its.rows, .by_column = its.by_column},
      name);
  leave_output(y, PortUse::writes);
}

void BlockBuilder::leave_output(ValueId y, PortUse use) {
  leave_at(y, {model_.hidden_, use, PortUse::none});
}

void BlockBuilder::leave_at(ValueId y, const Port& port) {
  const Value& value = program_.value(y);
  FERRY_CHECK(value.port == kNone && value.whole == kNone && program_.producer_of(y) != kNone &&
                  value.rows.kind != RowKind::routed,
              "'{}' cannot leave '{}'", value.name, table_.name);
  const int at = add_port(port), gradient = model_.value(port.value).gradient;
  program_.values[y].port = at;
  if (gradient == kNone) return;
  const int grad_port = add_port({gradient, PortUse::none, PortUse::reads});
  program_.values[y].grad_port = grad_port;
}

int BlockBuilder::leave(ValueId value) {
  const Value its = program_.value(value);
  const ModelValue left = {
      .columns = its.columns, .type = its.type, .rows = its.rows, .by_column = its.by_column};
  const std::string name = table_.name + " " + its.name;
  int id = kNone;
  if (its.type == DType::i32) {
    id = model_.add(left);
    model_.model_.values.back().name = name;
  } else {
    id = model_.add_with_gradient(left, name);
  }
  // The block's own backward finds it there as other blocks do.
  leave_at(value, {id, PortUse::writes, PortUse::reads});
  return id;
}

void BlockBuilder::leave_gradients() {
  const auto index = static_cast<int>(model_.model_.blocks.size());
  for (Value& value : program_.values) {
    if (value.port == kNone || value.grad_port != kNone) continue;
    const Port port = program_.ports[value.port];
    const int gradient = model_.value(port.value).gradient;
    if (port.forward != PortUse::reads || gradient == kNone) continue;
    value.grad_port = add_port({gradient, PortUse::none, PortUse::writes});
    int& reader = model_.last_readers_[static_cast<size_t>(port.value)];
    if (reader != kNone) model_.add_to_gradient(reader, gradient);
    reader = index;
  }
}

/** Kernels take dense tensors; products take any rows. */
void BlockBuilder::check_parts() const {
  for (const Op& op : program_.ops)
    for (const auto* values : {&op.in, &op.out})
      for (const ValueId id : *values)
        FERRY_CHECK(id == kNone || program_.value(id).whole == kNone || op.def == &ops::kLinear,
                    "'{}' is a part of a value, which {} cannot take", program_.value(id).name,
                    op.def->name);
}

int BlockBuilder::close() {
  leave_gradients();
  check_parts();
  ModelTable& model = model_.model_;
  const auto index = static_cast<int>(model.blocks.size());
  const auto n_own = static_cast<ParamId>(table_.params.size());
  for (Op& op : program_.ops)
    for (ParamId& param : op.params)
      if (param >= kBorrowed) param += n_own - kBorrowed;
  for (HfEntry& entry : hf_) {
    entry.block = index;
    model.hf_names.push_back(std::move(entry));
  }
  // The sum over a vocabulary's words goes the same way in both directions.
  const bool ascends = table_.piece && table_.kind == BlockKind::head;
  model.backwards.insert(model.backwards.begin() + (ascends ? table_.piece->index : 0), index);
  if (own_words_) model_.word_rows_ = {{.block = index, .param = *own_words_}};
  model.blocks.push_back(table_);  // the pieces of a vocabulary are named after it
  compile(std::move(program_), model_.target(), model.blocks.back());
  is_closed_ = true;
  return index;
}

void BlockBuilder::end(ValueId y) {
  if (is_closed_) return;  // the vocabulary's pieces have ended it
  FERRY_CHECK(y == kNone || columns_of(y) == model_.model_.width, "'{}' ends {} wide", table_.name,
              columns_of(y));
  if (program_.ops.empty()) return;  // the next block reads what is there
  if (y != kNone) write_output(y, table_.name);
  close();
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
  const ParamId param = table_.add(name, shape, decay, init);
  int64_t row = 0;
  for (const auto& [of, rows] : hf) {
    std::vector<int64_t> its_shape = shape;
    its_shape[0] = rows;
    HfEntry entry = entry_of(of, param, std::move(its_shape));
    entry.row_begin = row;
    hf_.push_back(std::move(entry));
    row += rows;
  }
  return param;
}

HfEntry BlockBuilder::entry_of(const HfName& of, ParamId param, std::vector<int64_t> shape) const {
  HfEntry entry;
  entry.param = param;
  entry.rows = shape[0];
  entry.hf_shape = std::move(shape);
  if (of.transposed) std::ranges::reverse(entry.hf_shape);
  entry.transposed = of.transposed;
  entry.groups = of.groups;
  entry.optional = of.optional;
  std::vector<std::string> names = spellings(of.name);
  for (const std::string& other : of.also_named)
    std::ranges::move(spellings(other), std::back_inserter(names));
  entry.hf_name = names.front();
  entry.also_named.assign(names.begin() + 1, names.end());
  return entry;
}

ParamId BlockBuilder::matrix(
    const std::string& name, int64_t rows, int64_t columns, HfName hf, const NormalInit& normal) {
  const ParamId param = add(name, {rows, columns}, true, Init::normal, {{std::move(hf), rows}});
  table_.params[param].normal = normal;
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
  table_.borrowed.push_back({block, param});
  model_.name_tied(block, param, hf);
  return kBorrowed + static_cast<ParamId>(table_.borrowed.size()) - 1;
}

const std::vector<int64_t>& BlockBuilder::shape_of_param(ParamId id) {
  if (id < kBorrowed) return table_.params[id].shape;
  const BorrowedParam& b = table_.borrowed[id - kBorrowed];
  return model_.model_.blocks[b.block].params[b.param].shape;
}

// --- values and operations ---

ValueId BlockBuilder::value(std::string name, const Rows& rows, int64_t columns) {
  program_.values.push_back(
      {.name = std::move(name), .rows = rows, .columns = columns, .type = model_.model_.compute});
  return static_cast<ValueId>(program_.values.size()) - 1;
}

ValueId BlockBuilder::like(const std::string& name, ValueId x) {
  const Value& v = program_.value(x);
  return value(name, v.rows, v.columns);
}

ValueId BlockBuilder::embedding(const std::string& name,
                                ParamId word,
                                ParamId position,
                                ParamId type,
                                const ops::EmbeddingRule& rows) {
  ValueId words = kNone;
  if (word == kInPieces) {
    FERRY_CHECK(program_.ops.empty(), "'{}' does not begin with its words", table_.name);
    words = look_up_pieces(name, rows);
    if (position == kNone && type == kNone) return words;
    FERRY_CHECK(rows.word_scale == 1, "'{}' rounds more than once", table_.name);
    word = kNone;
  }
  const ParamId first = word == kNone ? position : word;
  const ValueId y = value(name, {.stream = stream_}, shape_of_param(first)[1]);
  ops::EmbeddingAttributes with = {.rows = rows};
  for (ParamId param : {word, position, type})
    if (param != kNone) with.n_table_rows += rows_of_param(param);
  op(ops::kEmbedding, ops::EmbeddingValues<ValueId>{.words = words, .y = y},
     ops::EmbeddingParams<ParamId>{.word = word, .position = position, .type = type, .soft = kNone})
      .attributes = with;
  return y;
}

std::vector<ValueId> BlockBuilder::split(
    ValueId whole, const std::vector<std::pair<std::string, int64_t>>& parts) {
  std::vector<ValueId> ids;
  int64_t first = 0;
  for (const auto& [name, columns] : parts) {
    ids.push_back(value(name, program_.value(whole).rows, columns));
    Value& part = program_.values.back();
    part.type = program_.value(whole).type;
    part.whole = whole;
    part.first_column = std::exchange(first, first + columns);
  }
  FERRY_CHECK(first == columns_of(whole), "parts of {} columns of {}", first, columns_of(whole));
  return ids;
}

ValueId BlockBuilder::join(const std::string& name, const std::vector<ValueId>& parts) {
  int64_t columns = 0;
  for (const ValueId part : parts)
    columns += columns_of(part);
  const ValueId whole = value(name, program_.value(parts.at(0)).rows, columns);
  int64_t first = 0;
  for (const ValueId part : parts) {
    Value& its = program_.values[part];
    FERRY_CHECK(its.whole == kNone && its.port == kNone && program_.producer_of(part) != kNone,
                "'{}' cannot become a part of '{}'", its.name, name);
    its.whole = whole;
    its.first_column = std::exchange(first, first + its.columns);
  }
  return whole;
}

ValueId BlockBuilder::linear(const std::string& name,
                             ValueId x,
                             ParamId weight,
                             ParamId bias,
                             ValueId residual,
                             float factor) {
  // The product still reads the gradient that the residual would share with dx.
  FERRY_CHECK(residual != x, "'{}' adds its own input", name);
  return linear(name, rows_of_param(weight), {.x = x, .residual = residual, .y = kNone},
                {.weight = weight, .bias = bias}, {.factor = factor});
}

ValueId BlockBuilder::linear(const std::string& name,
                             int64_t columns,
                             ops::LinearValues<ValueId> values,
                             const ops::LinearParams<ParamId>& params,
                             const ops::LinearAttributes& with) {
  values.y = value(name, program_.value(values.x).rows, columns);
  op(ops::kLinear, values, params).attributes = with;
  return values.y;
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
  if (const int n = model_.model_.sharing.sp_size; n > 1 && program_.value(qkv).rows.stream == 0) {
    still_keys(qkv, heads, scores);
    if (attends_in_ring(heads))
      return ring_attention(name, qkv, heads, causal, dropout, random, scores);
    const Heads own = own_heads(heads, n);
    const std::vector<ops::SharedHeads> parts = shared_qkv(heads);
    const ValueId of_heads = exchange_tokens(name + ".qkv_of_heads", qkv, parts, true);
    const ValueId y = attention(name + "_of_heads", of_heads, own, causal, dropout, random, scores);
    return exchange_tokens(name, y, {parts.front()}, false);
  }
  const ValueId y = value(name, program_.value(qkv).rows, heads.n_heads * heads.head_width);
  ops::AttentionAttributes with = {
      .heads = heads, .causal = causal, .scores = scores, .dropout = dropout, .random = random};
  ops::AttentionParams<ParamId> params = {.bias = kNone};
  if (Op* const map = linear_before(qkv); map && !program_.is_joined(qkv)) {
    params.bias = params_of<ops::LinearParams>(*map).bias;
    FERRY_CHECK(params.bias == kNone || map->with<ops::LinearAttributes>().factor == 1,
                "attention sums the bias of '{}' without its factor", name);
    map->with<ops::LinearAttributes>().sums_bias = with.sums_bias = params.bias != kNone;
  }
  if (program_.is_joined(qkv)) still_keys(program_.parts_of(qkv).at(1), heads, scores);
  op(ops::kAttention, ops::AttentionValues<ValueId>{.qkv = qkv, .context = y}, params).attributes =
      with;
  return y;
}

Op* BlockBuilder::linear_before(ValueId value) {
  const int before = program_.producer_of(value);
  if (before == kNone) return nullptr;
  Op& op = program_.ops[static_cast<size_t>(before)];
  return op.def == &ops::kLinear ? &op : nullptr;
}

ValueId BlockBuilder::features(const std::string& name) {
  const StreamSpec& stream = model_.model_.streams.at(static_cast<size_t>(stream_));
  FERRY_CHECK(stream.feature_columns > 0, "'{}' has ids", stream.name);
  const ValueId y = value(name, {.stream = stream_}, stream.feature_columns);
  op(ops::kFeatures, ops::FeaturesValues<ValueId>{.y = y});
  return y;
}

ValueId BlockBuilder::table(const std::string& name, ParamId table) {
  const std::vector<int64_t> shape = shape_of_param(table);
  const ValueId y = value(name, Rows::constant(shape[0]), shape[1]);
  program_.values.back().type = DType::f32;
  op(ops::kTable, ops::TableValues<ValueId>{.y = y}, ops::TableParams<ParamId>{.table = table});
  return y;
}

ValueId BlockBuilder::cross_attention(const std::string& name,
                                      ValueId q,
                                      ValueId kv,
                                      ValueId bias,
                                      ops::CrossAttentionAttributes with) {
  const Rows &of_q = program_.value(q).rows, &of_kv = program_.value(kv).rows;
  with.kv_stream = of_kv.stream;
  const ops::DistanceBuckets& buckets = with.buckets;
  const int64_t least_buckets = buckets.both_ways ? 4 : 2;
  const bool has_bias = bias != kNone && columns_of(bias) == with.n_heads &&
                        program_.value(bias).rows == Rows::constant(buckets.n) &&
                        program_.value(bias).type == DType::f32 && buckets.n >= least_buckets;
  FERRY_CHECK(of_q == Rows{.stream = of_q.stream} && of_kv == Rows{.stream = of_kv.stream} &&
                  columns_of(kv) == 2 * columns_of(q) && columns_of(q) % with.n_heads == 0 &&
                  (bias == kNone ? buckets.n == 0 : has_bias),
              "'{}' is no attention of {} heads", name, with.n_heads);
  const ValueId y = like(name, q);
  op(ops::kCrossAttention,
     ops::CrossAttentionValues<ValueId>{.q = q, .kv = kv, .bias = bias, .context = y})
      .attributes = with;
  return y;
}

BlockBuilder::Routes BlockBuilder::route(ValueId logits, const ops::RouteAttributes& with) {
  Rows rows = program_.value(logits).rows;
  rows.factor = with.k;
  const auto add_value = [&](const std::string& name, const Rows& of, DType type) {
    const ValueId id = value(name, of, 1);
    program_.values.back().type = type;
    return id;
  };
  const ops::RouteValues<ValueId> values = {
      .logits = logits,
      .routes = add_value("routes", rows, DType::i32),
      .offsets = add_value("offsets", Rows::constant(with.n_experts + 1), DType::i32),
      .weights = add_value("weights", rows, DType::f32)};
  op(ops::kRoute, values).attributes = with;
  if (with.balance != 0) add_loss(logits);
  return {leave(values.routes), leave(values.offsets), leave(values.weights), with};
}

ValueId BlockBuilder::take_routed(const std::string& name,
                                  ValueId x,
                                  const Routes& routes,
                                  int64_t expert) {
  const Rows rows = {.kind = RowKind::routed,
                     .stream = program_.value(x).rows.stream,
                     .factor = routes.with.k,
                     .n_experts = routes.with.n_experts};
  const ops::TakeRoutedValues<ValueId> values = {.x = x,
                                                 .routes = read(routes.routes),
                                                 .offsets = read(routes.offsets),
                                                 .y = value(name, rows, columns_of(x))};
  op(ops::kTakeRouted, values).attributes = ops::RoutedAttributes{.expert = expert};
  return values.y;
}

void BlockBuilder::add_routed(ValueId x, const Routes& routes, int64_t expert) {
  const ops::AddRoutedValues<ValueId> values = {
      .x = x,
      .routes = read(routes.routes),
      .weights = read(routes.weights),
      .y = value("sum", model_.value(model_.hidden_).rows, columns_of(x))};
  op(ops::kAddRouted, values).attributes = ops::RoutedAttributes{.expert = expert};
  leave_output(values.y, PortUse::changes);
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

ValueId BlockBuilder::copy(const std::string& name, ValueId x) {
  const ValueId y = like(name, x);
  op(ops::kDropout, ops::DropoutValues<ValueId>{.x = x, .y = y}).attributes =
      ops::DropoutAttributes{};
  return y;
}

ValueId BlockBuilder::dropout(const std::string& name, ValueId x, float dropout, int random) {
  if (dropout == 0) return x;
  const ValueId y = like(name, x);
  op(ops::kDropout, ops::DropoutValues<ValueId>{.x = x, .y = y}).attributes =
      ops::DropoutAttributes{.dropout = dropout, .random = random};
  return y;
}

ValueId BlockBuilder::rows(const OpDef& def, const std::string& name, RowKind kind, ValueId x) {
  const ValueId y =
      value(name, {.kind = kind, .stream = program_.value(x).rows.stream}, columns_of(x));
  op(def, ops::RowsValues<ValueId>{.x = x, .y = y});
  return y;
}

ValueId BlockBuilder::first_rows(const std::string& name, ValueId x) {
  return rows(ops::kFirstRows, name, RowKind::sequences, x);
}

ValueId BlockBuilder::last_rows(const std::string& name, ValueId x) {
  return rows(ops::kLastRows, name, RowKind::sequences, x);
}

ValueId BlockBuilder::labelled_rows(const std::string& name, ValueId x) {
  return rows(ops::kLabelledRows, name, RowKind::labelled, x);
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

void BlockBuilder::add_loss(ValueId of) {
  FERRY_CHECK(!table_.has_loss, "'{}' has two losses", table_.name);
  FERRY_CHECK(program_.value(of).rows.stream == 0, "'{}' has a loss of a stream without labels",
              table_.name);
  table_.has_loss = true;
}

void BlockBuilder::label_loss(ValueId logits) {
  add_loss(logits);
  op(ops::kLabelLoss, ops::LabelLossValues<ValueId>{.logits = logits});
}

void BlockBuilder::span_loss(ValueId logits) {
  add_loss(logits);
  op(ops::kSpanLoss, ops::SpanLossValues<ValueId>{.logits = logits});
}

void BlockBuilder::vocabulary_loss(ValueId t,
                                   ParamId word,
                                   ParamId bias,
                                   const ops::LogitsRule& rule) {
  if (word == kInPieces) return end_in_pieces(t, bias, rule);
  add_loss(t);
  op(ops::kVocabularyLoss, ops::VocabularyValues<ValueId>{.t = t},
     ops::VocabularyParams<ParamId>{.word = word, .bias = bias})
      .attributes = ops::VocabularyAttributes{.rule = rule};
}

void BlockBuilder::recompute(ValueId value) {
  if (!program_.is_joined(value)) program_.values[value].recomputed = true;
}

}  // namespace ferry
