#include "src/inputs/counts.h"

#include <utility>

#include "src/data/run_dataset.h"

namespace ferry {

Steps count_steps(const config::Config& config, int64_t n_samples) {
  Steps steps;
  steps.per_epoch =
      steps_per_epoch(n_samples, {.train_batch_size = config.integer("train_batch_size")});
  steps.total =
      steps_of_run(steps.per_epoch, config.number("num_train_epochs"), config.integer("max_steps"));
  return steps;
}

SampleCounts sample_counts_of(const Data& data) {
  return {.samples = run_texts_of(data.train, data.eval),
          .n_tokens = data.train.n_tokens(),
          .bytes = data.bytes()};
}

CountedTexts count_texts(const config::Config& config,
                         SampleCounts counts,
                         int64_t max_length,
                         bool trains) {
  CountedTexts counted = {.texts = std::move(counts.samples), .bytes = counts.bytes};
  RunTexts& texts = counted.texts;
  texts.data_seed = shuffle_seed_of(config);
  texts.max_length = max_length;
  if (!trains) return counted;
  const int64_t longest = longest_text(texts.trained, texts.evaluated, max_length);
  if (longest != max_length) counted.note = note_of_lengths(longest, max_length);
  texts.max_length = longest;
  counted.steps = count_steps(config, static_cast<int64_t>(texts.trained.size()));
  const Steps& steps = counted.steps;
  if (steps.per_epoch == 0) return counted;
  texts.n_epochs = (steps.total + steps.per_epoch - 1) / steps.per_epoch;
  if (const auto sizes = config.maybe_text("token_sizes"))
    texts.token_sizes = parse_token_sizes(*sizes);
  return counted;
}

PlanRequest make_plan_request(const config::Config& config,
                              const ModelTable& model,
                              const PlanMachine& machine,
                              bool trains,
                              const CountedTexts& texts,
                              const GenerationShape& generation) {
  PlanRequest request = make_plan_request(config, model, machine, trains, texts.bytes);
  request.max_length = texts.texts.max_length;
  request.text_tokens = text_tokens_of(texts.texts);
  request.generation = generation;
  return request;
}

}  // namespace ferry
