#include "src/inputs/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/ops/scratch_sizes.h"
#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/read/reader.h"
#include "src/files/hf/end_ids.h"
#include "src/files/plain_file.h"
#include "src/tasks/task.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

/** The start of a prompt, for messages. */
std::string shown(const std::string& text) {
  constexpr size_t kShown = 60;
  std::string start = text.substr(0, kShown);
  start.resize(std::min(first_invalid_utf8(start), start.size()));
  return escaped(start) + (start.size() < text.size() ? "..." : "");
}

/** "\n" and "\t" as a command line writes them. */
std::string unescaped(std::string text) {
  for (const auto& [written, meant] : {std::pair{"\\n", "\n"}, {"\\t", "\t"}})
    for (size_t at = 0; (at = text.find(written, at)) != text.npos; ++at)
      text.replace(at, 2, meant);
  return text;
}

SamplingRule sampling_of(const config::Config& config) {
  const bool draws = config.integer("top_k") > 0 || config.number("top_p") < 1;
  const double temperature = config.maybe_number("temperature").value_or(draws ? 1 : 0);
  if (draws && temperature == 0 && config.integer("top_k") != 1)
    throw Error(Fault::usage, "config.temperature",
                "temperature 0 takes the likeliest token, and top_k or top_p would draw one",
                "leave one of them out");
  return {.temperature = temperature,
          .top_k = config.integer("top_k"),
          .top_p = config.number("top_p")};
}

/** Settings of samples without one to make. In a file they may be for several runs. */
void check_nothing_asked(const config::Config& config) {
  for (std::string_view key :
       {"sample_steps", "max_new_tokens", "temperature", "top_k", "top_p", "stop"})
    if (config.origin(key).source == config::Source::command_line)
      throw Error(Fault::usage, "config.samples",
                  fmt::format("{} says how texts are gone on with ({}), and there are none", key,
                              config.origin(key).where),
                  "give sample_prompts, a text or a file, or leave it out");
}

bool has_ending_of_data(const fs::path& path) {
  constexpr std::array<std::string_view, 8> kEndings = {".txt", ".jsonl", ".json",    ".csv",
                                                        ".tsv", ".arrow", ".parquet", ".feather"};
  return std::ranges::find(kEndings, path.extension().string()) != kEndings.end();
}

}  // namespace

std::vector<int32_t> end_ids_of(const fs::path& file,
                                const HfConfig& model,
                                const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  std::error_code error;
  if (fs::exists(file, error))
    ids = end_ids_in(JsonReader::parse(read_text_file(file),
                                       {file.string(), "generate.model", "remove or mend it"}));
  if (ids.empty()) ids = end_ids_in(model.fields());
  if (ids.empty()) ids.push_back(tokenizer.special_ids().eos);
  std::erase_if(ids, [](int32_t id) { return id < 0; });
  return ids;
}

int64_t TextGeneration::longest_prompt() const {
  int64_t longest = 0;
  for (const Prompt& prompt : prompts)
    longest = std::max(longest, static_cast<int64_t>(prompt.ids.size()));
  return longest;
}

int64_t context_of(int64_t max_positions, bool has_gpu) {
  return has_gpu ? max_positions : std::min(max_positions, ops::kCpuSequenceTokens_max);
}

GenerationRule generation_rule(const config::Config& config,
                               const fs::path& generation_config,
                               const HfConfig& model,
                               const Tokenizer& tokenizer,
                               int64_t context) {
  GenerationRule rule = {.n_new_max = config.integer("max_new_tokens"),
                         .context = context,
                         .seed = static_cast<uint64_t>(config.integer("seed")),
                         .sampling = sampling_of(config),
                         .end_ids = end_ids_of(generation_config, model, tokenizer)};
  for (const std::string& stop : config.list("stop"))
    rule.stops.push_back(unescaped(stop));
  return rule;
}

