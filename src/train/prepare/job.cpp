#include "src/train/prepare/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/config/models.h"
#include "src/data/batch.h"
#include "src/data/given_texts.h"
#include "src/data/run_dataset.h"
#include "src/data/sampler.h"
#include "src/data/text_file.h"
#include "src/plan/param_groups.h"
#include "src/plan/run_plan.h"
#include "src/train/checkpoint/identity.h"
#include "src/train/evaluate/best_model.h"
#include "src/train/prepare/text_tokens.h"
#include "src/train/prepare/tokenize.h"

namespace ferry {
namespace {

DatasetOptions dataset_options(const config::Config& config,
                               const std::string& path,
                               LabelUse labels) {
  return dataset_options([&](std::string_view key) { return config.maybe_text(key); }, path,
                         labels);
}

/** The user's notes at the start: on the machine, then on the data. */
std::vector<std::string> notes_of(const Machine& machine, const Dataset& data) {
  std::vector<std::string> notes = data.notes;
  if (!machine.note.empty()) notes.insert(notes.begin(), machine.note);
  return notes;
}

LossKind loss_of(ProblemType problem, bool masked_lm) {
  if (masked_lm) return LossKind::masked_lm;
  switch (problem) {
    case ProblemType::multi_label:
      return LossKind::multi_label;
    case ProblemType::regression:
      return LossKind::regression;
    default:
      return LossKind::cross_entropy;
  }
}

int64_t n_labels_of(const LabelScheme& scheme) {
  return scheme.problem == ProblemType::regression ? 1 : std::max<int64_t>(scheme.labels.size(), 1);
}

void check_vocabulary(const Tokenizer& tokenizer,
                      const ModelTable& model,
                      const HfDirectory& directory) {
  if (tokenizer.vocab_size() > model.vocab_size)
    throw Error(Fault::data, "model.open",
                fmt::format("the tokenizer of '{}' has {} tokens, the model only {}",
                            directory.path().string(), tokenizer.vocab_size(), model.vocab_size),
                "tokenizer and weights are not of the same model");
}

/** Rows of the embedding that no text reaches: padding of the vocabulary, or a vocabulary cut
 * short, which no error would show. */
void note_unreached_rows(Job& job) {
  if (const int64_t n = job.tokenizer.vocab_size(); n < job.model.vocab_size)
    job.notes.push_back(
        fmt::format("the tokenizer has {} tokens, the model has room for {}: is "
                    "the vocabulary complete?",
                    n, job.model.vocab_size));
}

/** A classifier that is trained on goes on with its own order of the same labels. */
std::optional<LabelScheme> scheme_of_same_labels(const LabelScheme& found, const HfConfig& hf) {
  if (found.problem == ProblemType::regression || hf.id2label == found.labels.names() ||
      !std::ranges::is_permutation(hf.id2label, found.labels.names()))
    return std::nullopt;
  return LabelScheme{.problem = found.problem, .labels = LabelMap(hf.id2label)};
}

void check_types(const TokenizedDataset& data, const ModelTable& model) {
  if (data.max_type_id() >= model.n_token_types)
    throw Error(Fault::data, "model.open",
                fmt::format("the texts have tokens of type {}, the model knows {} ({})",
                            data.max_type_id(), model.n_token_types,
                            model.n_token_types == 1 ? "type_vocab_size 1: no pairs of texts"
                                                     : "type_vocab_size"),
                "tokenizer and weights are not of the same model, or leave out text_pair_column");
}

/** True for a model that `ferry train --task mlm` or transformers wrote as one. */
bool is_masked_lm(const HfConfig& hf) {
  return std::ranges::find(hf.architectures, "BertForMaskedLM") != hf.architectures.end();
}

/** Throws Error(data) where the model is none. */
LabelScheme scheme_of_classifier(const HfConfig& hf, const std::filesystem::path& path) {
  // transformers leaves problem_type out until it has trained.
  const auto problem =
      hf.problem_type.empty() ? ProblemType::single_label : parse_problem_type(hf.problem_type);
  if (!problem)
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' has problem_type '{}'", hf.origin(), hf.problem_type),
                "expected single_label_classification, multi_label_classification or regression");
  if (hf.id2label.empty())
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' has no labels in its config.json", path.string()),
                "it is not a trained classifier; train one with `ferry train`");
  return {.problem = *problem, .labels = LabelMap(hf.id2label)};
}

