#include "models/adapters/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "models/core/compile.h"
#include "models/core/operation.h"
#include "models/core/random_sites.h"
#include "models/ops/dropout/dropout_op.h"
#include "models/ops/linear/linear_op.h"
#include "models/ops/low_rank/low_rank_op.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** The tensors of the file that are the matrix of a linear map. */
std::vector<const HfEntry*> tensors_of(const ModelTable& model, int block, ParamId weight) {
  std::vector<const HfEntry*> tensors;
  for (const HfEntry& entry : model.hf_names)
    if (entry.block == block && entry.param == weight) tensors.push_back(&entry);
  return tensors;
}

/** A linear map whose matrix is one of the block's n_own parameters, not a borrowed one. */
bool is_own_linear(const Op& op, ParamId n_own) {
  return op.def == &ops::kLinear && params_of<ops::LinearParams>(op).weight < n_own;
}

/** Tensors of one matrix whose adapters are alike. */
struct Group {
  LoraOfModule lora;
  std::vector<const HfEntry*> tensors;
};

/** Writes the adapters of one block. */
class BlockAdapter {
 public:
  BlockAdapter(ModelTable& model, int block, const Lora& lora)
      : model_(model),
        block_(block),
        table_(model.blocks[block]),
        lora_(lora),
        program_(table_.compiled->program),
        n_own_(static_cast<ParamId>(table_.params.size())) {}

  void run() {
    std::vector<Op> ops;
    for (const Op& op : std::vector<Op>(program_.ops)) {
      if (is_own_linear(op, n_own_))
        adapt(op, ops);
      else
        ops.push_back(op);
    }
    if (n_added_ == 0) return;
    for (Op& op : ops)
      for (ParamId& param : op.params)
        if (param >= kAdded)
          param += n_own_ - kAdded;
        else if (param >= n_own_)
          param += n_added_;  // borrowed parameters follow the block's own
    program_.ops = std::move(ops);
    const ProgramTarget target = table_.compiled->target;
    compile(std::move(program_), target, table_);
    std::ranges::move(entries_, std::back_inserter(model_.hf_names));
  }

 private:
  /** Added parameters have numbers from here on until they are all there. */
  static constexpr ParamId kAdded = 1 << 16;

  std::vector<Group> groups_of(ParamId weight) const {
    std::vector<Group> groups;
    for (const HfEntry* tensor : tensors_of(model_, block_, weight)) {
      const auto its = tensor->is_delta ? std::nullopt : lora_.of(module_of(*tensor));
      if (!its) continue;
      auto found = std::ranges::find(groups, *its, &Group::lora);
      if (found == groups.end()) found = groups.insert(found, {*its, {}});
      found->tensors.push_back(tensor);
    }
    return groups;
  }

  void adapt(const Op& op, std::vector<Op>& ops) {
    auto values = values_of<ops::LinearValues>(op);
    const auto params = params_of<ops::LinearParams>(op);
    const auto& with = op.with<ops::LinearAttributes>();
    const std::vector<Group> groups = groups_of(params.weight);
    if (groups.empty()) return void(ops.push_back(op));
    if (with.rows.n > 0 || with.columns.n > 0)
      throw Error(Fault::usage, "config.tp_size",
                  "GPUs that share the layers (tp_size) train no adapters yet",
                  "leave tp_size out: GPUs share the samples, the blocks or the tokens");
    const ValueId y = values.y;
    const std::string name = program_.value(y).name;
    values.y = like(name + ".frozen", y);
    ops.push_back(make_op(ops::kLinear, values, params, op.attributes));
    const ValueId x = dropped(values.x, name, ops);
    ValueId base = values.y;
    for (const Group& group : groups) {
      const bool is_last = &group == &groups.back();
      const ValueId sum = is_last ? y : like(fmt::format("{}.adapted", name), y);
      add(group, params.weight, with.factor, {.base = base, .h = x, .y = sum}, ops);
      base = sum;
    }
  }

  /** A and B of a group; `values.h` is what A reads. */
  void add(const Group& group,
           ParamId weight,
           float factor,
           ops::LowRankValues<ValueId> values,
           std::vector<Op>& ops) {
    const int64_t n = std::ssize(group.tensors), rank = group.lora.rank;
    const std::string stem =
        fmt::format("{}.lora{}", table_.params[weight].name, n_of_weight_[weight]++);
    const int64_t inner = table_.params[weight].shape[1];
    ops::LowRankAttributes with = {.factor = factor * group.lora.factor, .parts = {}};
    int64_t rows = 0;
    for (const HfEntry* tensor : group.tensors) {
      with.parts.push_back({tensor->row_begin, tensor->rows});
      rows += tensor->rows;
    }
    const ParamId a = add_param(stem + ".a", {n * rank, inner}, Init::fan_in),
                  b = add_param(stem + ".b", {rows, rank}, Init::zeros);
    int64_t row_of_a = 0, row_of_b = 0;
    for (const HfEntry* tensor : group.tensors) {
      name(a, *tensor, kLoraA, std::exchange(row_of_a, row_of_a + rank), {rank, inner}, {});
      name(b, *tensor, kLoraB, std::exchange(row_of_b, row_of_b + tensor->rows),
           {tensor->rows, rank}, tensor->groups);
    }
    const Value its = program_.value(values.h);
    const ValueId x =
        std::exchange(values.h, add_value({.name = program_.value(values.y).name + ".lora",
                                           .rows = its.rows,
                                           .columns = n * rank,
                                           .type = its.type}));
    ops.push_back(make_op(
        ops::kLinear, ops::LinearValues<ValueId>{.x = x, .residual = kNone, .y = values.h},
        ops::LinearParams<ParamId>{.weight = kAdded + a, .bias = kNone}, ops::LinearAttributes{}));
    ops.push_back(make_op(ops::kLowRank, values, ops::LowRankParams<ParamId>{.weight = kAdded + b},
                          std::move(with)));
  }

