// Prompts, rule and plan of `ferry generate`.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "src/base/error.h"
#include "src/chat/encoder.h"
#include "src/config/models/models.h"
#include "src/data/run_dataset.h"
#include "src/files/plain_file.h"
#include "src/inputs/data.h"
#include "src/inputs/model_files.h"
#include "src/inputs/prompt_settings.h"
#include "src/request/adapters.h"
#include "src/request/run_plan.h"
#include "src/train/generate/generation.h"

namespace ferry {
namespace {

void check_generates(const HfDirectory& model) {
  if (kind_of_model(model.config()).generates()) return;
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

/** The most tokens of a text: those of --max-length, else all that the model takes. */
int64_t asked_context(const config::Config& config, const ModelTable& model, bool has_gpu) {
  const int64_t most = context_of(model.max_positions, has_gpu);
  if (!config.maybe_integer("max_length")) return most;
  return std::min(most, choose_max_length(config, model.max_positions, has_gpu));
}

/** `n_read_most`: tokens of a text that go through the model at once. */
void make_plan_of(Job& job, int64_t n_read_most) {
  const TextGeneration& its = job.generation;
  const int64_t longest = its.longest_prompt();
  job.data.max_length =
      its.rule.uses_cache ? std::min(longest, n_read_most) : looked_at_tokens(its.rule, longest);
  PlanRequest request =
      make_plan_request(job.config, job.model.table, job.machine.plan, /*trains=*/false);
  job.notes.insert(job.notes.end(), request.notes.begin(), request.notes.end());
  request.generation = shape_of(its);
  request.max_length = job.data.max_length;
  request.train_batch_size = std::min(request.train_batch_size, its.n_prompts());
  job.plan = make_plan(job.model.table, request);
}

Job open_job(config::Config config) {
  const auto path = config::find_model(config.text("model_name_or_path"));
  HfDirectory directory = open_directory(path);
  Tokenizer tokenizer = Tokenizer::open(directory.tokenizer());
  Job job = {.config = std::move(config),
             .model = {.directory = std::move(directory), .tokenizer = std::move(tokenizer)}};
  check_generates(job.model.directory);
  return job;
}

/** Everything but prompts and plan. */
void make_ready(Job& job, int64_t context_most) {
  const HfConfig& hf = job.model.directory.config();
  job.machine = detect_machine(job.config);
  if (!job.machine.note.empty()) job.notes.push_back(job.machine.note);
  job.data.task = kind_of_model(hf).of_model(hf, {});  // a language model reads no settings
  job.data.seed = static_cast<uint64_t>(job.config.integer("seed"));
  job.config.choose("task", std::string(job.data.task->name()), hf.origin());
  if (virtual_tokens_of(job.model.directory).n > 0)
    job.config.choose("tuning", "soft_prompt", kPeftConfigName);
  job.model.table = make_model_table(job.config, hf, HeadKind::causal_lm, 0, job.machine.plan);
  add_adapter_of(job.model.directory, job.model.table);
  check_vocabulary(job.model.directory, job.model.tokenizer, job.model.table);
  const int64_t context = asked_context(job.config, job.model.table, job.machine.plan.has_gpu);
  job.generation.rule = generation_rule(job.config, job.model.directory.file(kGenerationConfigName),
                                        hf, job.model.tokenizer, std::min(context, context_most));
}

}  // namespace

Job prepare_generation(config::Config config, const std::vector<std::string>& words) {
  Job job = open_job(std::move(config));
  std::vector<std::string> texts = texts_of(job.config, job.model.directory, words);
  make_ready(job, INT64_MAX);
  GenerationRule& rule = job.generation.rule;
  rule.uses_cache = job.config.flag("kv_cache");
  rule.n_sequences_max = static_cast<int64_t>(texts.size());
  const VirtualTokens before = virtual_tokens_of(job.model.directory);
  for (std::string& text : texts)
    job.generation.prompts.push_back(
        make_prompt(std::move(text), job.model.tokenizer, rule.context - before.n));
  for (Prompt& prompt : job.generation.prompts)
    before.prepend(prompt.ids);
  for (const Prompt& prompt : job.generation.prompts)
    check_rows(prompt.ids, job.model.tokenizer, job.model.table);
  make_plan_of(job, INT64_MAX);
  return job;
}

ChatJob prepare_chat(config::Config config) {
  // Keys and values of a whole context would take the memory of many models.
  constexpr int64_t kContext = 8192, kRead_tokens = 512;
  Job job = open_job(std::move(config));
  make_ready(job, job.config.maybe_integer("max_length") ? INT64_MAX : kContext);
  GenerationRule& rule = job.generation.rule;
  rule.uses_cache = true;
  rule.n_sequences_max = 1;
  // The configuration of a base model that was trained on chats may know another end.
  auto encoder = chat_encoder_of(job.config, job.model.directory, job.model.tokenizer);
  const int32_t end = encoder->end_of_answer(job.model.tokenizer);
  if (end >= 0 && std::ranges::count(rule.end_ids, end) == 0) rule.end_ids.push_back(end);
  // Plan and session are for the longest text that may come.
  job.generation.prompts.push_back(
      {.text = {}, .ids = std::vector<int32_t>(static_cast<size_t>(rule.context))});
  make_plan_of(job, kRead_tokens);
  return {std::move(job), std::move(encoder)};
}

}  // namespace ferry
