#include "src/inputs/tokens.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/utf8.h"
#include "src/data/sampler.h"
#include "src/data/tokens/source_hash.h"
#include "src/data/tokens/token_cache.h"
#include "src/data/tokens/token_key.h"
#include "src/data/tokens/tokenize.h"
#include "src/files/paths.h"
#include "src/files/plain_file.h"
#include "src/files/user_data.h"
#include "src/files/write/atomic_file.h"
#include "src/inputs/token_code.h"
#include "src/tasks/document_parts.h"
#include "src/term/byte_progress.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;

/** Smaller files are tokenized in a second or two. */
constexpr int64_t kWorthKeeping_bytes = 16 << 20;

/** The user did not ask for this directory, so one that cannot be written is no reason to stop. */
bool can_be_written(const stdfs::path& directory) {
  try {
    make_private_directories(directory);
  } catch (const Error&) {
    return false;
  }
  // An older Ferry made it for all to read: what is in it are the user's texts.
  std::error_code error;
  stdfs::permissions(directory, stdfs::perms::owner_all, error);
  return ::access(directory.c_str(), W_OK | X_OK) == 0;
}

uint64_t hash_of_tokenizer(const stdfs::path& model_directory) {
  ContentHash hash;
  for (const stdfs::path& file : text::tokenizer_files(model_directory)) {
    hash.add_text(file.filename().string());
    hash.add_text(read_text_file(file));
  }
  if (const stdfs::path config = model_directory / "config.json"; path_exists(config))
    hash.add_text(HfConfig::load(config).model_type);
  return hash.value();
}

/** Tokenizes one source of texts. */
class Tokenizing {
 public:
  Tokenizing(const TextSource& source,
             const Task& task,
             const Tokenizer& tokenizer,
             const TokenSettings& settings,
             bool keeps_examples)
      : source_(source),
        task_(task),
        tokenizer_(tokenizer),
        settings_(settings),
        form_{.vocab_size = task.n_ids(tokenizer),
              .has_labels = source.has_labels,
              .keeps_examples = keeps_examples} {}

  TokenizedDataset run() {
    if (source_.is_empty()) return {};
    const auto files = files_to_keep();
    if (!files) {
      MemoryWriter writer(form_);
      fill(writer, n_source_bytes());
      const auto store = writer.finish();
      note_left_out(store->facts());
      return TokenizedDataset(store);
    }
    const TokenCache cache(settings_.keeping.directory);
    const auto tokens = cache.get(key_of(*files), form_, [&](TokenWriter& writer) {
      fill(writer, files->n_bytes());
      files->check_unchanged();
    });
    note(tokens);
    note_left_out(tokens.store->facts());
    return TokenizedDataset(tokens.store);
  }

  std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  int64_t n_source_bytes() const {
    int64_t n_bytes = 0;
    if (source_.reader)
      for (const stdfs::path& file : source_.reader->files().files)
        n_bytes += file_bytes(file);
    return n_bytes;
  }

  /** Nothing where the tokens are held in memory. */
  std::optional<SourceFiles> files_to_keep() const {
    const TokenKeeping& keeping = settings_.keeping;
    if (!source_.reader || keeping.directory.empty()) return std::nullopt;
    const DatasetFiles& dataset = source_.reader->files();
    if (dataset.options.pipe_text) return std::nullopt;
    if (!keeping.is_asked_for) {
      if (n_source_bytes() < kWorthKeeping_bytes) return std::nullopt;
      if (!can_be_written(keeping.directory)) {
        log_line(
            fmt::format("'{}' cannot be written: the tokens are held in memory, and made "
                        "again next time; token_cache names another directory",
                        keeping.directory.string()));
        return std::nullopt;
      }
    }
    return SourceFiles(dataset.files);
  }

  /** Everything that the tokens depend on. */
  uint64_t key_of(const SourceFiles& files) const {
    ContentHash key;
    key.add_text(kTokenCode);
    key.add_text(task_.name());
    key.add_number(static_cast<uint64_t>(task_.setting_of_samples()));
    key.add_number(settings_.tokenizer_hash);
    key.add_number(static_cast<uint64_t>(settings_.max_length));
    key.add_number(static_cast<uint64_t>(settings_.doc_stride));
    key.add_number(form_.has_labels);
    key.add_number(form_.keeps_examples);
    key.add_number(static_cast<uint64_t>(source_.side));
    key.add_number(source_.cut);
    key.add_number(static_cast<uint64_t>(source_.n_most.value_or(0)));
    add_reading(key, *source_.reader);
    term::ByteProgress progress("looking for known tokens", files.n_bytes());
    key.add_number(files.hash(settings_.keeping.directory,
                              [&](int64_t n_bytes) { progress.update(n_bytes); }));
    return key.value();
  }

