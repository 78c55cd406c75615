// Low-rank adapters beside the linear maps of every family: their formula and gradients are those
// of autograd in fp64, and their tensors have PEFT's names.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/adapters/lora.h"
#include "models/core/compile.h"
#include "models/family.h"
#include "src/base/error.h"
#include "tests/models/adapter_checks.h"
#include "tests/models/small_configs.h"
#include "tests/models/small_families.h"

namespace ferry {
namespace test {

/** Sets B to zero, and lengths to those of the rows of W. */
void begin_adapters(ModelRunner& runner) {
  const ModelTable& model = runner.table();
  for (const HfEntry& entry : model.hf_names) {
    const Init init = model.param_of(entry).init;
    at::Tensor its = runner.param(entry.block, entry.param);
    if (init == Init::zeros && entry.is_delta) its.zero_();
    if (!entry.hf_name.ends_with(kLoraMagnitude)) continue;
    const auto of = std::ranges::find_if(model.hf_names, [&](const HfEntry& matrix) {
      return module_of(matrix) == adapted_module_of(entry);
    });
    its.narrow(0, entry.row_begin, entry.rows)
        .copy_(runner.param(of->block, of->param).narrow(0, of->row_begin, of->rows).norm(2, 1));
  }
}

}  // namespace test
namespace {

using test::batch_of;
using test::expect_gradients_of_autograd;
using test::is_adapter;
using test::kKey;

Lora lora_of(std::function<std::optional<LoraOfModule>(const std::string&)> of, float dropout = 0) {
  return {
      .of = std::move(of), .dropout = dropout, .is_whole = [](const HfEntry&) { return false; }};
}

Lora on_all_linear(float dropout = 0) {
  return lora_of([](const std::string&) { return LoraOfModule{.rank = 4, .factor = 0.5f}; },
                 dropout);
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

Lora as_dora(Lora lora) {
  lora.dora = true;
  return lora;
}

TEST(Dora, HasTheGradientsOfAutograd) {
  for (const test::SmallFamily family : test::kSmallFamilies) {
    SCOPED_TRACE(test::name_of(family));
    ModelTable model = test::small_table(test::small_model(family));
    add_lora(model, as_dora(on_all_linear()));
    plan_frozen(model);
    expect_gradients_of_autograd(model);
  }
}

/** The same operations measure without dropout a model that is trained with it. */
TEST(Dora, WithDropoutHasTheGradientsOfAutograd) {
  for (const test::SmallFamily family : {test::SmallFamily::granite, test::SmallFamily::neox}) {
    SCOPED_TRACE(test::name_of(family));
    ModelTable model = test::small_table(test::small_model(family));
    add_lora(model, as_dora(on_all_linear(/*dropout=*/0.25f)));
    plan_frozen(model);
    expect_gradients_of_autograd(model, {.training = false});
  }
}

/** y = W x + b + (g (W + s B A) - W) d with d = dropout(x): where the lengths are those of W and B
 * is zero, the mask changes nothing. */
TEST(Dora, DropsNothingOfAnUntrainedModel) {
  ModelTable model = test::small_table(test::small_model(test::SmallFamily::neox));
  ModelTable dropping = model;
  add_lora(model, as_dora(on_all_linear()));
  add_lora(dropping, as_dora(on_all_linear(/*dropout=*/0.5f)));
  plan_frozen(model);
  plan_frozen(dropping);
  test::TestBatch batch = batch_of(model);
  const auto loss_of = [&](const ModelTable& table, bool is_new, const RandomKey& key) {
    test::ModelRunner runner(table, LossKind::causal_lm, batch.tensors.shape);
    runner.randomise(5, 0.3f);
    if (is_new) test::begin_adapters(runner);
    return runner.forward(key, batch.tensors);
  };
  EXPECT_NEAR(loss_of(model, true, kKey), loss_of(dropping, true, kKey), 1e-5);
  EXPECT_NEAR(loss_of(model, false, kKey), loss_of(dropping, false, {.training = false}), 1e-5);
  EXPECT_GT(std::fabs(loss_of(model, false, kKey) - loss_of(dropping, false, kKey)), 1e-3);
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

  ModelTable scaled = llama();
  add_lora(scaled, as_dora(lora_of(some_modules)));
  expect_gradients_of_autograd(scaled);
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
