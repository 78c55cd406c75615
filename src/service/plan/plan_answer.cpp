#include "src/service/plan/plan_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "src/base/process/threads.h"
#include "src/config/models/models.h"
#include "src/data/read/dataset_files.h"
#include "src/data/sampler.h"
#include "src/files/file_stamp.h"
#include "src/inputs/given_data.h"
#include "src/inputs/model_files.h"
#include "src/inputs/prompts.h"
#include "src/request/frozen_storage.h"
#include "src/request/param_groups.h"
#include "src/request/ranks.h"
#include "src/text/spec/tokenizer_spec.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;

struct FoundModel {
  HfConfig config;
  std::optional<fs::path> directory;  // its tokenizer's; nullopt: not on this machine
};

/** A model that is known by its name need not be on this machine to be planned. */
FoundModel find_model(const config::Config& config, const Tell& tell) {
  if (draws_weights(config)) {
    ScratchModel model = find_scratch_model(config);
    return {std::move(model.config), std::move(model.tokenizer)};
  }
  const std::string& name = config.text("model_name_or_path");
  try {
    const auto directory = config::find_model(name);
    return {HfConfig::load(config::config_file_of(directory)), directory};
  } catch (const Error&) {
    std::error_code error;
    const auto known = config::known_model_config(name);
    if (!known || fs::exists(name, error)) throw;
    tell(fmt::format("{} is not on this machine: planned with its shape, which is known", name));
    return {HfConfig::parse(*known, name), std::nullopt};
  }
}

std::string stamp_of(const fs::path& path) {
  const FileStamp stamp = file_stamp(path).value_or(FileStamp{});
  return fmt::format("{} {} {} {}\n", path.string(), stamp.inode, stamp.n_bytes, stamp.changed_ns);
}

/** The state of a dataset's files; of a folder with a sub-folder a label those of the folders. */
std::string stamps_of(const std::string& dataset) {
  std::string stamps;
  for (const fs::path& path : dataset_files(dataset)) {
    stamps += stamp_of(path);
    std::error_code error;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
      stamps += stamp_of(it->path());
  }
  return stamps;
}

/** Everything that the data and their tokens depend on, but max_length. An option that is not known
 * to be without influence is taken to have some. */
std::string key_of(const config::Config& config, const std::optional<fs::path>& tokenizer) {
  constexpr std::string_view kWithout[] = {"max_length",
                                           "dtype",
                                           "deterministic",
                                           "Batch and schedule",
                                           "Adapters",
                                           "Optimizer",
                                           "Regularisation",
                                           "Memory and placement",
                                           "Threads",
                                           "Output",
                                           "Samples",
                                           "Generation",
                                           "Evaluation and logging"};
  const auto is_without = [&](std::string_view name) {
    return std::ranges::find(kWithout, name) != std::end(kWithout);
  };
  std::string key;
  for (const config::Option& option : config::option_table())
    if (!is_without(option.group) && !is_without(option.key))
      key += fmt::format("{} = {}\n", option.key, to_toml(option, config.value(option.key)));
  for (const char* name : {"dataset", "eval_dataset"})
    if (const std::string& dataset = config.text(name); !dataset.empty()) key += stamps_of(dataset);
  if (tokenizer)
    for (const fs::path& file : text::tokenizer_files(*tokenizer))
      key += stamp_of(file);
  return key;
}

/** Reads them all. */
int64_t n_training_examples(const Texts& texts, uint64_t seed) {
  int64_t n = 0;
  const auto examples = texts.train.examples();
  for (Example example; examples->next(example);)
    n += begins_text(example.part);
  return texts.held_out > 0 ? std::ssize(split(n, texts.held_out, seed).train) : n;
}

