#pragma once
// The figures that ferry-trainer measured of this machine, as `ferry doctor` and `ferry bench` have
// it: they start it as a child process, for measuring needs LibTorch and they have none.

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "src/plan/machine/machine_profile.h"
#include "src/service/machine/host.h"
#include "src/service/machine/nvidia.h"

namespace ferry::service {

/** One result of `bench step`. */
struct StepTime {
  std::string model, placement;
  double ms = 0;
};

/** One result of `bench nccl`: src/measure/ranks/exchanges.h has what the figures mean. */
struct ExchangeTime {
  std::string operation;
  int64_t n_bytes = 0;
  double seconds = 0, bytes_per_s = 0, bus_bytes_per_s = 0;
};

struct Measured {
  std::optional<MachineProfile> profile;
  std::vector<std::string> skipped;  // what was left out and why
  std::string gpu_trouble;           // why the trainer can use no GPU
  int64_t gpu_free_bytes = 0;        // of the GPU's memory once the trainer had its context
  double seconds = 0;
  std::vector<StepTime> steps;
  std::vector<ExchangeTime> exchanges;
  std::string exchange_by;  // "NCCL", "Gloo"
  int64_t n_ranks = 0;      // of the exchanges
  std::string trouble;      // why there is no profile
};

inline constexpr double kBenchPatience_s = 180;

/** Runs `trainer bench words...`; its talk goes to standard error. Never throws: what goes wrong is
 * the trouble. A trainer that hangs is ended after `patience_s` and three times its --seconds, any
 * when `stop` asks for it. */
Measured run_trainer_bench(const std::filesystem::path& trainer,
                           const std::vector<std::string>& words,
                           double patience_s = kBenchPatience_s,
                           const std::stop_token& stop = {});

/** The value of --seconds, as it is; Error(usage) where it is no time to measure in. */
std::string checked_seconds(const std::string& text);

/** Parses what the trainer printed. */
Measured parse_measured(std::string_view json);

/** Keeps the rates of exchanges in the machine's profile, where they stay when it is measured anew;
 * steps of several ranks that were timed before them do not count any more. False where there is no
 * profile of this machine. Throws Error(machine) where it cannot be written. */
bool keep_exchange(const Measured& measured);
/** The rates of exchanges that a profile of the same machine has had. */
void take_exchanges(const std::optional<MachineProfile>& kept, MachineProfile& profile);

/** Adds what only /proc and the driver's library know, and puts the machine's name together.
 * `nvidia` was read before the trainer started: what it counts as free less what was free
 * afterwards is what an empty context takes. */
void add_facts(Measured& measured, const Host& host, const Nvidia& nvidia);

/** Measures a GPU of each other model that CUDA_VISIBLE_DEVICES leaves to programs, and adds its
 * figures to the profile; one that cannot be measured is named in `skipped`. `seconds` is that of
 * --seconds, "" for the trainer's own choice. */
void measure_other_gpus(const std::filesystem::path& trainer,
                        const Host& host,
                        const Nvidia& nvidia,
                        const std::string& seconds,
                        const std::stop_token& stop,
                        Measured& measured);
/** Figures of other GPUs that are in this machine, and were measured before but not now. */
void take_other_gpus(const std::optional<MachineProfile>& kept,
                     const Nvidia& nvidia,
                     MachineProfile& profile);

}  // namespace ferry::service
