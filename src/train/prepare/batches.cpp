#include "src/train/prepare/batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"

namespace ferry {
namespace {

MaskOptions mask_options(const Tokenizer& tokenizer) {
  const SpecialIds& special = tokenizer.special_ids();
  if (special.mask < 0)
    throw Error(Fault::data, "train.mask", "the tokenizer has no [MASK] token",
                "task = mlm needs a model that was made for it");
  MaskOptions options;
  options.mask_id = special.mask;
  options.vocab_size = static_cast<int32_t>(tokenizer.vocab_size());
  options.special_ids = {special.cls, special.sep, special.pad, special.unk, special.mask};
  std::erase(options.special_ids, -1);
  return options;
}

void add_neutral_labels(MicroBatch& batch, int64_t n_labels) {
  const auto n = static_cast<size_t>(batch.n_real_seqs);
  batch.class_labels.assign(n, 0);
  batch.hot_labels.assign(n * static_cast<size_t>(n_labels), 0.0f);
  batch.value_labels.assign(n, 0.0f);
  batch.n_label_items = batch.n_real_seqs;
}

std::span<const std::byte> labels_of(const MicroBatch& batch, LossKind loss) {
  switch (loss) {
    case LossKind::cross_entropy:
      return std::as_bytes(std::span(batch.class_labels));
    case LossKind::multi_label:
      return std::as_bytes(std::span(batch.hot_labels));
    case LossKind::regression:
      return std::as_bytes(std::span(batch.value_labels));
    case LossKind::masked_lm:
      return std::as_bytes(std::span(batch.token_labels));
    default:
      FERRY_CHECK(false, "no task has the loss {}", static_cast<int>(loss));
  }
  return {};
}

}  // namespace

Collator::Collator(const Tokenizer& tokenizer, const Data& data)
    : data_(data),
      pad_id_(std::max(tokenizer.special_ids().pad, 0)),
      mask_(data.task.masks_tokens ? mask_options(tokenizer) : MaskOptions()) {}

HostBatch Collator::collate(const TokenizedDataset& from,
                            std::span<const int64_t> samples,
                            std::span<const int64_t> sizes,
                            const MaskKey& key,
                            MicroBatch& batch) const {
  const Task& task = data_.task;
  ferry::collate(from, samples, sizes, pad_id_, batch, data_.max_length);
  if (task.masks_tokens)
    mask_tokens(batch, mask_, key);
  else if (from.problem() == ProblemType::unlabelled)
    add_neutral_labels(batch, task.n_labels());
  HostBatch out = {.shape = {.tokens = batch.n_tokens(),
                             .n_seqs_max = batch.n_seqs(),
                             .max_length = data_.max_length},
                   .n_seqs = batch.n_seqs(),
                   .n_seqs_real = batch.n_real_seqs,
                   .n_label_items = batch.n_label_items,
                   .input_ids = batch.input_ids,
                   .type_ids = batch.type_ids,
                   .position_ids = batch.position_ids,
                   .cu_seqlens = batch.cu_seqlens,
                   .labels = labels_of(batch, task.loss())};
  if (task.masks_tokens) out.label_rows = batch.label_rows;
  return out;
}

StepBatches::StepBatches(const Tokenizer& tokenizer, const Data& data)
    : data_(data), collator_(tokenizer, data), sampler_(data.train.size(), data.shuffle_seed) {}

std::span<const HostBatch> StepBatches::of_step(int64_t step) {
  const StepPlan plan =
      plan_step(sampler_, position_of_step(data_.train.size(), step, data_.split), data_.split);
  micro_batches_.resize(std::max(micro_batches_.size(), plan.micro_batches.size()));
  views_.clear();
  n_tokens_ = 0;
  for (size_t m = 0; m < plan.micro_batches.size(); ++m) {
    views_.push_back(collator_.collate(
        data_.train, plan.micro_batches[m], data_.token_sizes,
        {.seed = data_.seed, .step = step, .micro_batch = static_cast<int64_t>(m)},
        micro_batches_[m]));
    n_tokens_ += micro_batches_[m].n_real_tokens;
  }
  return views_;
}

}  // namespace ferry
