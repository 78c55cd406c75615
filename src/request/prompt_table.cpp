#include "src/request/prompt_table.h"

#include <limits>
#include <string>

#include "models/adapters/prompt_head.h"
#include "models/adapters/soft_tokens.h"
#include "src/base/error.h"
#include "src/files/hf/prompt_config.h"

namespace ferry {

void keep_words_whole(const config::Config& config, HeadKind head, TableOptions& options) {
  if (head == HeadKind::prompt || config.text("tuning") == "soft_prompt")
    options.piece_elements_max = std::numeric_limits<int64_t>::max();
}

void add_prompt(const HfConfig& hf, int64_t n_labels, const Sharing& sharing, ModelTable& model) {
  if (sharing.n_ranks() > 1)
    throw Error(Fault::usage, sharing.tp_size > 1 ? "config.tp_size" : "config.sp_size",
                "GPUs that share a micro-batch answer no prompts yet",
                "leave it out: GPUs share the samples or the blocks");
  const auto prompt = read_prompt_config(hf);
  PromptHead head;
  if (prompt)
    head = prompt->head;
  else  // of a plan, whose sizes do not depend on the words
    head.labels.words.assign(static_cast<size_t>(n_labels), {{0}});
  set_prompt_head(model, head);
  if (prompt && !prompt->soft_tokens.empty())
    add_soft_tokens(model, prompt->soft_tokens, std::string(kSoftRows), /*is_delta=*/false);
}

}  // namespace ferry
