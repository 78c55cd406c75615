// Low-rank adapters beside the linear maps of every family: their formula and gradients are those
// of autograd in fp64, and their tensors have PEFT's names.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/adapters/lora.h"
#include "models/core/compile.h"
#include "models/family.h"
#include "src/base/error.h"
#include "tests/models/model_runner.h"
#include "tests/models/program_reference.h"
#include "tests/models/small_configs.h"
#include "tests/models/small_families.h"

namespace ferry {
namespace {

constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7};

Lora lora_of(std::function<std::optional<LoraOfModule>(const std::string&)> of, float dropout = 0) {
  return {
      .of = std::move(of), .dropout = dropout, .is_whole = [](const HfEntry&) { return false; }};
}

Lora on_all_linear(float dropout = 0) {
  return lora_of([](const std::string&) { return LoraOfModule{.rank = 4, .factor = 0.5f}; },
                 dropout);
}

test::TestBatch batch_of(const ModelTable& model) {
  test::TestBatch batch({20, 7, 5}, 1, model.vocab_size, 4);
  batch.label_next_tokens();
  batch.tensors.loss_weight = 1.0f / 29;
  return batch;
}

bool is_adapter(const HfEntry& entry) {
  return entry.hf_name.find(".lora_") != std::string::npos;
}

void expect_gradients_of_autograd(const ModelTable& model) {
  test::TestBatch batch = batch_of(model);
  test::ModelRunner runner(model, LossKind::causal_lm, batch.tensors.shape);
  runner.randomise(5, 0.3f);
  runner.poison();
  test::ProgramReference reference(runner);
  at::Tensor loss = reference.loss(batch);
  loss.backward();
  EXPECT_NEAR(runner.forward(kKey, batch.tensors), loss.item<double>(),
              2e-6 * std::max(1.0, loss.item<double>()));
  runner.backward(kKey, batch.tensors);
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

TEST(Lora, HasTheGradientsOfAutograd) {
  for (const test::SmallFamily family : test::kSmallFamilies) {
    SCOPED_TRACE(test::name_of(family));
    ModelTable model = test::small_table(test::small_model(family));
    add_lora(model, on_all_linear());
    plan_frozen(model);
    expect_gradients_of_autograd(model);
  }
}

/** With zeros in B a model computes what it did. */
TEST(Lora, BeginsAsTheModelItself) {
  const test::SmallModel its = test::small_model(test::SmallFamily::qwen3);
  const ModelTable plain = test::small_table(its);
  ModelTable adapted = plain;
  add_lora(adapted, on_all_linear(/*dropout=*/0.25f));
  plan_frozen(adapted);
  test::TestBatch batch = batch_of(plain);
  test::ModelRunner one(plain, LossKind::causal_lm, batch.tensors.shape),
      other(adapted, LossKind::causal_lm, batch.tensors.shape);
  one.randomise(5, 0.3f);
  other.randomise(6, 0.3f);
  for (size_t b = 0; b < plain.blocks.size(); ++b) {
    const auto block = static_cast<int>(b);
    for (size_t p = 0; p < plain.blocks[block].params.size(); ++p)
      other.param(block, static_cast<int>(p)).copy_(one.param(block, static_cast<int>(p)));
    for (size_t p = plain.blocks[block].params.size(); p < adapted.blocks[block].params.size(); ++p)
      if (adapted.blocks[block].params[static_cast<int>(p)].init == Init::zeros)
        other.param(block, static_cast<int>(p)).zero_();
  }
  EXPECT_EQ(one.forward(kKey, batch.tensors), other.forward(kKey, batch.tensors));
}

ModelTable llama(HeadKind head = HeadKind::causal_lm) {
  const TableOptions options = {.head = head};
  return make_table(
      JsonReader::of(test::small_config("llama"), {"config.json", "model.config", ""}), options);
}

/** Queries and values of a matrix that has the keys, too; two tensors of another one with ranks of
 * their own. */
std::optional<LoraOfModule> some_modules(const std::string& module) {
  const auto is = [&](const char* name) { return module.ends_with(name); };
  if (is("q_proj") || is("v_proj")) return LoraOfModule{.rank = 4, .factor = 2};
  if (is("gate_proj")) return LoraOfModule{.rank = 2, .factor = 1};
  if (is("up_proj")) return LoraOfModule{.rank = 3, .factor = 0.5f};
  return std::nullopt;
}

TEST(Lora, AdaptsPartsOfAMatrix) {
  ModelTable model = llama();
  add_lora(model, lora_of(some_modules));
  plan_frozen(model);
  std::set<std::string> names;
  for (const HfEntry& entry : model.hf_names)
    if (is_adapter(entry)) {
      EXPECT_TRUE(entry.is_delta && is_saved(model, entry));
      names.insert(entry.hf_name);
    } else {
      EXPECT_FALSE(is_saved(model, entry)) << entry.hf_name;
    }
  EXPECT_EQ(names.size(), 2 * 4 * 2u);
  EXPECT_TRUE(names.contains("base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight"));
  expect_gradients_of_autograd(model);
}

TEST(Lora, MakesNoGradientsOfFrozenMatrices) {
  const BatchShape shape = {.tokens = 64, .n_seqs_max = 4, .max_length = 32};
  ModelTable queries = llama();
  add_lora(queries, lora_of([](const std::string& module) -> std::optional<LoraOfModule> {
             if (module.ends_with("q_proj")) return LoraOfModule{.rank = 4, .factor = 2};
             return std::nullopt;
           }));
  plan_frozen(queries);
  const auto products = [&](const ModelTable& model) {
    return model.blocks[1].work(shape, /*backward=*/true).products.size();
  };
  // Four matrices with two products each; four with one, and three of the adapter's halves.
  EXPECT_EQ(products(llama()), 8u);
  EXPECT_EQ(products(queries), 4u + 4u);
}

/** A head that is drawn anew is trained whole, and has PEFT's name. */
TEST(Lora, TrainsWholeParametersBeside) {
  ModelTable model = llama(HeadKind::classification);
  Lora lora = on_all_linear();
  lora.is_whole = [](const HfEntry& entry) { return entry.hf_name == "score.weight"; };
  add_lora(model, lora);
  plan_frozen(model);
  const auto score =
      std::ranges::find(model.hf_names, "base_model.model.score.weight", &HfEntry::hf_name);
  ASSERT_NE(score, model.hf_names.end());
  EXPECT_TRUE(score->is_delta && model.param_of(*score).trainable);
  EXPECT_EQ(score->also_named.front(), "score.weight");
}

TEST(Lora, IsRefusedWhereRanksShareLayers) {
  TableOptions options = {.head = HeadKind::causal_lm};
  options.sharing.tp_size = 2;
  ModelTable model =
      make_table(JsonReader::of(test::small_config("llama", {.width = 32, .heads = 4}),
                                {"config.json", "model.config", ""}),
                 options);
  EXPECT_THROW(add_lora(model, on_all_linear()), Error);
}

}  // namespace
}  // namespace ferry
