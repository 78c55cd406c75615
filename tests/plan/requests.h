#pragma once
// Models and requests that the planner's tests begin with.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "models/bert/bert_table.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/plan/plan.h"

namespace ferry::test {

inline ModelTable bert_large(DType compute) {
  nlohmann::json json = {
      {"model_type", "bert"},           {"vocab_size", 30522},       {"hidden_size", 1024},
      {"num_hidden_layers", 24},        {"num_attention_heads", 16}, {"intermediate_size", 4096},
      {"max_position_embeddings", 512}, {"type_vocab_size", 2},      {"hidden_act", "gelu"}};
  TableOptions options;
  options.compute = compute;
  options.attention = AttentionBackend::flash;
  return make_bert_table(parse_bert_config(json), options);
}

/** A BERT with the largest numbers that its config.json may hold. */
inline ModelTable largest_bert(AttentionBackend attention) {
  nlohmann::json json = {{"model_type", "bert"},
                         {"vocab_size", 1 << 24},
                         {"hidden_size", 1 << 16},
                         {"num_hidden_layers", 1024},
                         {"num_attention_heads", 1024},
                         {"intermediate_size", 1 << 18},
                         {"max_position_embeddings", 1 << 18},
                         {"type_vocab_size", 1 << 16}};
  TableOptions options;
  options.attention = attention;
  options.compute = attention == AttentionBackend::flash ? DType::bf16 : DType::f32;
  return make_bert_table(parse_bert_config(json), options);
}

/** The message with which a plan is refused as too large; empty when it fits. */
inline std::string refusal(const ModelTable& model, const PlanRequest& request) {
  try {
    make_plan(model, request);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::does_not_fit) << error.what();
    return error.what();
  }
  return "";
}

/** A CPU with this much memory. */
inline PlanRequest request_on_cpu(int64_t budget_bytes) {
  PlanRequest r;
  r.host_budget_bytes = budget_bytes;
  return r;
}

inline PlanRequest request(int64_t gpu_budget_bytes) {
  PlanRequest r;
  r.has_gpu = true;
  r.gpu_budget_bytes = gpu_budget_bytes;
  r.host_budget_bytes = 64 * kGiB;
  return r;
}

}  // namespace ferry::test
