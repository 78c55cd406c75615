#include "src/train/prepare/batches.h"

#include <algorithm>

#include "src/base/error.h"

namespace ferry {

int32_t pad_id(const Job& job) {
  return std::max(job.tokenizer.special_ids().pad, 0);
}

MaskOptions mask_options(const Job& job) {
  MaskOptions options;
  if (job.loss != LossKind::masked_lm) return options;
  const SpecialIds& special = job.tokenizer.special_ids();
  if (special.mask < 0)
    throw Error(Fault::data, "train.mask", "the tokenizer has no [MASK] token",
                "task = mlm needs a model that was made for it");
  options.mask_id = special.mask;
  options.vocab_size = static_cast<int32_t>(job.tokenizer.vocab_size());
  options.special_ids = {special.cls, special.sep, special.pad, special.unk, special.mask};
  std::erase(options.special_ids, -1);
  return options;
}

StepBatches::StepBatches(const Job& job)
    : job_(job),
      sampler_(job.train.size(), data_seed_of(job.config)),
      mask_(mask_options(job)),
      mask_seed_(static_cast<uint64_t>(job.config.integer("seed"))),
      micro_batches_(static_cast<size_t>(job.plan.n_micro)) {}

std::span<const HostBatch> StepBatches::of_step(int64_t step) {
  const StepPlan plan =
      plan_step(sampler_, position_of_step(job_.train.size(), step, job_.split), job_.split);
  views_.clear();
  n_tokens_ = 0;
  for (size_t m = 0; m < plan.micro_batches.size(); ++m) {
    MicroBatch& batch = micro_batches_[m];
    collate(job_.train, plan.micro_batches[m], job_.token_sizes, pad_id(job_), batch,
            job_.max_length);
    if (job_.loss == LossKind::masked_lm)
      mask_tokens(batch, mask_,
                  {.seed = mask_seed_, .step = step, .micro_batch = static_cast<int64_t>(m)});
    n_tokens_ += batch.n_real_tokens;
    views_.push_back(host_batch(batch, job_));
  }
  return views_;
}

}  // namespace ferry
