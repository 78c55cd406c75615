#pragma once
// How a parameter's rows lie in the tensor of its Hugging Face file: as ours, the other way round,
// or in groups of parts. Weights are loaded, saved and checkpointed through it, in strips of
// bounded memory. Torch-free.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/core/tensor_table.h"

namespace ferry {

/** The two orders of one entry's elements: ours is (rows, columns), the file's (file rows, columns)
 * or, where transposed, (columns, file rows). */
class FileOrder {
 public:
  FileOrder(const ModelTable& model, const HfEntry& entry);

  /** Element i of the file is element i of ours. */
  bool is_ours() const { return !transposed_ && runs_.size() == 1; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  /** The rows of ours that are moved at once: 8 MiB of fp32, or one row. */
  int64_t strip_rows() const;

  /** Values of the file from first_element on; called by several threads. */
  using ReadFile = std::function<void(int64_t first_element, std::span<float> values)>;
  /** Fills `strip`, whole rows of ours from first_row on. `done` is called when a range of the
   * file's elements was read for this strip, by several threads. */
  using Done = std::function<void(int64_t first_element, int64_t n_elements)>;
  void read_strip(int64_t first_row,
                  std::span<float> strip,
                  const ReadFile& read,
                  const Done& done) const;

  /** Takes values of the file from first_element on. */
  using WriteFile = std::function<void(int64_t first_element, std::span<const float> values)>;
  /** Hands over the places in the file of `strip`, whole rows of ours from first_row on. */
  void write_strip(int64_t first_row, std::span<const float> strip, const WriteFile& write) const;

  /** Elements of ours that lie together, and where their values go. */
  struct Part {
    int64_t first_element = 0;
    std::span<float> to;
  };
  using ReadOurs = std::function<void(std::span<const Part>)>;
  /** Fills `values`, elements of the file from first_element on. Takes memory of as many, and of
   * two rows of a transposed file. */
  void gather(int64_t first_element, std::span<float> values, const ReadOurs& read) const;

 private:
  /** Rows that lie together in ours and in the file. */
  struct Run {
    int64_t ours = 0, file = 0, n = 0;
  };

  int64_t rows_ = 0, columns_ = 0;
  bool transposed_ = false;
  std::vector<Run> runs_;  // in the order of the file
};

}  // namespace ferry
