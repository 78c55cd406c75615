#include "models/adapters/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "models/adapters/block_editor.h"
#include "models/core/compile.h"
#include "models/core/operation.h"
#include "models/core/random_sites.h"
#include "models/ops/add/add_op.h"
#include "models/ops/dora/dora_op.h"
#include "models/ops/dropout/dropout_op.h"
#include "models/ops/linear/linear_op.h"
#include "models/ops/low_rank/low_rank_op.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Tensors of one matrix whose adapters are alike. */
struct Group {
  LoraOfModule lora;
  std::vector<const HfEntry*> tensors;
  ParamId a = kNone, b = kNone;
};

/** Writes the adapters of one block. */
class BlockAdapter {
 public:
  BlockAdapter(ModelTable& model, int block, const Lora& lora)
      : editor_(model, block), lora_(lora) {}

  void run() {
    for (const Op& op : std::vector<Op>(editor_.program().ops)) {
      if (editor_.is_own_linear(op))
        adapt(op);
      else
        editor_.ops.push_back(op);
    }
    editor_.finish();
  }

 private:
  std::vector<Group> groups_of(ParamId weight) const {
    std::vector<Group> groups;
    for (const HfEntry* tensor : editor_.tensors_of(weight)) {
      const auto its = tensor->is_delta ? std::nullopt : lora_.of(module_of(*tensor));
      if (!its) continue;
      auto found = std::ranges::find(groups, *its, &Group::lora);
      if (found == groups.end()) found = groups.insert(found, {.lora = *its, .tensors = {}});
      found->tensors.push_back(tensor);
    }
    return groups;
  }

  void adapt(const Op& op) {
    std::vector<Group> groups = groups_of(params_of<ops::LinearParams>(op).weight);
    if (groups.empty()) return editor_.ops.push_back(op);
    refuse_shared_layer(op);
    if (lora_.dora)
      scale(op, groups);
    else
      add_to(op, groups);
  }

  /** y = W x + b + s B A dropout(x). */
  void add_to(const Op& op, std::vector<Group>& groups) {
    auto values = values_of<ops::LinearValues>(op);
    const ValueId y = values.y;
    const std::string name = editor_.program().value(y).name;
    values.y = editor_.like(name + ".frozen", y);
    editor_.ops.push_back(
        make_op(ops::kLinear, values, params_of<ops::LinearParams>(op), op.attributes));
    add_all(op, groups, {.base = values.y, .h = dropped(values.x, name), .y = y});
  }

  /** The adapters of all groups, which read `values.h`. */
  void add_all(const Op& op, std::vector<Group>& groups, ops::LowRankValues<ValueId> values) {
    const ValueId y = values.y;
    for (Group& group : groups) {
      const bool is_last = &group == &groups.back();
      values.y =
          is_last ? y : editor_.like(fmt::format("{}.adapted", editor_.program().value(y).name), y);
      add(group, params_of<ops::LinearParams>(op).weight, op.with<ops::LinearAttributes>().factor,
          values);
      values.base = values.y;
    }
  }

  /** y = g (W + s B A) x + b; with dropout y = W x + b + (g (W + s B A) - W) dropout(x). */
  void scale(const Op& op, std::vector<Group>& groups) {
    const auto values = values_of<ops::LinearValues>(op);
    auto params = params_of<ops::LinearParams>(op);
    const auto& with = op.with<ops::LinearAttributes>();
    const std::string name = editor_.program().value(values.y).name;
    FERRY_CHECK(editor_.program().value(values.y).whole == kNone, "{} is a part of a value", name);
    const bool drops = lora_.dropout > 0;
    ops::DoraValues<ValueId> scaled = {.v = editor_.like(name + ".adapted", values.y),
                                       .scale = kNone,
                                       .base = kNone,
                                       .plain = kNone,
                                       .y = values.y};
    if (drops) {
      scaled.base = editor_.like(name + ".frozen", values.y);
      editor_.ops.push_back(make_op(
          ops::kLinear,
          ops::LinearValues<ValueId>{.x = values.x, .residual = values.residual, .y = scaled.base},
          params, op.attributes));
    }
    const ValueId x = dropped(values.x, name), plain = editor_.like(name + ".plain", values.y);
    editor_.ops.push_back(
        make_op(ops::kLinear, ops::LinearValues<ValueId>{.x = x, .residual = kNone, .y = plain},
                ops::LinearParams<ParamId>{.weight = params.weight, .bias = kNone},
                ops::LinearAttributes{.factor = with.factor}));
    add_all(op, groups, {.base = plain, .h = x, .y = scaled.v});
    for (Group& group : groups)
      scaled.scale = add_scale(group, params.weight, scaled.scale, name);
    if (drops) {
      scaled.plain = plain;
      params.bias = kNone;
    } else if (values.residual != kNone) {
      scaled.y = editor_.like(name + ".scaled", values.y);
    }
    editor_.ops.push_back(make_op(ops::kDora, scaled, ops::DoraParams<ParamId>{.bias = params.bias},
                                  ops::DoraAttributes{.bias_factor = with.factor,
                                                      .sums_bias = with.sums_bias,
                                                      .first_key = with.keys.first,
                                                      .n_keys = with.keys.n}));
    if (!drops && values.residual != kNone)
      editor_.ops.push_back(make_op(
          ops::kAdd, ops::AddValues<ValueId>{.a = scaled.y, .b = values.residual, .y = values.y}));
  }

  /** The parts of a group's matrices. */
  static std::vector<ops::LowRankPart> parts_of(const Group& group) {
    std::vector<ops::LowRankPart> parts;
    for (const HfEntry* tensor : group.tensors)
      parts.push_back({tensor->row_begin, tensor->rows});
    return parts;
  }
  static int64_t rows_of(const Group& group) {
    int64_t rows = 0;
    for (const HfEntry* tensor : group.tensors)
      rows += tensor->rows;
    return rows;
  }

