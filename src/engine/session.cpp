#include "src/engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.h"
#include "src/engine/model_runner.h"
#include "src/engine/ranks/micro_batch_parts.h"
#include "src/engine/ranks/rank_commands.h"

namespace ferry {
namespace {

std::unique_ptr<Device> make_device(const SessionOptions& options, WorkerPool& pool) {
  if (options.device == DeviceKind::cuda)
    return make_cuda_device(options.host_waits, options.pinned_bytes_max, options.device_index);
  SimulatedOptions simulated = options.simulated;
  simulated.pinned_bytes_max = std::min(simulated.pinned_bytes_max, options.pinned_bytes_max);
  return make_simulated_device(simulated, pool);
}

}  // namespace

Session::Session(const ModelTable& model,
                 const StepShape& shape,
                 const Layout& layout,
                 const BatchShape& largest,
                 const SessionOptions& options)
    : kept_(options.kept),
      shape_(shape),
      whole_shape_(shape),
      pool_(make_tbb_pool(options.n_workers)),
      device_(make_device(options, *pool_)),
      memory_(std::make_unique<RunMemory>(*device_, layout, *pool_)),
      library_region_(device_->is_cuda()
                          ? std::make_unique<CudaLibraryRegion>(memory_->at(layout.library),
                                                                shape.library_bytes,
                                                                device_->compute_stream())
                          : nullptr),
      runner_(std::make_unique<ModelRunner>(
          model,
          shape,
          *memory_,
          *device_,
          RunnerOptions{
              .loss = options.loss,
              .seed = options.seed,
              .label_smoothing = options.label_smoothing,
              .preference = options.preference,
              .class_weights = options.class_weights,
              .largest = largest,
              .device = device_->is_cuda()
                            ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device_->index()))
                            : at::Device(at::kCPU),
              .graphs = options.graphs,
              .generation = options.generation,
              .sharing_link = options.sharing_link})),
      drive_(shape, *memory_, options.drive),
      executor_(std::make_unique<Executor>(
          shape, *device_, *pool_, *memory_, options.overlap, drive_.store(), options.link)),
      segments_(shape, *device_, *memory_, executor_->state_window(), options.leader),
      optimizer_(options.optimizer, model.groups),
      link_(options.link),
      leader_(options.leader),
      describe_(options.describe) {
  whole_shape_.ranks = {};
}

Session::~Session() = default;

int64_t Session::library_peak_bytes() const {
  return library_region_ ? library_region_->allocator().peak_bytes() : 0;
}

void Session::load(std::span<const HostBatch> micro_batches, bool commits) {
  put_on_drive();
  if (commits && std::exchange(is_uncommitted_, false)) commit_states();
  for (size_t m = 0; m < micro_batches.size(); ++m)
    runner_->load(static_cast<int>(m), micro_batches[m]);
  runner_->begin_step(n_steps_, optimizer_.loss_scale(), items_of_step(micro_batches));
}

StepItems Session::items_of_step(std::span<const HostBatch> micro_batches) {
  constexpr size_t kItems = 3;
  std::vector<double> mine;
  for (const HostBatch& batch : micro_batches)
    mine.insert(mine.end(), {batch.label_weight.value_or(static_cast<double>(batch.n_label_items)),
                             static_cast<double>(batch.n_end_items),
                             static_cast<double>(batch.n_real_tokens())});
  std::vector<std::vector<double>> all;  // by replica
  if (shape_.cuts_blocks()) {
    all = link_->gather(mine);
    all.resize(static_cast<size_t>(shape_.ranks.n_replicas()));  // those of the first stage
  } else {
    all.push_back(std::move(mine));
  }
  size_t n_values = 0;
  for (const std::vector<double>& its : all)
    n_values += its.size();
  n_micro_ = static_cast<int>(n_values / kItems);
  StepItems items;
  std::vector<size_t> next(all.size());  // by replica: the first value of a micro-batch
  const Rounds rounds(shape_.ranks, n_micro_);
  for (int round = 0; round < rounds.n(); ++round)
    for (int replica : rounds.present(round)) {
      const auto r = static_cast<size_t>(replica);
      const size_t first = next[r];
      next[r] += kItems;
      FERRY_CHECK(next[r] <= all[r].size(), "{} micro-batches, replica {} has {} of them", n_micro_,
                  replica, all[r].size() / kItems);
      items.labels += all[r][first];
      items.ends += all[r][first + 1];
      items.tokens += all[r][first + 2];
    }
  items.tokens /= shape_.ranks.sharing.tp_size;  // each of its ranks has all
  return items;
}

