#include "src/plan/plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/bert/bert_table.h"
#include "src/base/error.h"

namespace ferry {
namespace {

ModelTable bert_large(DType compute) {
  nlohmann::json json = {
      {"model_type", "bert"},           {"vocab_size", 30522},       {"hidden_size", 1024},
      {"num_hidden_layers", 24},        {"num_attention_heads", 16}, {"intermediate_size", 4096},
      {"max_position_embeddings", 512}, {"type_vocab_size", 2},      {"hidden_act", "gelu"}};
  BertTableOptions options;
  options.compute = compute;
  options.attention = AttentionBackend::flash;
  return make_bert_table(parse_bert_config(json), options);
}

PlanRequest request(int64_t gpu_budget_bytes) {
  PlanRequest r;
  r.has_gpu = true;
  r.gpu_budget_bytes = gpu_budget_bytes;
  r.host_budget_bytes = 64 * kGiB;
  return r;
}

TEST(Plan, BertLargeHasTheParametersThatTheWorldCounts) {
  // BertForSequenceClassification of bert-large-uncased with two labels, as transformers counts it
  EXPECT_EQ(bert_large(DType::bf16).n_params(), 335'143'938);
}

TEST(Plan, FillsTheBudgetAndNeverExceedsIt) {
  ModelTable model = bert_large(DType::bf16);
  int64_t last_micro = 0;
  for (int64_t gib : {3, 4, 6, 8, 11, 16, 24, 80}) {
    Plan plan = make_plan(model, request(gib * kGiB));
    EXPECT_LE(plan.layout.n_bytes[0], gib * kGiB) << gib << " GiB";
    EXPECT_EQ(plan.n_micro * plan.micro_batch_size, 32) << plan.why;
    last_micro = plan.micro_batch_size;
  }
  EXPECT_EQ(last_micro, 32) << "80 GiB hold the whole batch";
}

TEST(Plan, StatesOnTheHostTakeSixteenBytesAParameterAndEighteenWithSeveralMicroBatches) {
  ModelTable model = bert_large(DType::bf16);
  for (int64_t micro : {32, 8}) {
    PlanRequest r = request(24 * kGiB);
    r.placement = Place::host;
    r.micro_batch_size = micro;
    Plan plan = make_plan(model, r);
    int64_t states = 0;
    for (Tag tag : {Tag::weights, Tag::grads, Tag::master, Tag::adam_m, Tag::adam_v})
      states += plan.layout.bytes_of(tag, Place::host);
    const double per_param = static_cast<double>(states) / static_cast<double>(model.n_params());
    EXPECT_NEAR(per_param, micro == 32 ? 16.0 : 18.0, 0.01);
  }
}

TEST(Plan, WhatDoesNotFitNamesTheLargestTagAndAChange) {
  PlanRequest r = request(1 * kGiB);
  r.placement = Place::gpu;
  try {
    make_plan(bert_large(DType::bf16), r);
    FAIL() << "335 M parameters in 1 GiB";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    EXPECT_NE(std::string(e.what()).find("largest: "), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("placement"), std::string::npos) << e.what();
  }
}

TEST(Plan, RegionsNeverOverlap) {
  for (Place place : {Place::gpu, Place::host}) {
    PlanRequest r = request(80 * kGiB);
    r.placement = place;
    Plan plan = make_plan(bert_large(DType::f16), r);
    int64_t end[kPlaces] = {0, 0};
    for (const Region& region : plan.layout.regions) {
      auto p = static_cast<size_t>(region.place);
      EXPECT_EQ(region.offset % kTensorAlignment_bytes, 0) << region.name;
      EXPECT_GE(region.offset, end[p]) << region.name;
      end[p] = region.offset + region.n_bytes;
    }
  }
}

TEST(Plan, NamesTheLargestTagOfThePlaceThatIsTooSmall) {
  PlanRequest r = request(200 * kMiB);
  r.placement = Place::host;
  try {
    make_plan(bert_large(DType::bf16), r);
    ADD_FAILURE() << "200 MiB of GPU memory were enough";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("on the gpu"), std::string::npos) << e.what();
  }
  r = request(24 * kGiB);
  r.host_budget_bytes = 100 * kMiB;
  r.placement = Place::host;
  try {
    make_plan(bert_large(DType::bf16), r);
    ADD_FAILURE() << "100 MiB of host memory were enough";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("on the host"), std::string::npos) << e.what();
  }
}

TEST(Plan, RefusesMoreMicroBatchesThanADeviceCanFollow) {
  PlanRequest r = request(24 * kGiB);
  r.train_batch_size = 100'000;
  r.micro_batch_size = 1;
  EXPECT_THROW(make_plan(bert_large(DType::bf16), r), Error);
}

}  // namespace
}  // namespace ferry