/** Single texts beside a model of pairs, or the reverse, would be answered at random. */
void check_pairs_given(const LabelScheme& scheme, bool are_pairs, const config::Config& config) {
  if (!scheme.has_pairs || *scheme.has_pairs == are_pairs) return;
  throw Error(
      Fault::usage, "data.pairs",
      fmt::format("'{}' was trained on {}", config.text("model_name_or_path"),
                  are_pairs ? "single texts, not on pairs" : "pairs of texts, not on single ones"),
      are_pairs
          ? "leave --pairs out"
          : "give pairs: --pairs \"first text\" \"second text\", or --dataset with two columns");
}

RunTexts texts_of(const Job& job) {
  RunTexts texts = {.trained = job.train.lengths(),
                    .evaluated = job.eval.lengths(),
                    .data_seed = data_seed_of(job.config),
                    .max_length = job.max_length};
  if (job.train.size() == 0) return texts;
  texts.n_epochs = (job.n_steps + job.steps_per_epoch - 1) / job.steps_per_epoch;
  if (const auto sizes = job.config.maybe_text("token_sizes"))
    texts.token_sizes = parse_token_sizes(*sizes);
  return texts;
}

/** No memory is kept for longer texts than there are: max_length becomes the longest one's. */
void count_real_lengths(Job& job) {
  const int64_t longest = longest_text(job.train.lengths(), job.eval.lengths(), job.max_length);
  if (longest == job.max_length) return;
  job.notes.push_back(note_of_lengths(longest, job.max_length));
  job.max_length = longest;
}

void note_short_batches(Job& job) {
  constexpr double kWorthSaying = 0.9;
  const int64_t most = job.plan.largest.tokens, full = job.split.micro_batch_size * job.max_length;
  if (static_cast<double>(most) < kWorthSaying * static_cast<double>(full))
    job.notes.push_back(fmt::format(
        "the largest micro-batch, of {0} texts, has {1} tokens: planned for {1}, not for {2}",
        job.split.micro_batch_size, most, full));
}

void plan_steps(Job& job) {
  const auto& config = job.config;
  job.steps_per_epoch = steps_per_epoch(job.train.size(), job.split);
  job.n_steps = steps_of_run(job.steps_per_epoch, config.number("num_train_epochs"),
                             config.integer("max_steps"));
}

/** Writes choices that were made here and fix the bits into config.toml, so that a resumed run has
 * them. */
void fix_identity(Job& job) {
  config::Config& config = job.config;
  config.choose("per_device_train_batch_size", fmt::format("{}", job.split.micro_batch_size),
                "planner");
  config.choose("token_sizes", fmt::format("{}", fmt::join(job.token_sizes, ",")), "planner");
  if (config.is_auto("intra_op_threads") && !job.machine.plan.has_gpu)
    config.choose("intra_op_threads", fmt::format("{}", job.machine.n_cores), "machine");
  job.settings = training_settings_of(config);
  job.identity = identity_of(job);  // once: it reads all of the data
}

/** A head drawn from the seed would answer at random. */
void check_trained(const LoadReport& loaded, const Job& job) {
  if (!loaded.initialised.empty())
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' has no tensor '{}'", job.directory.path().string(),
                            loaded.initialised.front()),
                "it is not a trained classifier; train one with `ferry train`");
  if (!loaded.redrawn.empty())
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' has {}", job.directory.path().string(), loaded.redrawn.front()),
                "do the labels of config.json and the weights belong together?");
}

int worker_threads(const Job& job) {
  return static_cast<int>(job.config.maybe_integer("worker_threads").value_or(job.machine.n_cores));
}

}  // namespace

