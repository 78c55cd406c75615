#include "src/request/run_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/core/compile.h"
#include "models/family.h"
#include "models/ops/attention/attention_op.h"
#include "models/ops/scratch_sizes.h"
#include "offload/device/gpu_support.h"
#include "src/base/error.h"
#include "src/base/process/host_memory.h"
#include "src/base/process/threads.h"
#include "src/plan/cost/rates.h"
#include "src/plan/nvme_need.h"
#include "src/plan/unlike_gpus.h"
#include "src/request/gpu_shares.h"
#include "src/request/nvme.h"
#include "src/request/prompt_table.h"
#include "src/request/ranks.h"

namespace ferry {

namespace {

/** Figures from runs of several sizes: 2 CPU cores; H200 with 16 cores. */
ProcessMemory assumed_process_memory(bool has_gpu) {
  if (has_gpu) return {.at_start_bytes = 460 * kMiB, .later_bytes = 324 * kMiB};
  // CUDA's libraries are loaded with LibTorch, whether they are used or not.
  const bool has_cuda_libraries = !gpu_code_of_build().archs.empty();
  return {.at_start_bytes = (has_cuda_libraries ? 356 : 120) * kMiB, .later_bytes = 48 * kMiB};
}

GpuProfile gpu_of(const PlanMachine& machine) {
  return machine.profile && machine.profile->gpu ? *machine.profile->gpu : GpuProfile{};
}

/** Zeros where it was not measured. */
ProcessMemory measured_process_memory(const PlanMachine& machine) {
  if (machine.has_gpu) return gpu_of(machine).process;
  return machine.profile ? machine.profile->host.process : ProcessMemory{};
}

bool is_reserve_measured(const PlanMachine& machine) {
  const ProcessMemory process = measured_process_memory(machine);
  const KernelMemory kernels = gpu_of(machine).kernels;
  return process.at_start_bytes > 0 && process.later_bytes > 0 &&
         (!machine.has_gpu ||
          (kernels.loaded_bytes > 0 && kernels.has_seen_spills() && kernels.graph_bytes > 0));
}

/** Nothing where none was stored, or it is damaged: `ferry doctor` says so, and measures anew. */
std::optional<MachineProfile> stored_profile() {
  try {
    return load_machine_profile();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/** A home directory or a disk may have moved to another machine. */
bool is_of_other_cpu(const MachineProfile& profile) {
  const std::string here = cpu_name();
  return !profile.host.cpu.empty() && !here.empty() && profile.host.cpu != here;
}

}  // namespace

int64_t host_budget_of(const config::Config& config, const PlanMachine& machine) {
  return config.maybe_integer("host_memory").value_or(machine.host_budget_bytes);
}

int64_t pinned_bytes_max_of(const config::Config& config, const PlanMachine& machine) {
  const int64_t measured = gpu_of(machine).pinned_bytes_max;
  const int64_t system_max = measured > 0 ? measured : INT64_MAX;
  return std::min(config.maybe_integer("pinned_memory").value_or(system_max), system_max);
}

ProcessMemory process_memory_of(const PlanMachine& machine, int64_t n_graphs) {
  const ProcessMemory measured = measured_process_memory(machine);
  const ProcessMemory assumed = assumed_process_memory(machine.has_gpu);
  // A larger model's products take larger buffers than the small one that is measured.
  constexpr int64_t kLargerModels_bytes = 16 * kMiB;
  return {.at_start_bytes =
              measured.at_start_bytes > 0 ? measured.at_start_bytes : assumed.at_start_bytes,
          .later_bytes = measured.later_bytes > 0
                             ? measured.later_bytes + kLargerModels_bytes +
                                   n_graphs * gpu_of(machine).kernels.graph_host_bytes
                             : assumed.later_bytes};
}

int64_t nccl_host_bytes(const PlanMachine& machine, int world, int n_sharing) {
  if (!machine.has_gpu || world == 1) return 0;
  // On two H200 a process had 350 MiB more once the ranks had met, 8 with the first message, 9 for
  // a second communicator, and without peer access 48 for a message and 96 for a gather.
  constexpr int64_t kMeeting_bytes = 350 * kMiB, kSecond_bytes = 9 * kMiB,
                    kThroughMemory_bytes = 56 * kMiB;
  const auto& exchange = gpu_of(machine).exchange;
  return kMeeting_bytes + (n_sharing > 1 ? kSecond_bytes : 0) +
         (exchange && !exchange->has_peer_access ? kThroughMemory_bytes : 0);
}

int64_t loaded_kernels_bytes(const ModelTable& model,
                             const PlanMachine& machine,
                             int64_t n_graphs) {
  return loaded_kernels_bytes(model, gpu_of(machine).kernels, n_graphs);
}

std::string note_of_other_machine() {
  const auto profile = stored_profile();
  if (!profile || !is_of_other_cpu(*profile)) return {};
  return fmt::format(
      "the machine's profile was measured on another processor ({}, this is {}) and "
      "is not used: run `ferry doctor`",
      profile->host.cpu, cpu_name());
}

std::optional<MachineProfile> profile_of_this_machine(const std::string& gpu_name) {
  const std::optional<MachineProfile> profile = stored_profile();
  if (profile && is_of_other_cpu(*profile)) return std::nullopt;
  if (!profile || gpu_name.empty()) return profile;
  for (int i = 0; i < profile->n_gpus(); ++i) {
    if (profile->gpu_at(i).name != gpu_name) continue;
    MachineProfile its = *profile;
    if (i > 0) std::swap(*its.gpu, its.other_gpus[static_cast<size_t>(i) - 1]);
    return its;
  }
  return std::nullopt;
}

PlanMachine plan_machine_here() {
  PlanMachine machine;
  machine.host_budget_bytes = read_host_memory().budget_bytes();
  machine.profile = profile_of_this_machine("");
  return machine;
}

void add_gpu(const GpuHere& gpu, PlanMachine& machine) {
  machine.has_gpu = true;
  machine.compute_capability = gpu.compute_capability;
  machine.gpu_free_bytes = gpu.free_bytes;
  machine.gpu_context_bytes = gpu.taken_bytes;
  machine.profile = profile_of_this_machine(gpu.name);
  if (machine.profile) machine.profile->other_gpus.clear();
}

void add_gpus(std::span<const GpuHere> gpus, PlanMachine& machine) {
  add_gpu(gpus.front(), machine);
  const auto is_as_first = [&](const GpuHere& gpu) {
    return gpu.name == gpus.front().name && gpu.free_bytes == gpus.front().free_bytes;
  };
  if (std::ranges::all_of(gpus, is_as_first)) return;
  machine.gpus.assign(gpus.begin(), gpus.end());
  if (!machine.profile) return;
  std::vector<GpuProfile> known;
  for (const GpuHere& gpu : gpus)
    if (const auto its = profile_of_this_machine(gpu.name)) known.push_back(*its->gpu);
  const bool are_alike =
      std::ranges::all_of(known, [&](const GpuProfile& gpu) { return gpu == known.front(); });
  if (known.size() == gpus.size() && !are_alike)
    machine.profile->other_gpus.assign(known.begin() + 1, known.end());
}

namespace {

GpuHere gpu_not_here(const GpuProfile& gpu) {
  constexpr int64_t kDisplay_bytes = 512 * kMiB;
  constexpr int64_t kContext_bytes = 512 * kMiB;  // the size where the profile does not tell
  const int64_t taken_bytes = (gpu.context_bytes > 0 ? gpu.context_bytes : kContext_bytes) +
                              (gpu.drives_display ? kDisplay_bytes : 0);
  return {.name = gpu.name,
          .compute_capability = gpu.compute_capability,
          .free_bytes = std::max<int64_t>(0, gpu.memory_bytes - taken_bytes),
          .taken_bytes = taken_bytes};
}

/** All of a host's GPUs. */
std::vector<int> capabilities_of(const PlanMachine& machine) {
  std::vector<int> capabilities = {machine.compute_capability};
  for (const GpuHere& gpu : machine.gpus)
    capabilities.push_back(gpu.compute_capability);
  return capabilities;
}

}  // namespace

PlanMachine machine_of(const MachineProfile& profile) {
  PlanMachine machine;
  machine.profile = profile;
  machine.host_budget_bytes = profile.host.memory_bytes / 10 * 9;
  if (!profile.gpu) return machine;
  const GpuHere gpu = gpu_not_here(*profile.gpu);
  machine.has_gpu = true;
  machine.compute_capability = gpu.compute_capability;
  machine.gpu_context_bytes = gpu.taken_bytes;
  machine.gpu_free_bytes = gpu.free_bytes;
  if (profile.has_unlike_gpus())
    for (int i = 0; i < profile.n_gpus(); ++i)
      machine.gpus.push_back(gpu_not_here(profile.gpu_at(i)));
  return machine;
}

DType choose_dtype(const config::Config& config, const PlanMachine& machine) {
  const std::string& wish = config.text("dtype");
  constexpr int kBf16_capability = 80;
  const int least = std::ranges::min(capabilities_of(machine));
  if (wish == "fp32") return DType::f32;
  if (wish == "fp16") return DType::f16;
  if (wish == "bf16") {
    if (machine.has_gpu && least < kBf16_capability)
      throw Error(Fault::usage, "config.dtype",
                  fmt::format("bf16 needs compute capability 8.0, {} has {}.{}",
                              machine.gpus.empty() ? "this GPU" : "one of the GPUs", least / 10,
                              least % 10),
                  "use dtype = fp16, or auto");
    return DType::bf16;
  }
  if (!machine.has_gpu) return DType::f32;
  return least >= kBf16_capability ? DType::bf16 : DType::f16;
}

std::optional<DType> dtype_named(std::string_view name) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16})
    if (name == name_of(type)) return type;
  return std::nullopt;
}

