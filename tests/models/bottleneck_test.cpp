// Adapters with a bottleneck in the layers of every family: their gradients are those of autograd
// in fp64, and they stand behind attention's projection and the feed-forward's last map.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/adapters/bottleneck.h"
#include "models/core/compile.h"
#include "models/family.h"
#include "src/base/error.h"
#include "tests/models/adapter_checks.h"
#include "tests/models/small_configs.h"
#include "tests/models/small_families.h"

namespace ferry {
namespace {

constexpr BottleneckKind kKinds[] = {BottleneckKind::adapter, BottleneckKind::parallel,
                                     BottleneckKind::low_rank, BottleneckKind::compacter};

Bottleneck of_kind(BottleneckKind kind) {
  return {.kind = kind, .size = 8, .scale = 1.5f, .division = 4, .is_whole = [](const HfEntry&) {
            return false;
          }};
}

TEST(Bottleneck, HasTheGradientsOfAutograd) {
  for (const BottleneckKind kind : kKinds)
    for (const test::SmallFamily family : test::kSmallFamilies) {
      SCOPED_TRACE(std::string(test::name_of(family)) + " " +
                   std::to_string(static_cast<int>(kind)));
      ModelTable model = test::small_table(test::small_model(family));
      add_bottlenecks(model, of_kind(kind));
      test::expect_gradients_of_autograd(model);
    }
}

ModelTable table_of(const char* family,
                    const TableOptions& options = {.head = HeadKind::causal_lm}) {
  return make_table(JsonReader::of(test::small_config(family, {.width = 32, .heads = 4}),
                                   {"config.json", "model.config", ""}),
                    options);
}

TEST(Bottleneck, StandsBehindBothBranches) {
  const ModelTable plain = table_of("gpt2");
  const std::vector<std::string> modules = bottleneck_modules(plain);
  EXPECT_EQ(std::ranges::count(modules, "transformer.h.1.attn.c_proj"), 1);
  EXPECT_EQ(std::ranges::count(modules, "transformer.h.1.mlp.c_proj"), 1);
  const auto n_layers = std::ranges::count(plain.blocks, BlockKind::layer, &BlockTable::kind);
  EXPECT_EQ(std::ssize(modules), 2 * n_layers);

  ModelTable model = table_of("gpt2");
  add_bottlenecks(model, of_kind(BottleneckKind::compacter));
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const HfEntry& entry : model.hf_names)
    if (test::is_adapter(entry)) {
      EXPECT_TRUE(entry.is_delta && is_saved(model, entry));
      shapes[entry.hf_name] = entry.hf_shape;
    } else {
      EXPECT_FALSE(is_saved(model, entry) || model.param_of(entry).trainable) << entry.hf_name;
    }
  EXPECT_EQ(std::ssize(shapes), 2 * n_layers * 8);
  const std::string stem = "base_model.model.transformer.h.0.mlp.c_proj.adapter.";
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shapes[stem + "down.phm_rule"], (Shape{4, 4, 4}));
  EXPECT_EQ(shapes[stem + "down.left"], (Shape{4, 32 / 4, 1}));
  EXPECT_EQ(shapes[stem + "up.right"], (Shape{4, 1, 32 / 4}));
  EXPECT_EQ(shapes[stem + "up.bias"], (Shape{32}));
  EXPECT_EQ(bottleneck_module_of(stem + "up.bias"), "transformer.h.0.mlp.c_proj");
  EXPECT_EQ(bottleneck_module_of("transformer.h.0.mlp.c_proj.weight"), "");
}

/** A U of zeros adds nothing, also where another operation added the bias before. */
TEST(Bottleneck, OfZerosChangesNothing) {
  for (const char* family : {"gpt2", "gpt_neox", "granite", "llama"})
    for (const BottleneckKind kind : kKinds) {
      const ModelTable plain = table_of(family);
      ModelTable adapted = plain;
      add_bottlenecks(adapted, of_kind(kind));
      test::TestBatch batch = test::batch_of(plain);
      test::ModelRunner one(plain, LossKind::causal_lm, batch.tensors.shape),
          other(adapted, LossKind::causal_lm, batch.tensors.shape);
      one.randomise(5, 0.3f);
      other.randomise(6, 0.3f);
      for (int block = 0; block < std::ssize(plain.blocks); ++block)
        for (int p = 0; p < std::ssize(plain.blocks[block].params); ++p)
          other.param(block, p).copy_(one.param(block, p));
      for (const HfEntry& entry : adapted.hf_names)
        if (entry.hf_name.find(".adapter.up.") != std::string::npos)
          other.param(entry.block, entry.param).zero_();
      const double loss = one.forward(test::kKey, batch.tensors);
      EXPECT_NEAR(loss, other.forward(test::kKey, batch.tensors), 2e-6 * std::max(1.0, loss))
          << family << " " << static_cast<int>(kind);
    }
}

TEST(Bottleneck, IsRefusedWhereItHasNoPlace) {
  TableOptions options = {.head = HeadKind::causal_lm};
  options.sharing.tp_size = 2;
  ModelTable shared = table_of("llama", options);
  EXPECT_THROW(add_bottlenecks(shared, of_kind(BottleneckKind::adapter)), Error);
  ModelTable model = table_of("llama");
  Bottleneck uneven = of_kind(BottleneckKind::compacter);
  uneven.division = 3;
  EXPECT_THROW(add_bottlenecks(model, uneven), Error);
}

}  // namespace
}  // namespace ferry
