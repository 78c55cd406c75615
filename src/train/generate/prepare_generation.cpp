// Prompts, rule and plan of `ferry generate`.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/ops/scratch_sizes.h"
#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/config/models/models.h"
#include "src/data/read/given_texts.h"
#include "src/data/run_dataset.h"
#include "src/files/plain_file.h"
#include "src/train/generate/generation.h"

namespace ferry {
namespace {

void check_generates(const HfDirectory& model) {
  if (kind_of_model(model.config()).head == HeadKind::causal_lm) return;
  throw Error(
      Fault::data, "generate.model",
      fmt::format("'{}' is no language model that generates", model.path().string()),
      "give one whose architecture in config.json ends in ForCausalLM, as `ferry train --task "
      "causal-lm` makes; `ferry predict` labels texts");
}

/** All of standard input, without the end of its last line. */
std::string prompt_of_standard_input() {
  std::string text = read_stream(STDIN_FILENO, "standard input");
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::vector<std::string> texts_of(const config::Config& config,
                                  const HfDirectory& model,
                                  const std::vector<std::string>& words) {
  const std::string& path = config.text("dataset");
  if (path.empty())
    return words.empty() ? std::vector<std::string>{prompt_of_standard_input()} : words;
  auto options = dataset_options([&](std::string_view key) { return config.maybe_text(key); }, path,
                                 kind_of_model(model.config()).rows);
  options.takes_pipe = true;  // it is read once
  std::vector<std::string> texts;
  for (Example& example : read_dataset(options).examples)
    texts.push_back(std::move(example.text));
  return texts;
}

/** The start of a prompt, for messages. */
std::string shown(const std::string& text) {
  constexpr size_t kShown = 60;
  std::string start = text.substr(0, kShown);
  start.resize(std::min(first_invalid_utf8(start), start.size()));
  return escaped(start) + (start.size() < text.size() ? "..." : "");
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
  if (prompt.ids.size() > 1 && prompt.ids.back() == eos && !prompt.text.empty() &&
      tokenizer.n_added_single() > 0)
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

/** "\n" and "\t" as a command line writes them. */
std::string unescaped(std::string text) {
  for (const auto& [written, meant] : {std::pair{"\\n", "\n"}, {"\\t", "\t"}})
    for (size_t at = 0; (at = text.find(written, at)) != text.npos; ++at)
      text.replace(at, 2, meant);
  return text;
}

void add_ids(const JsonReader& reader, std::string_view key, std::vector<int32_t>& ids) {
  const auto found = reader.find(key);
  if (!found) return;
  const auto add = [&](const JsonReader& id) {
    ids.push_back(static_cast<int32_t>(id.integer(-1, INT32_MAX)));
  };
  if (!found->is_list()) return add(*found);
  for (size_t i = 0; i < found->size(); ++i)
    add(found->at(i));
}

/** The tokens that end a text: as generation_config.json says, else config.json, else the
 * tokenizer. */
std::vector<int32_t> end_ids_of(const Model& model) {
  constexpr std::string_view kKey = "eos_token_id";
  std::vector<int32_t> ids;
  const auto file = model.directory.path() / "generation_config.json";
  std::error_code error;
  if (std::filesystem::exists(file, error))
    add_ids(JsonReader::parse(read_text_file(file),
                              {file.string(), "generate.model", "remove or mend it"}),
            kKey, ids);
  if (ids.empty()) add_ids(model.directory.config().fields(), kKey, ids);
  if (ids.empty()) ids.push_back(model.tokenizer.special_ids().eos);
  std::erase_if(ids, [](int32_t id) { return id < 0; });
  return ids;
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

/** The most tokens of a text: those of --max-length, else all that the model takes. */
int64_t context_of(const config::Config& config, const ModelTable& model, bool has_gpu) {
  const int64_t most =
      has_gpu ? model.max_positions : std::min(model.max_positions, ops::kCpuSequenceTokens_max);
  const auto wish = config.maybe_integer("max_length");
  if (!wish) return most;
  return std::min(most, choose_max_length(config, model.max_positions, has_gpu));
}

}  // namespace

GenerationJob prepare_generation(config::Config config, const std::vector<std::string>& words) {
  const auto path = config::find_model(config.text("model_name_or_path"));
  GenerationJob its = {
      .job = {.config = std::move(config),
              .model = {.directory = HfDirectory::open(path), .tokenizer = Tokenizer::open(path)}}};
  Job& job = its.job;
  check_generates(job.model.directory);
  const HfConfig& hf = job.model.directory.config();
  its.rule.sampling = sampling_of(job.config);
  std::vector<std::string> texts = texts_of(job.config, job.model.directory, words);
  job.machine = detect_machine(job.config);
  if (!job.machine.note.empty()) job.notes.push_back(job.machine.note);
  job.data.task = kind_of_model(hf).of_model(hf, {});  // a language model reads no settings
  job.data.seed = static_cast<uint64_t>(job.config.integer("seed"));
  job.config.choose("task", std::string(job.data.task->name()), hf.origin());
  job.model.table = make_model_table(job.config, hf, HeadKind::causal_lm, 0, job.machine.plan);
  check_vocabulary(job.model);

  GenerationRule& rule = its.rule;
  rule.n_new_max = job.config.integer("max_new_tokens");
  rule.context = context_of(job.config, job.model.table, job.machine.plan.has_gpu);
  rule.uses_cache = job.config.flag("kv_cache");
  rule.seed = job.data.seed;
  rule.end_ids = end_ids_of(job.model);
  for (const std::string& stop : job.config.list("stop"))
    rule.stops.push_back(unescaped(stop));
  int64_t longest = 0;
  for (std::string& text : texts) {
    its.prompts.push_back(make_prompt(std::move(text), job.model.tokenizer, rule.context));
    longest = std::max(longest, static_cast<int64_t>(its.prompts.back().ids.size()));
  }

  // The last token is not looked at again.
  const int64_t most = std::min(longest + rule.n_new_max - 1, rule.context);
  job.generates = true;
  job.cache_tokens = rule.uses_cache ? most : 0;
  job.data.max_length = rule.uses_cache ? longest : most;
  PlanRequest request =
      make_plan_request(job.config, job.model.table, job.machine.plan, /*trains=*/false);
  job.notes.insert(job.notes.end(), request.notes.begin(), request.notes.end());
  request.generates = true;
  request.cache_tokens = job.cache_tokens;
  request.max_length = job.data.max_length;
  request.train_batch_size =
      std::min(request.train_batch_size, static_cast<int64_t>(its.prompts.size()));
  job.plan = make_plan(job.model.table, request);
  return its;
}

}  // namespace ferry
