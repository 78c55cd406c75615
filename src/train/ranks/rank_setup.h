#pragma once
// The leading rank tells the others of a session by a RankSetup: settings, model, the place of each
// byte. It is JSON between processes of the same Ferry.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/core/tensor_table.h"
#include "src/train/prepare/session_options.h"

namespace ferry {

struct RankSetup {
  config::Config config;
  std::string run_id;  ///< names the files of states on a drive while they have names
  std::string model_config, model_origin;  ///< config.json, and where it was read
  HeadKind head{};
  int64_t n_labels = 0;
  BatchShape largest;
  SessionFacts facts;
  /** Of a step's shape what the planner chose: the rest follows from the model. */
  StepShape shape;
};

nlohmann::ordered_json to_json(const RankSetup& setup);
/** `setup.shape` gets what was chosen; its blocks have places and activations alone. */
RankSetup setup_in(const nlohmann::ordered_json& json);

/** Gives a shape of the model the choices of another. */
void take_choices(const StepShape& from, StepShape& to);

}  // namespace ferry
