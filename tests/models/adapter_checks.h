#pragma once
// Helpers of tests of adapters in a model's programs: a batch, and the gradients of autograd.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/models/model_runner.h"
#include "tests/models/program_reference.h"

namespace ferry::test {

inline constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7};

inline TestBatch batch_of(const ModelTable& model) {
  TestBatch batch({20, 7, 5}, 1, model.vocab_size, 4);
  batch.label_next_tokens();
  batch.tensors.loss_weight = 1.0f / 29;
  return batch;
}

inline bool is_adapter(const HfEntry& entry) {
  return entry.hf_name.find(".lora_") != std::string::npos ||
         entry.hf_name.find(".adapter.") != std::string::npos;
}

inline void expect_gradients_of_autograd(const ModelTable& model, const RandomKey& key = kKey) {
  TestBatch batch = batch_of(model);
  ModelRunner runner(model, LossKind::causal_lm, batch.tensors.shape);
  runner.randomise(5, 0.3f);
  runner.poison();
  ProgramReference reference(runner);
  at::Tensor loss = reference.loss(batch);
  loss.backward();
  EXPECT_NEAR(runner.forward(key, batch.tensors), loss.item<double>(),
              2e-6 * std::max(1.0, loss.item<double>()));
  runner.backward(key, batch.tensors);
  const auto expected = reference.grads();
  int n_adapters = 0;
  for (const HfEntry& entry : model.hf_names) {
    if (!model.param_of(entry).trainable) continue;
    EXPECT_TRUE(is_adapter(entry)) << entry.hf_name;
    ++n_adapters;
    // Those of the entry's rows in its parameter.
    const at::Tensor its = expected.at({entry.block, entry.param});
    const double most = its.abs().max().item<double>();
    EXPECT_GT(most, 1e-7) << entry.hf_name;
    const at::Tensor found = runner.grad(entry.block, entry.param).to(at::kDouble);
    EXPECT_LT((found - its).abs().max().item<double>(), 5e-5 * std::max(most, 0.1))
        << entry.hf_name;
  }
  EXPECT_GT(n_adapters, 4);
}

}  // namespace ferry::test