  void fill(TokenWriter& writer, int64_t n_bytes) {
    auto examples = source_.examples();
    if (task_.takes_parts())
      examples = std::make_unique<DocumentParts>(std::move(examples), tokenizer_);
    term::ByteProgress progress("tokenizing", n_bytes);
    TokenizeOptions options = {.n_threads = settings_.n_threads,
                               .window = settings_.max_length,
                               .progress = [&](int64_t done) { progress.update(done); },
                               .left_out =
                                   [&](const Example& example) {
                                     if (first_left_out_.empty()) first_left_out_ = example.place;
                                   }};
    tokenize_examples(
        *examples,
        [this](const Example& example, std::vector<TokenizedExample>& out) {
          task_.encode(example, tokenizer_, settings_.max_length, out);
        },
        options, writer);
    add_late_notes(examples->notes());
    for (std::string& note : task_.take_notes())
      notes_.push_back(std::move(note));
  }

  /** Those of the reader are said already. */
  void add_late_notes(const std::vector<std::string>& notes) {
    const size_t n_said = source_.reader ? source_.reader->notes().size() : 0;
    for (size_t i = n_said; i < notes.size(); ++i)
      notes_.push_back(notes[i]);
  }

  void note_left_out(const TokenFacts& facts) {
    const int64_t n = facts.n_left_out;
    if (n == 0) return;
    const bool are_prompts = !task_.shares_tokens();
    const std::string what =
        fmt::format("{} of {} {} fill max_length = {} tokens, and a {} has no room behind them", n,
                    n + facts.n_examples, are_prompts ? "prompts" : "questions",
                    settings_.max_length, are_prompts ? "completion" : "context");
    const std::string first =
        first_left_out_.empty() ? "" : fmt::format(", the first is {}", escaped(first_left_out_));
    if (facts.n_examples == 0)
      throw Error(Fault::data, "data.tokenize", what + first, "raise max_length");
    notes_.push_back(fmt::format("{}: they are left out{}{}", what, first,
                                 are_prompts ? "; long_prompts = cut cuts them" : ""));
  }

  void note(const TokenCache::Tokens& tokens) {
    const MappedFile& file = *tokens.store->file();
    const std::string kept = fmt::format("'{}' ({})", file.path().string(),
                                         format_bytes(static_cast<int64_t>(file.bytes().size())));
    const int64_t n = tokens.store->facts().n_examples;
    const std::string texts = fmt::format("{} text{}", n, n == 1 ? "" : "s");
    notes_.push_back(
        tokens.are_new ? fmt::format("{} tokenized; the tokens are kept in {}", texts, kept)
                       : fmt::format("0 texts tokenized: the tokens of {} are in {}", texts, kept));
  }

  const TextSource& source_;
  const Task& task_;
  const Tokenizer& tokenizer_;
  const TokenSettings& settings_;
  TokenForm form_;
  std::string first_left_out_;  // its place
  std::vector<std::string> notes_;
};

std::span<const int64_t> first_of(const std::vector<int64_t>& places,
                                  std::optional<int64_t> n_most) {
  const auto n = std::min<int64_t>(n_most.value_or(std::ssize(places)), std::ssize(places));
  return std::span(places).first(static_cast<size_t>(n));
}

/** The first texts of sorted data may have few of the labels. */
void note_missing_labels(const Texts& texts, Data& data) {
  const LabelScheme& scheme = texts.task->scheme();
  if (scheme.problem != ProblemType::single_label || !(texts.n_train_most || texts.train.n_most))
    return;
  std::vector<bool> is_there(static_cast<size_t>(scheme.labels.size()));
  for (int64_t i = 0; i < data.train.n_sequences(); ++i)
    for (const int32_t label : data.train.labels(i))
      is_there[static_cast<size_t>(label)] = true;
  const auto n = std::ranges::count(is_there, true);
  if (n < std::ssize(is_there))
    data.notes.push_back(fmt::format(
        "warning: the first {} texts have {} of {} labels: max_train_samples takes them in the "
        "order of the data",
        data.train.n_examples(), n, is_there.size()));
}

}  // namespace

