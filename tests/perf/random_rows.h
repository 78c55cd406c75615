#pragma once
// Rows of random tokens for step_bench, laid out as training lays out texts.

#include <cstdint>
#include <string>
#include <vector>

#include "src/data/batch.h"
#include "src/data/tokenized.h"
#include "src/engine/host_batch.h"
#include "src/plan/plan.h"

namespace ferry {

class RandomRows {
 public:
  /** A step's rows all of `length`, the same in each step. */
  static RandomRows of_one_length(int64_t n_rows, int64_t length, bool is_causal);
  /** As in the file: each line the lengths of one step's rows, of which there are `n_rows`. Throws
   * Error(data). */
  static RandomRows of_file(const std::string& file,
                            int64_t n_rows,
                            int64_t length_max,
                            bool is_causal);

  /** The token counts that the planner is told; null where all are of one length. */
  std::function<TextTokens(int64_t train_batch_size, int64_t micro_batch_size)> text_tokens() const;

  /** Lays all steps out, and may do so again for another plan; token counts are rounded up to at
   * most n_sizes_max sizes, which it returns. */
  std::vector<int64_t> cut(const Plan& plan, int64_t n_sizes_max);
  /** Steps come again after the last. */
  std::vector<HostBatch> step(int64_t n) const;
  /** Tokens in a step's rows, their tails not counted. */
  int64_t n_tokens(int64_t n) const;

 private:
  RandomRows(std::vector<int32_t> lengths, int64_t n_rows, int64_t length_max, bool is_causal);
  int64_t n_steps() const { return data_.size() / n_rows_; }

  int64_t n_rows_, length_max_;
  bool is_causal_;
  TokenizedDataset data_;
  std::vector<std::vector<MicroBatch>> steps_;
};

}  // namespace ferry