DType choose_final_dtype(const config::Config& config, DType compute) {
  return dtype_named(config.text("final_dtype")).value_or(compute);
}

simd::Optim choose_optim(const config::Config& config) {
  const std::string& name = config.text("optim");
  const bool has_momentum = config.number("momentum") > 0;
  if (has_momentum && name != "sgd")
    throw Error(Fault::usage, "config.optim",
                fmt::format("momentum is a setting of optim = sgd, not of {}", name),
                "leave it out, or set optim = sgd");
  if (config.flag("nesterov") && !has_momentum)
    throw Error(Fault::usage, "config.optim", "nesterov = true looks ahead along a momentum of 0",
                "set optim = sgd and momentum = 0.9, or leave nesterov out");
  if (has_momentum) return simd::Optim::sgd_momentum;
  const auto found = std::ranges::find(simd::kOptims, name, &simd::OptimSpec::name);
  FERRY_CHECK(found != simd::kOptims.end(), "optim = {}", name);
  return static_cast<simd::Optim>(found - simd::kOptims.begin());
}

bool choose_split_master(const config::Config& config, DType compute) {
  if (config.text("master") != "split") return false;
  if (compute != DType::bf16)
    throw Error(Fault::usage, "config.master",
                fmt::format("master = split makes bf16 weights one half of the master; this run "
                            "computes in {}",
                            name_of(compute)),
                "set dtype = bf16, where the GPU can, or master = fp32");
  return true;
}

