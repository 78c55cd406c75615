#pragma once
// Derives a block's entry of the tensor table from its program: saved tensors, scratch, work, and
// the passes that its code runs. Torch-free.

#include "models/core/pass_plan.h"

namespace ferry {

struct CompiledBlock {
  BlockProgram program;
  ProgramTarget target;
  BlockPlan plan;
};

/** Fills in everything of the table but its parameters. */
void compile(BlockProgram program, const ProgramTarget& target, BlockTable& table);

/** Arranges the blocks, and plans each anew that has other frozen parameters than it was planned
 * with: what the gradients of frozen matrices would read is not kept. To be called when
 * ParamSpec::trainable has changed. */
void plan_frozen(ModelTable& model);

/** True of a frozen matrix that linear maps of its block alone read. */
bool may_be_stored(const ModelTable& model, int block, int param, const MatrixStorage& storage);

/** Stores a frozen matrix of a block in another way, arranges the block again and compiles it.
 * FERRY_CHECK fails where it may not be. */
void set_storage(ModelTable& model, int block, int param, const MatrixStorage& storage);

/** False where calls depend on the length of each sequence: scores with a soft cap on a GPU. */
bool may_be_graph(const CompiledBlock& block);

/** The tensors that the block's forward leaves, with room for micro-batches up to the shape. */
std::vector<SavedSpec> saved_of(const CompiledBlock& block, const BatchShape& shape);

}  // namespace ferry
