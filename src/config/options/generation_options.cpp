// Options of `ferry generate` and of a training's samples: how many tokens, how they are drawn,
// where a text ends.

#include "src/config/options/option_groups.h"

namespace ferry::config {
namespace {

constexpr std::string_view kGenerationGroup = "Generation", kSampleGroup = "Samples",
                           kServerGroup = "Server";
constexpr VerbMask kGenerating = kGenerate | kTalking | kTraining;

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
       .unit = "steps, share below 1, or time",
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
      {.key = "port",
       .label = "Port",
       .type = Type::integer,
       .group = kServerGroup,
       .level = Level::basic,
       .value = "8080",
       .unit = "TCP port",
       .special = {"0", "any that is free"},
       .range = {0, 65535},
       .verbs = kServe,
       .help = "Port at which ferry serve listens. The address that programs are given is "
               "http://localhost:PORT/v1."},
      {.key = "host",
       .label = "Address",
       .type = Type::text,
       .group = kServerGroup,
       .value = "127.0.0.1",
       .verbs = kServe,
       .help = "Address of this machine at which ferry serve listens. 127.0.0.1 is for programs of "
               "this machine alone; 0.0.0.0 is for everybody who reaches it, and api_key should "
               "then be set."},
      {.key = "api_key",
       .label = "API key",
       .type = Type::text,
       .group = kServerGroup,
       .value = "",
       .verbs = kServe,
       .help =
           "Key that programs must send (Authorization: Bearer KEY). Where it is empty, none is "
           "asked for. FERRY_API_KEY keeps it out of the list of processes."},
      {.key = "allow_origin",
       .label = "Web pages that may ask",
       .type = Type::text,
       .group = kServerGroup,
       .value = "",
       .verbs = kServe,
       .help = "Origin of web pages whose scripts may ask the server, as https://my.site, or * for "
               "all (CORS). Where it is empty, browsers let none."},
  };
}

}  // namespace ferry::config
