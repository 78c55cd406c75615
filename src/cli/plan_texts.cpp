#include "src/cli/plan_texts.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/print.h"
#include "src/base/threads.h"
#include "src/data/run_dataset.h"
#include "src/train/prepare/text_tokens.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> steps_of(const std::optional<Texts>& texts, const config::Config& config) {
  const int64_t max_steps = config.integer("max_steps");
  if (max_steps >= 0) return max_steps;
  if (!texts) return std::nullopt;
  const StepSplit steps = {.train_batch_size = config.integer("train_batch_size")};
  return steps_of_run(steps_per_epoch(static_cast<int64_t>(texts->train.examples.size()), steps),
                      config.number("num_train_epochs"), max_steps);
}

}  // namespace

PlannedTexts count_texts(std::optional<Texts> texts,
                         const config::Config& config,
                         const std::optional<fs::path>& model_directory,
                         int64_t max_length) {
  PlannedTexts counted{.n_steps = steps_of(texts, config)};
  if (!texts) return counted;
  if (!model_directory || !Tokenizer::is_in(*model_directory)) {
    log_line(fmt::format("the model's tokenizer is not here: each text counts as {} tokens",
                         max_length));
    return counted;
  }
  const Tokenizer tokenizer = Tokenizer::open(*model_directory);
  const Data data = tokenize(*std::move(texts), tokenizer, max_length, n_usable_threads());
  RunTexts run = {.trained = data.train.lengths(),
                  .evaluated = data.eval.lengths(),
                  .data_seed = shuffle_seed_of(config),
                  .max_length = max_length};
  const int64_t per_epoch =
      steps_per_epoch(data.train.size(), {.train_batch_size = config.integer("train_batch_size")});
  run.n_epochs = (*counted.n_steps + per_epoch - 1) / per_epoch;
  counted.longest = longest_text(run.trained, run.evaluated, max_length);
  if (counted.longest < max_length) log_line(note_of_lengths(counted.longest, max_length));
  run.max_length = counted.longest;
  counted.bytes = data.train.bytes() + data.eval.bytes();
  counted.mean_tokens =
      static_cast<double>(data.train.n_tokens()) / static_cast<double>(data.train.size());
  counted.text_tokens = text_tokens_of(run);
  return counted;
}

}  // namespace ferry::cli