AttentionBackend choose_attention(DType compute,
                                  const PlanMachine& machine,
                                  const AttentionNeed& need) {
  if (!machine.has_gpu) return AttentionBackend::cpu_math;
  constexpr int kFlash_capability = 80, kBlackwellOfDesktops_capability = 120;
  constexpr int64_t kHeadWidthThatDrops_max = 192;
  const bool needs_much = need.drops && need.head_width > kHeadWidthThatDrops_max;
  const auto has_flash = [&](int capability) {
    const bool is_small =
        capability == 86 || capability == 89 || capability >= kBlackwellOfDesktops_capability;
    return capability >= kFlash_capability && !(is_small && needs_much);
  };
  // All GPUs of a run have the same kernels.
  return compute != DType::f32 && std::ranges::all_of(capabilities_of(machine), has_flash)
             ? AttentionBackend::flash
             : AttentionBackend::memory_efficient;
}

int64_t choose_max_length(const config::Config& config, int64_t max_positions, bool has_gpu) {
  constexpr int64_t kAutoLength_max = 2048;
  const auto wish = config.maybe_integer("max_length");
  if (!wish) return std::min(max_positions, kAutoLength_max);
  if (*wish > max_positions)
    throw Error(Fault::usage, "config.max_length",
                fmt::format("{} tokens, the model takes at most {}", *wish, max_positions),
                "lower max_length");
  if (!has_gpu && *wish > ops::kCpuSequenceTokens_max)
    throw Error(Fault::usage, "config.max_length",
                fmt::format("{} tokens, attention on a CPU takes at most {}", *wish,
                            ops::kCpuSequenceTokens_max),
                "lower max_length, or train on a GPU");
  return *wish;
}

