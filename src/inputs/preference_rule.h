#pragma once
// The settings of a loss of pairs of answers.

#include "models/core/preference.h"
#include "src/config/config.h"

namespace ferry {

/** Reads the options preference_loss, preference_beta, preference_margin, preference_sft,
 * kto_good_weight, kto_bad_weight and label_smoothing_factor. Throws Error(usage) where they do not
 * go together. */
PreferenceRule preference_rule_of(const config::Config& config);

}  // namespace ferry