uint64_t data_seed_of(const config::Config& config) {
  return static_cast<uint64_t>(config.maybe_integer("data_seed").value_or(config.integer("seed")));
}

namespace {

/** What stands in config.toml means the same from wherever the run is resumed. A model's name is no
 * path. */
void make_paths_absolute(config::Config& config) {
  for (const char* key : {"model_name_or_path", "dataset", "eval_dataset", "output_dir", "trace"}) {
    const std::string path = config.maybe_text(key).value_or("");
    std::error_code error;
    const auto absolute = std::filesystem::absolute(path, error).lexically_normal().string();
    const bool is_name = std::string_view(key) == "model_name_or_path" &&
                         !std::filesystem::is_directory(path, error);
    if (!path.empty() && !is_name && path != absolute)
      config.choose(key, absolute, config.origin(key).where);
  }
}

}  // namespace

std::unique_ptr<Job> prepare_training(config::Config config,
                                      const std::optional<runs::Checkpoint>& checkpoint) {
  const bool masked_lm = config.text("task") == "mlm";
  const auto path =
      checkpoint ? checkpoint->path : config::find_model(config.text("model_name_or_path"));
  make_paths_absolute(config);
  auto directory = HfDirectory::open(path);
  auto tokenizer = Tokenizer::open(path);
  auto job = std::make_unique<Job>(Job{.config = std::move(config),
                                       .directory = std::move(directory),
                                       .tokenizer = std::move(tokenizer)});
  job->has_checkpoint = checkpoint.has_value();
  job->machine = detect_machine(job->config);

  Dataset all = read_dataset(dataset_options(job->config, job->config.text("dataset"),
                                             masked_lm ? LabelUse::ignored : LabelUse::required));
  if (auto scheme = scheme_of_same_labels(all.scheme, job->directory.config()))
    all = read_dataset(
        dataset_options(job->config, job->config.text("dataset"), LabelUse::required), *scheme);
  job->notes = notes_of(job->machine, all);
  job->scheme = all.scheme;
  const uint64_t data_seed = data_seed_of(job->config);
  Dataset train;
  if (const std::string& eval_path = job->config.text("eval_dataset"); !eval_path.empty()) {
    job->eval_examples = read_dataset(
        dataset_options(job->config, eval_path, masked_lm ? LabelUse::ignored : LabelUse::required),
        job->scheme);
    train = std::move(all);
  } else if (double fraction = job->config.number("eval_fraction"); fraction > 0) {
    Split parts = split(static_cast<int64_t>(all.examples.size()), fraction, data_seed);
    train = select(all, parts.train);
    job->eval_examples = select(all, parts.eval);
  } else {
    train = std::move(all);
  }

  job->model = make_model_table(job->config, job->directory.config(), n_labels_of(job->scheme),
                                job->machine.plan);
  apply_param_options(job->config, job->model);
  check_vocabulary(job->tokenizer, job->model, job->directory);
  note_unreached_rows(*job);
  job->max_length =
      choose_max_length(job->config, job->model.max_positions, job->machine.plan.has_gpu);
  job->loss = loss_of(job->scheme.problem, masked_lm);

  const Tokenize tokenize = tokenize_with(job->tokenizer, job->max_length);
  job->train = tokenize_dataset(train, tokenize, {}, job->machine.n_cores);
  if (!job->eval_examples.examples.empty())
    job->eval = tokenize_dataset(job->eval_examples, tokenize, {}, job->machine.n_cores);
  check_types(job->train, job->model);
  check_types(job->eval, job->model);
  if (job->train.n_truncated() > 0)
    job->notes.push_back(fmt::format("{} of {} texts are longer than {} tokens and were cut",
                                     job->train.n_truncated(), job->train.size(), job->max_length));

  check_best_model(*job);
  if (job->config.number("label_smoothing_factor") > 0 &&
      (job->loss == LossKind::multi_label || job->loss == LossKind::regression))
    throw Error(Fault::usage, "config.label_smoothing_factor",
                fmt::format("label smoothing is for texts with one label each, and these have {}",
                            job->loss == LossKind::regression ? "numbers" : "several"),
                "leave it out");
  PlanRequest request = make_plan_request(job->config, job->model, job->machine.plan,
                                          /*trains=*/true, job->train.bytes() + job->eval.bytes());
  job->notes.insert(job->notes.end(), request.notes.begin(), request.notes.end());
  count_real_lengths(*job);
  request.max_length = job->max_length;
  job->split.train_batch_size = job->config.integer("train_batch_size");
  plan_steps(*job);
  const RunTexts texts = texts_of(*job);
  request.text_tokens = text_tokens_of(texts);
  job->plan = make_plan(job->model, request);
  job->split.micro_batch_size = job->plan.micro_batch_size;
  note_short_batches(*job);
  job->token_sizes = choose_sizes(texts, job->split, job->plan.largest.tokens,
                                  n_token_sizes(job->model, job->plan));
  fix_identity(*job);
  return job;
}

