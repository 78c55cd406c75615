#include "src/train/prepare/job.h"
#include "src/request/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "models/adapters/soft_tokens.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/utf8.h"
#include "src/config/models/models.h"
#include "src/data/read/dataset_files.h"
#include "src/files/hf/prompt_config.h"
#include "src/inputs/model_files.h"
#include "src/inputs/preflight.h"
#include "src/inputs/prompt_settings.h"
#include "src/plan/unlike_gpus.h"
#include "src/request/adapters.h"
#include "src/request/frozen_storage.h"
#include "src/request/param_groups.h"
#include "src/request/run_plan.h"
#include "src/train/control/best_model.h"
#include "src/train/prepare/run_state.h"
#include "src/train/prepare/run_store.h"
#include "src/train/prepare/settle_shares.h"
#include "src/train/ranks/rank_team.h"

namespace ferry {
namespace {

/** Makes the paths in config.toml mean the same from wherever the run is resumed. A model's name is
 * no path. */
void make_paths_absolute(config::Config& config) {
  if (const auto directories = config.list("nvme_path"); !directories.empty()) {
    std::vector<std::string> all;
    for (const std::string& directory : directories)
      all.push_back(std::filesystem::absolute(directory).lexically_normal().string());
    // It stays the user's word: what is written there depends on who named it.
    config.respell("nvme_path", fmt::format("{}", fmt::join(all, ",")));
  }
  if (const auto file = sample_file(config); !file.empty())
    config.choose("sample_prompts", std::filesystem::absolute(file).lexically_normal().string(),
                  config.origin("sample_prompts").where);
  for (const char* key : {"model_name_or_path", "config_name", "tokenizer_name", "dataset",
                          "eval_dataset", "output_dir", "trace", "token_cache"}) {
    const std::string path = config.maybe_text(key).value_or("");
    std::error_code error;
    const bool is_dataset = std::string_view(key).ends_with("dataset");
    const auto absolute = is_dataset
                              ? absolute_dataset(path)
                              : std::filesystem::absolute(path, error).lexically_normal().string();
    const bool may_be_name =
        std::string_view(key).ends_with("_name") || std::string_view(key) == "model_name_or_path";
    const bool is_name = (may_be_name && !std::filesystem::exists(path, error)) ||
                         (std::string_view(key) == "token_cache" && path == kNoTokenCache);
    if (!path.empty() && !is_name && path != absolute)
      config.choose(key, absolute, config.origin(key).where);
  }
}

void check_types(const TokenizedDataset& data, const ModelTable& model) {
  if (model.n_token_types > 0 && data.max_type_id() >= model.n_token_types)
    throw Error(Fault::data, "model.open",
                fmt::format("the texts have tokens of type {}, the model knows {} ({})",
                            data.max_type_id(), model.n_token_types,
                            model.n_token_types == 1 ? "type_vocab_size 1: no pairs of texts"
                                                     : "type_vocab_size"),
                "tokenizer and weights are not of the same model, or leave out text_pair_column");
}

/** Only where the tokenizer has more tokens than the model has rows is all of the data read. */
void check_rows(const TokenizedDataset& data, const Model& model) {
  if (model.tokenizer.vocab_size() <= model.table.vocab_size) return;
  for (int64_t sequence = 0; sequence < data.n_sequences(); ++sequence)
    check_rows(data.ids(sequence), model.tokenizer, model.table);
}

/** A name of a hub is kept with its commit: a run that is resumed begins with the same files,
 * whatever the hub has by then. */
void keep_commit(config::Config& config) {
  const std::string& name = config.text("model_name_or_path");
  const auto directory = name.empty() ? std::nullopt : config::locate_model(name);
  const auto commit = directory ? config::commit_of_snapshot(*directory) : std::nullopt;
  auto repo = commit ? config::hub_model_of(name) : std::nullopt;
  if (!repo) return;
  repo->revision = *commit;
  config.choose("model_name_or_path", repo->text(), config.origin("model_name_or_path").where);
}

/** A run that goes on another day has the same tokens. */
void keep_chat_date(config::Config& config, const Task& task) {
  if (!task.depends_on_day() || config.maybe_text("chat_date")) return;
  const std::time_t now = std::time(nullptr);
  char day[16];
  std::strftime(day, sizeof day, "%Y-%m-%d", std::localtime(&now));
  config.choose("chat_date", day, "the chat template writes the day");
}

/** A prompt's head is made of what the configuration will say of it. */
HfConfig config_with_prompt(const Model& model, const Task& task) {
  HfConfig config = model.directory.config();
  if (task.head() != HeadKind::prompt) return config;
  task.write(config);
  return HfConfig::parse(config.json().dump(), config.origin());
}

/** The model's tensors, with the task's head. */
void make_table(Job& job, const Task& task, bool trains) {
  Model& model = job.model;
  if (!trains && virtual_tokens_of(model.directory).n > 0)
    job.config.choose("tuning", "soft_prompt", kPeftConfigName);
  model.table = make_model_table(job.config, config_with_prompt(model, task), task.head(),
                                 task.n_labels(), job.machine.plan,
                                 trains ? sharing_of(job.config, ranks_of(job.config)) : Sharing());
  if (trains) apply_param_options(job.config, model.table);
  const HfEntry* soft = find_soft_tokens(model.table);
  if (trains && soft && soft->hf_name == kPromptEmbeddings &&
      job.config.text("prompt_tuning_init") == "text")
    start_soft_tokens(model.table, starts_of_text(job.config, model.tokenizer));
  if (!trains)
    add_adapter_of(model.directory, model.table);
  else
    for (std::string& note : storage_notes(job.config, model.directory.config(), model.table))
      job.notes.push_back(std::move(note));
  check_vocabulary(model.directory, model.tokenizer, model.table);
  // Padding of the vocabulary, or a vocabulary cut short, which no error would show.
  const int64_t n = model.tokenizer.vocab_size();
  if (trains && n < model.table.vocab_size)
    job.notes.push_back(
        fmt::format("the tokenizer has {} tokens, the model has room for {}: is "
                    "the vocabulary complete?",
                    n, model.table.vocab_size));
  else if (n > model.table.vocab_size)
    job.notes.push_back(fmt::format(
        "the tokenizer has {} tokens, the model has rows for {}: the others, such as '{}', may not "
        "be in texts",
        n, model.table.vocab_size,
        model.tokenizer.id_to_token(static_cast<int32_t>(model.table.vocab_size))));
}

/** The prompts of the samples that the training shows. */
void read_samples(Job& job) {
  const HfDirectory& model = job.model.directory;
  const int64_t context = context_of(job.model.table.max_positions, job.machine.plan.has_gpu);
  const VirtualTokens before = virtual_tokens_of(job.config, model.config());
  job.generation = samples_of(job.config, model.file(kGenerationConfigName), model.config(),
                              job.model.tokenizer, context - before.n);
  job.generation.rule.context += before.n;
  for (Prompt& prompt : job.generation.prompts)
    before.prepend(prompt.ids);
  for (const Prompt& prompt : job.generation.prompts)
    check_rows(prompt.ids, job.model.tokenizer, job.model.table);
}

void tokenize_texts(Job& job, const Texts& texts) {
  const int64_t max_length =
      choose_max_length(job.config, job.model.table.max_positions, job.machine.plan.has_gpu);
  const TokenSettings settings = token_settings(
      job.config, *texts.task, job.model.directory.tokenizer(), max_length, job.machine.n_cores);
  job.data = tokenize(texts, job.model.tokenizer, settings);
  job.notes.insert(job.notes.end(), job.data.notes.begin(), job.data.notes.end());
  job.data.seed = static_cast<uint64_t>(job.config.integer("seed"));
  job.data.shuffle_seed = settings.shuffle_seed;
  check_rows(job.data.train, job.model);
  check_rows(job.data.eval, job.model);
  check_types(job.data.train, job.model.table);
  check_types(job.data.eval, job.model.table);
  if (const int64_t n_cut = job.data.train.n_truncated(); n_cut > 0)
    job.notes.push_back(fmt::format("{} of {} texts are longer than {} tokens and were cut", n_cut,
                                    job.data.train.n_sequences(), max_length));
  if (settings.packs)
    job.notes.push_back(fmt::format("{} texts and parts of texts are packed into {} samples",
                                    job.data.train.n_sequences(), job.data.train.size()));
}

/** Throws Error(data) where the training would be in vain. */
void look_for_faults(Job& job, const Texts& texts) {
  const HfDirectory& model = job.model.directory;
  const auto warnings = take_warnings(preflight({.config = job.config,
                                                 .model = model.config(),
                                                 .files = model,
                                                 .texts = texts,
                                                 .data = job.data,
                                                 .tokenizer = job.model.tokenizer}));
  job.notes.insert(job.notes.end(), warnings.begin(), warnings.end());
}

void check_label_smoothing(const config::Config& config, const Task& task) {
  const ProblemType problem = task.scheme().problem;
  const bool is_taken = problem != ProblemType::multi_label && problem != ProblemType::regression &&
                        task.loss() != LossKind::reward;
  if (config.number("label_smoothing_factor") > 0 && !is_taken)
    throw Error(Fault::usage, "config.label_smoothing_factor",
                fmt::format("label smoothing is for texts with one label each, and these have {}",
                            problem == ProblemType::multi_label ? "several" : "numbers"),
                "leave it out");
}

void take_class_weights(Job& job) {
  const Task& task = *job.data.task;
  job.data.class_weights =
      choose_class_weights(job.config.text("class_weights"), task, job.data.train);
  if (job.data.class_weights.empty()) return;
  constexpr size_t kShown = 20;
  std::string shown;
  for (size_t i = 0; i < std::min(job.data.class_weights.size(), kShown); ++i)
    shown +=
        fmt::format("{}{} {:.4g}", i > 0 ? ", " : "",
                    task.scheme().labels.name(static_cast<int32_t>(i)), job.data.class_weights[i]);
  job.notes.push_back(fmt::format("class weights of the loss: {}{}", escaped(shown),
                                  job.data.class_weights.size() > kShown ? ", ..." : ""));
}

void note_short_batches(Job& job) {
  constexpr double kWorthSaying = 0.9;
  const int64_t micro_batch = job.data.split.micro_batch_size,
                most = whole_batch(job.model.table, job.plan.largest).tokens,
                full = micro_batch * job.data.max_length;
  if (static_cast<double>(most) < kWorthSaying * static_cast<double>(full))
    job.notes.push_back(fmt::format(
        "the largest micro-batch, of {0} texts, has {1} tokens: planned for {1}, not for {2}",
        micro_batch, most, full));
}

/** Says where slower GPUs are not worth their place in the run. */
void note_slow_gpus(Job& job, const PlanRequest& request, const Plan& plan) {
  if (!plan.predicted) return;
  const std::optional<GpuSubset> fewer = fastest_subset(job.model.table, request);
  if (!fewer || fewer->step_s >= kGpusHelp * plan.predicted->step_s) return;
  job.rank_notes.push_back(
      comparison_text(*fewer, request, plan.predicted->step_s, ranks_of(job.config).gpus));
}

/** The place of every byte, and with it the sizes of micro-batches. */
void make_plan_of(Job& job, bool trains) {
  CountedTexts counted =
      count_texts(job.config, sample_counts_of(job.data), job.data.max_length, trains);
  PlanRequest request = make_plan_request(job.config, job.model.table, job.machine.plan, trains,
                                          counted, shape_of(job.generation));
  job.notes.insert(job.notes.end(), request.notes.begin(), request.notes.end());
  if (!counted.note.empty()) job.notes.push_back(counted.note);
  job.data.max_length = counted.texts.max_length;
  job.steps = counted.steps;
  if (trains) job.data.split.train_batch_size = job.config.integer("train_batch_size");
  Plan plan = make_plan(job.model.table, request);
  if (trains) note_slow_gpus(job, request, plan);
  if (!trains) job.data.split.train_batch_size = plan.micro_batch_size;
  job.open_plan.emplace(std::move(request), std::move(counted));
  take_plan(job, std::move(plan));
}

/** Writes choices that were made here and fix the bits into config.toml, so that a resumed run has
 * them. */
void fix_identity(Job& job) {
  config::Config& config = job.config;
  config.choose("per_device_train_batch_size", fmt::format("{}", job.data.split.micro_batch_size),
                "planner");
  config.choose("reduction", std::string(name_of(job.plan.shape.reduction)), "planner");
  config.choose("token_sizes", fmt::format("{}", fmt::join(job.data.token_sizes, ",")), "planner");
  if (config.is_auto("intra_op_threads") && !job.machine.plan.has_gpu)
    config.choose("intra_op_threads", fmt::format("{}", job.machine.n_cores), "machine");
  job.identity = identity_of(job);  // once: it reads all of the data
}

/** Only a training draws weights, and only until it has a checkpoint. */
HfDirectory model_directory(const config::Config& config, const JobRequest& request) {
  if (request.checkpoint)
    return open_checkpoint_directory(request.checkpoint->path, config.text("model_name_or_path"));
  if (request.purpose == Purpose::training) return open_model(config);
  return open_directory(config::find_model(config.text("model_name_or_path")));
}

/** A head drawn from the seed would answer at random. */
void check_trained(const LoadReport& loaded, const Model& model) {
  if (!loaded.initialised.empty())
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' has no tensor '{}'", model.directory.path().string(),
                            loaded.initialised.front()),
                "its head is not trained; train one with `ferry train`");
  if (!loaded.redrawn.empty())
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' has {}", model.directory.path().string(), loaded.redrawn.front()),
                "do the labels of config.json and the weights belong together?");
}