StepReport Session::step(std::span<const HostBatch> micro_batches) {
  return step_unless(micro_batches, {}).value();
}

std::optional<StepReport> Session::step_unless(std::span<const HostBatch> micro_batches,
                                               std::function<bool()> drops) {
  StepRun run = begin(micro_batches, std::move(drops));
  run.submit_all(*runner_);
  return finish(run);
}

std::vector<HostBatch> Session::own_batches(std::span<const HostBatch> micro_batches) const {
  std::vector<HostBatch> own;
  const Rounds rounds(shape_.ranks, static_cast<int>(micro_batches.size()));
  for (int micro : rounds.micros_of(shape_.ranks.rank))
    own.push_back(micro_batches[static_cast<size_t>(micro)]);
  return own;
}

StepRun Session::begin(std::span<const HostBatch> micro_batches, std::function<bool()> drops) {
  if (leader_) {
    const MicroBatchParts parts(micro_batches, shape_.ranks.sharing, /*evaluates=*/false);
    leader_->step(parts.batches());
    load(own_batches(parts.batches()), /*commits=*/true);
  } else {
    load(micro_batches, /*commits=*/true);
  }
  loss_scale_ = optimizer_.loss_scale();
  UpdateRule rule = {.decide = {}, .steps_ahead = optimizer_.steps_ahead()};
  if (rule.steps_ahead.empty())
    rule.decide = [this](const StepSums& sums) { return optimizer_.decide(sums.square_sum); };
  else
    rule.decide = [this](const StepSums& sums) { return optimizer_.decide_each(sums); };
  rule.describe = [this](const StepOutcome& outcome) {
    const StepReport its = report_of(outcome);
    return describe({.n_steps = n_steps_ + 1, .optimizer = optimizer_.state()}, &its);
  };
  if (shape_.has_peers()) drops = {};
  rule.commits = !shape_.has_peers();  // a rank's part of a generation is of no use alone
  return executor_->begin(n_micro_, std::move(rule), std::move(drops));
}

std::optional<StepReport> Session::finish(StepRun& run) {
  const std::optional<StepOutcome> outcome = run.finish();
  if (!outcome) return std::nullopt;
  ++n_steps_;
  return report_of(*outcome);
}

StepReport Session::report_of(const StepOutcome& outcome) const {
  return {.loss = outcome.loss,
          .grad_norm = optimizer_.grad_norm(),
          .learning_rate = optimizer_.learning_rate(),
          .loss_scale = loss_scale_,
          .skipped = outcome.decision.skip,
          .clipped = optimizer_.clipped(),
          .n_skipped_in_a_row = optimizer_.n_skipped_in_a_row()};
}

void Session::rehearse(std::span<const HostBatch> micro_batches, bool settles) {
  if (leader_) {
    const MicroBatchParts parts(micro_batches, shape_.ranks.sharing, /*evaluates=*/false);
    leader_->rehearse(parts.batches(), settles);
    load(own_batches(parts.batches()), /*commits=*/false);
  } else {
    load(micro_batches, /*commits=*/false);
  }
  // An update that changes nothing: every byte of a step moves and is touched, and its time is
  // real.
  const std::vector<simd::UpdateStep> steps =
      optimizer_.for_all_groups(simd::neutral_step(shape_.optim));
  UpdateRule rule = {.decide = [&](const StepSums& sums) {
    return std::isfinite(sums.square_sum) ? Decision{.steps = steps} : Decision{.skip = true};
  }};
  rule.commits = false;
  if (!optimizer_.steps_ahead().empty()) rule.steps_ahead = steps;
  executor_->step(n_micro_, std::move(rule), *runner_);
  if (settles) executor_->settle();
}

double Session::evaluate(const HostBatch& batch, std::vector<float>* logits) {
  std::vector<Evaluated> evaluated = evaluate_each({&batch, 1}, logits != nullptr);
  if (logits) *logits = std::move(evaluated.front().logits);
  return evaluated.front().loss;
}

std::vector<float> Session::outputs_of_step(int micro) {
  return runner_->logits(micro);
}

int Session::n_evaluated_at_once() const {
  constexpr int kEach_max = 8;  // a run that is to stop waits for them
  const bool gains = shape_.order == AccumulationOrder::vertical || shape_.deals_blocks();
  const int n_replicas = leader_ ? shape_.ranks.n_replicas() : 1;
  return (gains ? std::min(shape_.n_micro_max, kEach_max) : 1) * n_replicas /
         shape_.ranks.sharing.n_ranks();
}