  /** The number of a new parameter among those that are added. */
  ParamId add_param(const std::string& name, std::vector<int64_t> shape, Init init) {
    table_.add(name, std::move(shape), /*decay=*/true, init);
    return n_added_++;
  }

  /** The rows of a new parameter from `row` on are a tensor of the adapter's file. */
  void name(ParamId added,
            const HfEntry& of,
            std::string_view part,
            int64_t row,
            std::vector<int64_t> shape,
            const HfRowGroups& groups) {
    HfEntry entry;
    entry.hf_name = fmt::format("{}{}{}", kPeftPrefix, module_of(of), part);
    entry.block = block_;
    entry.param = n_own_ + added;
    entry.row_begin = row;
    entry.rows = shape[0];
    entry.hf_shape = std::move(shape);
    entry.optional = entry.is_delta = true;
    entry.groups = groups;
    entries_.push_back(std::move(entry));
  }

  /** The input of A: dropout comes before A alone. */
  ValueId dropped(ValueId x, const std::string& name, std::vector<Op>& ops) {
    if (lora_.dropout == 0) return x;
    const int site = kAdapterSite + n_dropouts_++;
    FERRY_CHECK(program_.value(x).whole == kNone && site < kRandomSites_max,
                "no dropout before {}.{}", table_.name, name);
    const ValueId y = like(name + ".dropped", x);
    ops.push_back(make_op(ops::kDropout, ops::DropoutValues<ValueId>{.x = x, .y = y}, {},
                          ops::DropoutAttributes{.dropout = lora_.dropout, .random = site}));
    return y;
  }

  ValueId like(const std::string& name, ValueId value) {
    const Value its = program_.value(value);
    return add_value({.name = name, .rows = its.rows, .columns = its.columns, .type = its.type});
  }
  ValueId add_value(Value value) {
    program_.values.push_back(std::move(value));
    return static_cast<ValueId>(program_.values.size()) - 1;
  }

  ModelTable& model_;
  int block_;
  BlockTable& table_;
  const Lora& lora_;
  BlockProgram program_;
  ParamId n_own_;
  std::vector<HfEntry> entries_;
  std::map<ParamId, int> n_of_weight_;  ///< groups of a matrix that have their adapters
  ParamId n_added_ = 0;
  int n_dropouts_ = 0;
};

/** Freezes every parameter that is not trained whole, and gives the others PEFT's names. */
void freeze(ModelTable& model, const Lora& lora) {
  for (HfEntry& entry : model.hf_names) {
    entry.is_delta = lora.is_whole(entry);
    model.blocks[entry.block].params[entry.param].trainable = entry.is_delta;
    if (!entry.is_delta) continue;
    entry.also_named.insert(entry.also_named.begin(), entry.hf_name);
    entry.hf_name = kPeftPrefix + entry.hf_name;
  }
}

}  // namespace

std::string module_of(const HfEntry& entry) {
  constexpr std::string_view kWeight = ".weight";
  std::string name = entry.hf_name;
  if (name.ends_with(kWeight)) name.resize(name.size() - kWeight.size());
  return name;
}

std::vector<std::string> linear_modules(const ModelTable& model) {
  std::vector<std::string> modules;
  for (int b = 0; b < static_cast<int>(model.blocks.size()); ++b) {
    const BlockTable& block = model.blocks[b];
    for (const Op& op : block.compiled->program.ops) {
      if (!is_own_linear(op, static_cast<ParamId>(block.params.size()))) continue;
      const ParamId weight = params_of<ops::LinearParams>(op).weight;
      for (const HfEntry* tensor : tensors_of(model, b, weight))
        modules.push_back(module_of(*tensor));
    }
  }
  return modules;
}

void add_lora(ModelTable& model, const Lora& lora) {
  freeze(model, lora);
  model.has_deltas = true;
  for (int b = 0; b < static_cast<int>(model.blocks.size()); ++b)
    BlockAdapter(model, b, lora).run();
  plan_frozen(model);
}

}  // namespace ferry
