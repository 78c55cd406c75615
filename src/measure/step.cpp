#include "src/measure/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "models/bert/bert_table.h"
#include "src/base/error.h"
#include "src/base/median.h"
#include "src/base/process/host_memory.h"
#include "src/base/process/threads.h"
#include "src/engine/session.h"
#include "src/engine/state/weights.h"
#include "src/engine/step_time.h"
#include "src/engine/torch_setup.h"
#include "src/measure/bench.h"
#include "src/request/run_plan.h"

namespace ferry::measure {
namespace {

/** About 85 M parameters, and what a CPU does in a moment. */
constexpr SmallModel kGpuShape = {6, 1024, 16, 8, 128}, kCpuShape = {2, 384, 6, 4, 64};
constexpr int64_t kVocabulary = 8192;

}  // namespace

ModelTable make_small_model(const SmallModel& shape, DType type, AttentionBackend attention) {
  const nlohmann::json config = {{"model_type", "bert"},
                                 {"vocab_size", kVocabulary},
                                 {"hidden_size", shape.width},
                                 {"num_hidden_layers", shape.layers},
                                 {"num_attention_heads", shape.heads},
                                 {"intermediate_size", 4 * shape.width},
                                 {"max_position_embeddings", 512},
                                 {"type_vocab_size", 2},
                                 {"hidden_act", "gelu"}};
  TableOptions options;
  options.compute = type;
  options.attention = attention;
  return make_bert_table(parse_bert_config(config), options);
}

/** Sequences of one length and random words, and what a HostBatch refers to. */
struct SmallRun::Batch {
  explicit Batch(const SmallModel& shape) {
    std::mt19937_64 random(3);
    const int64_t tokens = shape.sequences * shape.length;
    for (int64_t t = 0; t < tokens; ++t) {
      ids.push_back(static_cast<int32_t>(random() % kVocabulary));
      positions.push_back(static_cast<int32_t>(t % shape.length));
    }
    types.resize(ids.size());
    for (int64_t s = 0; s <= shape.sequences; ++s)
      starts.push_back(static_cast<int32_t>(s * shape.length));
    for (int64_t s = 0; s < shape.sequences; ++s)
      labels.push_back(static_cast<int32_t>(random() % 2));
    batch = {.shape = {.tokens = tokens, .n_seqs_max = shape.sequences, .max_length = shape.length},
             .n_seqs = shape.sequences,
             .n_seqs_real = shape.sequences,
             .n_label_items = shape.sequences,
             .input_ids = ids,
             .type_ids = types,
             .position_ids = positions,
             .cu_seqlens = starts,
             .labels = std::as_bytes(std::span(labels))};
  }
  std::vector<int32_t> ids, types, positions, starts, labels;
  HostBatch batch;
};

SmallRun::SmallRun(const ModelTable& model,
                   const SmallModel& shape,
                   bool cuda,
                   Place place,
                   int64_t n_micro,
                   int gpu)
    : batch_(std::make_unique<Batch>(shape)), batches_(static_cast<size_t>(n_micro)) {
  PlanRequest request;
  request.has_gpu = cuda;
  request.train_batch_size = shape.sequences * n_micro;
  request.micro_batch_size = shape.sequences;
  request.max_length = shape.length;
  request.gpu_budget_bytes = INT64_MAX;
  request.host_budget_bytes = read_host_memory().budget_bytes();
  if (cuda) request.placement = place;
  plan_ = make_plan(model, request);
  SessionOptions options;
  options.device = cuda ? DeviceKind::cuda : DeviceKind::cpu;
  options.device_index = gpu;
  options.n_workers = n_usable_threads();
  options.optimizer.schedule = {.learning_rate = 2e-5, .n_steps = 1000};
  options.optimizer.loss_scaling = model.compute == DType::f16;
  session_ = std::make_unique<Session>(model, plan_.shape, plan_.layout, plan_.largest, options);
  initialise_weights(model, 1, session_->segments());
  std::ranges::fill(batches_, batch_->batch);
}
SmallRun::~SmallRun() = default;

void SmallRun::step() {
  session_->step(batches_);
}

double SmallRun::seconds_of_step() {
  return time_of_step(*session_, batches_);
}

void SmallRun::settle() {
  session_->executor().settle();
}

namespace {

double ms_of_step(
    const ModelTable& model, const SmallModel& shape, bool cuda, Place place, double seconds) {
  SmallRun run(model, shape, cuda, place, /*n_micro=*/1);
  // Updates go on under the next step, so steps are timed in a row.
  constexpr int kWarmUp = 3, kSteps_min = 3, kSteps_max = 50;
  std::vector<double> took_s;
  const auto start = Clock::now();
  for (int step = 0; step < kSteps_max; ++step) {
    const auto begin = Clock::now();
    run.step();
    if (step >= kWarmUp) took_s.push_back(seconds_since(begin));
    if (static_cast<int>(took_s.size()) >= kSteps_min && seconds_since(start) >= seconds) break;
  }
  run.settle();
  return rounded(median(took_s) * 1e3);
}

}  // namespace

std::vector<StepTime> measure_steps(const MeasureOptions& options,
                                    std::vector<std::string>& skipped) {
  set_up_torch({.intra_op_threads = n_usable_threads()});
  const CudaProbe probe = options.uses_gpu ? probe_cuda() : CudaProbe{};
  const bool cuda = probe.usable, is_new = cuda && probe.compute_capability >= 80;
  const DType type = !cuda ? DType::f32 : is_new ? DType::bf16 : DType::f16;
  const SmallModel& shape = cuda ? kGpuShape : kCpuShape;
  const PlanMachine machine = {.has_gpu = cuda, .compute_capability = probe.compute_capability};
  const ModelTable model = make_small_model(shape, type, choose_attention(type, machine));
  std::vector<StepTime> times;
  const std::vector<Place> places =
      cuda ? std::vector<Place>{Place::device, Place::host} : std::vector<Place>{Place::device};
  for (const Place place : places) {
    const std::string name = !cuda                    ? "CPU"
                             : place == Place::device ? "resident"
                                                      : "streamed from host memory";
    try {
      times.push_back({fmt::format("BERT {} x {}, {} x {} tokens, {}", shape.layers, shape.width,
                                   shape.sequences, shape.length, name_of(type)),
                       name, ms_of_step(model, shape, cuda, place, options.seconds / 6)});
    } catch (const Error& error) {
      skipped.push_back(fmt::format("a step, {}: {}", name, error.what()));
    }
  }
  return times;
}

}  // namespace ferry::measure