namespace {

/** Throws Error(data) where a GPU's kernels cannot take the model. */
void check_gpu_shape(const ModelTable& model, const std::string& file) {
  const AttentionNeed need = attention_need_of(model);
  if (need.head_width % 8 != 0 || need.head_width > 256)
    throw Error(
        Fault::data, "model.open",
        fmt::format("'{}' has attention heads of width {}; on a GPU they are multiples of 8 "
                    "up to 256",
                    file, need.head_width),
        "use device = cpu");
  const auto element_bytes = static_cast<int64_t>(size_of(model.compute));
  if (model.width * element_bytes > ops::kGpuRow_bytes_max)
    throw Error(
        Fault::data, "model.open",
        fmt::format("'{}' has hidden_size = {}; on a GPU it is at most {} in {}", file, model.width,
                    ops::kGpuRow_bytes_max / element_bytes, name_of(model.compute)),
        "use device = cpu");
}

}  // namespace

AttentionNeed attention_need_of(const ModelTable& model) {
  AttentionNeed need = {.head_width = 0};
  for (const BlockTable& block : model.blocks)
    for (const Op& op : block.compiled->program.ops)
      if (op.def == &ops::kAttention) {
        const auto& with = op.with<ops::AttentionAttributes>();
        need.head_width = std::max(need.head_width, with.heads.head_width);
        need.drops = need.drops || with.dropout > 0;
      }
  return need;
}

bool learns_preferences(const config::Config& config) {
  const std::string& task = config.text("task");
  return task == "preference" || task == "kto";
}

void take_family_defaults(config::Config& config, const HfConfig& hf) {
  const bool is_drawn = !config.text("config_name").empty();
  const bool is_decoder = family_of(hf.fields()).is_decoder;
  const auto take = [&](std::string_view key, std::string_view value) {
    if (!config.is_set(key)) config.choose(key, value, hf.origin());
  };
  if (learns_preferences(config)) {
    // Both answers are compared by the same model: dropout would blur the difference (as TRL has
    // it).
    for (const char* key : {"hidden_dropout", "attention_dropout"})
      if (config.is_auto(key)) config.choose(key, "0", "task = preference");
    take("learning_rate", config.text("tuning") == "full" ? "1e-6" : "1e-5");
  }
  const bool has_adapters = config.text("tuning") != "full";
  if (has_adapters) take("learning_rate", kAdapterRate);
  // What lies between the codes is no information: the values are kept in as many bits.
  if (has_adapters && (hf.quantised == "nf4" || hf.quantised == "int8"))
    take("quantization", hf.quantised);
  // A run that began without them goes on so.
  if (has_adapters && config.text("quantization") == "nf4" && hf.has_nested_scales &&
      config.text("resume_from_checkpoint").empty())
    take("double_quantization", "true");
  if (has_adapters && (!hf.storages.empty() || hf.quantised == "mxfp4"))
    take("quantization", "stored");
  if (is_drawn) take("learning_rate", "3e-4");
  if (is_decoder) take("learning_rate", "1e-5");
  if (is_decoder) take("train_batch_size", "16");
}

