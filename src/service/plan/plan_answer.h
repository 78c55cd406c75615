#pragma once
// The answer to "what would this run take, and does it fit?": the plan that `ferry plan` prints,
// the app draws and training makes, with the machine, the texts, the disk and the time beside it.
// No torch, no device is touched.
//
//   Planner planner;
//   PlanAnswer answer = planner.answer(config);         // reads the data, counts its tokens
//   config.set("gpu_memory", "8GiB", origin);
//   answer = planner.answer(config);                    // the same texts: some 20 ms

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/config/config.h"
#include "src/files/hf/hf_config.h"
#include "src/inputs/counts.h"
#include "src/plan/drive_life.h"
#include "src/plan/unlike_gpus.h"
#include "src/request/disk.h"
#include "src/request/nvme.h"
#include "src/request/run_plan.h"
#include "src/service/plan/more_memory.h"
#include "src/service/plan/plan_machine.h"
#include "src/service/tell.h"

namespace ferry::service {

/** The texts of a run, as far as they are known. */
struct PlannedTexts {
  std::optional<int64_t> n_steps;     ///< of the run
  std::optional<double> mean_tokens;  ///< of a sample that is trained on
};

struct PlannedDisk {
  DiskNeed need;
  std::filesystem::path directory;
  std::optional<int64_t> free_bytes;  ///< nullopt: a machine that is not here, or nobody tells

  bool fits() const { return !free_bytes || need.bytes() <= *free_bytes; }
};

/** The third place of a run: what its states take of its drives. */
struct PlannedNvme {
  NvmeSettings settings;
  NvmeNeed need;  ///< all zero where no states live there
  /** The most that the store may take; nullopt: not known, of a machine that is not here. */
  std::optional<int64_t> budget_bytes;
  int n_copies = 0;               ///< of the states
  std::optional<DriveLife> life;  ///< where nvme_endurance says what the drives may be written
};

/** The time that one resource of the machine is busy in a step. */
struct ResourceTime {
  QueueId queue = QueueId::compute;
  const char* name = "";  ///< for people
  const char* key = "";   ///< for JSON
  double busy_s = 0;

  /** A copy between host and GPU. On a CPU these are of a batch, within the same memory. */
  bool is_copy() const { return queue == QueueId::h2d || queue == QueueId::d2h; }
  bool is_drive() const { return queue == QueueId::nvme_read || queue == QueueId::nvme_write; }
};

/** A GPU of a host whose GPUs are unlike. */
struct PlannedGpu {
  std::string name;
  int share = 1;         ///< its micro-batches or blocks, relative to the other GPUs
  double busy_s = 0;     ///< the time of its busiest queue in a step
  double compute_s = 0;  ///< the time that it computes
  int64_t budget_bytes = 0;
};

/** The time of a run, from the machine's figures. */
struct PlanTime {
  double step_s = 0;
  std::vector<ResourceTime> resources;  ///< exchanges are there where several ranks share a step
  QueueId binding = QueueId::compute;
  double samples_per_s = 0, tokens_per_s = 0;
  double tokens_per_text = 0;                 ///< the mean, or max_length where it is not known
  std::optional<double> least_samples_per_s;  ///< where published figures of the card disagree
  std::optional<double> run_s;                ///< of all steps, where their number is known
  std::optional<double> step_joules_at_most;  ///< of the GPU, where its limit is known
  std::optional<double> one_rank_step_s;      ///< the same step on one GPU, where several share it
  std::vector<PlannedGpu> gpus;               ///< a host's, in their order; empty: all are alike
  std::optional<GpuSubset> fewer_gpus;        ///< the fastest without slower GPUs, if unlike
  std::vector<MemoryGain> gains;              ///< with one more GiB; empty unless asked for
};

/** `tight`: little is left of host memory, drives or disk. The GPU's is filled wherever that helps.
 */
enum class Verdict : uint8_t { fits, tight, does_not_fit };

struct PlanAnswer {
  config::Config config;  ///< as asked, with the defaults of the model's family
  PlannedMachine machine;
  ModelTable model;
  PlanRequest request;
  PlannedTexts texts;
  PlannedDisk disk;
  /** Where none fits the one that lacks the fewest bytes; nothing where none could be laid out. */
  std::optional<Plan> plan;
  std::optional<PlannedNvme> nvme;  ///< of a plan whose settings name drives
  std::optional<Error> refusal;  ///< Error(does_not_fit): why it does not fit, and what would help
  std::optional<PlanTime> time;  ///< of a plan that fits, where the machine's figures are known
  std::vector<std::string> notes;  ///< for the user: what was taken for what

  /** Memory and disk. */
  bool fits() const { return !refusal && disk.fits(); }
  Verdict verdict() const;
};

struct PlanQuestion {
  /** False: data that were not counted before are not read; each text counts as max_length. */
  bool reads_data = true;
  bool looks_for_gains = true;  ///< takes twice as long
  /** Hears each note as it comes: counting large data takes a while. */
  Tell tell = {};
};

/** Keeps what takes long between two answers: the number of the data's tokens, until their files or
 * a setting that they depend on change, and for two seconds what the driver said. For one thread.
 */
class Planner {
 public:
  /** Throws Error for what is wrong with settings, model or data; a run that does not fit is an
   * answer. */
  PlanAnswer answer(const config::Config& config, const PlanQuestion& question = {});

 private:
  /** The data as they were opened: their labels are known, their texts are read when they are
   * counted. */
  struct OpenData {
    std::string key;  ///< of the files and settings that they depend on
    Texts texts;
    std::optional<Tokenizer> tokenizer;  ///< where the model's is on this machine
    std::optional<int64_t> n_examples;   ///< to train on; counted where there is no tokenizer
  };
  struct CountedData {
    std::string key;
    SampleCounts counts;
    std::vector<std::string> notes;
  };
  using Directory = std::optional<std::filesystem::path>;

  const Nvidia& driver();
  /** Null where they are not known and not to be read. */
  const OpenData* open_data(const config::Config& config,
                            const HfConfig& model,
                            const Directory& tokenizer,
                            bool reads);
  /** Counts the tokens of the data that are open; without a tokenizer their examples. Null as
   * above, and where there is no tokenizer. */
  const CountedData* count_data(const config::Config& config,
                                const Directory& tokenizer,
                                int64_t max_length,
                                bool reads);

  OpenData open_;
  CountedData counted_;
  Nvidia nvidia_;
  std::optional<std::chrono::steady_clock::time_point> nvidia_read_;
};

}  // namespace ferry::service
