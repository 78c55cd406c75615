#pragma once
// The abilities of a machine, as `ferry doctor` and `ferry bench` measure them or presets/machines/
// state them. The planner's cost model (src/plan/cost/cost.h) turns a step's list into seconds with
// them. The profile is kept as JSON in $XDG_DATA_HOME/ferry/machine.json. No torch, no device.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/dtype.h"

namespace ferry {

/** One direction's rate, and both at once, for copies of this size between pinned host memory and
 * the GPU; bytes per second each. */
struct CopyRate {
  int64_t n_bytes = 0;
  double h2d = 0, d2h = 0;
  double h2d_beside_d2h = 0, d2h_beside_h2d = 0;

  bool operator==(const CopyRate&) const = default;
};

/** Products (m, k) x (k, n) of one type with k = n = width: multiply-adds count two, FLOP/s. */
struct GemmRate {
  DType type = DType::f32;
  int64_t rows = 0;   ///< m
  int64_t width = 0;  ///< k = n
  double flops_per_s = 0;

  bool operator==(const GemmRate&) const = default;
};

/** Attention of (sequences, length, heads, head_width), dropout 0.1, with the backend that training
 * would take; 4 * length^2 * head_width FLOPs a head and sequence forward, 2.5 times that backward.
 */
struct AttentionRate {
  DType type = DType::f32;
  std::string backend;  ///< name_of(AttentionBackend)
  int64_t length = 0;
  int64_t head_width = 0;
  double forward_flops_per_s = 0, backward_flops_per_s = 0;

  bool operator==(const AttentionRate&) const = default;
};

/** Host traffic of a parameter that AdamW updates: bf16 gradient and weight, fp32 m, v and master
 * read and written. */
inline constexpr int64_t kUpdateTraffic_bytes = 28;

/** Updates in host memory, parameters per second, of AdamW with fp32 states and 16-bit gradients
 * and weights: kUpdateTraffic_bytes a parameter. Other optimizers take the time of their bytes. */
struct UpdateRate {
  int n_threads = 0;
  double alone = 0;
  double beside_copies = 0;               ///< while copies run both ways; 0: not measured
  double h2d_beside = 0, d2h_beside = 0;  ///< bytes per second of those copies
};

/** The GPU memory that the driver counts beside context and plan once a step has run. 0: not
 * measured. */
struct KernelMemory {
  int64_t loaded_bytes = 0;  ///< LibTorch's and Ferry's kernels, heads of up to 64
  /** More than that, for the local memory of kernels that spill: attention with heads of 128, norms
   * of rows of more than kWideRow_bytes. The driver keeps the larger one. */
  int64_t wide_heads_bytes = 0, wide_rows_bytes = 0;
  int64_t graph_bytes = 0;       ///< a recorded pass of a layer
  int64_t graph_host_bytes = 0;  ///< the same graph in host memory; 0: `later_bytes` has some

  /** Kernels that spill take tens of MiB. A driver that shows 1 MiB or less had that memory
   * already: the measurement saw nothing, and a plan may not rely on it. */
  bool has_seen_spills() const;

  bool operator==(const KernelMemory&) const = default;
};
inline constexpr int64_t kWideRow_bytes = 8 * 1024;

/** The host memory of a training process besides what is planned, texts and tokenizer apart. At its
 * start it is LibTorch and, on a GPU, the driver's context. Later come libraries' first use, worker
 * threads and, on a GPU, the host's side of the kernels that LibTorch loads. 0: not measured. */
struct ProcessMemory {
  int64_t at_start_bytes = 0, later_bytes = 0;

  bool operator==(const ProcessMemory&) const = default;
};

/** Rates of exchanges, in which each rank sends to all others at once. 0: not known. */
struct ExchangeProfile {
  std::string source;  ///< "measured 2026-11-28T10:00:00Z", and among how many ranks
  /** GPUs reach each other's memory; false: what they send goes through the host's memory. */
  bool has_peer_access = false;
  double bytes_per_s = 0;  ///< of one rank, each way, within a host
  double message_s = 0;    ///< the time of a small exchange there
  double network_bytes_per_s =
      0;  ///< of one rank, each way, while all ranks of a host send to others
  double network_message_s = 0;

  bool operator==(const ExchangeProfile&) const = default;
};

struct GpuProfile {
  std::string name;
  int n_of_host = 0;           ///< such GPUs in one host; 0: not known
  int compute_capability = 0;  ///< 90 for 9.0
  int64_t memory_bytes = 0;
  int64_t context_bytes = 0;  ///< bytes that the driver counts for an empty context of this process
  bool drives_display = false;
  double memory_bytes_per_s = 0;   ///< the rate of an element-wise kernel, reads and writes counted
  double launch_s = 0;             ///< the least time between two small kernels of one stream
  double update_params_per_s = 0;  ///< AdamW on the GPU
  double power_w = 0;              ///< the driver's limit; 0: not known
  std::string driver;              ///< "580.65.06"; empty: not known
  int pcie_generation = 0;         ///< the most that card and slot allow; 0: not known
  int pcie_width = 0;
  KernelMemory kernels;
  ProcessMemory process;  ///< of one that trains on this GPU
  /** The host memory that the system would pin for copies; 0: it refused nothing that was tried. */
  int64_t pinned_bytes_max = 0;
  bool pins_nothing = false;     ///< the system refused to pin any of it: no run can use the GPU
  std::vector<CopyRate> copies;  ///< by size
  std::vector<GemmRate> gemms;
  std::vector<AttentionRate> attentions;
  std::optional<ExchangeProfile> exchange;  ///< between GPUs

