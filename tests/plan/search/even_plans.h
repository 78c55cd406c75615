#pragma once
// BERTs of any size, and plans for them on machines with simple rates.

#include <nlohmann/json.hpp>

#include "models/bert/bert_table.h"
#include "src/plan/plan.h"
#include "tests/plan/machines.h"

namespace ferry::test {

inline ModelTable bert(int64_t width,
                       int n_layers,
                       HeadKind head = HeadKind::classification,
                       int64_t vocab_size = 1024,
                       const Sharing& sharing = {}) {
  const nlohmann::json json = {{"model_type", "bert"},
                               {"vocab_size", vocab_size},
                               {"hidden_size", width},
                               {"num_hidden_layers", n_layers},
                               {"num_attention_heads", width / 64},
                               {"intermediate_size", 4 * width},
                               {"max_position_embeddings", 512},
                               {"type_vocab_size", 2}};
  TableOptions options;
  options.head = head;
  options.compute = DType::bf16;
  options.attention = AttentionBackend::flash;
  options.sharing = sharing;
  return make_bert_table(parse_bert_config(json), options);
}

inline PlanRequest on_gpu(const MachineProfile& machine, int64_t gpu_bytes, bool clips = true) {
  PlanRequest request;
  request.has_gpu = true;
  request.gpu_budget_bytes = gpu_bytes;
  request.host_budget_bytes = 120 * kGiB;
  request.train_batch_size = 32;
  request.machine = machine;
  request.clips = clips;
  return request;
}

inline double busy(const Plan& plan, QueueId queue) {
  return plan.predicted->busy_s[queue];
}

/** All on the host, one micro-batch, nothing recomputed. */
inline Plan all_on_host(const ModelTable& model, const MachineProfile& machine, bool clips) {
  PlanRequest request = on_gpu(machine, 200 * kGiB, clips);
  request.placement = Place::host;
  request.activations = Activations::keep;
  request.micro_batch_size = 32;
  return make_plan(model, request);
}

}  // namespace ferry::test
