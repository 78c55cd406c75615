#include "src/service/preview.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "models/core/tensor_table.h"
#include "src/base/error.h"
#include "src/base/process/threads.h"
#include "src/base/utf8.h"
#include "src/config/models/models.h"
#include "src/data/batch.h"
#include "src/data/step_plan.h"
#include "src/data/tokens/token_writer.h"
#include "src/files/hf/hf_config.h"
#include "src/inputs/data.h"
#include "src/inputs/given_data.h"
#include "src/inputs/model_files.h"
#include "src/inputs/tokens.h"
#include "src/request/run_plan.h"
#include "src/runs/directory/checkpoints.h"
#include "src/tasks/task.h"
#include "src/text/tokenizer.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;

/** No more of a document is looked at, and no more rows of a batch are kept. */
constexpr size_t kDocument_bytes = 64 << 10;
constexpr size_t kBatchRows = 256;
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/** The configuration of the model, and the directory of its tokenizer. */
struct ModelFiles {
  HfConfig config;
  fs::path directory;
};

ModelFiles model_files(const config::Config& config) {
  if (const std::string& from = config.text("resume_from_checkpoint"); !from.empty())
    if (const auto resumed = runs::find_resume_point(from); resumed.checkpoint) {
      const fs::path& path = resumed.checkpoint->path;
      return {HfConfig::load(path / "config.json"), path};
    }
  if (draws_weights(config)) {
    ScratchModel model = find_scratch_model(config);
    if (!model.tokenizer)
      throw Error(Fault::data, "preview.open",
                  fmt::format("of '{}' the shape is known, and no tokenizer is on this machine",
                              config.text("config_name")),
                  "--tokenizer takes a directory with tokenizer.json, vocab.txt or the like");
    return {std::move(model.config), std::move(*model.tokenizer)};
  }
  const fs::path directory = config::find_model(config.text("model_name_or_path"));
  return {HfConfig::load(config::config_file_of(directory)), directory};
}

/** Samples of one example after another. */
class Sampling {
 public:
  Sampling(const Texts& texts,
           const Tokenizer& tokenizer,
           const config::Config& config,
           int64_t max_length)
      : task_(*texts.task),
        has_labels_(texts.train.has_labels),
        tokenizer_(tokenizer),
        seed_(static_cast<uint64_t>(config.integer("seed"))),
        max_length_(max_length) {}

