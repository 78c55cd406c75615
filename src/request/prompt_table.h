#pragma once
// The parts of a tensor table that prompts add: a head that labels' words make, and soft tokens. No
// torch.

#include "models/family.h"
#include "src/config/config.h"
#include "src/files/hf/hf_config.h"

namespace ferry {

/** A table of words in pieces has no place for what prompts add. To be called before the table is
 * made; `head` is the task's. */
void keep_words_whole(const config::Config& config, HeadKind head, TableOptions& options);

/** Gives the table of a language model what the configuration's prompt says, or without one as many
 * labels. Throws Error(usage) where ranks share the layers or the tokens. */
void add_prompt(const HfConfig& hf, int64_t n_labels, const Sharing& sharing, ModelTable& model);

}  // namespace ferry
