#pragma once
// Rewrites the program of a block of a finished table: adapters put operations beside or behind the
// block's own, with new parameters that an adapter's files have. Torch-free.
//
//   BlockEditor editor(model, block);
//   for (const Op& op : std::vector<Op>(editor.program().ops)) ...  // editor.ops takes the new
//   ones editor.finish();

#include <functional>
#include <string>
#include <vector>

#include "models/core/block_program.h"
#include "models/core/operation.h"
#include "models/ops/linear/linear_op.h"

namespace ferry {

/** Throws Error(usage) where ranks share the linear map. */
void refuse_shared_layer(const Op& linear);

/** The modules of the linear maps of a model's blocks for which `is` holds, by module_of(). */
std::vector<std::string> modules_of_maps(
    const ModelTable& model,
    const std::function<bool(const BlockTable& block, const Op& linear)>& is);

class BlockEditor {
 public:
  BlockEditor(ModelTable& model, int block);

  const BlockProgram& program() const { return program_; }
  BlockTable& table() { return table_; }
  int block() const { return block_; }
  const ModelTable& model() const { return model_; }
  /** True of a linear map whose matrix is one of the block's parameters, not a borrowed one. */
  bool is_own_linear(const Op& op) const;
  /** The tensors of the file that are the parameter. */
  std::vector<const HfEntry*> tensors_of(ParamId param) const;

  /** Adds a parameter that is trained; returns what operations name it by until finish(). */
  ParamId add_param(const std::string& name,
                    std::vector<int64_t> shape,
                    bool decay,
                    Init init = Init::normal);
  ParamSpec& spec_of(ParamId added);
  /** Rows of an added parameter from `row` on, as many as the shape has, are a tensor of the
   * adapter's file. */
  HfEntry& name_rows(ParamId added, std::string hf_name, int64_t row, std::vector<int64_t> shape);

  ValueId like(const std::string& name, ValueId value);
  ValueId add_value(Value value);

  /** Compiles the block anew with `ops`. Does nothing where no parameter was added. */
  void finish();

  std::vector<Op> ops;  ///< the new program's

 private:
  /** Added parameters have numbers from here on until they are all there. */
  static constexpr ParamId kAdded = 1 << 16;

  ModelTable& model_;
  int block_;
  BlockTable& table_;
  BlockProgram program_;
  ParamId n_own_, n_added_ = 0;
  std::vector<HfEntry> entries_;
};

}  // namespace ferry
