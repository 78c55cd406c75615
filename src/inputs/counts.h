#pragma once
// A run in numbers: its steps, and the tokens of its samples. `ferry plan`, the app and training
// ask the planner with the same ones.

#include <cstdint>
#include <string>

#include "src/config/config.h"
#include "src/inputs/text_tokens.h"
#include "src/inputs/tokens.h"
#include "src/plan/plan.h"
#include "src/request/run_plan.h"

namespace ferry {

/** The steps of a training; a job that does not train has none. */
struct Steps {
  int64_t per_epoch = 0;
  int64_t total = 0;  ///< max_time may end the run sooner: this becomes its last step
  /** Epochs that so many steps are. */
  double epochs(int64_t n_steps) const {
    return static_cast<double>(n_steps) / static_cast<double>(per_epoch);
  }
};
/** Those of a training on so many samples. */
Steps count_steps(const config::Config& config, int64_t n_samples);

/** All that a plan needs of samples. */
struct SampleCounts {
  RunTexts samples;      ///< their tokens; how they are taken is open
  int64_t n_tokens = 0;  ///< of those that are trained on
  int64_t bytes = 0;     ///< of host memory, with those that are evaluated
  int64_t n_trained() const { return static_cast<int64_t>(samples.trained.size()); }
};
SampleCounts sample_counts_of(const Data& data);

/** Samples as a run with these settings takes them. */
struct CountedTexts {
  Steps steps;        ///< none where nothing is trained
  RunTexts texts;     ///< their max_length is the longest one's where the job trains
  int64_t bytes = 0;  ///< of host memory
  std::string note;   ///< says that memory is kept for shorter texts than max_length; else empty
};
CountedTexts count_texts(const config::Config& config,
                         SampleCounts counts,
                         int64_t max_length,
                         bool trains);

/** The request that a run on these texts, which also goes on with some, makes of the planner. */
PlanRequest make_plan_request(const config::Config& config,
                              const ModelTable& model,
                              const PlanMachine& machine,
                              bool trains,
                              const CountedTexts& texts,
                              const GenerationShape& generation);

}  // namespace ferry