std::vector<Evaluated> Session::evaluate_each(std::span<const HostBatch> batches,
                                              bool wants_logits) {
  FERRY_CHECK(!batches.empty() && std::ssize(batches) <= n_evaluated_at_once(),
              "{} batches to evaluate, {} at once", batches.size(), n_evaluated_at_once());
  if (!leader_) return evaluate_own(batches, wants_logits);
  const MicroBatchParts parts(batches, shape_.ranks.sharing, /*evaluates=*/true);
  // Each replica has as many: the last ones are there once more.
  const auto n_parts = static_cast<size_t>(shape_.ranks.sharing.n_ranks()),
             n_replicas = static_cast<size_t>(shape_.ranks.n_replicas());
  std::vector<HostBatch> all(parts.batches().begin(), parts.batches().end());
  while (all.size() % n_replicas != 0)
    all.push_back(all[all.size() - n_parts]);
  leader_->evaluate(all, wants_logits);
  std::vector<Evaluated> of_parts(all.size());
  std::vector<HostBatch> of_leader;
  for (size_t n = 0; n < all.size(); n += n_replicas)
    of_leader.push_back(all[n]);
  std::vector<Evaluated> own = evaluate_own(of_leader, wants_logits);
  for (size_t n = 0; n < own.size(); ++n)
    of_parts[n * n_replicas] = std::move(own[n]);
  leader_->take_evaluated(of_parts);
  std::vector<Evaluated> evaluated(batches.size());
  for (size_t p = 0; p < batches.size() * n_parts; ++p) {
    Evaluated& whole = evaluated[p / n_parts];
    whole.loss += of_parts[p].loss;
    if (shape_.ranks.sharing.tp_size > 1 && p % n_parts > 0) continue;  // the same logits
    whole.logits.insert(whole.logits.end(), of_parts[p].logits.begin(), of_parts[p].logits.end());
  }
  return evaluated;
}

std::vector<Evaluated> Session::evaluate_own(std::span<const HostBatch> batches,
                                             bool wants_logits) {
  put_on_drive();
  std::vector<StepItems> items;
  for (const HostBatch& batch : batches) {
    runner_->load(static_cast<int>(items.size()), batch);
    items.push_back({.labels = static_cast<double>(batch.n_label_items),
                     .ends = static_cast<double>(batch.n_end_items),
                     .tokens = static_cast<double>(batch.n_real_tokens())});
  }
  runner_->begin_evaluation(std::move(items));
  const std::vector<double> losses =
      executor_->evaluate(*runner_, static_cast<int>(batches.size()));
  std::vector<Evaluated> evaluated(batches.size());
  for (size_t n = 0; n < evaluated.size(); ++n) {
    evaluated[n].loss = losses[n];
    if (wants_logits) evaluated[n].logits = runner_->logits(static_cast<int>(n));
  }
  return evaluated;
}

bool Session::leave_gpu() {
  executor_->settle_gpu();
  runner_->drop_graphs();
  if (leader_ && !leader_->leave_gpu()) return false;
  return memory_->leave_gpu(*device_);
}

void Session::return_to_gpu() {
  if (leader_) leader_->return_to_gpu();
  memory_->return_to_gpu(*device_);
}

void Session::change_optimizer(std::string_view key, double value) {
  if (leader_) leader_->change_optimizer(key, value);
  optimizer_.change(key, value);
}

void Session::restore(const SessionState& state) {
  if (leader_) leader_->restore(state);
  n_steps_ = state.n_steps;
  optimizer_.restore(state.optimizer);
}

void Session::save(std::function<void(StateSource&)> write,
                   std::function<void()> end,
                   std::function<void()> pin) {
  if (!leader_) return executor_->save(std::move(write), std::move(end), std::move(pin));
  leader_->save();
  executor_->save(
      [this, write = std::move(write)](BlockStates& own) {
        GatheredStates states(shape_, own, *leader_);
        write(states);
        leader_->end_block();
      },
      std::move(end), std::move(pin));
}

void Session::put_on_drive() {
  if (!segments_.take_changed()) return;
  StateWindow* window = executor_->state_window();
  if (!window) return;
  window->finish_writes();
  is_uncommitted_ = true;
}

void Session::commit_states() {
  if (!drive_store()) return;
  put_on_drive();
  drive_store()->extents().commit(describe(state(), nullptr));
  is_uncommitted_ = false;
}

Segments& Session::segments() {
  executor_->settle();
  if (StateWindow* window = executor_->state_window()) window->let_go();
  return segments_;
}

}  // namespace ferry
