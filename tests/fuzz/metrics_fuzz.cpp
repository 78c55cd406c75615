// metrics.jsonl as a resumed run takes it up, as `ferry runs` reads it, and as charts follow it.

#include <cstdint>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/runs/index/run_list.h"
#include "src/runs/logs/metrics_log.h"
#include "src/service/runs/metrics_reader.h"
#include "tests/fuzz/scratch.h"

namespace {

/** Whatever the pieces in which it comes, it says the same. */
void follow(const std::filesystem::path& run, size_t n_bytes) {
  ferry::service::MetricsReader whole(run, 4), slow(run, 4);
  while (whole.poll().is_behind) {
  }
  while (slow.poll(1 + n_bytes / 7).is_behind) {
  }
  if (whole.n_rows() != slow.n_rows() || whole.curves().size() != slow.curves().size() ||
      whole.n_bad_lines() != slow.n_bad_lines())
    std::abort();
  int64_t n_read = 0;
  whole.read_rows(0, [&](const ferry::service::MetricsRow&) { return ++n_read, true; });
  if (n_read != whole.n_rows()) std::abort();
}

}  // namespace

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
    follow(file.parent_path(), size);
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