std::unique_ptr<Job> prepare_inference(config::Config config,
                                       bool wants_labels,
                                       const std::vector<std::string>& texts) {
  const auto path = config::find_model(config.text("model_name_or_path"));
  auto directory = HfDirectory::open(path);
  auto tokenizer = Tokenizer::open(path);
  auto job = std::make_unique<Job>(Job{.config = std::move(config),
                                       .directory = std::move(directory),
                                       .tokenizer = std::move(tokenizer)});
  job->machine = detect_machine(job->config);
  const HfConfig& hf = job->directory.config();
  const bool masked_lm = is_masked_lm(hf);
  if (masked_lm && !wants_labels)
    throw Error(
        Fault::data, "model.open",
        fmt::format("'{}' is a masked language model, which labels no texts", path.string()),
        "`ferry eval` measures it; `ferry train --model` makes a classifier of it");
  if (masked_lm)
    job->config.choose("task", "mlm", hf.origin());
  else
    job->scheme = scheme_of_classifier(hf, path);
  if (const auto has_pairs = hf.fields().find(kPairsKey)) job->scheme.has_pairs = has_pairs->flag();
  if (!job->config.text("dataset").empty()) {
    auto options =
        dataset_options(job->config, job->config.text("dataset"),
                        wants_labels && !masked_lm ? LabelUse::required : LabelUse::ignored);
    options.takes_pipe = true;  // it is read once
    job->eval_examples = read_dataset(options, job->scheme);
  } else {
    const bool are_pairs = job->config.flag("pairs");
    check_pairs_given(job->scheme, are_pairs, job->config);
    job->eval_examples.examples =
        texts.empty() ? read_standard_input(are_pairs) : examples_of_words(texts, are_pairs);
  }
  job->notes = notes_of(job->machine, job->eval_examples);
  job->model = make_model_table(job->config, hf, n_labels_of(job->scheme), job->machine.plan);
  check_vocabulary(job->tokenizer, job->model, job->directory);
  job->max_length =
      choose_max_length(job->config, job->model.max_positions, job->machine.plan.has_gpu);
  job->loss = loss_of(job->scheme.problem, masked_lm);
  Dataset data = job->eval_examples;
  if (!wants_labels) data.scheme = {};
  job->eval = tokenize_dataset(data, tokenize_with(job->tokenizer, job->max_length), {},
                               job->machine.n_cores);
  check_types(job->eval, job->model);
  PlanRequest request = make_plan_request(job->config, job->model, job->machine.plan,
                                          /*trains=*/false, job->eval.bytes());
  job->notes.insert(job->notes.end(), request.notes.begin(), request.notes.end());
  const RunTexts run_texts = texts_of(*job);
  request.text_tokens = text_tokens_of(run_texts);
  job->plan = make_plan(job->model, request);
  job->split = {.train_batch_size = job->plan.micro_batch_size,
                .micro_batch_size = job->plan.micro_batch_size};
  job->token_sizes = choose_sizes(run_texts, job->split, job->plan.largest.tokens,
                                  n_token_sizes(job->model, job->plan));
  return job;
}

