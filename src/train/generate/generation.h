#pragma once
// A language model goes on with prompts: a token for each of them a pass, by the executor's
// forward-only step, so that models larger than the card generate too. With a cache the first
// passes take the prompts and each later one the newest tokens; without, each takes the whole
// texts. `ferry generate` calls it, and a training that shows samples, between two steps.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/chat/encoder.h"
#include "src/inputs/prompts.h"
#include "src/train/prepare/job.h"

namespace ferry {

enum class Ending : uint8_t { length, end_of_text, stop, context, interrupted };
/** As `ferry generate --json` names it. */
std::string_view name_of(Ending ending);

struct Generated {
  std::vector<int32_t> ids;  ///< the token that ended the text too
  std::string text;
  Ending ending{};
};

/** Text of a prompt's as it comes, and what came of a prompt; the prompts in order. */
using TakeText = std::function<void(std::string_view text)>;
using TakeGenerated = std::function<void(const Prompt& prompt, const Generated& generated)>;

/** The job of `ferry generate`, with its generation. Throws Error for what is wrong with settings,
 * model or prompts. */
Job prepare_generation(config::Config config, const std::vector<std::string>& words);

/** Goes on with the prompts of job.generation, as many at once as the plan has room for.
 * `take_text`, which may be empty, gets the text of a single prompt as it comes. `goes_on` is asked
 * before each pass; what was begun is dropped once it said no, and the answer is false. Throws
 * Error(diverged) where the model's outputs are not finite. */
bool generate_unless(Session& session,
                     const Job& job,
                     const std::function<bool()>& goes_on,
                     const TakeText& take_text,
                     const TakeGenerated& take);

/** The job of a chat, and the model's chat template. The plan has room for one text as long as the
 * context, for which the only prompt of job.generation stands. */
struct ChatJob {
  Job job;
  std::shared_ptr<const chat::ChatEncoder> encoder;
};
/** Throws Error as prepare_generation() does. */
ChatJob prepare_chat(config::Config config);

/** The tokens of one text whose keys and values the session keeps, so that a text that begins alike
 * is read from where it differs. */
struct KeptText {
  std::vector<int32_t> ids;
};

/** Goes on with one prompt by a rule whose context is the job's; the `index`-th of its kind, by
 * which tokens are drawn. `take_text` gets the text as it comes. Where `goes_on` says no, what has
 * come is given with Ending::interrupted. Throws Error(diverged) where the model's outputs are not
 * finite. */
Generated go_on_with(Session& session,
                     const Job& job,
                     const GenerationRule& rule,
                     const Prompt& prompt,
                     int64_t index,
                     KeptText& kept,
                     const std::function<bool()>& goes_on,
                     const TakeText& take_text);

/** The outputs of a model along a text. */
struct AlongText {
  std::vector<int32_t> ids;                ///< behind the prompt
  std::vector<std::vector<float>> logits;  ///< (vocabulary), before each of them
};
/** The `given` tokens behind the job's only prompt, or where there are none the likeliest ones, `n`
 * in all. Throws Error(diverged) where the outputs are not finite. */
AlongText go_along(Session& session, const Job& job, std::span<const int32_t> given, int64_t n);

/** Seconds that a generation takes: of as many prompts as are gone on with at once, and of one more
 * token of each. */
struct GenerationSeconds {
  double prompts_s = 0, token_s = 0;
};
/** Measures by generating one token. The first call on a GPU loads kernels, too. */
GenerationSeconds time_generation(Session& session, const Job& job);

/** Groups of prompts that are gone on with one after another. */
int64_t n_groups(const Job& job);

/** An object's fields, as `ferry generate --json` prints them. */
JsonValue to_json(const Prompt& prompt, const Generated& generated);

}  // namespace ferry
