#pragma once
// A model as a GGUF file for llama.cpp has it: keys and tensors, their names and the order of their
// rows. gguf_export.cpp writes a file by it and compares the file with it. Torch-free.

#include <cstdint>
#include <string>
#include <vector>

#include "src/files/gguf/gguf_writer.h"
#include "src/files/hf/hf_directory.h"

namespace ferry {

/** The order of a tensor's rows in the file, beside the model's order. */
enum class GgufRows : uint8_t {
  same,
  /** The model turns halves of each head against each other, the file neighbours: of a head of n
   * rows, i and i + n / 2 are 2 i and 2 i + 1 there. */
  neighbours,
  /** The model has query, key and value of each head together, the file all queries, then all keys,
   * then all values. */
  parts,
};

/** A tensor of the file. A vector has rows of one element. */
struct GgufSource {
  GgufTensorSpec spec;
  const StoredTensor* stored = nullptr;  ///< null: `values` has all of it
  std::vector<float> values;
  bool transposed = false;  ///< `stored` is (columns, rows)
  GgufRows order = GgufRows::same;
  int64_t head_rows = 0;  ///< of one head, of the orders that ask for it
  float offset = 0;       ///< is added to each element

  bool is_vector() const { return spec.shape.size() == 1; }
  int64_t n_rows() const { return spec.shape.front(); }
  int64_t n_columns() const { return is_vector() ? 1 : spec.shape.back(); }
};

struct GgufModel {
  GgufKeys keys;
  std::vector<GgufSource> tensors;
};

/** `weights`: of the model, an adapter merged; they outlive the result. `type`: of the matrices.
 * `name`: general.name, for people. Throws Error(data) that names what llama.cpp does not compute,
 * or what a GGUF file cannot say, and what to do. */
GgufModel describe_gguf(const HfDirectory& model,
                        const CheckpointReader& weights,
                        GgufType type,
                        const std::string& name);

}  // namespace ferry
