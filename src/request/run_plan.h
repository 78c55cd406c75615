#pragma once
// Makes the tensor table and the plan from a run's settings and a model directory. `ferry plan` and
// training share it.

#include <span>
#include <string>
#include <vector>

#include "models/core/tensor_table.h"
#include "src/base/bytes.h"
#include "src/config/config.h"
#include "src/files/hf/hf_config.h"
#include "src/plan/plan.h"

namespace ferry {

/** A GPU that runs may use, as CUDA or the driver's library tells of it. */
struct GpuHere {
  std::string name;
  int compute_capability = 0;
  int64_t free_bytes = 0;   ///< once a context is open
  int64_t taken_bytes = 0;  ///< by that context and other programs
};

/** The machine as far as a plan cares. */
struct PlanMachine {
  bool has_gpu = false;
  int compute_capability = 0;  ///< 90 for 9.0
  int64_t gpu_free_bytes = 0;
  /** The bytes that the driver counts before this process allocates anything: its context, other
   * programs. */
  int64_t gpu_context_bytes = 0;
  /** The GPUs of a host in the order of its ranks, where they are unlike; the figures above are the
   * first one's. Empty: each is as above. */
  std::vector<GpuHere> gpus = {};
  int64_t host_budget_bytes = INT64_MAX;
  /** The most that the drives of nvme_path have room for. */
  int64_t nvme_budget_bytes = INT64_MAX;
  /** The abilities of the machine, measured or from a preset. Times are not known where there is
   * none, or where it says too little for the model. */
  std::optional<MachineProfile> profile;
};

/** The stored profile, if it was measured on this processor and with this GPU ("" for any). */
std::optional<MachineProfile> profile_of_this_machine(const std::string& gpu_name);
/** Says that the stored profile is of another processor, and what to do; else empty. */
std::string note_of_other_machine();

/** This machine without its GPU, and what one adds to it. */
PlanMachine plan_machine_here();
void add_gpu(const GpuHere& gpu, PlanMachine& machine);
/** The same with one GPU for each rank of the host, in their order, of which there is one at least.
 * The stored profile tells how fast each is if it has a GPU of each name. */
void add_gpus(std::span<const GpuHere> gpus, PlanMachine& machine);

/** A machine that is not here: all of each GPU's memory is free except for the context and a
 * display, and so are nine tenths of the host's. */
PlanMachine machine_of(const MachineProfile& profile);

/** The host memory that a run's process may have: as the settings say, else what the machine has
 * for it. */
int64_t host_budget_of(const config::Config& config, const PlanMachine& machine);
/** The most host memory that a run pins: the option's, or what `ferry doctor` saw the system allow.
 * INT64_MAX: no limit is known. */
int64_t pinned_bytes_max_of(const config::Config& config, const PlanMachine& machine);
/** As `ferry doctor` measured them there, else as on the machines that they are known of.
 * `n_graphs`: the CUDA graphs of the run. */
ProcessMemory process_memory_of(const PlanMachine& machine, int64_t n_graphs);
int64_t loaded_kernels_bytes(const ModelTable& model, const PlanMachine& machine, int64_t n_graphs);
/** The memory that NCCL takes of each GPU where so many share a step. Ranks that share
 * micro-batches have a second communicator, for which as much is assumed. */
constexpr int64_t nccl_bytes(int world, int n_sharing = 1) {
  // 0.93 to 1.0 GiB were counted on two H100, 0.9 to 1.0 on two H200.
  return world > 1 ? (n_sharing > 1 ? 2 : 1) * kGiB : 0;
}
/** The host memory that NCCL takes of each process where so many GPUs share a step. */
int64_t nccl_host_bytes(const PlanMachine& machine, int world, int n_sharing = 1);

/** fp32 on a CPU; on GPUs bf16 where all of them are sm_80 or newer, else fp16. Throws Error(usage)
 * for bf16 on a card without it. */
DType choose_dtype(const config::Config& config, const PlanMachine& machine);

/** The type that an option names: "fp32", "fp16" or "bf16"; nothing for "auto". */
std::optional<DType> dtype_named(std::string_view name);

/** The type of the trained model's weights as they are written, of a run that computes in
 * `compute`. */
DType choose_final_dtype(const config::Config& config, DType compute);

/** The type of Adam's states that the option optim names. */
simd::Optim choose_optim(const config::Config& config);

/** True where the option master is split. Throws Error(usage) where the model does not compute in
 * bf16. */
bool choose_split_master(const config::Config& config, DType compute);

/** The properties that decide the choice of attention's kernels, besides the type. */
struct AttentionNeed {
  int64_t head_width = 64;
  bool drops = false;  ///< attention_dropout > 0
};
/** Of a model whose layers need no other. */
AttentionNeed attention_need_of(const ModelTable& model);

/** Flash attention takes 16 bits on compute capability 8.0 and newer; the memory-efficient one the
 * rest of the GPUs and fp32, and where flash has no backward: heads wider than 192 with dropout on
 * cards with less than 144 KiB of shared memory a block (8.6, 8.9, 12.x; LibTorch 2.11 launches
 * nothing there and leaves the gradients as they were). */
AttentionBackend choose_attention(DType compute,
                                  const PlanMachine& machine,
                                  const AttentionNeed& need = {});

/** max_length, or the model's limit (at most 2048) when it is auto; Error(usage) past the model's
 * limit, or that of attention on a CPU. */
int64_t choose_max_length(const config::Config& config, int64_t max_positions, bool has_gpu);

/** A language model learns from answers that are compared. */
bool learns_preferences(const config::Config& config);

/** The learning rate of adapters and of biases alone, where nobody gave one. */
inline constexpr std::string_view kAdapterRate = "2e-4";
/** Settings that nobody gave become those that suit the model: for a decoder steps of 16 samples
 * and a rate of 1e-5; for one that is drawn from scratch a rate of 3e-4, for adapters kAdapterRate.
 * Pairs of answers are learnt at 1e-6, with adapters at 1e-5, and without dropout. */
void take_family_defaults(config::Config& config, const HfConfig& hf);

/** Tensor table of the model in `hf` with a head. Throws as make_table() of models/family.h, and
 * Error(data) where a GPU's kernels cannot take the model. `sharing`: of a training
 * (sharing_of()). */
ModelTable make_model_table(const config::Config& config,
                            const HfConfig& hf,
                            HeadKind head,
                            int64_t n_labels,
                            const PlanMachine& machine,
                            const Sharing& sharing = {});

/** The request that config makes of the planner. The dataset's tokens are in host memory, too. */
PlanRequest make_plan_request(const config::Config& config,
                              const ModelTable& model,
                              const PlanMachine& machine,
                              bool trains,
                              int64_t dataset_bytes = 0);

/** True of a timed step that ranks shared: the speed of the links between them is in its ratio. */
bool is_of_several_ranks(const LearntStep& step);

/** Samples a second in a full step. The plan has a prediction. */
double samples_per_second(const PlanRequest& request, const Plan& plan);
/** The rate of the same plan where published figures of the machine disagree, at the least of them:
 * on the preset NAME-low. Nothing where there is none, as of a machine that was measured, or where
 * the rate is the same with both. */
std::optional<double> least_samples_per_second(const ModelTable& model,
                                               const PlanRequest& request,
                                               const Plan& plan);

}  // namespace ferry
