#include "src/measure/bench_verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "simd/level.h"
#include "src/base/error.h"
#include "src/measure/bench_words.h"
#include "src/measure/measure.h"
#include "src/measure/ranks/exchange_verb.h"
#include "src/measure/step.h"
#include "src/measure/timing.h"
#include "src/term/progress.h"

namespace ferry::measure {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kUsage =
    "usage: ferry-trainer bench memory | adamw | dram | copy | gpu | gemm | attention | disk | "
    "step | nccl | card | all "
    "[--json] [--gpu N] [--seconds S] [--host-bytes B] [--disk-bytes B]";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Fault::usage, "bench", what, kUsage);
}

std::vector<Part> parts_of(const std::string& name) {
  if (name == "all") return {all_parts().begin(), all_parts().end()};
  if (name == "card") return {Part::memory, Part::copy, Part::gpu, Part::gemm, Part::attention};
  for (const Part part : all_parts())
    if (name == name_of(part)) return {part};
  refuse(fmt::format("unknown part '{}'", name));
}

struct Request {
  std::string part;
  MeasureOptions options;
};

/** CUDA sees this GPU alone from here on, counted as the driver counts GPUs. */
void use_gpu(int number) {
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", std::to_string(number).c_str(), 1);
}

Request parse(const std::vector<std::string>& words) {
  Request request;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--json") continue;
    if (word.starts_with("--") && i + 1 < words.size()) {
      const std::string& value = words[++i];
      if (word == "--seconds")
        request.options.seconds = number_of(word, value, 0.01, 600.0, kUsage);
      else if (word == "--gpu")
        use_gpu(number_of(word, value, 0, 1023, kUsage));
      else if (word == "--host-bytes")
        request.options.host_bytes_max =
            number_of<int64_t>(word, value, 0, int64_t{1} << 40, kUsage);
      else if (word == "--disk-bytes")
        request.options.disk_bytes_max =
            number_of<int64_t>(word, value, 0, int64_t{1} << 40, kUsage);
      else
        refuse(fmt::format("unknown option '{}'", word));
    } else if (request.part.empty() && !word.starts_with("-")) {
      request.part = word;
    } else {
      refuse(fmt::format("unexpected '{}'", word));
    }
  }
  if (request.part.empty()) refuse("no part is named");
  return request;
}

}  // namespace

int run_bench_verb(const std::vector<std::string>& words) {
  simd::level();  // a FERRY_SIMD that this machine cannot do shows before any work
  if (!words.empty() && words.front() == "nccl")
    return run_exchange_verb({words.begin() + 1, words.end()});
  Request request = parse(words);
  const bool is_step = request.part == "step";
  const std::vector<Part> parts = is_step ? std::vector<Part>{} : parts_of(request.part);
  const auto start = Clock::now();
  Measured measured;
  ordered_json steps = ordered_json::array();
  {
    term::Progress progress(stderr, term::detect_terminal(2), "measuring",
                            static_cast<int64_t>(parts.size()) + is_step, "part");
    int64_t n_begun = 0;
    request.options.on_part = [&](std::string_view part) { progress.update(n_begun++, part); };
    if (is_step) {
      request.options.on_part("step");
      for (const StepTime& step : measure_steps(request.options, measured.skipped))
        steps.push_back({{"model", step.model}, {"placement", step.placement}, {"ms", step.ms}});
      measured.profile.name = "steps";
    } else {
      measured = measure(parts, request.options);
    }
  }
  const ordered_json out = {{"part", request.part},
                            {"seconds", rounded(seconds_since(start))},
                            {"skipped", measured.skipped},
                            {"gpu_trouble", measured.gpu_trouble},
                            {"gpu_free_bytes", measured.gpu_free_bytes},
                            {"steps", steps},
                            {"profile", ordered_json::parse(to_json(measured.profile))}};
  fmt::print("{}\n", out.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  return 0;
}

}  // namespace ferry::measure