/** `counts`: null where the tokens are not known, `n_examples`: where the data are not. */
PlannedTexts planned_texts(const config::Config& config,
                           const SampleCounts* counts,
                           std::optional<int64_t> n_examples) {
  PlannedTexts texts;
  if (const int64_t max_steps = config.integer("max_steps"); max_steps >= 0)
    texts.n_steps = max_steps;
  // Without a tokenizer nobody knows how many samples a long text is.
  if (n_examples) texts.n_steps = count_steps(config, *n_examples).total;
  if (!counts) return texts;
  texts.n_steps = count_steps(config, counts->n_trained()).total;
  texts.mean_tokens =
      static_cast<double>(counts->n_tokens) / static_cast<double>(counts->n_trained());
  return texts;
}

/** The samples that the training would show at once. Without a tokenizer a prompt counts as
 * max_length tokens. `known`: the tokenizer, where it is open. */
GenerationShape planned_samples(const config::Config& config,
                                const FoundModel& model,
                                const Tokenizer* known,
                                int64_t max_length,
                                int64_t context) {
  const auto n_prompts = sample_texts(config).size();
  if (n_prompts == 0) return {};
  if (model.directory && Tokenizer::is_in(*model.directory)) {
    std::optional<Tokenizer> opened;
    if (!known) known = &opened.emplace(Tokenizer::open(*model.directory));
    return shape_of(samples_of(config, *model.directory / kGenerationConfigName, model.config,
                               *known, context));
  }
  Prompt any;
  any.ids.resize(static_cast<size_t>(std::min(max_length, context)));
  const TextGeneration samples = {.rule = {.n_new_max = config.integer("max_new_tokens"),
                                           .context = context,
                                           .n_sequences_max = kSamplesAtOnce},
                                  .prompts = {n_prompts, any}};
  return shape_of(samples);
}

PlanRequest request_of(const PlanAnswer& answer,
                       const SampleCounts* counts,
                       int64_t max_length,
                       const GenerationShape& samples,
                       const Tell& tell) {
  const PlanMachine& machine = answer.machine.machine;
  if (counts) {
    const CountedTexts counted = count_texts(answer.config, *counts, max_length, /*trains=*/true);
    if (!counted.note.empty()) tell(counted.note);
    return make_plan_request(answer.config, answer.model, machine, /*trains=*/true, counted,
                             samples);
  }
  PlanRequest request = make_plan_request(answer.config, answer.model, machine, /*trains=*/true);
  request.generation = samples;
  return request;
}

PlannedDisk planned_disk(const PlanAnswer& answer, const config::Config& config) {
  const StepShape* shape = answer.plan ? &answer.plan->shape : nullptr;
  PlannedDisk disk{.need = disk_needed(answer.model, config, 0, shape),
                   .directory = config.maybe_text("output_dir").value_or("runs"),
                   .free_bytes = {}};
  // A machine that is not here has another disk.
  if (!config.maybe_text("machine")) disk.free_bytes = free_disk_bytes(disk.directory);
  return disk;
}

/** The watts that all GPUs of the run take at most; 0 where the limit of one is not known. */
double power_of(const PlanRequest& request) {
  double power_w = 0;
  for (int rank = 0; rank < request.world; ++rank) {
    const double its = request.machine->gpu_at(rank % request.machine->n_gpus()).power_w;
    if (its <= 0) return 0;
    power_w += its;
  }
  return power_w;
}

/** The first host's GPUs. A rank that was not simulated takes as long as one with the same GPU and
 * share. */
std::vector<PlannedGpu> planned_gpus(const Plan& plan, const PlanRequest& request) {
  const MachineProfile& machine = *request.machine;
  std::vector<PlannedGpu> gpus;
  if (!request.has_gpu || !machine.has_unlike_gpus()) return gpus;
  const Ranks& ranks = plan.shape.ranks;
  const int n_of_host = plan.shape.n_ranks_of_host();
  for (int rank = 0; rank < n_of_host; ++rank) {
    const GpuProfile& gpu = machine.gpu_at(rank);
    const auto is_like_it = [&](const RankBusy& its) {
      return ranks.stage_of(its.rank) == ranks.stage_of(rank) &&
             share_of(ranks, its.rank) == share_of(ranks, rank) &&
             machine.gpu_at(its.rank % n_of_host) == gpu;
    };
    const auto found = std::ranges::find_if(plan.predicted->ranks, is_like_it);
    PlannedGpu its = {.name = gpu.name, .share = share_of(ranks, rank)};
    if (found != plan.predicted->ranks.end()) {
      its.busy_s = std::ranges::max(found->busy_s);
      its.compute_s = found->busy_s[QueueId::compute];
    }
    its.budget_bytes = request.gpu_budgets_bytes.empty()
                           ? request.gpu_budget_bytes
                           : request.gpu_budgets_bytes[static_cast<size_t>(rank)];
    gpus.push_back(std::move(its));
  }
  return gpus;
}