/** Those of the ranks that this process starts, and its own. */
std::vector<int> gpus_here(const config::Config& config) {
  const RunRanks ranks = ranks_of(config);
  std::vector<int> gpus;
  for (int rank = 0; rank < (ranks.is_launched ? 1 : ranks.local_world); ++rank)
    gpus.push_back(ranks.gpu_of(rank));
  return gpus;
}

/** Starts the other ranks, unless they have met, and says how they share a step. */
void take_team(Job& job) {
  const RunRanks ranks = ranks_to_start(job.config);
  if (ranks.world == 1) return;
  if (!job.team) job.team = std::make_shared<RankTeam>(ranks, job.config);
  const std::string shares = ranks.shares.empty()
                                 ? "in turn"
                                 : fmt::format("in shares of {}", fmt::join(ranks.shares, ", "));
  const StepShape& shape = job.plan.shape;
  const std::string blocks =
      shape.order == AccumulationOrder::vertical ? "in turn" : "as a pipeline";
  const Sharing& sharing = shape.ranks.sharing;
  const std::string how =
      sharing.n_ranks() > 1
          ? fmt::format(
                "each {} of them share the {} of a micro-batch, and each holds a part of the "
                "states{}",
                sharing.n_ranks(), sharing.tp_size > 1 ? "layers" : "tokens",
                shape.deals_blocks() ? fmt::format("; a replica has its blocks in {} stages, {}",
                                                   shape.ranks.n_stages, blocks)
                                     : std::string())
      : shape.cuts_blocks() && shape.deals_blocks()
          ? fmt::format(
                "each {} of them have the blocks of one replica {}, and {} replicas take its "
                "micro-batches in turn",
                shape.ranks.n_stages, blocks, shape.ranks.n_replicas())
      : shape.deals_blocks()
          ? fmt::format("they have its blocks {}{}", blocks,
                        ranks.shares.empty() ? "" : ", " + shares)
          : fmt::format("they take its micro-batches {}, and each holds a part of the states",
                        shares);
  job.rank_notes.push_back(fmt::format(
      "{} {}{} share each step: {}", ranks.world, job.machine.plan.has_gpu ? "GPUs" : "processes",
      ranks.n_hosts > 1 ? fmt::format(" of {} hosts", ranks.n_hosts) : "", how));
}

}  // namespace