int64_t Data::bytes() const {
  const bool is_one_store = &train.store() == &eval.store();
  return train.bytes() + (is_one_store ? eval.view_bytes() : eval.bytes());
}

namespace {

std::vector<float> balanced_weights(const TokenizedDataset& texts, size_t n_labels) {
  std::vector<int64_t> counts(n_labels);
  for (int64_t i = 0; i < texts.n_sequences(); ++i)
    ++counts[static_cast<size_t>(texts.labels(i).front())];
  const auto n_classes = std::ssize(counts) - std::ranges::count(counts, 0);
  std::vector<float> weights;
  for (const int64_t n : counts)
    weights.push_back(n == 0 ? 1.0f
                             : static_cast<float>(static_cast<double>(texts.n_sequences()) /
                                                  static_cast<double>(n_classes * n)));
  return weights;
}

}  // namespace

std::vector<float> choose_class_weights(const std::string& option,
                                        const Task& task,
                                        const TokenizedDataset& texts) {
  if (option.empty() || option == "none") return {};
  const auto refuse = [](const std::string& what, std::string_view hint) {
    throw Error(Fault::usage, "config.class_weights", what, hint);
  };
  if (!task.has_one_class())
    refuse("class weights are for texts with one label each, and these have others",
           "leave class_weights out");
  const auto n_labels = static_cast<size_t>(task.n_labels());
  if (option == "auto") return balanced_weights(texts, n_labels);
  std::vector<float> weights;
  std::string_view rest = option;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    const auto weight = parse_number(rest.substr(0, end));
    constexpr double kLeast = 1e-6, kMost = 1e6;
    if (!weight || *weight < kLeast || *weight > kMost)
      refuse(fmt::format("class_weights has '{}'", trim(rest.substr(0, end))),
             "expected auto, none, or a number from 1e-6 to 1e6 for each label");
    weights.push_back(static_cast<float>(*weight));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (weights.size() != n_labels)
    refuse(fmt::format("class_weights has {} numbers for {} labels: {}", weights.size(), n_labels,
                       task.scheme().labels.list()),
           "give one for each, in this order");
  return weights;
}

TokenKeeping token_keeping(const config::Config& config) {
  const auto asked = config.maybe_text("token_cache");
  if (!asked) return {.directory = user_cache_file("tokens")};
  if (*asked == kNoTokenCache) return {};
  return {.directory = *asked, .is_asked_for = true};
}

TokenSettings token_settings(const config::Config& config,
                             const Task& task,
                             const stdfs::path& model_directory,
                             int64_t max_length,
                             int n_threads) {
  return {.max_length = max_length,
          .n_threads = n_threads,
          .packs = packs_texts(config, task),
          .shuffle_seed = shuffle_seed_of(config),
          .doc_stride = config.integer("doc_stride"),
          .keeping = token_keeping(config),
          .tokenizer_hash = hash_of_tokenizer(model_directory)};
}

Data tokenize(const Texts& texts, const Tokenizer& tokenizer, const TokenSettings& settings) {
  const Task& task = *texts.task;
  Data data = {.task = texts.task, .max_length = settings.max_length};
  const auto tokens_of = [&](const TextSource& source, bool is_answered) {
    Tokenizing tokenizing(source, task, tokenizer, settings, is_answered && task.answers_texts());
    TokenizedDataset tokens = tokenizing.run();
    for (std::string& note : tokenizing.take_notes())
      data.notes.push_back(std::move(note));
    return tokens;
  };
  data.train = tokens_of(texts.train, texts.held_out > 0);
  if (texts.held_out > 0) {
    const Split parts = split(data.train.n_examples(), texts.held_out, settings.shuffle_seed);
    data.eval = data.train.of_examples(first_of(parts.eval, texts.n_eval_most));
    data.train = data.train.of_examples(first_of(parts.train, texts.n_train_most));
  } else {
    data.eval = tokens_of(texts.eval, true);
  }
  note_missing_labels(texts, data);
  if (task.compares_answers()) {
    data.train = data.train.in_pairs();
    data.eval = data.eval.in_pairs();
  }
  if (settings.packs) {
    data.train = data.train.packed(settings.max_length);
    data.eval = data.eval.packed(settings.max_length);
  }
  return data;
}

}  // namespace ferry
