#include "src/train/ranks/rank_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "offload/device/device.h"
#include "src/base/error.h"
#include "src/base/process/threads.h"
#include "src/engine/torch_setup.h"

namespace ferry {
namespace {

constexpr const char* kKey = "passes";

/** The model of the rank's GPU. */
std::string model_of(int gpu) {
  const CudaProbe probe = probe_cuda(gpu);
  if (!probe.usable)
    throw Error(Fault::machine, "device",
                fmt::format("GPU {} cannot be used: {}", gpu, probe.why_not), probe.cure);
  return probe.gpu_name;
}

bool are_alike(Comm& comm, const std::string& model) {
  const auto all = comm.all_gather_varying(std::as_bytes(std::span(model)));
  return std::ranges::all_of(all, [&](const auto& other) { return other == all.front(); });
}

}  // namespace

nlohmann::ordered_json to_json(const RankTiming& timing) {
  return {{"uses_gpus", timing.uses_gpus},
          {"only_unlike", timing.only_unlike},
          {"deterministic", timing.deterministic},
          {"intra_op_threads", timing.intra_op_threads},
          {"gpus", timing.gpus},
          {kKey,
           {static_cast<int>(timing.passes.type), timing.passes.width, timing.passes.length,
            timing.passes.tokens}}};
}

std::optional<RankTiming> timing_in(const nlohmann::ordered_json& message) {
  const auto passes = message.find(kKey);
  if (passes == message.end()) return std::nullopt;
  return RankTiming{.uses_gpus = message.at("uses_gpus"),
                    .only_unlike = message.at("only_unlike"),
                    .deterministic = message.at("deterministic"),
                    .intra_op_threads = message.at("intra_op_threads"),
                    .gpus = message.at("gpus").get<std::vector<int>>(),
                    .passes = {.type = static_cast<DType>(passes->at(0).get<int>()),
                               .width = passes->at(1),
                               .length = passes->at(2),
                               .tokens = passes->at(3)}};
}

std::vector<double> time_ranks(Comm& comm, const RankTiming& timing, int gpu) {
  const std::string model = timing.uses_gpus ? model_of(gpu) : "CPU";
  if (timing.only_unlike && are_alike(comm, model)) return {};
  set_up_torch({.deterministic = timing.deterministic,
                .intra_op_threads =
                    timing.intra_op_threads > 0 ? timing.intra_op_threads : n_usable_threads()});
  comm.barrier();  // ranks of a host share its cores, as in a step
  return comm.gather_values(measure::seconds_of_passes(timing.passes, timing.uses_gpus ? gpu : -1));
}

}  // namespace ferry