std::unique_ptr<Session> open_session(const Job& job, LoadReport* report) {
  const auto& config = job.config;
  SessionOptions options;
  options.device = job.machine.plan.has_gpu ? DeviceKind::cuda : DeviceKind::cpu;
  if (config.text("device") == "simulated")
    options.simulated = {.mode = SimulatedMode::threads, .poison = true};
  options.n_workers = worker_threads(job);
  options.loss = job.loss;
  options.seed = static_cast<uint64_t>(config.integer("seed"));
  if (job.plan.shape.trains) {
    options.overlap = config.flag("optimizer_overlap");
    options.label_smoothing = static_cast<float>(config.number("label_smoothing_factor"));
    options.optimizer.adamw = {.beta1 = config.number("adam_beta1"),
                               .beta2 = config.number("adam_beta2"),
                               .eps = config.number("adam_epsilon"),
                               .weight_decay = config.number("weight_decay")};
    options.optimizer.schedule = {.kind = parse_schedule(config.text("lr_scheduler_type")).value(),
                                  .learning_rate = config.number("learning_rate"),
                                  .n_warmup_steps = config.steps("warmup_steps", job.n_steps),
                                  .n_steps = job.n_steps,
                                  .min_lr_rate = config.number("min_lr_rate"),
                                  .num_cycles = config.number("lr_num_cycles"),
                                  .power = config.number("lr_power"),
                                  .gamma = config.number("lr_gamma"),
                                  .n_decay_steps = config.steps("lr_decay_steps", job.n_steps)};
    options.optimizer.seed = options.seed;
    options.optimizer.max_grad_norm = config.number("max_grad_norm");
    options.optimizer.loss_scaling = job.model.compute == DType::f16;
  }
  auto session = std::make_unique<Session>(job.model, job.plan.shape, job.plan.layout,
                                           job.plan.largest, options);
  if (job.has_checkpoint) return session;
  LoadReport loaded =
      load_weights(job.model, job.directory.weights(), options.seed, session->segments());
  if (!job.plan.shape.trains) check_trained(loaded, job);
  if (report) *report = std::move(loaded);
  return session;
}

int64_t planned_host_bytes(const Job& job) {
  return host_bytes_of(job.plan, job.machine.plan.has_gpu) +
         process_host_memory(job.machine.plan.has_gpu).later_bytes;
}

int64_t planned_gpu_bytes(const Job& job) {
  const PlanMachine& machine = job.machine.plan;
  if (!machine.has_gpu) return 0;
  return machine.gpu_context_bytes + loaded_kernels_bytes(job.model) +
         job.plan.layout.n_bytes[static_cast<size_t>(Place::device)];
}

HostBatch host_batch(const MicroBatch& batch, const Job& job) {
  HostBatch out;
  out.shape = {
      .tokens = batch.n_tokens(), .n_seqs_max = batch.n_seqs(), .max_length = job.max_length};
  out.n_seqs = batch.n_seqs();
  out.n_seqs_real = batch.n_real_seqs;
  out.n_label_items = batch.n_label_items;
  out.input_ids = batch.input_ids;
  out.type_ids = batch.type_ids;
  out.position_ids = batch.position_ids;
  out.cu_seqlens = batch.cu_seqlens;
  switch (job.loss) {
    case LossKind::cross_entropy:
      out.labels = std::as_bytes(std::span(batch.class_labels));
      break;
    case LossKind::multi_label:
      out.labels = std::as_bytes(std::span(batch.hot_labels));
      break;
    case LossKind::regression:
      out.labels = std::as_bytes(std::span(batch.value_labels));
      break;
    case LossKind::masked_lm:
      out.labels = std::as_bytes(std::span(batch.token_labels));
      out.label_rows = batch.label_rows;
      break;
    case LossKind::token_classification:
    case LossKind::question_answering:
    case LossKind::causal_lm:
      FERRY_CHECK(false, "no task has the loss {}", static_cast<int>(job.loss));
  }
  return out;
}

}  // namespace ferry
