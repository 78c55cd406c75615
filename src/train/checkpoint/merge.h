#pragma once
// A model with an adapter becomes a model without one: W + s B A in place of W, with DoRA each row
// of its length. Torch-free.

#include <filesystem>
#include <optional>

#include "src/base/dtype.h"
#include "src/files/hf/hf_directory.h"

namespace ferry {

/** The weights of a directory with an adapter, merged, under the names that transformers writes;
 * `dtype`: none: each tensor keeps its type. The sum is of fp32 and rounded once. All is read back
 * and compared. Takes the memory of the adapter and of some megabytes. */
void write_merged(const HfDirectory& model,
                  std::optional<DType> dtype,
                  const std::filesystem::path& to);

}  // namespace ferry
