#include "src/train/prepare/batches.h"

#include <algorithm>

namespace ferry {
namespace {

std::span<const std::byte> labels_of(const MicroBatch& batch) {
  return batch.values.empty() ? std::as_bytes(std::span(batch.labels))
                              : std::as_bytes(std::span(batch.values));
}

}  // namespace

Collator::Collator(const Tokenizer& tokenizer, const Data& data, const ModelTable& table)
    : tokenizer_(tokenizer), data_(data), pad_id_(std::max(tokenizer.special_ids().pad, 0)) {
  if (pad_id_ >= table.vocab_size) pad_id_ = 0;  // a token without a row
  data.task->check(tokenizer);
}

HostBatch Collator::collate(const TokenizedDataset& from,
                            std::span<const int64_t> samples,
                            std::span<const int64_t> sizes,
                            const MaskKey& key,
                            MicroBatch& batch,
                            const FirstPosition& first_position) const {
  ferry::collate(from, samples, sizes, pad_id_, batch, data_.max_length, first_position);
  data_.task->label(batch, from, tokenizer_, key);
  HostBatch out = {.shape = {.tokens = batch.n_tokens(),
                             .n_seqs_max = batch.n_seqs(),
                             .max_length = data_.max_length},
                   .n_seqs = batch.n_seqs(),
                   .n_seqs_real = batch.n_real_seqs,
                   .n_label_items = batch.n_label_items,
                   .n_end_items = batch.n_end_items,
                   .input_ids = batch.input_ids,
                   .type_ids = batch.type_ids,
                   .position_ids = batch.position_ids,
                   .cu_seqlens = batch.cu_seqlens,
                   .labels = labels_of(batch),
                   .preferences = batch.preferences};
  if (!data_.class_weights.empty()) {
    double sum = 0;
    for (const int32_t label : batch.labels)  // below 0: none
      if (label >= 0) sum += static_cast<double>(data_.class_weights[static_cast<size_t>(label)]);
    out.label_weight = sum;
  }
  if (data_.task->names_rows()) out.label_rows = batch.label_rows;
  return out;
}

StepBatches::StepBatches(const Tokenizer& tokenizer, const Data& data, const ModelTable& table)
    : data_(data),
      long_from_(table.long_from),
      collator_(tokenizer, data, table),
      sampler_(data.train.size(), data.shuffle_seed) {}

std::span<const HostBatch> StepBatches::of_step(int64_t step) {
  const StepPlan plan =
      plan_step(sampler_, position_of_step(data_.train.size(), step, data_.split), data_.split);
  micro_batches_.resize(std::max(micro_batches_.size(), plan.micro_batches.size()));
  views_.clear();
  n_tokens_ = 0;
  const FirstPosition first_position =
      positions_in_batch(data_.train, plan.micro_batches, long_from_, kLongPosition);
  for (size_t m = 0; m < plan.micro_batches.size(); ++m) {
    views_.push_back(collator_.collate(
        data_.train, plan.micro_batches[m], data_.token_sizes,
        {.seed = data_.seed, .step = step, .micro_batch = static_cast<int64_t>(m)},
        micro_batches_[m], first_position));
    n_tokens_ += micro_batches_[m].n_real_tokens;
  }
  return views_;
}

}  // namespace ferry