  /** Appends the sequences of an example: all of them, but of a document that was shortened the
   * last, which goes on. False where the example is left out. */
  bool add(Example example, int64_t place, std::vector<PreviewSample>& out) const {
    const bool is_shortened = shorten(example);
    std::vector<TokenizedExample> sequences;
    task_.encode(example, tokenizer_, max_length_, sequences);
    if (is_shortened && sequences.size() > 1) sequences.pop_back();
    const std::vector<TokenPlaces> places = task_.places(example, tokenizer_, max_length_);
    const TokenizedDataset data = dataset_of(example, sequences);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto part = static_cast<int64_t>(i);
      const Example seen = task_.seen_in(example, part);
      PreviewSample sample = {.example = place,
                              .part = part,
                              .n_parts = std::ssize(sequences),
                              .part_name = std::string(task_.name_of_sequence(part)),
                              .fields = fields_of(seen),
                              .text = seen.text,
                              .text_pair = seen.text_pair.value_or(std::string()),
                              .answer = has_labels_ ? task_.answer(example) : std::string(),
                              .is_truncated = sequences[i].truncated,
                              .is_chat = example.is_chat};
      fill_tokens(data, static_cast<int64_t>(i), sample);
      if (i < places.size())
        set_places(places[i], sample);
      else
        set_text_of_tokens(sample);
      out.push_back(std::move(sample));
    }
    return !sequences.empty();
  }

  /** Sequence `s` of a micro-batch with its labels: tokens and what is trained on, without places.
   */
  void fill_tokens(const MicroBatch& batch,
                   size_t s,
                   const TokenizedDataset& data,
                   PreviewSample& out) const {
    const auto begin = static_cast<size_t>(batch.cu_seqlens[s]);
    const auto n = static_cast<size_t>(batch.cu_seqlens[s + 1]) - begin;
    for (size_t i = 0; i < n; ++i) {
      const int32_t id = batch.input_ids[begin + i];
      out.tokens.push_back({.id = id, .piece = piece_of(id)});
    }
    for (AskedToken& asked : task_.asked_tokens(batch, s, tokenizer_))
      if (asked.token < n) {
        out.tokens[asked.token].is_trained = true;
        out.tokens[asked.token].target = std::move(asked.target);
      }
    if (task_.head() != HeadKind::classification && task_.head() != HeadKind::prompt) return;
    out.has_answer = has_labels_;
    if (out.answer.empty() && has_labels_) out.answer = task_.answer(data, batch.samples[s]);
  }

  int32_t pad() const { return std::max(tokenizer_.special_ids().pad, 0); }

 private:
  /** Cuts a long document between two characters. */
  static bool shorten(Example& example) {
    const bool goes_on = !ends_text(example.part);
    example.part = TextPart::whole;
    if (example.text_pair || example.is_chat || example.text.size() <= kDocument_bytes)
      return goes_on;
    example.text.resize(kDocument_bytes);
    example.text.resize(std::min(first_invalid_utf8(example.text), example.text.size()));
    return true;
  }

  TokenizedDataset dataset_of(const Example& example,
                              const std::vector<TokenizedExample>& sequences) const {
    MemoryWriter tokens({.has_labels = has_labels_});
    tokens.add_example(example);
    for (const TokenizedExample& sequence : sequences)
      tokens.add(sequence);
    return TokenizedDataset(tokens.finish());
  }

  void fill_tokens(const TokenizedDataset& data, int64_t sample, PreviewSample& out) const {
    const int64_t one[] = {sample};
    MicroBatch batch = collate(data, one, {}, pad());
    task_.label(batch, data, tokenizer_, {.seed = seed_});
    fill_tokens(batch, 0, data, out);
  }

  const std::string& piece_of(int32_t id) const {
    static const std::string none;
    return id >= 0 && id < tokenizer_.vocab_size() ? tokenizer_.id_to_token(id) : none;
  }

  /** Sets the places of tokens that are those of the text. A token that was drawn to be asked for
   * keeps its place, and another stands there. */
  void set_places(const TokenPlaces& places, PreviewSample& sample) const {
    for (size_t i = 0; i < std::min(places.size(), sample.tokens.size()); ++i) {
      PreviewToken& token = sample.tokens[i];
      const bool is_hidden = task_.draws_asked_tokens() && token.is_trained;
      if (token.id != places[i].id && !is_hidden) continue;
      token.text = places[i].text;
      token.bytes = places[i].bytes;
    }
  }

  /** The text that a template made is not in the data: its tokens spell it. A character that takes
   * several tokens is the place of each of them. */
  void set_text_of_tokens(PreviewSample& sample) const {
    constexpr size_t kTokensOfCharacter_max = 8;
    sample.text.clear();
    sample.text_pair.clear();
    // How a token is written may depend on the one before it.
    std::vector<int32_t> window;
    std::string settled;
    size_t n_settled = 0, first = 0;
    for (size_t i = 0; i < sample.tokens.size(); ++i) {
      window.push_back(sample.tokens[i].id);
      const std::string all = tokenizer_.decode(window, /*skip_special=*/false);
      const bool is_whole = !all.ends_with(kReplacementCharacter) ||
                            window.size() - n_settled >= kTokensOfCharacter_max;
      if (!is_whole && i + 1 < sample.tokens.size()) continue;
      const auto begin = static_cast<uint32_t>(sample.text.size());
      sample.text += all.substr(std::min(settled.size(), all.size()));
      for (; first <= i; ++first) {
        sample.tokens[first].text = 0;
        sample.tokens[first].bytes = {begin, static_cast<uint32_t>(sample.text.size())};
      }
      window.erase(window.begin(), window.begin() + static_cast<std::ptrdiff_t>(n_settled));
      settled = tokenizer_.decode(window, /*skip_special=*/false);
      n_settled = window.size();
    }
  }

  std::vector<std::pair<std::string, std::string>> fields_of(const Example& example) const {
    std::vector<std::pair<std::string, std::string>> fields;
    const FieldNames names = task_.field_names(example);
    if (!example.id.empty()) fields.emplace_back("id", example.id);
    fields.emplace_back(names.text, example.text);
    if (example.text_pair) fields.emplace_back(names.text_pair, *example.text_pair);
    if (!has_labels_) return fields;
    if (std::string labels = task_.labels_in_words(example); !labels.empty())
      fields.emplace_back(names.label, std::move(labels));
    return fields;
  }

  const Task& task_;
  bool has_labels_;
  const Tokenizer& tokenizer_;
  uint64_t seed_;
  int64_t max_length_;
};