  bool operator==(const GpuProfile&) const = default;
};

struct HostProfile {
  std::string cpu;
  int n_threads = 0;
  std::string simd;  ///< "avx2"
  int64_t memory_bytes = 0;
  ProcessMemory process;            ///< of one that trains on the CPU
  std::vector<UpdateRate> updates;  ///< by threads
  double memory_bytes_per_s = 0;    ///< the rate of the AdamW kernel with all threads
  double dram_bytes_per_s = 0;  ///< the rate of all threads that change as many arrays in place as
                                ///< AdamW, and compute nothing
  std::vector<GemmRate> gemms;  ///< with all threads, fp32
  std::vector<AttentionRate> attentions;
  std::optional<ExchangeProfile> exchange;  ///< between processes that train on the CPU
};

struct DiskProfile {
  std::string directory;
  double write_bytes_per_s = 0, read_bytes_per_s = 0;  ///< past the page cache; 0: not measured
};

/** The rates of a run's drives, all of them together, in the patterns in which a step uses them:
 * past the page cache, in large requests. */
struct NvmeProfile {
  std::vector<std::string> drives;       ///< drive_id_of() each; empty: no drive in particular
  std::vector<std::string> directories;  ///< where it was measured
  std::string source;                    ///< "measured 2026-11-22T10:00:00Z"
  double read_bytes_per_s = 0, write_bytes_per_s = 0;  ///< alone, at rising offsets
  double mixed_bytes_per_s = 0;  ///< each way, while as much is read as written
  double flush_s = 0;            ///< until what was written is durable; 0: not known
  /** The size of requests and their number at once on each drive, of those that were tried the
   * fastest; 0: not tried. */
  int64_t request_bytes = 0;
  int depth = 0;
};

/** A step that was timed before a run, beside what the cost model says of it. Such steps mend what
 * is promised of later runs (src/plan/learnt_steps.h). */
struct LearntStep {
  std::string run;   ///< all that decides its time but the plan
  std::string plan;  ///< the choice that is the same for all blocks
  int64_t micro_batch_size = 0;
  int64_t n_on_gpu = 0;  ///< blocks that live on the GPU, wholly or in part
  double predicted_s = 0, step_s = 0;
  std::string measured;  ///< "2026-11-22T10:00:00Z"
};

struct MachineProfile {
  std::string name;  ///< "NVIDIA H200, AMD EPYC ..." or "2080ti-11g"
  std::string
      source;  ///< "measured 2026-11-22T10:00:00Z by ferry 0.1.0", or where figures are from
  /** Assumptions that the figures rest on and that no one measured, one sentence each. */
  std::vector<std::string> assumptions;
  std::optional<GpuProfile> gpu;
  /** GPUs of the same host behind `gpu`, in their order, where they are not all alike. Empty: each
   * GPU of the host is as `gpu`. */
  std::vector<GpuProfile> other_gpus;
  HostProfile host;
  DiskProfile disk;
  /** By the drives; a plan's machine has those of its run alone, if they are known. */
  std::vector<NvmeProfile> nvme;
  std::vector<LearntStep> learnt;  ///< the newest last

  bool has_unlike_gpus() const { return !other_gpus.empty(); }
  /** GPUs that the profile tells of one by one. 0: there is none. */
  int n_gpus() const { return gpu ? 1 + static_cast<int>(other_gpus.size()) : 0; }
  /** The GPU of this number on its host, counted from 0. There is one. */
  const GpuProfile& gpu_at(int index) const {
    return index == 0 || other_gpus.empty() ? *gpu : other_gpus[static_cast<size_t>(index) - 1];
  }
};

/** Every figure may be missing (not measured); one that is there is finite and above zero, and
 * lists ascend. Throws Error(data) that names the file and key. */
MachineProfile parse_machine_profile(std::string_view json, const std::string& origin);
/** Indented, with a newline at the end; what is zero or empty is left out. */
std::string to_json(const MachineProfile& profile);

/** The processor's name, as /proc/cpuinfo below `root` has it; empty where it has none. */
std::string cpu_name(const std::filesystem::path& root = "/");

/** $XDG_DATA_HOME/ferry/machine.json; empty where there is no home. */
std::filesystem::path machine_profile_path();
/** The one measured here; nothing if none was stored. */
std::optional<MachineProfile> load_machine_profile();
/** Stores the profile that `make` gives, atomically, making directories; where it gives none, the
 * stored one stays. No other process or thread stores one between the beginning of `make` and the
 * end of storing, so what `make` reads of the stored profile and adds to loses nothing. Where the
 * file system has no locks, the later of two that store at the same moment wins. Throws
 * Error(machine) where there is no home or nothing can be written, and what `make` throws. `make`
 * must not store a profile: it would wait for the lock that is held while it runs. */
void change_machine_profile(const std::function<std::optional<MachineProfile>()>& make);
/** Stores this one, whatever was stored. */
void store_machine_profile(const MachineProfile& profile);

/** presets/machines/NAME.json, or a profile's file given as FILE.json; Error(usage) with the
 * nearest name. */
MachineProfile find_machine_preset(std::string_view name);
/** The host of the first name with the GPUs of all names, in their order. `names`: one or several
 * names as above, with commas between them. A profile of a host with several GPUs stands for all of
 * them. GPUs that are all alike become a number of them. Throws Error(usage), too, where one of
 * several has no GPU. */
MachineProfile find_machines(std::string_view names);
/** The profile with these of its GPUs alone, by their numbers on the host. `gpus`: one at least,
 * each below n_gpus(), or any where its GPUs are alike. */
MachineProfile with_gpus(const MachineProfile& profile, std::span<const int> gpus);
std::vector<std::string> list_machine_presets();

}  // namespace ferry
