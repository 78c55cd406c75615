#include "src/cli/plan_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/print.h"
#include "src/base/threads.h"
#include "src/data/run_dataset.h"
#include "src/data/sampler.h"
#include "src/data/tokenized.h"
#include "src/train/prepare/text_tokens.h"
#include "src/train/prepare/tokenize.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

bool has_tokenizer(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / "tokenizer.json", error) ||
         fs::exists(directory / "vocab.txt", error);
}

std::optional<int64_t> steps_of(const std::optional<PlannedData>& data,
                                const config::Config& config) {
  const int64_t max_steps = config.integer("max_steps");
  if (max_steps >= 0) return max_steps;
  if (!data) return std::nullopt;
  const StepSplit steps = {.train_batch_size = config.integer("train_batch_size")};
  return steps_of_run(steps_per_epoch(static_cast<int64_t>(data->train.examples.size()), steps),
                      config.number("num_train_epochs"), max_steps);
}

}  // namespace

std::optional<PlannedData> read_planned_data(const config::Config& config) {
  const std::string &path = config.text("dataset"), &eval_path = config.text("eval_dataset");
  if (path.empty()) return std::nullopt;
  const auto setting = [&](std::string_view key) { return config.maybe_text(key); };
  const LabelUse labels = config.text("task") == "mlm" ? LabelUse::ignored : LabelUse::required;
  PlannedData data{.train = read_dataset(dataset_options(setting, path, labels)),
                   .eval = {},
                   .data_seed = static_cast<uint64_t>(
                       config.maybe_integer("data_seed").value_or(config.integer("seed")))};
  if (!eval_path.empty()) {
    data.eval = read_dataset(dataset_options(setting, eval_path, labels), data.train.scheme);
  } else if (const double fraction = config.number("eval_fraction"); fraction > 0) {
    const Split parts =
        split(static_cast<int64_t>(data.train.examples.size()), fraction, data.data_seed);
    data.eval = select(data.train, parts.eval);
    data.train = select(data.train, parts.train);
  }
  return data;
}

int64_t n_labels_of(const Dataset& data) {
  if (data.scheme.problem == ProblemType::regression) return 1;
  return std::max<int64_t>(data.scheme.labels.size(), 1);
}

PlannedTexts count_texts(const std::optional<PlannedData>& data,
                         const config::Config& config,
                         const std::optional<fs::path>& model_directory,
                         int64_t max_length) {
  PlannedTexts counted{.n_steps = steps_of(data, config)};
  if (!data) return counted;
  if (!model_directory || !has_tokenizer(*model_directory)) {
    log_line(fmt::format("the model's tokenizer is not here: each text counts as {} tokens",
                         max_length));
    return counted;
  }
  const Tokenizer tokenizer = Tokenizer::open(*model_directory);
  const Tokenize tokenize = tokenize_with(tokenizer, max_length);
  const auto tokens_of = [&](const Dataset& texts) {
    return tokenize_dataset(texts, tokenize, {}, n_usable_threads());
  };
  const TokenizedDataset train = tokens_of(data->train), eval = tokens_of(data->eval);
  RunTexts texts = {.trained = train.lengths(),
                    .evaluated = eval.lengths(),
                    .data_seed = data->data_seed,
                    .max_length = max_length};
  const int64_t per_epoch =
      steps_per_epoch(train.size(), {.train_batch_size = config.integer("train_batch_size")});
  texts.n_epochs = (*counted.n_steps + per_epoch - 1) / per_epoch;
  counted.longest = longest_text(texts.trained, texts.evaluated, max_length);
  if (counted.longest < max_length) log_line(note_of_lengths(counted.longest, max_length));
  texts.max_length = counted.longest;
  counted.bytes = train.bytes() + eval.bytes();
  counted.mean_tokens = static_cast<double>(train.n_tokens()) / static_cast<double>(train.size());
  counted.text_tokens = text_tokens_of(texts);
  return counted;
}

}  // namespace ferry::cli