PlanTime time_of(const Plan& plan, const PlanAnswer& answer) {
  const Simulation& predicted = *plan.predicted;
  const PlanRequest& request = answer.request;
  const auto resource = [&](QueueId queue, const char* name, const char* key) {
    return ResourceTime{queue, name, key, predicted.busy_s[queue]};
  };
  PlanTime time = {
      .step_s = predicted.step_s,
      .resources = {resource(QueueId::compute, request.has_gpu ? "GPU" : "CPU", "compute_s"),
                    resource(QueueId::h2d, "copies to the GPU", "h2d_s"),
                    resource(QueueId::d2h, "copies from the GPU", "d2h_s"),
                    resource(QueueId::host, "CPU updates", "host_s"),
                    resource(QueueId::nvme_read, "reads from the drive", "nvme_read_s"),
                    resource(QueueId::nvme_write, "writes to the drive", "nvme_write_s")},
      .binding = predicted.binding(),
      .samples_per_s = samples_per_second(request, plan),
      .tokens_per_text = answer.texts.mean_tokens.value_or(static_cast<double>(request.max_length)),
      .least_samples_per_s = least_samples_per_second(answer.model, request, plan),
      .gpus = planned_gpus(plan, request)};
  if (request.world > 1)
    time.resources.push_back(resource(
        QueueId::collective,
        request.has_gpu ? "exchanges between GPUs" : "exchanges between processes", "exchange_s"));
  time.tokens_per_s = time.samples_per_s * time.tokens_per_text;
  if (answer.texts.n_steps) time.run_s = static_cast<double>(*answer.texts.n_steps) * time.step_s;
  if (request.has_gpu && power_of(request) > 0)
    time.step_joules_at_most = power_of(request) * time.step_s;
  return time;
}

/** Of an answer with its plan, and the time if that is known; nothing without drives. */
std::optional<PlannedNvme> planned_nvme(const PlanAnswer& answer) {
  const PlanRequest& request = answer.request;
  if (!answer.plan || !request.has_nvme) return std::nullopt;
  PlannedNvme nvme = {.settings = nvme_settings(answer.config),
                      .need = nvme_need_of(answer.plan->shape, request.n_nvme_copies),
                      .n_copies = request.n_nvme_copies};
  if (request.nvme_budget_bytes < kStore_bytes_max) nvme.budget_bytes = request.nvme_budget_bytes;
  nvme.life = drive_life_of(nvme.need, nvme.settings.endurance_bytes,
                            answer.time ? std::optional(answer.time->step_s) : std::nullopt);
  return nvme;
}

/** The step on one GPU of a host that has nothing else to do. Nothing where it does not fit, or
 * GPUs are unlike. */
std::optional<double> one_rank_step_s(const PlanAnswer& answer) {
  if (answer.request.machine->has_unlike_gpus()) return std::nullopt;
  if (answer.model.sharing.n_ranks() > 1) return std::nullopt;  // one GPU has another model's table
  PlanRequest alone = answer.request;
  const int64_t n_here = std::max(1, alone.n_per_host);
  const int64_t of_host_bytes = alone.host_budget_bytes + alone.host_reserved_bytes;
  alone.host_budget_bytes = of_host_bytes * n_here - alone.host_reserved_bytes;
  alone.world = alone.n_per_host = 1;
  alone.n_stages = 1;
  alone.shares.clear();
  const std::optional<Plan> plan = find_plan(answer.model, alone);
  return plan && plan->predicted ? std::optional(plan->predicted->step_s) : std::nullopt;
}

