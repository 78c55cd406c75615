#pragma once
// The settings of prompts: a template with the words of labels, and virtual tokens. Files that the
// options name are read here. No torch.

#include <memory>
#include <vector>

#include "src/config/config.h"
#include "src/files/hf/hf_directory.h"
#include "src/tasks/prompt/prompt_classification.h"

namespace ferry {

/** Null without a template, of a model that has no prompt either. Without a tokenizer words have no
 * tokens. Throws Error(usage) or Error(data) for files that are missing or damaged. */
std::shared_ptr<const PromptSettings> prompt_settings_of(const config::Config& config,
                                                         const HfConfig& model,
                                                         const Tokenizer* tokenizer);

/** Puts what files hold in place of their names, so that a run needs them no more. */
void keep_prompt(config::Config& config);
/** Throws Error(usage) for a template beside a task that asks for no word. */
void check_prompt_task(const config::Config& config, const TaskKind& kind);

/** The command line asks a language model with a template that it was not trained with. */
bool asks_by_prompt(const config::Config& config, const TaskKind& kind);

/** The tokens before each text of a training with tuning = soft_prompt. */
VirtualTokens virtual_tokens_of(const config::Config& config, const HfConfig& model);
/** The same of an adapter. */
VirtualTokens virtual_tokens_of(const HfDirectory& model);
/** Throws Error(usage) for virtual tokens beside a task that has no place for them, and for a text
 * to start as that is not there. */
void check_virtual_tokens(const config::Config& config, const TaskKind& kind);
/** The tokens that virtual ones start as by prompt_tuning_init = text. */
std::vector<SoftToken> starts_of_text(const config::Config& config, const Tokenizer& tokenizer);

}  // namespace ferry
