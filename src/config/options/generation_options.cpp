// Options of `ferry generate` and of a training's samples: how many tokens, how they are drawn,
// where a text ends.

#include "src/config/options/option_groups.h"

namespace ferry::config {
namespace {

constexpr std::string_view kGenerationGroup = "Generation", kSampleGroup = "Samples";
constexpr VerbMask kGenerating = kGenerate | kTraining;

}  // namespace

std::vector<Option> generation_options() {
  return {
      {.key = "sample_prompts",
       .label = "Prompts of samples",
       .type = Type::text,
       .group = kSampleGroup,
       .value = "",
       .help =
           "Beginnings of texts with which a training of task = causal-lm goes on, to show what "
           "it learns: a text, or a file with one a line (.txt) or a row (.jsonl, .csv, ...: "
           "column text or prompt). \\n stands for the end of a line. The samples go to the "
           "run's samples/ and, shortened, to the terminal; they change nothing else. Empty: "
           "none."},
      {.key = "sample_steps",
       .label = "Sample every",
       .type = Type::interval,
       .group = kSampleGroup,
       .value = "0.1",
       .unit = "steps, share of all below 1, or time",
       .range = {0, kMaxInteger},
       .help =
           "Steps or time (30min) between two samples of each prompt; before the first step and "
           "after the last there are some, too. Training waits meanwhile."},
      {.key = "max_new_tokens",
       .label = "New tokens",
       .type = Type::integer,
       .group = kGenerationGroup,
       .level = Level::basic,
       .value = "128",
       .unit = "tokens",
       .range = {1, 1048576},
       .aliases = {{"n_predict"}},
       .verbs = kGenerating,
       .help =
           "Tokens that are added to a prompt, at most; the model's context and the end-of-text "
           "token may end it sooner. Memory for keys and values grows with it. This and the "
           "options "
           "below are those of ferry generate and of sample_prompts."},
      {.key = "temperature",
       .label = "Temperature",
       .type = Type::number,
       .group = kGenerationGroup,
       .level = Level::basic,
       .value = "auto",
       .unit = "divisor of the scores",
       .special = {"0", "the likeliest token"},
       .can_be_auto = true,
       .range = {0, 100},
       .verbs = kGenerating,
       .help = "0 takes the likeliest token each time; above, tokens are drawn by their "
               "probabilities, which a lower value sharpens and a higher one flattens. auto is 1 "
               "with top_k or top_p, else 0."},
      {.key = "top_k",
       .label = "Likeliest tokens (top-k)",
       .type = Type::integer,
       .group = kGenerationGroup,
       .value = "0",
       .unit = "tokens",
       .special = {"0", "all tokens"},
       .range = {0, kMaxInteger},
       .verbs = kGenerating,
       .help = "Tokens are drawn among so many of the likeliest; 0 is all of them."},
      {.key = "top_p",
       .label = "Likeliest share (top-p)",
       .type = Type::number,
       .group = kGenerationGroup,
       .value = "1",
       .unit = "share of probability",
       .special = {"1", "all tokens"},
       .range = {0, 1},
       .verbs = kGenerating,
       .help = "Tokens are drawn among the likeliest whose probabilities add up to this; 1 is all "
               "of them, and the likeliest is always there."},
      {.key = "stop",
       .label = "Stop texts",
       .type = Type::list,
       .group = kGenerationGroup,
       .value = "",
       .aliases = {{"stop_strings"}},
       .verbs = kGenerating,
       .help =
           "Texts that end a generation where they come, separated by commas; they are left out "
           "of it. \\n stands for the end of a line, \\t for a tab."},
      {.key = "kv_cache",
       .label = "Keep keys and values",
       .type = Type::boolean,
       .group = kGenerationGroup,
       .value = "true",
       .verbs = kGenerate,
       .help = "Keep the keys and values of each token, so that a new one goes through the model "
               "alone. false saves their memory and computes the whole text again for each token."},
  };
}

}  // namespace ferry::config