HfConfig config_of_result(const Model& model, const Task& task, DType dtype) {
  HfConfig config = model.directory.config();
  config.set_architecture(model.table.hf_architecture);
  config.set_dtype(dtype);
  if (config.json().contains(kPromptKey)) config.set(kPromptKey, nullptr);  // of another task
  task.write(config);
  return config;
}

Job prepare(config::Config config, const JobRequest& request) {
  const bool trains = request.purpose == Purpose::training;
  if (trains) make_paths_absolute(config);
  if (trains) keep_prompt(config);
  if (trains && !request.checkpoint) keep_commit(config);
  HfDirectory directory = model_directory(config, request);
  if (trains) directory.check_copyable();  // into each checkpoint
  Tokenizer tokenizer = Tokenizer::open(directory.tokenizer());
  Job job = {.config = std::move(config),
             .model = {.directory = std::move(directory),
                       .tokenizer = std::move(tokenizer),
                       .has_checkpoint = request.checkpoint.has_value()}};
  if (trains) take_family_defaults(job.config, job.model.directory.config());
  job.machine = detect_machine(job.config, trains ? gpus_here(job.config) : std::vector{0});
  const Texts texts = trains
                          ? texts_to_train_on(job.config, job.model.directory.config(),
                                              &job.model.tokenizer, job.model.directory)
                          : texts_to_answer(job.config, job.model.directory, job.model.tokenizer,
                                            request.purpose == Purpose::evaluation, request.words);
  if (trains) keep_chat_date(job.config, *texts.task);
  if (!job.machine.note.empty()) job.notes.push_back(job.machine.note);
  job.notes.insert(job.notes.end(), texts.notes.begin(), texts.notes.end());
  if (!trains) {
    job.config.choose("task", std::string(texts.task->name()),
                      job.model.directory.config().origin());
    // A run by preference that is measured on plain texts.
    if (texts.task->loss() != LossKind::preference)
      job.config.choose("label_smoothing_factor", "0", "texts are measured as they are");
  }
  make_table(job, *texts.task, trains);
  if (trains) read_samples(job);
  tokenize_texts(job, texts);
  if (trains && !request.checkpoint) look_for_faults(job, texts);
  if (trains) {
    check_best_model(job.config, job.data);
    check_label_smoothing(job.config, *job.data.task);
    take_class_weights(job);
  }
  if (trains) job.team = request.team;
  if (trains) settle_shares(job);
  make_plan_of(job, trains);
  if (trains) take_team(job);
  const bool is_new = trains && job.config.text("resume_from_checkpoint").empty();
  if (!is_new) close_plan(job);
  return job;
}

