#pragma once
// A block's passes by names, for people: what runs, on which tensors. Torch-free.

#include <string>

#include "models/core/tensor_table.h"

namespace ferry {

/** The calls of the block's forward, backward and recompute pass, a line each: the operation, its
 * part, its operands by name, its parameters and what it keeps. "d(x)" is the gradient of x; saved
 * tensors stand in brackets. Memory that is used again has the name of the value that it was taken
 * for. Then the saved tensors. */
std::string describe(const BlockTable& block);

}  // namespace ferry