namespace {

bool names_any(const std::vector<std::string>& parts, const std::string& name) {
  return std::ranges::any_of(parts,
                             [&](const std::string& part) { return name.find(part) != name.npos; });
}

/** Says of each tensor how the files have it. */
void note_storages(const HfConfig& hf, ModelTable& model) {
  if (hf.quantised == "mxfp4")
    for (HfEntry& entry : model.hf_names)
      if (model.blocks[entry.block].kind == BlockKind::layer && entry.hf_shape.size() == 2 &&
          !names_any(hf.modules_with_values, entry.hf_name))
        entry.in_files = Storage::mxfp4;
  if (hf.storages.empty()) return;
  for (HfEntry& entry : model.hf_names)
    for (const std::string& name : names_of(entry)) {
      const auto found = hf.storages.find(name);
      if (found == hf.storages.end()) continue;
      entry.in_files = storage_named(found->second).value_or(Storage::compute);
      break;
    }
}

}  // namespace

ModelTable make_model_table(const config::Config& config,
                            const HfConfig& hf,
                            HeadKind head,
                            int64_t n_labels,
                            const PlanMachine& machine,
                            const Sharing& sharing) {
  TableOptions options = {.head = head_in_files(family_of(hf.fields()), head),
                          .n_labels = n_labels,
                          .compute = choose_dtype(config, machine)};
  options.sharing = sharing;
  keep_words_whole(config, head, options);
  const auto dropout = [&](const char* key) -> std::optional<float> {
    if (auto p = config.maybe_number(key)) return static_cast<float>(*p);
    return std::nullopt;
  };
  options.hidden_dropout = dropout("hidden_dropout");
  options.attention_dropout = dropout("attention_dropout");
  ModelTable model = make_table(hf.fields(), options);
  if (machine.has_gpu) {
    check_gpu_shape(model, hf.origin());
    options.attention = choose_attention(options.compute, machine, attention_need_of(model));
    model = make_table(hf.fields(), options);
  }
  if (head == HeadKind::prompt) add_prompt(hf, n_labels, sharing, model);
  model.has_preferences = head == HeadKind::causal_lm && learns_preferences(config);
  note_storages(hf, model);
  if (model.has_preferences && sharing.sp_size > 1)
    throw Error(Fault::usage, "config.sp_size",
                "ranks that share the tokens of a text do not learn from pairs of answers",
                "leave sp_size out, or share layers: tp_size");
  return model;
}

