#pragma once
// A parameter that a block gets beside the parameters of its family. Torch-free.

#include <string>
#include <vector>

#include "models/core/block_program.h"
#include "models/core/tensor_table.h"

namespace ferry {

struct AddedParam {
  std::string name;            ///< inside the block
  std::vector<int64_t> shape;  ///< row-major
  std::string hf_name;
  RowsInit start;
  bool is_delta = false;  ///< it is saved as a part of an adapter
};

/** Adds a parameter to the block and its tensor to the model's names. Parameters that the program
 * borrows get other numbers. The block is to be compiled again. */
ParamId add_param(ModelTable& model, int block, BlockProgram& program, AddedParam added);

}  // namespace ferry
