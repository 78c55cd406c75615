// metrics.jsonl as a resumed run takes it up, and as `ferry runs` reads it.

#include <cstdint>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/runs/index/run_list.h"
#include "src/runs/logs/metrics_log.h"
#include "tests/fuzz/scratch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ferry;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static const bool is_made = [] {
    fuzz::write_scratch("run.json", R"({"format_version": 1, "phase": "stopped"})");
    return true;
  }();
  const std::filesystem::path file = fuzz::write_scratch("metrics.jsonl", bytes);
  if (!is_made) return 0;
  try {
    const runs::RunSummary run = runs::summarise(file.parent_path());
    run.phase();
    runs::MetricsLog log(file.parent_path(), 100, /*with_tensorboard=*/false);
    log.append({{"step", 101}, {"loss", 0.5}});
    log.sync();
    if (!runs::summarise(file.parent_path()).last_step->is_object()) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