namespace {

std::optional<Place> choose_placement(const config::Config& config, const PlanRequest& request) {
  const std::string& wish = config.text("placement");
  if (wish == "resident") return Place::device;
  if (wish == "host") return Place::host;
  if (wish == "auto" || !request.trains) return std::nullopt;  // states alone go to a drive
  if (!request.has_nvme)
    throw Error(Fault::usage, "config.placement", "placement = nvme needs a drive",
                "set nvme_path to a directory on an SSD");
  return Place::nvme;
}

constexpr const char* kRanks = "ranks";

/** What a step's time depends on beside the plan: settings that are not as usual, and the threads
 * that this process may use. */
std::string timing_settings_of(const config::Config& config) {
  std::string settings;
  const auto add = [&](const char* key, const std::string& value) {
    settings += fmt::format("{}{} = {}", settings.empty() ? "" : ", ", key, value);
  };
  for (const char* key : {"deterministic", "optimizer_overlap"})
    if (!config.flag(key)) add(key, "false");
  for (const char* key : {"worker_threads", "intra_op_threads"})
    if (const auto n = config.maybe_integer(key); n && *n != n_usable_threads())
      add(key, fmt::format("{}", *n));
  if (const std::string& device = config.text("device"); device != "auto") add("device", device);
  if (const auto n = config.maybe_integer("slots")) add("slots", fmt::format("{}", *n));
  if (const std::string& reduction = config.text("reduction"); reduction == "fast")
    add("reduction", reduction);
  add("threads", fmt::format("{}", n_usable_threads()));
  const RunRanks ranks = ranks_of(config);
  if (ranks.world > 1) add(kRanks, fmt::format("{}", ranks.world));
  if (config.text("gpu_split") == "blocks") add("gpu_split", "blocks");
  if (const auto n = config.maybe_integer("pipe_size"); n && *n > 1)
    add("pipe_size", fmt::format("{}", *n));
  if (const int64_t n = config.integer("pipe_chunks"); n > 1)
    add("pipe_chunks", fmt::format("{}", n));
  if (!ranks.shares.empty()) add("gpu_shares", fmt::format("{}", fmt::join(ranks.shares, ",")));
  return settings;
}

/** A described host says how many GPUs it has; here all ranks that were not launched elsewhere run.
 */
int ranks_per_host(const RunRanks& ranks, const PlanMachine& machine) {
  const int n_described = machine.has_gpu ? gpu_of(machine).n_of_host : 0;
  if (ranks.is_launched || n_described == 0) return ranks.local_world;
  return std::min(ranks.world, n_described);
}

/** Says what a plan's time rests on that nobody measured. */
void note_assumed_exchange(PlanRequest& request) {
  if (request.world == 1 || !request.machine) return;
  const MachineProfile& machine = *request.machine;
  const auto knows = [](const GpuProfile& gpu) { return gpu.exchange.has_value(); };
  const bool is_known = request.has_gpu
                            ? knows(*machine.gpu) && std::ranges::all_of(machine.other_gpus, knows)
                            : machine.host.exchange.has_value();
  if (is_known) return;
  const double rate =
      exchange_rates(machine, request.has_gpu, std::max(1, request.n_per_host)).bytes_per_s;
  request.notes.push_back(
      fmt::format("{} are assumed to send each other {:.1f} GB/s: `ferry bench nccl` measures it",
                  request.has_gpu ? "GPUs" : "processes", rate / 1e9));
}

/** Shares for GPUs whose speed the machine's profile tells, where a run would measure them. */
void estimate_shares(const config::Config& config,
                     const ModelTable& model,
                     const RunRanks& ranks,
                     PlanRequest& request) {
  const bool is_asked = ranks.shares_by == SharesBy::to_be_measured;
  if (!is_asked && (ranks.shares_by != SharesBy::models || !may_share_unlike(config, ranks)))
    return;
  const std::vector<double> seconds = pass_seconds_by_rank(model, request);
  if (seconds.empty()) {
    if (is_asked)
      request.notes.emplace_back(
          "gpu_shares = auto: `ferry train` measures the GPUs, this plan counts them as alike");
    return;
  }
  const std::vector<int> shares =
      shares_by_speed(seconds, shared_pieces(config, ranks, std::ssize(model.blocks)));
  request.notes.push_back(
      fmt::format("the GPUs' shares of a step are estimated to be {}, from their figures: `ferry "
                  "train` measures them",
                  fmt::join(shares, ", ")));
  if (std::ranges::max(shares) > 1) request.shares = shares;
}

/** The memory of a GPU, and the parts of it that no plan has. */
struct GpuBudget {
  int64_t there_bytes = 0, context_bytes = 0, kernels_bytes = 0;
  int64_t reserved_bytes = 0;  ///< the part that gpu_memory counts
  int64_t budget_bytes = 0;    ///< below zero where not even the rest has room
};

/** By rank of a host where its GPUs are unlike, else one for all. gpu_memory counts what the driver
 * counts: this process's context and the kernels that LibTorch loads as it goes too. */
std::vector<GpuBudget> gpu_budgets(const config::Config& config,
                                   const ModelTable& model,
                                   const PlanMachine& machine,
                                   const PlanRequest& request,
                                   int64_t n_graphs) {
  constexpr int64_t kDisplayMargin_bytes = 384 * kMiB;
  const auto gpu_memory = config.maybe_integer("gpu_memory");
  std::vector<GpuHere> gpus = machine.gpus;
  if (gpus.empty())
    gpus.push_back(
        {.free_bytes = machine.gpu_free_bytes, .taken_bytes = machine.gpu_context_bytes});
  std::vector<GpuBudget> budgets;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const KernelMemory kernels = machine.profile && machine.profile->gpu
                                     ? machine.profile->gpu_at(static_cast<int>(i)).kernels
                                     : KernelMemory{};
    GpuBudget its = {.there_bytes = gpus[i].free_bytes + gpus[i].taken_bytes,
                     .context_bytes = gpus[i].taken_bytes,
                     .kernels_bytes = loaded_kernels_bytes(model, kernels, n_graphs) +
                                      nccl_bytes(request.world, model.sharing.n_ranks())};
    its.reserved_bytes = its.context_bytes + its.kernels_bytes;
    its.budget_bytes = gpu_memory ? std::min(*gpu_memory, its.there_bytes) - its.reserved_bytes
                                  : gpus[i].free_bytes - its.kernels_bytes - kDisplayMargin_bytes;
    budgets.push_back(its);
  }
  return budgets;
}

}  // namespace

