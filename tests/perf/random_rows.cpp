#include "tests/perf/random_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "src/base/error.h"
#include "src/data/step_plan.h"

namespace ferry {

RandomRows::RandomRows(std::vector<int32_t> lengths,
                       int64_t n_rows,
                       int64_t length_max,
                       bool is_causal)
    : n_rows_(n_rows), length_max_(length_max), is_causal_(is_causal) {
  std::mt19937_64 random(3);
  std::vector<TokenizedExample> rows;
  for (const int32_t length : lengths) {
    TokenizedExample& row = rows.emplace_back();
    for (int32_t i = 0; i < length; ++i)
      row.ids.push_back(static_cast<int32_t>(random() % 30000));
    row.labels = {static_cast<int32_t>(random() % 2)};
  }
  data_ = dataset_of(rows);
}

RandomRows RandomRows::of_one_length(int64_t n_rows, int64_t length, bool is_causal) {
  return {std::vector<int32_t>(static_cast<size_t>(n_rows), static_cast<int32_t>(length)), n_rows,
          length, is_causal};
}

RandomRows RandomRows::of_file(const std::string& file,
                               int64_t n_rows,
                               int64_t length_max,
                               bool is_causal) {
  std::ifstream in(file);
  std::vector<int32_t> lengths;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    int64_t n = 0;
    for (int32_t length = 0; words >> length; ++n) {
      if (length < 2 || length > length_max)
        throw Error(Fault::data, "step_bench",
                    fmt::format("{} has a row of {} tokens", file, length),
                    fmt::format("2 to {}, see --length", length_max));
      lengths.push_back(length);
    }
    if (n != n_rows)
      throw Error(Fault::data, "step_bench", fmt::format("a line of {} has {} rows", file, n),
                  fmt::format("{} of them, see --batch", n_rows));
  }
  if (lengths.empty())
    throw Error(Fault::data, "step_bench", fmt::format("'{}' has no lengths", file),
                "each line the lengths of one step's rows");
  return {std::move(lengths), n_rows, length_max, is_causal};
}

std::function<TextTokens(int64_t, int64_t)> RandomRows::text_tokens() const {
  const std::vector<int32_t> lengths = data_.lengths();
  if (std::ranges::count(lengths, length_max_) == std::ssize(lengths)) return nullptr;
  const auto order = std::make_shared<LengthsInOrder>(lengths);
  return [order, attended = attended_tokens(lengths)](int64_t train_batch_size,
                                                      int64_t micro_batch_size) {
    const MicroBatchTokens tokens = order->of_micro_batches(
        {.train_batch_size = train_batch_size, .micro_batch_size = micro_batch_size});
    return TextTokens{
        .most = tokens.most, .typical = static_cast<int64_t>(tokens.mean), .attended = attended};
  };
}

std::vector<int64_t> RandomRows::cut(const Plan& plan, int64_t n_sizes_max) {
  const StepSplit split = {.train_batch_size = n_rows_, .micro_batch_size = plan.micro_batch_size};
  const Sampler in_order(data_.size(), 0, /*shuffle=*/false);
  const std::vector<int64_t> sizes = choose_token_sizes(
      plan.largest.tokens, micro_batch_token_counts(in_order, data_.lengths(), split, n_steps()),
      n_sizes_max);
  steps_.clear();
  for (int64_t s = 0; s < n_steps(); ++s) {
    auto& step = steps_.emplace_back();
    for (const auto& rows : plan_step(in_order, {0, s * n_rows_}, split).micro_batches) {
      collate(data_, rows, sizes, /*pad_id=*/0, step.emplace_back(), length_max_);
      MicroBatch& batch = step.back();
      if (is_causal_) {
        label_next_tokens(batch);
        continue;
      }
      for (int64_t sample : batch.samples)
        batch.labels.push_back(data_.labels(sample).front());
      batch.n_label_items = batch.n_real_seqs;
    }
  }
  return sizes;
}

std::vector<HostBatch> RandomRows::step(int64_t n) const {
  std::vector<HostBatch> out;
  for (const MicroBatch& batch : steps_[static_cast<size_t>(n % n_steps())]) {
    out.push_back({.shape = {.tokens = batch.n_tokens(),
                             .n_seqs_max = batch.n_seqs(),
                             .max_length = length_max_},
                   .n_seqs = batch.n_seqs(),
                   .n_seqs_real = batch.n_real_seqs,
                   .n_label_items = batch.n_label_items,
                   .input_ids = batch.input_ids,
                   .type_ids = batch.type_ids,
                   .position_ids = batch.position_ids,
                   .cu_seqlens = batch.cu_seqlens,
                   .labels = std::as_bytes(std::span(batch.labels))});
  }
  return out;
}

int64_t RandomRows::n_tokens(int64_t n) const {
  int64_t sum = 0;
  for (const MicroBatch& batch : steps_[static_cast<size_t>(n % n_steps())])
    sum += batch.n_real_tokens;
  return sum;
}

}  // namespace ferry