/** Few bins of a round width. */
LengthBins bins_of(std::span<const int32_t> lengths) {
  constexpr int64_t kMost = 24;
  const int64_t longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
  LengthBins bins;
  while ((longest + bins.width - 1) / bins.width > kMost)
    bins.width *= 2;
  bins.counts.resize(static_cast<size_t>((longest + bins.width - 1) / bins.width));
  for (const int64_t n : lengths)
    if (n > 0) ++bins.counts[static_cast<size_t>((n - 1) / bins.width)];
  return bins;
}

/** The least length that this share of all does not exceed; of ascending lengths, at least one. */
int64_t length_of_share(std::span<const int32_t> sorted, int64_t percent) {
  return sorted[static_cast<size_t>((std::ssize(sorted) * percent + 99) / 100 - 1)];
}

PreviewNumbers numbers_of(std::span<const int32_t> lengths) {
  PreviewNumbers numbers = {.n_sequences = std::ssize(lengths), .lengths = bins_of(lengths)};
  if (lengths.empty()) return numbers;
  for (const int64_t n : lengths)
    numbers.n_tokens += n;
  std::vector<int32_t> sorted(lengths.begin(), lengths.end());
  std::ranges::sort(sorted);
  numbers.n_tokens_95 = length_of_share(sorted, 95);
  numbers.n_tokens_99 = length_of_share(sorted, 99);
  numbers.n_longest = sorted.back();
  return numbers;
}

PreviewNumbers numbers_of(const std::vector<PreviewSample>& samples, bool is_drawn) {
  std::vector<int32_t> lengths;
  for (const PreviewSample& sample : samples)
    lengths.push_back(static_cast<int32_t>(sample.tokens.size()));
  PreviewNumbers numbers = numbers_of(lengths);
  numbers.n_truncated = std::ranges::count_if(samples, &PreviewSample::is_truncated);
  if (!is_drawn)
    numbers.n_untrained = std::ranges::count_if(
        samples, [](const PreviewSample& sample) { return !sample.is_trained_on(); });
  return numbers;
}

PreviewNumbers numbers_of(const TokenizedDataset& data, const Task& task) {
  PreviewNumbers numbers = numbers_of(data.sequence_lengths());
  numbers.n_truncated = data.n_truncated();
  if (task.draws_asked_tokens()) return numbers;
  numbers.n_untrained = 0;
  for (int64_t i = 0; i < data.n_sequences(); ++i)
    *numbers.n_untrained += task.is_unasked(data, i) ? 1 : 0;
  return numbers;
}

/** Labels of the sequences that are trained on, by their place among `n_labels`. */
std::vector<int64_t> label_counts_of(const TokenizedDataset& data, size_t n_labels) {
  std::vector<int64_t> counts(n_labels);
  if (n_labels == 0 || !data.has_labels()) return {};
  for (int64_t i = 0; i < data.n_sequences(); ++i)
    for (const int32_t label : data.labels(i))
      if (label >= 0 && static_cast<size_t>(label) < n_labels) ++counts[static_cast<size_t>(label)];
  return counts;
}

PreviewBatch first_batch_of(const config::Config& config,
                            const Data& data,
                            const Task& task,
                            const Tokenizer& tokenizer,
                            const Sampling& sampling) {
  const int64_t train_batch_size = config.integer("train_batch_size");
  const StepSplit split = {
      .train_batch_size = train_batch_size,
      .micro_batch_size =
          std::min(train_batch_size,
                   config.maybe_integer("per_device_train_batch_size").value_or(train_batch_size))};
  const auto seed = static_cast<uint64_t>(config.integer("seed"));
  const StepPlan step =
      plan_step(Sampler(data.train.size(), shuffle_seed_of(config)), {0, 0}, split);
  PreviewBatch batch = {.n_samples = step.n_samples};
  for (size_t m = 0; m < step.micro_batches.size(); ++m) {
    MicroBatch micro = collate(data.train, step.micro_batches[m], {}, sampling.pad());
    const auto place = static_cast<int64_t>(m);
    task.label(micro, data.train, tokenizer, {.seed = seed, .step = 0, .micro_batch = place});
    batch.n_tokens += micro.n_real_tokens;
    for (size_t s = 0; s < static_cast<size_t>(micro.n_real_seqs); ++s) {
      PreviewBatchRow row = {.sequence_id = micro.samples[s], .micro_batch = place, .sequence = {}};
      sampling.fill_tokens(micro, s, data.train, row.sequence);
      row.sequence.example = data.train.example_of(micro.samples[s]);
      const std::span<const int32_t> ids(
          micro.input_ids.data() + micro.cu_seqlens[s],
          static_cast<size_t>(micro.cu_seqlens[s + 1] - micro.cu_seqlens[s]));
      row.sequence.text = tokenizer.decode(ids);
      batch.n_trained_tokens += row.sequence.n_trained();
      if (batch.rows.size() < kBatchRows)
        batch.rows.push_back(std::move(row));
      else
        batch.is_shortened = true;
    }
  }
  return batch;
}

}  // namespace

