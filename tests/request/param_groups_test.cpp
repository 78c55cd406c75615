// Options freeze, param_groups and layerwise_lr_decay on the tensor table of a BERT, and what the
// plan makes of them.

#include "src/request/param_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/bert/bert_table.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/plan/plan.h"
#include "tests/request/settings.h"

namespace ferry {
namespace {

constexpr int kLayers = 12;

ModelTable bert(HeadKind head = HeadKind::classification) {
  nlohmann::json json = {
      {"model_type", "bert"},           {"vocab_size", 30522},      {"hidden_size", 256},
      {"num_hidden_layers", kLayers},   {"num_attention_heads", 4}, {"intermediate_size", 1024},
      {"max_position_embeddings", 512}, {"type_vocab_size", 2},     {"hidden_act", "gelu"}};
  TableOptions options;
  options.head = head;
  options.compute = DType::bf16;
  options.attention = AttentionBackend::flash;
  return make_bert_table(parse_bert_config(json), options);
}

ModelTable bert_with(const Settings& settings, HeadKind head = HeadKind::classification) {
  ModelTable model = bert(head);
  apply_param_options(config_of(settings), model);
  return model;
}

std::string refusal(const Settings& settings) {
  try {
    bert_with(settings);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

const ParamSpec& param(const ModelTable& model, const std::string& hf_name) {
  for (const HfEntry& entry : model.hf_names)
    if (entry.hf_name == hf_name) return model.param_of(entry);
  throw std::out_of_range(hf_name);
}
const UpdateGroup& group(const ModelTable& model, const std::string& hf_name) {
  return model.groups.at(static_cast<size_t>(param(model, hf_name).group));
}

/** Names of Hugging Face that are frozen. */
std::vector<std::string> frozen(const ModelTable& model) {
  std::vector<std::string> names;
  for (const HfEntry& entry : model.hf_names)
    if (!model.param_of(entry).trainable) names.push_back(entry.hf_name);
  return names;
}

TEST(Freeze, TakesTheNamesThatItsPatternsMatch) {
  EXPECT_TRUE(frozen(bert_with({})).empty());
  EXPECT_EQ(frozen(bert_with({{"freeze", "bert.embeddings.*"}})).size(), 5u);
  const auto layers = frozen(bert_with({{"freeze", "bert.encoder.layer.[0-3].*"}}));
  EXPECT_EQ(layers.size(), 4u * 16u);  // not 10 and 11
  EXPECT_EQ(frozen(bert_with({{"freeze", "bert.encoder.layer.1?.*"}})).size(), 2u * 16u);
  EXPECT_EQ(frozen(bert_with({{"freeze", "*.layer.[!0].*, *.layer.1[01].*"}})).size(), 11u * 16u);
  // The names of a checkpoint without its head, and very old ones.
  EXPECT_EQ(frozen(bert_with({{"freeze", "embeddings.*"}})).size(), 5u);
  EXPECT_EQ(frozen(bert_with({{"freeze", "bert.embeddings.LayerNorm.gamma"}})),
            std::vector<std::string>{"bert.embeddings.LayerNorm.weight"});
}

TEST(Freeze, RefusesWhatCannotBeMeant) {
  const std::string misspelt = refusal({{"freeze", "bert.embedings.*"}});
  EXPECT_NE(misspelt.find("'bert.embedings.*' of freeze (--freeze)"), std::string::npos);
  EXPECT_NE(misspelt.find("did you mean 'bert.embeddings.*'?"), std::string::npos) << misspelt;
  const std::string beyond = refusal({{"freeze", "bert.embeddings.*,bert.encoder.layer.12.*"}});
  EXPECT_NE(beyond.find("did you mean 'bert.encoder.layer.1"), std::string::npos) << beyond;
  EXPECT_NE(refusal({{"freeze", "*"}}).find("nothing to train"), std::string::npos);
  const std::string part = refusal({{"freeze", "*.layer.3.attention.self.key.*"}});
  EXPECT_NE(part.find("layer.3.attention.self.key.weight"), std::string::npos) << part;
  EXPECT_NE(part.find("'bert.encoder.layer.3.attention.self.*'"), std::string::npos) << part;
  EXPECT_EQ(frozen(bert_with({{"freeze", "bert.encoder.layer.3.attention.self.*"}})).size(), 6u);
}

TEST(Groups, TheFirstPatternThatNamesAParameterCounts) {
  const ModelTable model = bert_with({{"param_groups",
                                       "classifier.weight:lr=1e-4; *.bias:factor=2,decay=0.3; "
                                       "bert.pooler.*:decay=0"}});
  EXPECT_EQ(group(model, "classifier.weight"), (UpdateGroup{.learning_rate = 1e-4}));
  const UpdateGroup bias = {.lr_factor = 2, .weight_decay = 0.3};
  EXPECT_EQ(group(model, "classifier.bias"), bias);
  EXPECT_EQ(group(model, "bert.pooler.dense.bias"), bias);
  EXPECT_EQ(group(model, "bert.encoder.layer.7.attention.self.key.bias"), bias);
  EXPECT_EQ(group(model, "bert.pooler.dense.weight"), (UpdateGroup{.weight_decay = 0.0}));
  EXPECT_EQ(group(model, "bert.embeddings.word_embeddings.weight"), UpdateGroup{});
  EXPECT_EQ(group(model, "bert.embeddings.LayerNorm.weight"), UpdateGroup{.decays = false});
}

TEST(Groups, RefuseWhatCannotBeMeant) {
  EXPECT_NE(refusal({{"param_groups", "clasifier.*:lr=1e-4"}}).find("'classifier.*'"),
            std::string::npos);
  EXPECT_NE(refusal({{"param_groups", "bert.*:lr=1e-5;bert.pooler.*:lr=1e-4"}}).find("no effect"),
            std::string::npos);
  EXPECT_NE(refusal({{"param_groups", "*.query.weight:lr=1e-5"}}).find("one parameter"),
            std::string::npos);
}

TEST(Layerwise, GoesByTheFormula) {
  constexpr double kDecay = 0.9;
  const ModelTable model =
      bert_with({{"layerwise_lr_decay", "0.9"},
                 {"param_groups", "bert.encoder.layer.4.*.bias:factor=3;*.layer.5.*:lr=1e-5"}});
  const auto expect_factor = [&](const std::string& name, double power, double times = 1) {
    EXPECT_DOUBLE_EQ(group(model, name).lr_factor, times * std::pow(kDecay, power)) << name;
  };
  expect_factor("classifier.weight", 0);
  expect_factor("bert.pooler.dense.bias", 0);
  for (int i : {0, 1, 3, 10, 11})
    expect_factor("bert.encoder.layer." + std::to_string(i) + ".output.dense.weight", kLayers - i);
  expect_factor("bert.embeddings.word_embeddings.weight", kLayers + 1);
  expect_factor("bert.embeddings.LayerNorm.bias", kLayers + 1);
  expect_factor("bert.encoder.layer.4.output.dense.bias", kLayers - 4, 3);
  expect_factor("bert.encoder.layer.4.output.dense.weight", kLayers - 4);
  expect_factor("bert.encoder.layer.5.output.dense.weight", 0);  // a rate of its own
  EXPECT_EQ(group(model, "bert.encoder.layer.5.output.dense.weight").learning_rate, 1e-5);
  // One group for what is updated alike: rate and decay of 12 layers, embeddings and head.
  EXPECT_EQ(bert_with({{"layerwise_lr_decay", "0.9"}}).groups.size(), 2u * (kLayers + 2));
  EXPECT_EQ(bert_with({}).groups.size(), 2u);
}

Plan plan_of(const ModelTable& model, Place place) {
  PlanRequest request;
  request.has_gpu = true;
  request.gpu_budget_bytes = 80 * kGiB;
  request.placement = place;
  request.micro_batch_size = 32;
  request.activations = Activations::keep;
  return make_plan(model, request);
}

TEST(FrozenPlan, HoldsNoGradientsNoStatesAndLessThatIsSaved) {
  const ModelTable whole = bert(),
                   frozen = bert_with({{"freeze", "bert.embeddings.*,bert.encoder.layer.[0-5].*"}});
  int64_t n_elements = 0;  // of the frozen blocks' segments
  for (size_t b = 0; b < 7; ++b)
    n_elements += frozen.blocks[b].n_segment_elements;
  for (Place place : {Place::device, Place::host}) {
    const Plan a = plan_of(whole, place), b = plan_of(frozen, place);
    const auto less = [&](Tag tag, Place where) {
      return a.layout.bytes_of(tag, where) - b.layout.bytes_of(tag, where);
    };
    EXPECT_EQ(less(Tag::weights, place), 0);
    EXPECT_EQ(less(Tag::grads, place), 2 * n_elements);
    EXPECT_EQ(less(Tag::state_0, place), 4 * n_elements);
    EXPECT_EQ(less(Tag::state_1, place), 4 * n_elements);
    EXPECT_EQ(less(Tag::master, place), 4 * n_elements);
    // Saved tensors of 7 blocks share one region, and outputs of the first 6 two.
    const int64_t saved = a.shape.blocks[1].saved_bytes;
    EXPECT_EQ(less(Tag::saved, Place::device),
              a.shape.blocks[0].saved_bytes + 5 * saved + 4 * a.shape.values[0].n_bytes);
    EXPECT_EQ(b.shape.first_backward(), 7);
  }
}

/** All frozen but one matrix a layer: the host holds the weights, and 16 bytes for each parameter
 * that is trained (gradient and master, m and v), beside its windows. */
TEST(FrozenPlan, HoldsNoMoreForTrainedParametersThanTheirStates) {
  const ModelTable model = bert_with({{"freeze",
                                       "bert.embeddings.*,bert.encoder.layer.*.attention.*,"
                                       "*.intermediate.*,*.LayerNorm.*,*.output.dense.bias,"
                                       "*pooler*"}});
  ASSERT_EQ(model.n_trainable_params(), kLayers * 256 * 1024 + 2 * 256 + 2);
  const Plan plan = plan_of(model, Place::host);
  int64_t n_weights = 0, n_trained = 0;
  for (const BlockTable& block : model.blocks) {
    n_weights += block.n_segment_elements;
    n_trained += block.n_trained_elements;
  }
  EXPECT_EQ(plan.layout.bytes_of(Tag::weights, Place::host), 2 * n_weights);
  int64_t states = 0;
  for (Tag tag : {Tag::grads, Tag::master, Tag::state_0, Tag::state_1})
    states += plan.layout.bytes_of(tag, Place::host);
  EXPECT_LE(states, 16 * n_trained);
  // A gradient slot is as large as what one layer trains, a weight slot as the largest block.
  EXPECT_EQ(plan.layout.region(plan.layout.grad_slots[0]).n_bytes, 2 * 256 * 1024);
  EXPECT_EQ(plan.layout.region(plan.layout.weight_slots[0]).n_bytes,
            2 * model.blocks[0].n_segment_elements);
}

TEST(FrozenPlan, WithTiedEmbeddingsTheHeadKeepsItsGradientsInTheComputeType) {
  const ModelTable model = bert_with({{"freeze", "bert.embeddings.*"}}, HeadKind::masked_lm);
  const Plan plan = plan_of(model, Place::host);
  const int head = plan.shape.n_blocks() - 1;
  EXPECT_FALSE(plan.shape.tied(0));
  EXPECT_FALSE(plan.shape.tied(head));
  EXPECT_FALSE(plan.shape.grads_fp32(head));
  EXPECT_EQ(plan.shape.first_backward(), 1);
}

}  // namespace
}  // namespace ferry
