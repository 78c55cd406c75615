#include "src/train/prepare/settle_shares.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/base/print.h"
#include "src/request/gpu_shares.h"
#include "src/request/ranks.h"
#include "src/train/ranks/rank_team.h"

namespace ferry {
namespace {

/** True where the ranks are to be timed. GPUs of several models may be among those that this
 * process sees, or among those that have met it. */
bool times_ranks(const Job& job, const RunRanks& ranks) {
  if (!may_share_unlike(job.config, ranks)) return false;
  if (ranks.shares_by != SharesBy::models) return ranks.shares_by == SharesBy::to_be_measured;
  return job.machine.plan.has_gpu && (job.machine.has_unlike_gpus || job.team);
}

std::string words_of_times(const std::vector<double>& seconds) {
  constexpr size_t kEach_most = 8;
  if (seconds.size() > kEach_most)
    return fmt::format("{:.3g} to {:.3g} ms", 1e3 * std::ranges::min(seconds),
                       1e3 * std::ranges::max(seconds));
  std::string text;
  for (const double its : seconds)
    text += fmt::format("{}{:.3g}", text.empty() ? "" : ", ", 1e3 * its);
  return text + " ms";
}

}  // namespace

void settle_shares(Job& job) {
  const RunRanks ranks = ranks_to_start(job.config);
  if (!times_ranks(job, ranks)) return;
  if (!job.team) job.team = std::make_shared<RankTeam>(ranks, job.config);
  const bool is_asked = ranks.shares_by == SharesBy::to_be_measured;
  if (is_asked)
    log_line(fmt::format("timing each {}, to share the steps by speed ...",
                         job.machine.plan.has_gpu ? "GPU" : "process"));
  else if (job.machine.has_unlike_gpus)
    log_line(
        fmt::format("timing each GPU, since they are of several models (--gpu-shares {} leaves "
                    "that out) ...",
                    fmt::join(std::vector(static_cast<size_t>(ranks.world), 1), ",")));
  const int64_t max_length = job.data.max_length;
  const int64_t n_texts = job.config.maybe_integer("per_device_train_batch_size")
                              .value_or(job.config.integer("train_batch_size"));
  std::vector<double> seconds =
      job.team->time_ranks({.uses_gpus = job.machine.plan.has_gpu,
                            .only_unlike = !is_asked,
                            .deterministic = job.config.flag("deterministic"),
                            .intra_op_threads = static_cast<int>(
                                job.config.maybe_integer("intra_op_threads").value_or(0)),
                            .gpus = ranks.gpus,
                            .passes = {.type = job.model.table.compute,
                                       .width = job.model.table.width,
                                       .length = max_length,
                                       .tokens = n_texts * max_length}});
  if (seconds.empty()) return;
  const auto failed = std::ranges::find(seconds, 0.0);
  std::vector<int> shares(seconds.size(), 1);
  if (failed != seconds.end()) {
    job.rank_notes.push_back(fmt::format(
        "rank {} could not be timed, as where memory is short: all get as many; --gpu-shares "
        "says how fast each is",
        failed - seconds.begin()));
  } else {
    shares = shares_by_speed(seconds,
                             shared_pieces(job.config, ranks, std::ssize(job.model.table.blocks)));
    job.rank_notes.push_back(
        fmt::format("the same passes took the {} {}: their shares of a step are {}",
                    job.machine.plan.has_gpu ? "GPUs" : "processes", words_of_times(seconds),
                    fmt::join(shares, ", ")));
    job.rank_seconds = std::move(seconds);
  }
  keep_shares(job.config, ranks, shares);
}

}  // namespace ferry