/** The plan, or why there is none and what comes nearest. */
void make_plan_of(PlanAnswer& answer, bool looks_for_gains) {
  std::optional<MoreMemory> more;
  if (looks_for_gains) more.emplace(answer.model, answer.request);
  std::optional<Plan> nearest;
  try {
    answer.plan = make_plan(answer.model, answer.request, &nearest);
  } catch (const Error& error) {
    if (error.fault() != Fault::does_not_fit) throw;
    answer.refusal = error;
    answer.plan = std::move(nearest);
    return;
  }
  if (!answer.plan->predicted) return;
  answer.time = time_of(*answer.plan, answer);
  if (more) answer.time->gains = more->gains(*answer.plan);
  if (!looks_for_gains || answer.request.world == 1) return;
  answer.time->one_rank_step_s = one_rank_step_s(answer);
  answer.time->fewer_gpus = fastest_subset(answer.model, answer.request);
}

/** Says what fewer bits of frozen weights would change, which nobody asked for: the result is
 * another one, so it is the user's to choose. `table`: the model by other settings. */
void offer_quantisation(const PlanAnswer& answer,
                        const std::function<ModelTable(const config::Config&)>& table,
                        const Tell& tell) {
  constexpr double kWorthSaying = 0.05;
  if (answer.config.text("tuning") == "full" || answer.config.text("quantization") != "none")
    return;
  const auto offer = [&](const char* storage, const char* cost) {
    config::Config config = answer.config;
    config.choose("quantization", storage, "planner");
    std::optional<Plan> plan;
    try {
      plan = find_plan(table(config), answer.request);
    } catch (const Error&) {  // no matrix of this model can be stored so
      return false;
    }
    if (plan && answer.refusal)
      tell(fmt::format("with quantization = {} it would fit; {}", storage, cost));
    else if (plan && plan->predicted && answer.time &&
             plan->predicted->step_s < (1 - kWorthSaying) * answer.time->step_s)
      tell(fmt::format("with quantization = {} a step would take {:.3g} s in place of {:.3g} s; {}",
                       storage, plan->predicted->step_s, answer.time->step_s, cost));
    else
      return false;
    return true;
  };
  if (offer("stored", "the frozen weights are then what the model's files have, bit for bit"))
    return;
  offer("nf4", "the frozen weights are then off by what 4 bits lose");
}

}  // namespace

Verdict PlanAnswer::verdict() const {
  constexpr double kLittle = 0.95;
  const auto is_tight = [](int64_t n_bytes, int64_t there_bytes) {
    return static_cast<double>(n_bytes) > kLittle * static_cast<double>(there_bytes);
  };
  if (!fits()) return Verdict::does_not_fit;
  if (is_tight(host_bytes_of(*plan, request.has_gpu), request.host_budget_bytes) ||
      (nvme && nvme->budget_bytes && is_tight(nvme->need.store_bytes, *nvme->budget_bytes)) ||
      (disk.free_bytes && is_tight(disk.need.bytes(), *disk.free_bytes)))
    return Verdict::tight;
  return Verdict::fits;
}

const Nvidia& Planner::driver() {
  constexpr auto kFresh = std::chrono::seconds(2);
  const auto now = std::chrono::steady_clock::now();
  if (nvidia_read_ && now - *nvidia_read_ < kFresh) return nvidia_;
  nvidia_ = read_nvidia();
  nvidia_read_ = std::chrono::steady_clock::now();
  return nvidia_;
}

