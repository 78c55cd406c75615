#include "src/request/disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "offload/step/state_pieces.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/request/run_plan.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFp32_bytes = 4;
/** The most that a tokenizer's files take; headers and configurations are small beside them. */
constexpr int64_t kBesideWeights_bytes = 4 * kMiB;
constexpr int64_t kLogs_bytes = 4 * kMiB;

/** a + b * c, or INT64_MAX where that is more. */
int64_t add_product(int64_t a, int64_t b, int64_t c) {
  const auto product = checked_mul(b, c);
  return product && *product <= INT64_MAX - a ? a + *product : INT64_MAX;
}

int64_t n_saved_params(const ModelTable& model) {
  return model.has_deltas ? model.n_trainable_params() : model.n_params();
}

}  // namespace

int64_t checkpoint_bytes(const ModelTable& model, simd::Optim optim) {
  int64_t n_bytes = n_saved_params(model) * kFp32_bytes;
  for (const BlockTable& block : model.blocks)
    for (const ParamSpec& param : block.params)
      if (param.trainable) n_bytes += simd::state_bytes(optim, param.n_elements);
  return n_bytes;
}

int64_t DiskNeed::bytes() const {
  const int64_t n_more = std::max<int64_t>(0, n_checkpoints - n_checkpoints_there);
  return add_product(add_product(final_bytes, 1, small_bytes), checkpoint_bytes, n_more);
}

int64_t pinned_bytes(const ModelTable& model, const StepShape& shape) {
  int64_t n_bytes = 0;
  for (int b = 0; b < shape.n_blocks(); ++b)
    for (const ParamSpec& param : model.blocks[b].params)
      if (param.trainable && shape.n_state_pieces(b) > 0)
        n_bytes +=
            kFp32_bytes * param.n_elements + simd::state_bytes(shape.optim, param.n_elements);
  return n_bytes;
}

int64_t checkpoints_at_once(const config::Config& config) {
  const bool keeps_best = config.flag("load_best_model_at_end");
  if (config.text("save_strategy") == "no" && !keeps_best) return 0;
  // The best one is never the only one.
  return std::max<int64_t>(config.integer("save_total_limit"), keeps_best ? 2 : 1) + 1;
}

DiskNeed disk_needed(const ModelTable& model,
                     const config::Config& config,
                     int64_t n_there,
                     const StepShape* shape) {
  DiskNeed need;
  need.final_bytes = n_saved_params(model) *
                     static_cast<int64_t>(size_of(choose_final_dtype(config, model.compute)));
  need.checkpoint_bytes = checkpoint_bytes(model, choose_optim(config));
  if (shape && !config.flag("save_weights") && !model.has_deltas)
    need.checkpoint_bytes -= pinned_bytes(model, *shape);
  need.n_checkpoints = checkpoints_at_once(config);
  need.n_checkpoints_there = std::min(n_there, need.n_checkpoints);
  const int64_t n_more = need.n_checkpoints - need.n_checkpoints_there;
  need.small_bytes = add_product(kLogs_bytes, kBesideWeights_bytes, n_more + 1);
  return need;
}

std::optional<int64_t> free_disk_bytes(const fs::path& directory) {
  std::error_code error;
  fs::path place = fs::absolute(directory, error);
  while (!fs::exists(place, error) && place.has_relative_path())
    place = place.parent_path();
  const fs::space_info space = fs::space(place, error);
  if (error) return std::nullopt;
  return static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX));
}

void check_disk(const DiskNeed& need, const fs::path& directory) {
  const auto free_bytes = free_disk_bytes(directory);
  if (!free_bytes || need.bytes() <= *free_bytes) return;
  std::vector<std::string> advice;
  if (need.n_checkpoints > 0) {
    DiskNeed less = need;
    less.n_checkpoints = 2;
    less.small_bytes = kLogs_bytes + 3 * kBesideWeights_bytes;
    if (need.n_checkpoints > 2 && less.bytes() <= *free_bytes)
      advice.emplace_back("lower save_total_limit (1 would do)");
    advice.emplace_back("set save_strategy = no (a run that is killed then starts again)");
  }
  advice.emplace_back("choose an output_dir on another disk");
  throw Error(
      Fault::does_not_fit, "plan.disk",
      fmt::format(
          "the disk of '{}' has {} free, and the run needs {}: {} checkpoints of {} each{}, "
          "the trained model of {}",
          directory.string(), format_bytes(*free_bytes), format_bytes(need.bytes()),
          need.n_checkpoints, format_bytes(need.checkpoint_bytes),
          need.n_checkpoints_there > 0
              ? fmt::format(" ({} there already)", need.n_checkpoints_there)
              : "",
          format_bytes(need.final_bytes)),
      fmt::format("free some space, {}", fmt::join(advice, ", or ")));
}

}  // namespace ferry
