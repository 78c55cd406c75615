#include "models/core/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/core/operation.h"
#include "src/base/error.h"

namespace ferry {
namespace {

ScratchNeed scratch_of(const CompiledBlock& block, const BatchShape& shape) {
  const auto laid_out = [&](const PassPlan& pass) {
    return lay_out(pass, block.plan, block.program, block.target, shape);
  };
  const PassScratch forward = laid_out(block.plan.forward),
                    backward = laid_out(block.plan.backward),
                    recompute = laid_out(block.plan.recompute);
  return {.forward_bytes = std::max(forward.n_bytes, recompute.n_bytes),
          .backward_bytes = backward.n_bytes,
          .library_bytes = std::max(forward.library_bytes, backward.library_bytes)};
}

BlockWork work_of(const CompiledBlock& block, const PassPlan& pass, const BatchShape& shape) {
  BlockWork work;
  for (const Call& call : pass.calls) {
    const Op& op = block.plan.op_of(block.program, call);
    op.def->add_work(work, {block.program, op, block.target, shape}, call);
  }
  return work;
}

/** The program with the operations that have no kernels for it written in others. */
BlockProgram composed(BlockProgram program, const ProgramTarget& target) {
  std::vector<Op> ops;
  Composition into = {program, ops};
  for (const Op& op : std::vector<Op>(program.ops)) {
    const OpDef& def = *op.def;
    const bool lacks = def.lacks_kernels && def.lacks_kernels(op, target);
    if (def.compose && (lacks || target.composes_all))
      def.compose(into, op);
    else
      ops.push_back(op);
  }
  program.ops = std::move(ops);
  return program;
}

}  // namespace

bool may_be_graph(const CompiledBlock& block) {
  return std::ranges::all_of(block.program.ops, [&](const Op& op) {
    return !op.def->may_be_graph || op.def->may_be_graph({block.program, op, block.target, {}});
  });
}

std::vector<SavedSpec> saved_of(const CompiledBlock& block, const BatchShape& shape) {
  std::vector<SavedSpec> specs;
  for (const SavedTensor& saved : block.plan.saved) {
    if (saved.value == kNone) {
      const Op& op = block.program.op(saved.op);
      const OpCase its = {block.program, op, block.target, shape};
      specs.push_back(op.def->states(its)[static_cast<size_t>(saved.state)]);
      continue;
    }
    const Value& value = block.program.value(saved.value);
    std::vector<int64_t> sizes = {rows_of(value.rows, shape), value.columns};
    if (value.by_column) std::ranges::reverse(sizes);
    specs.push_back({value.name, sizes, value.type, value.recomputed});
  }
  return specs;
}

void compile(BlockProgram program, const ProgramTarget& target, BlockTable& table) {
  auto compiled = std::make_shared<CompiledBlock>();
  compiled->program = composed(std::move(program), target);
  compiled->plan = plan_passes(compiled->program, target);
  compiled->target = target;
  const std::shared_ptr<const CompiledBlock> block = std::move(compiled);
  table.compiled = block;
  table.ports = block->program.ports;
  table.saved = [block](const BatchShape& shape) { return saved_of(*block, shape); };
  table.scratch = [block](const BatchShape& shape) { return scratch_of(*block, shape); };
  table.work = [block](const BatchShape& shape, bool backward) {
    return work_of(*block, backward ? block->plan.backward : block->plan.forward, shape);
  };
  if (!block->plan.recompute.calls.empty())
    table.recompute_work = [block](const BatchShape& shape) {
      return work_of(*block, block->plan.recompute, shape);
    };
}

void plan_frozen(ModelTable& model) {
  for (BlockTable& block : model.blocks) {
    block.arrange();
    std::vector<bool> frozen;
    for (const ParamSpec& param : block.params)
      frozen.push_back(!param.trainable);
    for (const BorrowedParam& of : block.borrowed)
      frozen.push_back(!model.blocks[of.block].params[of.param].trainable);
    if (std::ranges::find(frozen, true) == frozen.end()) frozen.clear();
    ProgramTarget target = block.compiled->target;
    if (target.frozen == frozen) continue;
    target.frozen = std::move(frozen);
    compile(BlockProgram(block.compiled->program), target, block);
  }
}

bool may_be_stored(const ModelTable& model, int block, int param, const MatrixStorage& storage) {
  const BlockTable& table = model.blocks[block];
  const ParamSpec& spec = table.params[param];
  if (spec.trainable || spec.shape.size() != 2 || model.sharing.tp_size > 1) return false;
  const std::vector<RowStorage> parts = storage.parts(spec.shape[0]);
  for (const RowStorage& part : parts)
    if (spec.shape[1] % columns_multiple(part.storage) != 0 ||
        (parts.size() > 1 && !is_quantised(part.storage)))
      return false;
  const auto reads = [&](const Op& op) {
    return std::ranges::find(op.params, param) != op.params.end();
  };
  const auto borrows = [&](const BlockTable& user) {
    return std::ranges::any_of(user.borrowed, [&](const BorrowedParam& of) {
      return of.block == block && of.param == param;
    });
  };
  return std::ranges::none_of(table.compiled->program.ops,
                              [&](const Op& op) { return reads(op) && !op.def->reads_stored; }) &&
         std::ranges::none_of(model.blocks, borrows);
}

void set_storage(ModelTable& model, int block, int param, const MatrixStorage& storage) {
  FERRY_CHECK(may_be_stored(model, block, param, storage), "{}.{} as {}", model.blocks[block].name,
              model.blocks[block].params[param].name, storage.name());
  BlockTable& table = model.blocks[block];
  ParamSpec& spec = table.params[param];
  spec.storage = storage;
  const auto element_bytes = static_cast<int64_t>(size_of(model.compute));
  spec.n_elements = (spec.stored(model.compute).back().end + element_bytes - 1) / element_bytes;
  table.arrange();
  ProgramTarget target = table.compiled->target;
  target.storages.resize(table.params.size());
  target.storages[static_cast<size_t>(param)] = storage;
  compile(BlockProgram(table.compiled->program), target, table);
}

}  // namespace ferry
