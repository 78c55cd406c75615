#pragma once
// Whole training steps of a small model of random weights, through the engine that trains. Private
// to src/measure.

#include <memory>
#include <string>
#include <vector>

#include "models/core/tensor_table.h"
#include "src/engine/session.h"
#include "src/measure/measure.h"
#include "src/plan/plan.h"

namespace ferry::measure {

/** A BERT of few layers, and the texts of a micro-batch. */
struct SmallModel {
  int64_t layers, width, heads, sequences, length;
};
ModelTable make_small_model(const SmallModel& shape, DType type, AttentionBackend attention);

/** A small model that trains. `model` outlives it. */
class SmallRun {
 public:
  SmallRun(const ModelTable& model,
           const SmallModel& shape,
           bool cuda,
           Place place,
           int64_t n_micro,
           int gpu = 0);
  ~SmallRun();
  /** One step; its updates may go on under the next one. */
  void step();
  /** Seconds of a step, as src/engine/step_time.h times it. */
  double seconds_of_step();
  void settle();
  const Plan& plan() const { return plan_; }

 private:
  struct Batch;
  std::unique_ptr<Batch> batch_;
  std::vector<HostBatch> batches_;  // the same one, for each micro-batch
  Plan plan_;
  std::unique_ptr<Session> session_;
};

struct StepTime {
  std::string model;      ///< "BERT 6 x 1024, 8 x 128 tokens, bf16"
  std::string placement;  ///< "resident", "host"
  double ms = 0;          ///< a step, the median
};

/** On the GPU where one can be used, with weights and states there and in host memory; else on the
 * CPU. What does not fit is named in `skipped`. */
std::vector<StepTime> measure_steps(const MeasureOptions& options,
                                    std::vector<std::string>& skipped);

}  // namespace ferry::measure
