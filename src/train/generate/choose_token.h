#pragma once
// The next token by its logits: the likeliest, or one that is drawn. No torch.

#include <cstdint>
#include <span>

#include "src/inputs/sampling_rule.h"

namespace ferry {

/** The token that a number `u` in [0, 1) stands for; where tokens are as likely, the first of them
 * counts as likelier. Logits are finite. */
int32_t choose_token(std::span<const float> logits, const SamplingRule& rule, double u);

/** The number in [0, 1) for token `token` of prompt `prompt`: it depends on nothing else, so that a
 * generation repeats whatever it shares a batch with. */
double random_of_token(uint64_t seed, int64_t prompt, int64_t token);

}  // namespace ferry