const Planner::OpenData* Planner::open_data(const config::Config& config,
                                            const HfConfig& model,
                                            const Directory& tokenizer,
                                            bool reads) {
  if (config.text("dataset").empty()) return nullptr;
  std::string key = key_of(config, tokenizer);
  if (open_.key == key) return &open_;
  if (!reads) return nullptr;
  OpenData data;
  if (tokenizer) data.tokenizer = Tokenizer::open(*tokenizer);
  data.texts = texts_to_train_on(config, model, data.tokenizer ? &*data.tokenizer : nullptr,
                                 tokenizer ? *tokenizer : std::filesystem::path());
  data.key = std::move(key);
  open_ = std::move(data);
  return &open_;
}

const Planner::CountedData* Planner::count_data(const config::Config& config,
                                                const Directory& tokenizer,
                                                int64_t max_length,
                                                bool reads) {
  std::string key = fmt::format("{}max_length = {}\n", open_.key, max_length);
  if (counted_.key == key) return &counted_;
  if (!open_.tokenizer && reads && !open_.n_examples)
    open_.n_examples = n_training_examples(open_.texts, shuffle_seed_of(config));
  if (!open_.tokenizer || !reads) return nullptr;
  const Data data = tokenize(
      open_.texts, *open_.tokenizer,
      token_settings(config, *open_.texts.task, *tokenizer, max_length, n_usable_threads()));
  counted_ = {.key = std::move(key), .counts = sample_counts_of(data), .notes = data.notes};
  return &counted_;
}

PlanAnswer Planner::answer(const config::Config& config, const PlanQuestion& question) {
  PlanAnswer answer = {.config = config};
  const Tell tell = [&](const std::string& note) {
    answer.notes.push_back(note);
    if (question.tell) question.tell(note);
  };
  const auto tell_all = [&](const std::vector<std::string>& notes) {
    std::ranges::for_each(notes, tell);
  };
  const config::Config& settings = answer.config;
  const FoundModel found = find_model(settings, tell);
  const bool has_tokenizer = found.directory && Tokenizer::is_in(*found.directory);
  const Directory tokenizer = has_tokenizer ? found.directory : std::nullopt;
  take_family_defaults(answer.config, found.config);
  take_gpus_of_machine(answer.config);
  check_data_exists(settings, "dataset");
  check_data_exists(settings, "eval_dataset");
  const OpenData* const data = open_data(settings, found.config, tokenizer, question.reads_data);
  if (data) tell_all(data->texts.notes);

  answer.machine = planned_machine(settings, [this]() -> const Nvidia& { return driver(); });
  const PlanMachine& machine = answer.machine.machine;
  const int64_t n_labels =
      data ? data->texts.task->n_labels() : n_labels_without_data(found.config);
  const auto table = [&](const config::Config& by) {
    ModelTable model = make_model_table(by, found.config, task_kind_of(by).head, n_labels, machine,
                                        sharing_of(by, ranks_of(by)));
    apply_param_options(by, model);
    return model;
  };
  answer.model = table(settings);
  tell_all(storage_notes(settings, found.config, answer.model));

  const int64_t max_length =
      choose_max_length(settings, answer.model.max_positions, machine.has_gpu);
  if (data && !tokenizer)
    tell(fmt::format("the model's tokenizer is not here: each text counts as {} tokens",
                     max_length));
  const CountedData* const counted =
      data ? count_data(settings, tokenizer, max_length, question.reads_data) : nullptr;
  if (counted) tell_all(counted->notes);
  const SampleCounts* const counts = counted ? &counted->counts : nullptr;
  answer.texts = planned_texts(settings, counts, data ? data->n_examples : std::nullopt);
  const Tokenizer* const known = data && data->tokenizer ? &*data->tokenizer : nullptr;
  const GenerationShape samples = planned_samples(
      settings, found, known, max_length, context_of(answer.model.max_positions, machine.has_gpu));
  answer.request = request_of(answer, counts, max_length, samples, tell);
  tell_all(answer.machine.notes);
  tell_all(answer.request.notes);
  make_plan_of(answer, question.looks_for_gains);
  if (question.looks_for_gains) offer_quantisation(answer, table, tell);
  answer.disk = planned_disk(answer, settings);
  answer.nvme = planned_nvme(answer);
  return answer;
}

}  // namespace ferry::service