PlanRequest make_plan_request(const config::Config& config,
                              const ModelTable& model,
                              const PlanMachine& machine,
                              bool trains,
                              int64_t dataset_bytes) {
  PlanRequest request;
  request.trains = trains;
  if (trains && machine.profile &&
      missing_figures(*machine.profile, machine.has_gpu, model).empty())
    request.machine = machine.profile;
  request.clips = !trains || config.number("max_grad_norm") > 0 || model.compute == DType::f16;
  if (trains) {
    request.optim = choose_optim(config);
    request.split_master = choose_split_master(config, model.compute);
  }
  request.train_batch_size = trains
                                 ? config.integer("train_batch_size")
                                 : config.maybe_integer("per_device_train_batch_size").value_or(32);
  request.micro_batch_size = config.maybe_integer("per_device_train_batch_size");
  request.max_length = choose_max_length(config, model.max_positions, machine.has_gpu);
  request.has_gpu = machine.has_gpu;
  if (learns_preferences(config) || config.text("task") == "reward")
    request.sequences_per_sample = 2;
  if (trains) {
    const RunRanks ranks = ranks_of(config);
    request.world = ranks.world;
    request.shares = ranks.shares;
    request.n_per_host = ranks_per_host(ranks, machine);
    estimate_shares(config, model, ranks, request);
    note_assumed_exchange(request);
  }
  const int64_t n_graphs = machine.has_gpu ? n_graphs_max(model) : 0;
  const auto gpu_memory = config.maybe_integer("gpu_memory");
  const std::vector<GpuBudget> gpus = gpu_budgets(config, model, machine, request, n_graphs);
  const GpuBudget& least =
      *std::ranges::min_element(gpus, {}, [](const GpuBudget& its) { return its.budget_bytes; });
  request.gpu_reserved_bytes = least.reserved_bytes;
  request.gpu_budget_bytes = least.budget_bytes;
  const int64_t there_bytes =
      std::ranges::max(gpus, {}, [](const GpuBudget& its) { return its.there_bytes; }).there_bytes;
  if (!machine.has_gpu && model.compute == DType::f16)
    request.notes.emplace_back(
        "dtype = fp16 is many times slower on a CPU than fp32 (22 times was measured): bf16 and "
        "fp32 are the fast ones here");
  if (!machine.has_gpu && gpu_memory)
    request.notes.emplace_back("gpu_memory is not used: the run computes on the CPU");
  if (machine.has_gpu && gpu_memory && *gpu_memory > there_bytes)
    request.notes.push_back(
        fmt::format("gpu_memory is {}, and {} has {}: planned with that", format_bytes(*gpu_memory),
                    gpus.size() == 1 ? "the GPU" : "the largest GPU", format_bytes(there_bytes)));
  // The planner's own refusal says how much the run takes where gpu_memory is given.
  if (machine.has_gpu && !gpu_memory && request.gpu_budget_bytes <= 0)
    throw Error(
        Fault::does_not_fit, "plan.gpu_memory",
        fmt::format(
            "{} of GPU memory hold no more than the driver's context ({}) and LibTorch's kernels "
            "({})",
            format_bytes(least.there_bytes - least.context_bytes),
            format_bytes(least.context_bytes), format_bytes(least.kernels_bytes)),
        "end what else is on the GPU, or use device = cpu");
  request.gpu_budget_bytes = std::max<int64_t>(0, request.gpu_budget_bytes);
  if (!machine.gpus.empty())
    for (const GpuBudget& its : gpus)
      request.gpu_budgets_bytes.push_back(std::max<int64_t>(0, its.budget_bytes));
  const ProcessMemory process = process_memory_of(machine, n_graphs);
  request.is_reserve_assumed = !is_reserve_measured(machine);
  request.pinned_bytes_max = pinned_bytes_max_of(config, machine);
  if (machine.has_gpu && gpu_of(machine).pins_nothing)
    request.notes.emplace_back(
        "the system refused to pin any host memory for copies to the GPU when this machine was "
        "measured: a run on the GPU ends before its first step where that is still so; see "
        "`ferry doctor`");
  request.host_reserved_bytes = process.at_start_bytes + process.later_bytes + dataset_bytes +
                                nccl_host_bytes(machine, request.world, model.sharing.n_ranks());
  request.host_budget_bytes =
      std::max<int64_t>(0, host_budget_of(config, machine) / std::max(1, request.n_per_host) -
                               request.host_reserved_bytes);
  if (const NvmeSettings nvme = nvme_settings(config); !nvme.directories.empty()) {
    request.has_nvme = true;
    request.nvme_budget_bytes =
        std::min(machine.nvme_budget_bytes, nvme.memory_bytes.value_or(INT64_MAX)) /
        std::max(1, request.n_per_host);
    // Checkpoints of several ranks hold all states themselves.
    request.n_nvme_copies = nvme_copies(config, trains && request.world == 1);
  }
  request.placement = choose_placement(config, request);
  request.activations = activations_of(config.text("activations"));
  if (const std::string& wish = config.text("layer_inputs"); wish != "auto")
    request.layer_inputs = wish == "host" ? Place::host : Place::device;
  if (trains)
    if (const std::string& wish = config.text("accumulation_order"); wish != "auto")
      request.order =
          wish == "vertical" ? AccumulationOrder::vertical : AccumulationOrder::horizontal;
  if (const std::string& level = config.text("zero_level"); level != "auto")
    request.zero_level = level == "3" ? kZeroLevel_most : kZeroLevel_least;
  if (trains) {
    request.n_stages = n_stages_of(config, ranks_of(config));
    if (model.sharing.n_ranks() > 1 && !request.n_stages) request.n_stages = 1;
    request.n_chunks = n_chunks_of(config, request.n_stages);
  }
  if (request.n_chunks > 1 && request.order == AccumulationOrder::vertical)
    throw Error(Fault::usage, "config.pipe_chunks",
                "with accumulation_order = vertical the stages have the blocks in turn",
                "leave accumulation_order out");
  if (request.n_chunks > 1) request.order = AccumulationOrder::horizontal;
  if (const std::string& wish = config.text("reduction"); wish != "auto")
    request.reduction = wish == "fast" ? Reduction::fast : Reduction::ordered;
  else if (trains && ranks_of(config).measures_shares())
    request.reduction = Reduction::ordered;  // whose bits no shares change
  if (request.n_stages.value_or(1) > 1 && request.reduction == Reduction::fast)
    throw Error(Fault::usage, "config.reduction",
                "where GPUs have some of the blocks, the bits are those of reduction = ordered",
                "leave reduction out, or choose gpu_split = samples without pipe_size");
  request.timed_with = timing_settings_of(config);
  if (auto slots = config.maybe_integer("slots")) request.n_weight_slots = static_cast<int>(*slots);
  return request;
}

bool is_of_several_ranks(const LearntStep& step) {
  return step.run.find(fmt::format(", {} = ", kRanks)) != std::string::npos;
}

double samples_per_second(const PlanRequest& request, const Plan& plan) {
  return static_cast<double>(request.train_batch_size) / plan.predicted->step_s;
}

std::optional<double> least_samples_per_second(const ModelTable& model,
                                               const PlanRequest& request,
                                               const Plan& plan) {
  if (!request.machine || !request.has_gpu) return std::nullopt;
  const std::string name = request.machine->name + "-low";
  const std::vector<std::string> presets = list_machine_presets();
  if (std::ranges::find(presets, name) == presets.end()) return std::nullopt;
  PlanRequest least = request;
  least.machine = find_machine_preset(name);
  const double rate =
      static_cast<double>(request.train_batch_size) / simulate_plan(model, least, plan).step_s;
  constexpr double kSame = 0.999;
  return rate < kSame * samples_per_second(request, plan) ? std::optional(rate) : std::nullopt;
}

}  // namespace ferry