Prompt make_prompt(std::string text, const Tokenizer& tokenizer, int64_t context) {
  if (text.empty())
    throw Error(Fault::data, "generate.prompt", "a prompt is empty",
                "give the words that the text begins with");
  if (first_invalid_utf8(text) != text.npos)
    throw Error(Fault::data, "generate.prompt",
                fmt::format("the prompt '{}' is not UTF-8", shown(text)), "convert it with iconv");
  Encoding encoding;
  tokenizer.encode(text, Tokenizer::kNoLimit, encoding);
  Prompt prompt = {.text = std::move(text), .ids = std::move(encoding.ids)};
  // Behind an end of text nothing goes on.
  const int32_t eos = tokenizer.special_ids().eos;
  if (prompt.ids.size() > 1 && prompt.ids.back() == eos && tokenizer.n_added_single() > 0)
    prompt.ids.pop_back();
  if (prompt.ids.empty())
    throw Error(Fault::data, "generate.prompt",
                fmt::format("the prompt '{}' has no tokens", shown(prompt.text)),
                "give words that the model's vocabulary has");
  if (const auto n = static_cast<int64_t>(prompt.ids.size()); n > context)
    throw Error(Fault::data, "generate.prompt",
                fmt::format("the prompt '{}' has {} tokens, and the context is {}",
                            shown(prompt.text), n, context),
                "shorten it");
  return prompt;
}

int64_t looked_at_tokens(const GenerationRule& rule, int64_t longest_prompt) {
  return std::min(longest_prompt + rule.n_new_max - 1, rule.context);
}

GenerationShape shape_of(const TextGeneration& generation) {
  const GenerationRule& rule = generation.rule;
  if (generation.prompts.empty()) return {};
  const int64_t looked_at = looked_at_tokens(rule, generation.longest_prompt());
  return {.n_sequences = std::min(generation.n_prompts(), rule.n_sequences_max),
          .cache_tokens = rule.uses_cache ? looked_at : 0};
}

fs::path sample_file(const config::Config& config) {
  const std::string& given = config.text("sample_prompts");
  const fs::path path(given);
  std::error_code error;
  if (given.empty()) return {};
  if (fs::exists(path, error) && !fs::is_directory(path, error)) return path;
  // Nobody goes on with the name of a file.
  if (given.find_first_of(" \n") == given.npos && has_ending_of_data(path))
    throw Error(Fault::data, "generate.prompt",
                fmt::format("no such file: '{}' (sample_prompts from {})", given,
                            config.origin("sample_prompts").where),
                "paths count from the current directory; a text has other words behind it");
  return {};
}

std::vector<std::string> sample_texts(const config::Config& config) {
  const std::string& given = config.text("sample_prompts");
  if (given.empty()) {
    check_nothing_asked(config);
    return {};
  }
  if (!task_kind(config.text("task")).generates())
    throw Error(Fault::usage, "config.sample_prompts",
                fmt::format("samples show how a language model goes on with texts, and task is {}",
                            config.text("task")),
                "leave sample_prompts out, or train a decoder with task = causal-lm");
  const fs::path file = sample_file(config);
  if (file.empty()) return {unescaped(given)};
  const DatasetOptions options = {
      .path = file, .rows = RowForm::texts, .labels = LabelUse::ignored};
  std::vector<std::string> texts;
  for (Example& example : read_dataset(options).examples)
    texts.push_back(file.extension() == ".txt" ? unescaped(std::move(example.text))
                                               : std::move(example.text));
  return texts;
}

TextGeneration samples_of(const config::Config& config,
                          const fs::path& generation_config,
                          const HfConfig& model,
                          const Tokenizer& tokenizer,
                          int64_t context) {
  std::vector<std::string> texts = sample_texts(config);
  if (texts.empty()) return {};
  TextGeneration samples = {
      .rule = generation_rule(config, generation_config, model, tokenizer, context)};
  samples.rule.n_sequences_max = kSamplesAtOnce;
  for (std::string& text : texts)
    samples.prompts.push_back(make_prompt(std::move(text), tokenizer, context));
  return samples;
}

}  // namespace ferry
