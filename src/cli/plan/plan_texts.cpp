#include "src/cli/plan/plan_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/print.h"
#include "src/base/threads.h"
#include "src/data/run_dataset.h"
#include "src/data/sampler.h"
#include "src/train/generate/prompts.h"
#include "src/train/prepare/text_tokens.h"
#include "src/train/prepare/tokens.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

int64_t steps_of_epoch(int64_t n_samples, const config::Config& config) {
  return steps_per_epoch(n_samples, {.train_batch_size = config.integer("train_batch_size")});
}

int64_t steps_of(int64_t n_samples, const config::Config& config) {
  return steps_of_run(steps_of_epoch(n_samples, config), config.number("num_train_epochs"),
                      config.integer("max_steps"));
}

/** Reads them all. */
int64_t n_training_examples(const Texts& texts, uint64_t seed) {
  int64_t n = 0;
  const auto examples = texts.train.examples();
  for (Example example; examples->next(example);)
    n += begins_text(example.part);
  return texts.held_out > 0 ? std::ssize(split(n, texts.held_out, seed).train) : n;
}

}  // namespace

PlannedTexts count_texts(const std::optional<Texts>& texts,
                         const config::Config& config,
                         const std::optional<fs::path>& model_directory,
                         int64_t max_length) {
  PlannedTexts counted;
  const int64_t max_steps = config.integer("max_steps");
  if (max_steps >= 0) counted.n_steps = max_steps;
  if (!texts) return counted;
  // Without a tokenizer nobody knows how many samples a long text is.
  counted.n_steps = steps_of(n_training_examples(*texts, shuffle_seed_of(config)), config);
  if (!model_directory || !Tokenizer::is_in(*model_directory)) {
    log_line(fmt::format("the model's tokenizer is not here: each text counts as {} tokens",
                         max_length));
    return counted;
  }
  const Tokenizer tokenizer = Tokenizer::open(*model_directory);
  const Data data = tokenize(
      *texts, tokenizer,
      token_settings(config, *texts->task, *model_directory, max_length, n_usable_threads()));
  for (const std::string& note : data.notes)
    log_line(note);
  RunTexts run = run_texts_of(data.train, data.eval);
  run.data_seed = shuffle_seed_of(config);
  run.max_length = max_length;
  counted.n_steps = steps_of(data.train.size(), config);
  const int64_t per_epoch = steps_of_epoch(data.train.size(), config);
  run.n_epochs = (*counted.n_steps + per_epoch - 1) / per_epoch;
  counted.longest = longest_text(run.trained, run.evaluated, max_length);
  if (counted.longest < max_length) log_line(note_of_lengths(counted.longest, max_length));
  run.max_length = counted.longest;
  counted.bytes = data.bytes();
  counted.mean_tokens =
      static_cast<double>(data.train.n_tokens()) / static_cast<double>(data.train.size());
  counted.text_tokens = text_tokens_of(run);
  return counted;
}

GenerationShape count_samples(const config::Config& config,
                              const HfConfig& model,
                              const std::optional<fs::path>& model_directory,
                              int64_t max_length,
                              int64_t context) {
  const auto n_prompts = sample_texts(config).size();
  if (n_prompts == 0) return {};
  if (model_directory && Tokenizer::is_in(*model_directory))
    return shape_of(
        samples_of(config, *model_directory, model, Tokenizer::open(*model_directory), context));
  Prompt any;
  any.ids.resize(static_cast<size_t>(std::min(max_length, context)));
  const Generation samples = {.rule = {.n_new_max = config.integer("max_new_tokens"),
                                       .context = context,
                                       .n_sequences_max = kSamplesAtOnce},
                              .prompts = {n_prompts, any}};
  return shape_of(samples);
}

}  // namespace ferry::cli