int64_t PreviewSample::n_trained() const {
  return std::ranges::count_if(tokens, &PreviewToken::is_trained);
}

std::string shown_text(const PreviewSample& sample, const PreviewToken& token) {
  if (token.text < 0 || token.bytes.begin >= token.bytes.end) return token.piece;
  const std::string& text = token.text == 0 ? sample.text : sample.text_pair;
  if (token.bytes.end > text.size()) return token.piece;
  return std::string(part_of(text, token.bytes));
}

Preview preview(const config::Config& settings, const PreviewQuestion& question) {
  Preview preview;
  const auto tell = [&](const std::string& note) {
    preview.notes.push_back(note);
    if (question.tell) question.tell(note);
  };
  config::Config config = settings;
  const ModelFiles model = model_files(config);
  take_family_defaults(config, model.config);
  if (config.text("dataset").empty())
    throw Error(Fault::usage, "preview.dataset", "there is no data to look at",
                "--dataset names a file or a folder");
  check_data_exists(config, "dataset");
  check_data_exists(config, "eval_dataset");
  const Tokenizer tokenizer = Tokenizer::open(model.directory);
  const Texts texts = texts_to_train_on(config, model.config, &tokenizer, model.directory);
  const Task& task = *texts.task;
  task.check(tokenizer);
  std::ranges::for_each(texts.notes, tell);
  const ModelTable table = make_model_table(config, model.config, task.head(),
                                            std::max<int64_t>(task.n_labels(), 1), PlanMachine());
  preview.task = task.name();
  preview.tokenizer = model.directory.string();
  preview.max_length = choose_max_length(config, table.max_positions, /*has_gpu=*/true);
  preview.labels = task.scheme().labels.names();

  const Sampling sampling(texts, tokenizer, config, preview.max_length);
  const auto examples = texts.train.examples();
  Example example;
  int64_t place = 0;
  const auto n_wanted = static_cast<size_t>(std::max<int64_t>(question.n_samples, 1));
  while (preview.samples.size() < n_wanted && examples->next(example)) {
    if (!begins_text(example.part)) continue;
    place += sampling.add(std::move(example), place, preview.samples) ? 1 : 0;
    example = {};
  }
  if (preview.samples.size() > n_wanted) preview.samples.resize(n_wanted);
  preview.numbers = numbers_of(preview.samples, task.draws_asked_tokens());
  if (!question.counts_all) return preview;

  task.take_notes();  // of the examples above, which come again
  const Data data = tokenize(
      texts, tokenizer,
      token_settings(config, task, model.directory, preview.max_length, n_usable_threads()));
  std::ranges::for_each(data.notes, tell);
  preview.numbers = numbers_of(data.train, task);
  preview.numbers.label_counts = label_counts_of(data.train, preview.labels.size());
  preview.is_of_all = true;
  preview.findings = preflight({.config = config,
                                .model = model.config,
                                .files = model.directory,
                                .texts = texts,
                                .data = data,
                                .tokenizer = tokenizer});
  if (data.train.size() > 0)
    preview.first_batch = first_batch_of(config, data, task, tokenizer, sampling);
  if (texts.held_out > 0) {
    const int64_t n_all = data.train.n_examples() + data.eval.n_examples();
    const Split parts = split(n_all, texts.held_out, shuffle_seed_of(config));
    for (PreviewSample& sample : preview.samples)
      sample.is_held_out = std::ranges::binary_search(parts.eval, sample.example);
  }
  return preview;
}

}  // namespace ferry::service
