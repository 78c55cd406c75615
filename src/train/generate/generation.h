#pragma once
// A language model goes on with prompts: a token for each of them a pass, by the executor's
// forward-only step, so that models larger than the card generate too. With a cache the first pass
// takes the prompts and each later one the newest tokens; without, each takes the whole texts.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/train/generate/choose_token.h"
#include "src/train/prepare/job.h"

namespace ferry {

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
};

struct GenerationRule {
  int64_t n_new_max = 0;  ///< tokens
  int64_t context = 0;    ///< tokens that the model takes
  bool uses_cache = true;
  uint64_t seed = 0;
  SamplingRule sampling;
  std::vector<int32_t> end_ids;    ///< tokens that end a text
  std::vector<std::string> stops;  ///< texts that end one
};

enum class Ending : uint8_t { length, end_of_text, stop, context };
/** As `ferry generate --json` names it. */
std::string_view name_of(Ending ending);

struct Generated {
  std::vector<int32_t> ids;  ///< the token that ended the text too
  std::string text;
  Ending ending{};
};

struct GenerationJob {
  Job job;
  GenerationRule rule;
  std::vector<Prompt> prompts;
};

/** Everything before the first token: model, prompts, plan. Throws Error for what is wrong with
 * them. */
GenerationJob prepare_generation(config::Config config, const std::vector<std::string>& words);

/** Text of a prompt's as it comes, and what came of a prompt; the prompts in order. */
using TakeText = std::function<void(std::string_view text)>;
using TakeGenerated = std::function<void(const Prompt& prompt, Generated generated)>;

/** Goes on with all prompts, as many at once as the plan has room for. `take_text`, which may be
 * empty, gets the text of a single prompt as it comes. */
void generate(Session& session,
              const GenerationJob& job,
              const TakeText& take_text,
              const TakeGenerated& take);

}  // namespace ferry