void take_plan(Job& job, Plan plan) {
  StepSplit& split = job.data.split;
  job.plan = std::move(plan);
  split.micro_batch_size = job.plan.micro_batch_size;
  job.data.token_sizes =
      choose_sizes(job.open_plan.value().counted.texts, split,
                   whole_batch(job.model.table, job.plan.largest).tokens,
                   n_token_sizes(job.model.table, job.plan), job.model.table.sharing.sp_size);
}

void close_plan(Job& job) {
  job.open_plan.reset();
  if (!job.plan.shape.trains) return;
  note_short_batches(job);
  fix_identity(job);
}

bool pins_memory(const Job& job) {
  return pins_memory(job.config, job.machine);
}

namespace {

SessionFacts facts_of(const Job& job) {
  return {.loss = job.data.task->loss(),
          .seed = job.data.seed,
          .class_weights = job.data.class_weights,
          .generation = generation_shape(shape_of(job.generation), job.plan.largest),
          .n_steps = job.steps.total,
          .trains = job.plan.shape.trains,
          .optim = job.plan.shape.optim,
          .compute = job.model.table.compute};
}

/** The other ranks open a session, too. */
void open_ranks(const Job& job, const SessionFacts& facts, SessionOptions& options) {
  const RankSetup setup = {
      .config = job.config,
      .run_id = options.drive.run,
      .model_config = config_with_prompt(job.model, *job.data.task).with_quantisation().dump(),
      .model_origin = job.model.directory.config().origin(),
      .head = job.model.table.head,
      .n_labels = job.data.task->n_labels(),
      .largest = job.plan.largest,
      .facts = facts,
      .shape = job.plan.shape};
  const auto links = job.team->open(setup, job.plan.shape);
  options.link = links->link();
  options.sharing_link = links->sharing_link();
  options.leader = links->leader.get();
  options.device_index = job.team->ranks().gpu_of(0);
  options.kept = links;
}

}  // namespace