  /** A and B of a group; `values.h` is what A reads. */
  void add(Group& group, ParamId weight, float factor, ops::LowRankValues<ValueId> values) {
    const int64_t n = std::ssize(group.tensors), rank = group.lora.rank;
    const ParamSpec& spec = editor_.table().params[weight];
    const std::string stem = fmt::format("{}.lora{}", spec.name, n_of_weight_[weight]++);
    const int64_t inner = spec.shape[1];
    group.a = editor_.add_param(stem + ".a", {n * rank, inner}, /*decay=*/true, Init::fan_in);
    group.b = editor_.add_param(stem + ".b", {rows_of(group), rank}, /*decay=*/true, Init::zeros);
    int64_t row_of_a = 0, row_of_b = 0;
    for (const HfEntry* tensor : group.tensors) {
      name(group.a, *tensor, kLoraA, std::exchange(row_of_a, row_of_a + rank), {rank, inner});
      name(group.b, *tensor, kLoraB, std::exchange(row_of_b, row_of_b + tensor->rows),
           {tensor->rows, rank})
          .groups = tensor->groups;
    }
    const Value its = editor_.program().value(values.h);
    const ValueId x = std::exchange(
        values.h, editor_.add_value({.name = editor_.program().value(values.y).name + ".lora",
                                     .rows = its.rows,
                                     .columns = n * rank,
                                     .type = its.type}));
    editor_.ops.push_back(make_op(
        ops::kLinear, ops::LinearValues<ValueId>{.x = x, .residual = kNone, .y = values.h},
        ops::LinearParams<ParamId>{.weight = group.a, .bias = kNone}, ops::LinearAttributes{}));
    editor_.ops.push_back(make_op(
        ops::kLowRank, values, ops::LowRankParams<ParamId>{.weight = group.b},
        ops::LowRankAttributes{.factor = factor * group.lora.factor, .parts = parts_of(group)}));
  }

  /** The lengths of a group's rows; `before`: the scale of other rows, or kNone. */
  ValueId add_scale(const Group& group,
                    ParamId weight,
                    ValueId before,
                    const std::string& value_name) {
    const ParamSpec& spec = editor_.table().params[weight];
    const int64_t rows = spec.shape[0], inner = spec.shape[1];
    const ParamId m = editor_.add_param(
        fmt::format("{}.magnitude{}", spec.name, n_scales_of_weight_[weight]++), {rows_of(group)},
        /*decay=*/false, Init::ones);  // set to the rows' norms where files are read
    int64_t row = 0;
    for (const HfEntry* tensor : group.tensors)
      name(m, *tensor, kLoraMagnitude, std::exchange(row, row + tensor->rows), {tensor->rows})
          .groups = tensor->groups;
    const ValueId scale = editor_.add_value({.name = value_name + ".scale",
                                             .rows = Rows::constant(2),
                                             .columns = rows,
                                             .type = DType::f32});
    editor_.ops.push_back(make_op(
        ops::kDoraScale, ops::DoraScaleValues<ValueId>{.before = before, .scale = scale},
        ops::DoraScaleParams<ParamId>{.weight = weight, .a = group.a, .b = group.b, .magnitude = m},
        ops::DoraScaleAttributes{.factor = group.lora.factor,
                                 .columns = inner,
                                 .rank = group.lora.rank,
                                 .parts = parts_of(group)}));
    return scale;
  }

  /** The rows of a new parameter from `row` on are a tensor of the adapter's file. */
  HfEntry& name(ParamId added,
                const HfEntry& of,
                std::string_view part,
                int64_t row,
                std::vector<int64_t> shape) {
    return editor_.name_rows(added, fmt::format("{}{}{}", kPeftPrefix, module_of(of), part), row,
                             std::move(shape));
  }

  /** The input of A: dropout comes before A alone. */
  ValueId dropped(ValueId x, const std::string& name) {
    if (lora_.dropout == 0) return x;
    const int site = kAdapterSite + n_dropouts_++;
    FERRY_CHECK(editor_.program().value(x).whole == kNone && site < kRandomSites_max,
                "no dropout before {}.{}", editor_.table().name, name);
    const ValueId y = editor_.like(name + ".dropped", x);
    editor_.ops.push_back(
        make_op(ops::kDropout, ops::DropoutValues<ValueId>{.x = x, .y = y}, {},
                ops::DropoutAttributes{.dropout = lora_.dropout, .random = site}));
    return y;
  }

  BlockEditor editor_;
  const Lora& lora_;
  /** Groups of a matrix that have their adapters, and their lengths. */
  std::map<ParamId, int> n_of_weight_, n_scales_of_weight_;
  int n_dropouts_ = 0;
};

}  // namespace

std::string adapted_module_of(const HfEntry& entry) {
  std::string_view name = entry.hf_name;
  const std::string_view prefix = kPeftPrefix;
  for (const std::string_view end : {kLoraA, kLoraB, kLoraMagnitude})
    if (name.starts_with(prefix) && name.ends_with(end))
      return std::string(name.substr(prefix.size(), name.size() - prefix.size() - end.size()));
  return {};
}

std::vector<std::string> linear_modules(const ModelTable& model) {
  return modules_of_maps(model, [](const BlockTable&, const Op&) { return true; });
}

void add_lora(ModelTable& model, const Lora& lora) {
  freeze_model(model, lora.is_whole);
  for (int b = 0; b < static_cast<int>(model.blocks.size()); ++b)
    BlockAdapter(model, b, lora).run();
  plan_frozen(model);
}

}  // namespace ferry
