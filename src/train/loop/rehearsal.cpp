#include "src/train/loop/rehearsal.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/data/batch.h"
#include "src/engine/step_time.h"
#include "src/term/progress.h"
#include "src/train/generate/generation.h"
#include "src/train/generate/sampling.h"
#include "src/train/prepare/batches.h"

namespace ferry {
namespace {

using Clock = std::chrono::steady_clock;

/** Nobody wants to wait longer for a figure: a machine that others use may take minutes for what
 * takes a second alone. */
constexpr double kMost_s = 10;

double seconds_after(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/** The line that says so: it grows on a terminal and goes at the end; elsewhere it is one line. */
class Saying {
 public:
  explicit Saying(int64_t n_parts) : n_parts_(n_parts) {
    if (terminal_.is_terminal)
      progress_.emplace(stderr, terminal_, "measuring a step", n_parts, "part");
    else
      log_line("measuring a step ...");
    print_unlogged();
  }
  ~Saying() {
    if (progress_) progress_->vanish();
  }
  void next() {
    n_done_ = std::min(n_done_ + 1, n_parts_);
    print_unlogged();
  }

 private:
  void print_unlogged() {
    if (progress_) progress_->update(n_done_);
  }
  const term::Terminal terminal_ = term::detect_terminal(2);
  std::optional<term::Progress> progress_;
  int64_t n_parts_, n_done_ = 0;
};

/** The first samples, as many as fit in a micro-batch of this size. */
std::vector<int64_t> samples_of(const Data& data, int64_t token_size) {
  std::vector<int64_t> samples;
  int64_t n_tokens = 0;
  for (int64_t i = 0; i < std::min(data.train.size(), data.split.micro_batch_size); ++i) {
    n_tokens += data.train.n_tokens(i);
    if (n_tokens > token_size) break;
    samples.push_back(i);
  }
  return samples;
}

class Rehearsal {
 public:
  Rehearsal(Session& session, const Job& job)
      : session_(session),
        data_(job.data),
        collator_(job.model.tokenizer, job.data, job.model.table),
        is_bounded_(!job.machine.plan.has_gpu),
        saying_(static_cast<int64_t>(job.data.token_sizes.size()) + 2) {}

  /** Every size, largest first; an evaluation has kernels of its own, and they too are on the card
   * before step 1. */
  void try_sizes() {
    std::vector<float> logits;
    MicroBatch batch;
    for (size_t i = data_.token_sizes.size(); i-- > 0; saying_.next()) {
      const int64_t size[] = {data_.token_sizes[i]};
      const std::vector<int64_t> samples = samples_of(data_, size[0]);
      if (samples.empty()) continue;
      const HostBatch one[] = {collator_.collate(data_.train, samples, size, {}, batch)};
      session_.rehearse(one);
      if (data_.eval.size() > 0)
        session_.evaluate(one[0], data_.task->wants_logits() ? &logits : nullptr);
      if (is_bounded_ && left_s() < kMost_s / 2) break;
    }
  }

  /** Throws Error(machine) where the first packed texts have another loss than each by itself: they
   * would see each other. */
  void compare_packed() {
    const TokenizedDataset& train = data_.train;
    if (!train.is_packed() || !data_.task->may_be_packed() || data_.task->draws_asked_tokens())
      return;
    const std::vector<int32_t> sizes = train.pack_sizes();
    const auto several = std::ranges::find_if(sizes, [](int32_t n) { return n > 1; });
    if (several == sizes.end()) return;
    const int64_t pack = several - sizes.begin();
    std::vector<TokenizedExample> texts;
    const auto [begin, end] = train.sequences_of(pack);
    for (int64_t i = begin; i < end; ++i) {
      const auto labels = train.labels(i);
      texts.push_back({.ids = train.ids(i), .labels = {labels.begin(), labels.end()}});
    }
    const TokenizedDataset alone = dataset_of(texts);
    double sum = 0, n_items = 0;
    for (int64_t i = 0; i < alone.size(); ++i) {
      const HostLoss one = loss_of(alone, {&i, 1});
      sum += one.loss * one.n_items;
      n_items += one.n_items;
    }
    const double together = loss_of(train, {&pack, 1}).loss, apart = sum / std::max(n_items, 1.0);
    if (is_same_loss(together, apart)) return;
    throw Error(Fault::machine, "preflight.packing",
                fmt::format("{} packed texts have a loss of {:.5g}, each by itself {:.5g}",
                            texts.size(), together, apart),
                "this is a fault of Ferry: please report it, and train with packing = false");
  }

  /** Throws Error(machine) where the first samples have another loss as a micro-batch than one by
   * one: a step's result would depend on how it is cut. Losses of two parts, and such as are drawn,
   * are no plain means over items. */
  void compare_accumulated() {
    constexpr size_t kSamples = 4;
    if (data_.task->draws_asked_tokens() || data_.task->compares_answers()) return;
    std::vector<int64_t> samples = samples_of(data_, data_.token_sizes.back());
    samples.resize(std::min(samples.size(), kSamples));
    if (samples.size() < 2) return;
    double sum = 0, n_items = 0;
    for (const int64_t sample : samples) {
      const HostLoss one = loss_of(data_.train, {&sample, 1});
      if (one.has_ends) return;
      sum += one.loss * one.n_items;
      n_items += one.n_items;
    }
    const double together = loss_of(data_.train, samples).loss,
                 apart = sum / std::max(n_items, 1.0);
    if (is_same_loss(together, apart)) return;
    throw Error(Fault::machine, "preflight.accumulation",
                fmt::format("{} samples have a loss of {:.5g} as a micro-batch, one by one {:.5g}",
                            samples.size(), together, apart),
                "this is a fault of Ferry: please report it");
  }

  /** Seconds of the samples of one step. */
  double time_of_samples(const Job& job) {
    if (job.generation.prompts.empty()) return 0;
    if (!is_bounded_) time_generation(session_, job);  // warm, as above
    const GenerationSeconds seconds = time_generation(session_, job);
    const auto n_tokens = static_cast<double>(job.generation.rule.n_new_max - 1);
    return static_cast<double>(n_groups(job)) * (seconds.prompts_s + n_tokens * seconds.token_s);
  }

  /** Seconds of a step of these micro-batches. */
  double time_of(std::span<const HostBatch> full) {
    if (!is_bounded_) {
      saying_.next();
      return time_of_step(session_, full);
    }
    const double one_s = timed(full.first(1));
    saying_.next();
    const auto n = static_cast<double>(full.size());
    const double n_affordable = std::clamp(left_s() / std::max(one_s, 1e-6), 1.0, n);
    const auto some = full.first(static_cast<size_t>(n_affordable));
    if (some.size() == 1 && left_s() < one_s) return one_s * n;
    const double some_s = timed(some);
    if (some.size() == full.size()) return some_s;
    if (some.size() == 1) return some_s * n;
    // The update is in both; what another micro-batch adds is not.
    const double each_s = std::max(0.0, some_s - one_s) / static_cast<double>(some.size() - 1);
    return some_s + each_s * (n - static_cast<double>(some.size()));
  }

 private:
  /** The loss of a micro-batch, and its items. */
  struct HostLoss {
    double loss = 0, n_items = 0;
    bool has_ends = false;
  };
  HostLoss loss_of(const TokenizedDataset& from, std::span<const int64_t> samples) {
    MicroBatch batch;
    const HostBatch one = collator_.collate(from, samples, data_.token_sizes, {}, batch);
    return {session_.evaluate(one, nullptr), static_cast<double>(one.n_label_items),
            one.n_end_items > 0};
  }
  static bool is_same_loss(double together, double apart) {
    constexpr double kRounding = 0.02;       // of 16 bits
    if (!std::isfinite(apart)) return true;  // the first step says so
    return std::abs(together - apart) <= kRounding * std::max(1.0, std::abs(apart));
  }

  double left_s() const { return kMost_s - seconds_after(start_); }
  double timed(std::span<const HostBatch> micro_batches) {
    const auto start = Clock::now();
    session_.rehearse(micro_batches);
    return seconds_after(start);
  }

  Session& session_;
  const Data& data_;
  const Collator collator_;
  const bool is_bounded_;
  const Clock::time_point start_ = Clock::now();
  Saying saying_;
};

int64_t n_graphs_of(const Job& job) {
  return job.machine.plan.has_gpu
             ? ferry::n_graphs_of(job.model.table, job.plan, job.data.token_sizes)
             : 0;
}

/** Memory that plan, dataset and LibTorch's own buffers take beyond the process as it starts. */
int64_t planned_host_bytes(const Job& job) {
  const bool has_gpu = job.machine.plan.has_gpu;
  int64_t plan_bytes = host_bytes_of(job.plan, has_gpu);
  for (const Rival& rival : job.tried)  // the process had its memory, too
    if (rival.step_s) plan_bytes = std::max(plan_bytes, host_bytes_of(rival.plan, has_gpu));
  const Ranks& ranks = job.plan.shape.ranks;
  return plan_bytes + process_memory_of(job.machine.plan, n_graphs_of(job)).later_bytes +
         nccl_host_bytes(job.machine.plan, ranks.world, ranks.sharing.n_ranks());
}

/** The memory that the driver will count on the card, with what other programs took before; 0 on a
 * CPU. */
int64_t planned_gpu_bytes(const Job& job) {
  if (!job.machine.plan.has_gpu) return 0;
  return job.machine.plan.gpu_context_bytes +
         loaded_kernels_bytes(job.model.table, job.machine.plan, n_graphs_of(job)) +
         nccl_bytes(job.plan.shape.ranks.world, job.plan.shape.ranks.sharing.n_ranks()) +
         job.plan.layout.n_bytes[Place::device];
}

}  // namespace

Promise rehearse(Session& session, const Job& job, int64_t n_done) {
  StepBatches batches(job.model.tokenizer, job.data, job.model.table);
  Rehearsal rehearsal(session, job);
  rehearsal.try_sizes();
  if (n_done == 0 && job.config.flag("preflight")) {
    rehearsal.compare_packed();
    rehearsal.compare_accumulated();
  }
  // The run's first step has the most micro-batches.
  const double step_s = rehearsal.time_of(batches.of_step(0));
  const double samples_s = rehearsal.time_of_samples(job);
  // A resumed run may be asked for fewer steps than it has made: it then ends at once.
  const int64_t n_left = std::max<int64_t>(0, job.steps.total - n_done);
  Promise promise = {
      .seconds = step_s * static_cast<double>(n_left),
      .sample_seconds = samples_s * static_cast<double>(n_samplings(job, n_done, step_s)),
      .peak_bytes = planned_host_bytes(job),
      .gpu_bytes = planned_gpu_bytes(job)};
  if (const int64_t most_s = job.config.integer("max_time"); most_s > 0)
    promise.seconds = std::min(promise.seconds, static_cast<double>(most_s));
  return promise;
}

}  // namespace ferry