std::unique_ptr<Session> open_session(const Job& job, RunStore& store, LoadReport* report) {
  const ModelTable& table = job.model.table;
  const SessionFacts facts = facts_of(job);
  const int n_sharing = job.team ? job.team->ranks().local_world : 1;
  SessionOptions options = make_session_options(job.config, job.machine, facts, n_sharing);
  options.drive = store.options(job);
  if (job.team) open_ranks(job, facts, options);
  options.describe = [&job](const SessionState& state, const StepReport* report) {
    return metadata_of(state, report, job);
  };
  auto session =
      std::make_unique<Session>(table, job.plan.shape, job.plan.layout, job.plan.largest, options);
  const PinnedBytes bytes = session->device().pinned_bytes();
  if (bytes.ring > 0 && !job.open_plan)  // a plan that is only tried says nothing
    log_line(fmt::format(
        "{} of host memory is pinned, {} of it a ring; copies of {} more go through "
        "the ring",
        format_bytes(bytes.pinned), format_bytes(bytes.ring), format_bytes(bytes.unpinned)));
  // A checkpoint with adapters has these alone.
  if (job.model.has_checkpoint && !table.has_deltas) return session;
  if (!job.model.directory.has_weights()) {
    initialise_weights(table, options.seed, session->segments());
    return session;
  }
  const HfDirectory& directory = job.model.directory;
  std::optional<CheckpointReader> adapter;
  if (directory.adapter()) adapter = directory.adapter_weights();
  LoadReport loaded = load_weights(table, directory.weights(), options.seed, session->segments(),
                                   adapter ? &*adapter : nullptr);
  if (!job.plan.shape.trains) check_trained(loaded, job.model);
  if (report) *report = std::move(loaded);
  return session;
}

}  // namespace ferry
