#pragma once
// Preflight: faults of a training's texts and settings that raise no error, and show days later in
// a model that never stops, has learnt nothing, or answers by another template. They are looked for
// before the first step, on all tokens where that is quick. `ferry train`, `ferry preview` and the
// app ask it: no torch.

#include <string>
#include <string_view>
#include <vector>

#include "src/config/config.h"
#include "src/files/hf/hf_config.h"
#include "src/inputs/data.h"
#include "src/inputs/tokens.h"
#include "src/text/tokenizer.h"

namespace ferry {

enum class Gravity : uint8_t {
  warning,  ///< the run goes on
  error,    ///< training would be in vain: it does not begin
};

struct PreflightFinding {
  std::string_view check;  ///< the name of the check: "stop_token"
  Gravity gravity = Gravity::warning;
  std::string text;  ///< "12 of 80 answers are empty, first in text 7"
  std::string hint;  ///< what to do
};

/** The run that is looked at; all parts outlive the call. */
struct PreflightInputs {
  const config::Config& config;
  const HfConfig& model;
  chat::ModelFiles files;
  const Texts& texts;
  const Data& data;
  const Tokenizer& tokenizer;
};

/** Faults first, then warnings. Empty where preflight is off. */
std::vector<PreflightFinding> preflight(const PreflightInputs& inputs);

/** A line for each warning, with its text and its hint. Throws Error(data) "preflight.CHECK" for
 * the first fault. */
std::vector<std::string> take_warnings(const std::vector<PreflightFinding>& findings);

}  // namespace ferry
