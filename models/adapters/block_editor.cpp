#include "models/adapters/block_editor.h"

#include <algorithm>
#include <utility>

#include "models/adapters/adapted_model.h"
#include "models/core/compile.h"
#include "src/base/error.h"

namespace ferry {

void refuse_shared_layer(const Op& linear) {
  const auto& with = linear.with<ops::LinearAttributes>();
  if (with.rows.n == 0 && with.columns.n == 0) return;
  throw Error(Fault::usage, "config.tp_size",
              "GPUs that share the layers (tp_size) train no adapters yet",
              "leave tp_size out: GPUs share the samples, the blocks or the tokens");
}

std::vector<std::string> modules_of_maps(
    const ModelTable& model,
    const std::function<bool(const BlockTable& block, const Op& linear)>& is) {
  std::vector<std::string> modules;
  for (int b = 0; b < std::ssize(model.blocks); ++b)
    for (const Op& op : model.blocks[b].compiled->program.ops) {
      if (op.def != &ops::kLinear || !is(model.blocks[b], op)) continue;
      const ParamId weight = params_of<ops::LinearParams>(op).weight;
      for (const HfEntry& entry : model.hf_names)
        if (entry.block == b && entry.param == weight) modules.push_back(module_of(entry));
    }
  return modules;
}

BlockEditor::BlockEditor(ModelTable& model, int block)
    : model_(model),
      block_(block),
      table_(model.blocks[block]),
      program_(table_.compiled->program),
      n_own_(static_cast<ParamId>(table_.params.size())) {}

bool BlockEditor::is_own_linear(const Op& op) const {
  return op.def == &ops::kLinear && params_of<ops::LinearParams>(op).weight < n_own_;
}

std::vector<const HfEntry*> BlockEditor::tensors_of(ParamId param) const {
  std::vector<const HfEntry*> tensors;
  for (const HfEntry& entry : model_.hf_names)
    if (entry.block == block_ && entry.param == param) tensors.push_back(&entry);
  return tensors;
}

ParamId BlockEditor::add_param(const std::string& name,
                               std::vector<int64_t> shape,
                               bool decay,
                               Init init) {
  table_.add(name, std::move(shape), decay, init);
  return kAdded + n_added_++;
}

ParamSpec& BlockEditor::spec_of(ParamId added) {
  return table_.params[n_own_ + added - kAdded];
}

HfEntry& BlockEditor::name_rows(ParamId added,
                                std::string hf_name,
                                int64_t row,
                                std::vector<int64_t> shape) {
  HfEntry entry;
  entry.hf_name = std::move(hf_name);
  entry.block = block_;
  entry.param = n_own_ + added - kAdded;
  entry.row_begin = row;
  entry.rows = shape[0];
  entry.hf_shape = std::move(shape);
  entry.optional = entry.is_delta = true;
  return entries_.emplace_back(std::move(entry));
}

ValueId BlockEditor::like(const std::string& name, ValueId value) {
  const Value its = program_.value(value);
  return add_value({.name = name, .rows = its.rows, .columns = its.columns, .type = its.type});
}

ValueId BlockEditor::add_value(Value value) {
  program_.values.push_back(std::move(value));
  return static_cast<ValueId>(program_.values.size()) - 1;
}

void BlockEditor::finish() {
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

}  // namespace ferry
