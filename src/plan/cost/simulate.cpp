// Time goes from one end of an action to the next; between two, what is under way goes on at rates
// that depend on what else is.

#include "src/plan/cost/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "src/base/error.h"

namespace ferry {
namespace {

/** A stream takes no more launches while so many are pending (H200, driver 580: a program that was
 * ahead by a hundred graphs fell back to the GPU's pace one micro-batch after the graphs' end). */
constexpr double kPendingLaunches = 1024;
/** The first steps fill the queues. */
constexpr int kSteps = 4;

/** Passes with the same key are one CUDA graph. The key names a block, a micro-batch and the
 * regions that a pass reads and writes (src/engine/cuda/block_graphs.h). A forward that is done
 * again for a backward is the graph of the first one, where both save in the same place. */
using GraphKey = std::vector<int>;
GraphKey graph_key_of(const Action& action) {
  GraphKey key = {action.verb == Verb::backward, action.block, action.micro};
  for (const std::vector<Bytes>* all : {&action.reads, &action.writes}) {
    const auto begin = static_cast<std::ptrdiff_t>(key.size());
    for (const Bytes& bytes : *all)
      key.push_back(bytes.region);
    std::sort(key.begin() + begin, key.end());  // the order of an action's list says nothing
    key.push_back(-1);
  }
  return key;
}

/** The share of each action that is replayed as CUDA graphs. A pass is recorded as a graph when it
 * comes the second time, until there are as many graphs as are kept: in the first step those that
 * come twice in a step, in the second step the others. */
std::vector<double> replayed_shares(const CostModel& cost,
                                    const StepList& list,
                                    AccumulationOrder order,
                                    double n_each) {
  std::map<GraphKey, int> n_in_step;
  for (const Action& action : list)
    if (cost.may_be_replayed(action)) ++n_in_step[graph_key_of(action)];
  std::map<GraphKey, double> recorded;
  double n_left = kBlockGraphs_max;
  // Micro-batches that are simulated as one come in turn in horizontal order: all passes of the
  // first come before those of the next.
  const bool in_turns = order == AccumulationOrder::horizontal && n_each > 1;
  for (const bool comes_twice : {true, false}) {
    const auto is_recorded_now = [&](const GraphKey& key) {
      return (n_in_step.at(key) > 1) == comes_twice;
    };
    std::map<int, std::set<GraphKey>> turns;
    if (in_turns)
      for (const auto& [key, n] : n_in_step)
        if (is_recorded_now(key)) turns[key[2]].insert(key);
    for (const Action& action : list) {
      if (!cost.may_be_replayed(action)) continue;
      const GraphKey key = graph_key_of(action);
      if (!is_recorded_now(key) || recorded.contains(key)) continue;
      const std::set<GraphKey> alone = {key};
      const std::set<GraphKey>& turn = in_turns ? turns.at(action.micro) : alone;
      const double n = static_cast<double>(turn.size()) * n_each, n_here = std::min(n, n_left);
      for (const GraphKey& one : turn)
        recorded[one] = n_here / n;
      n_left -= n_here;
    }
  }
  std::vector<double> shares(list.size(), 0.0);
  for (size_t i = 0; i < list.size(); ++i)
    if (cost.may_be_replayed(list[i])) shares[i] = recorded.at(graph_key_of(list[i]));
  return shares;
}

class Simulator {
 public:
  Simulator(const CostModel& cost,
            const StepShape& shape,
            const Layout& layout,
            const StepList& list,
            double n_each,
            bool serial)
      : list_(list), serial_(serial), n_each_(n_each), has_fewer_graphs_(list.size(), false) {
    const std::vector<double> replayed = replayed_shares(cost, list, shape.order, n_each);
    const int64_t end_of_pinned = pinned_end(layout, shape.pinned_bytes_max);
    double last_share = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      const double times = list[i].micro >= 0 ? n_each : 1;
      seconds_.push_back(
          cost.seconds(list[i], replayed[i], ring_bytes_of(layout, list[i], end_of_pinned)) *
          times);
      // The number of launches stays that of one micro-batch, however many are simulated as one. A
      // stream holds about as many launches as a micro-batch has, and a pass with few of them is
      // made up for by another pass of the same micro-batch.
      const CostModel::Submission submission = cost.submission(list[i], replayed[i]);
      submissions_.push_back({submission.seconds * times, submission.n_launches});
      if (cost.may_be_replayed(list[i])) {
        has_fewer_graphs_[i] = replayed[i] < last_share;
        last_share = replayed[i];
      }
      if (list[i].verb == Verb::decide) decide_ = i;
      if (list[i].verb == Verb::commit) commit_ = i;
      if (list[i].verb != Verb::update && list[i].verb != Verb::send_weights) continue;
      const auto block = static_cast<size_t>(list[i].block);
      update_of_.resize(std::max(update_of_.size(), block + 1), -1);
      update_of_[block] = static_cast<int>(i);
    }
    for (int step = 0; step < kSteps; ++step)
      for (size_t i = 0; i < list.size(); ++i)
        queues_[queue_of(i)].push_back({step, i});
    ended_.assign(kSteps, std::vector<double>(list.size(), kNever));
    began_ = ended_;
    const bool has_ring = needs_ring(layout, shape.pinned_bytes_max);
    for (size_t beside = 0; beside < speeds_.size(); ++beside)
      for (size_t q = 0; q < kQueues; ++q)
        speeds_[beside][q] =
            serial ? 1
                   : cost.speed(static_cast<QueueId>(q), {.h2d = (beside & 1) > 0,
                                                          .d2h = (beside & 2) > 0,
                                                          .host = (beside & 4) > 0,
                                                          .nvme_read = (beside & 8) > 0,
                                                          .nvme_write = (beside & 16) > 0,
                                                          .ring = has_ring,
                                                          .exchange = (beside & 32) > 0});
  }

  void run() {
    while (start_ready() || n_running() > 0)
      advance();
    for (size_t q = 0; q < kQueues; ++q)
      FERRY_CHECK(next_[q] == queues_[q].size(), "the simulation stands still");
  }
  double ended(int step, size_t i) const { return ended_[static_cast<size_t>(step)][i]; }
  double began(int step, size_t i) const { return began_[static_cast<size_t>(step)][i]; }
  size_t decide() const { return decide_; }
  double seconds(size_t i) const { return seconds_[i]; }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Item {
    int step;
    size_t action;
  };
  struct Running {
    Item item{};
    double left_s = 0;  ///< seconds of work, at full speed
    bool is_running = false;
  };

  size_t queue_of(size_t i) const { return serial_ ? 0 : static_cast<size_t>(list_[i].queue); }
  bool has_ended(int step, size_t i) const {
    return step < 0 || ended_[static_cast<size_t>(step)][i] <= now_;
  }
  /** `n_seen` of what the item waits for has been seen to have ended. */
  bool is_ready(const Item& item, size_t& n_seen) const {
    const Action& action = list_[item.action];
    // The stepping thread waits for the decision before it submits what follows.
    if (item.action > decide_ && !has_ended(item.step, decide_)) return false;
    if (!has_ended(item.step - 1, decide_)) return false;
    if (action.after_commit && !has_ended(item.step - 1, commit_)) return false;
    for (; n_seen < action.after.size(); ++n_seen)
      if (!has_ended(item.step, static_cast<size_t>(action.after[n_seen]))) return false;
    for (int block : action.after_update) {
      const auto b = static_cast<size_t>(block);
      if (b < update_of_.size() && update_of_[b] >= 0 &&
          !has_ended(item.step - 1, static_cast<size_t>(update_of_[b])))
        return false;
    }
    return true;
  }
  bool start_ready() {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      for (size_t q = 0; q < kQueues; ++q) {
        if (running_[q].is_running || next_[q] == queues_[q].size()) continue;
        const Item item = queues_[q][next_[q]];
        if (!is_ready(item, n_seen_[q])) continue;
        ++next_[q];
        n_seen_[q] = 0;
        began_[static_cast<size_t>(item.step)][item.action] = now_;
        running_[q] = {item, submit(q, item), true};
        any = again = true;
        if (running_[q].left_s > 0) continue;
        end(q);
      }
    }
    return any;
  }
  /** The seconds from now on that the item takes: at least until its last kernel was launched,
   * behind those of the actions before it. Nothing is launched before the decision that the item
   * waits for, nor while too much is pending. Called once for each item, in the queue's order. */
  double submit(size_t q, const Item& item) {
    const double seconds = seconds_[item.action];
    if (serial_ || q != static_cast<size_t>(QueueId::compute)) return seconds;
    const CostModel::Submission& submission = submissions_[item.action];
    const int decided = item.action > decide_ ? item.step : item.step - 1;
    if (decided >= 0) not_before(ended_at({decided, decide_}));
    hold_back_behind_graphs(item);
    launched_.push_back({item, n_launched() + submission.n_launches});
    for (; launched_[n_done_].second <= n_launched() - kPendingLaunches; ++n_done_)
      not_before(ended_at(launched_[n_done_].first));
    submitted_s_ += submission.seconds;
    return std::max(seconds, submitted_s_ - now_);
  }
  /** Holds back the submitting thread where graphs end: it is ahead by no more launches than a
   * stream takes. For micro-batches that are simulated as one, a launch stands for as many
   * launches as there are micro-batches. */
  void hold_back_behind_graphs(const Item& item) {
    const CostModel::Submission& submission = submissions_[item.action];
    if (n_each_ > 1 && has_fewer_graphs_[item.action])
      not_before(now_ - kPendingLaunches * submission.seconds / n_each_ / submission.n_launches);
  }
  void not_before(double time_s) { submitted_s_ = std::max(submitted_s_, time_s); }
  double ended_at(const Item& item) const {
    return ended_[static_cast<size_t>(item.step)][item.action];
  }
  double n_launched() const { return launched_.empty() ? 0 : launched_.back().second; }
  void end(size_t q) {
    const Item item = running_[q].item;
    ended_[static_cast<size_t>(item.step)][item.action] = now_;
    running_[q].is_running = false;
  }
  int n_running() const {
    return static_cast<int>(std::ranges::count_if(running_, &Running::is_running));
  }
  void advance() {
    const auto runs = [&](QueueId queue) {
      return static_cast<size_t>(running_[static_cast<size_t>(queue)].is_running);
    };
    const std::array<double, kQueues>& speed =
        speeds_[runs(QueueId::h2d) + 2 * runs(QueueId::d2h) + 4 * runs(QueueId::host) +
                8 * runs(QueueId::nvme_read) + 16 * runs(QueueId::nvme_write) +
                32 * runs(QueueId::collective)];
    double step_s = kNever;
    for (size_t q = 0; q < kQueues; ++q) {
      if (!running_[q].is_running) continue;
      step_s = std::min(step_s, running_[q].left_s / speed[q]);
    }
    if (n_running() == 0) return;
    FERRY_CHECK(step_s < kNever, "an action of the simulation never ends");
    now_ += step_s;
    for (size_t q = 0; q < kQueues; ++q) {
      if (!running_[q].is_running) continue;
      running_[q].left_s -= step_s * speed[q];
      if (running_[q].left_s <= 1e-12) end(q);
    }
  }

  const StepList& list_;
  bool serial_;
  double n_each_;
  std::vector<bool> has_fewer_graphs_;  ///< by action: a smaller share than the action before
  size_t decide_ = 0, commit_ = 0;
  std::vector<double> seconds_;  ///< by action
  std::vector<CostModel::Submission> submissions_;
  double submitted_s_ = 0;  ///< when what was started on the GPU had been launched
  /** The items that were started on the GPU, each with its number of launches. */
  std::vector<std::pair<Item, double>> launched_;
  size_t n_done_ = 0;  ///< the ones that ended long enough ago to hold nobody up
  /** Speeds by what runs (1: h2d, 2: d2h, 4: host, 8: nvme_read, 16: nvme_write, 32: collective),
   * then by queue. */
  std::array<std::array<double, kQueues>, 64> speeds_{};
  std::vector<int> update_of_;  ///< by block: index of the action that ends its update; -1: none
  std::array<std::vector<Item>, kQueues> queues_;
  std::array<size_t, kQueues> next_{}, n_seen_{};
  std::array<Running, kQueues> running_;
  std::vector<std::vector<double>> began_, ended_;  ///< by step, action
  double now_ = 0;
};

}  // namespace

QueueId Simulation::binding() const {
  return static_cast<QueueId>(std::ranges::max_element(busy_s) - busy_s.begin());
}

Simulation simulate_steps(const CostModel& cost,
                          const StepShape& shape,
                          int n_micro,
                          UpdateOrder order,
                          bool serial,
                          bool keeps_actions,
                          double n_each) {
  const Layout layout = make_layout(shape);
  return simulate_list(cost, shape, layout, make_training_list(shape, layout, n_micro, order),
                       serial, keeps_actions, n_each);
}

Simulation simulate_list(const CostModel& cost,
                         const StepShape& shape,
                         const Layout& layout,
                         const StepList& list,
                         bool serial,
                         bool keeps_actions,
                         double n_each) {
  Simulator simulator(cost, shape, layout, list, n_each, serial);
  simulator.run();
  Simulation out;
  const size_t decide = simulator.decide();
  out.step_s = simulator.ended(kSteps - 1, decide) - simulator.ended(kSteps - 2, decide);
  for (size_t i = 0; i < list.size(); ++i) {
    const double took_s = simulator.ended(kSteps - 2, i) - simulator.began(kSteps - 2, i);
    out.busy_s[list[i].queue] += took_s;
    out.alone_s[list[i].queue] += simulator.seconds(i);
    if (list[i].verb == Verb::update && list[i].queue == QueueId::host)
      out.host_updates_s += took_s;
  }
  const auto alone_s = [&](QueueId queue) { return out.alone_s[queue]; };
  out.least_drive_s =
      cost.least_drive_seconds(alone_s(QueueId::nvme_read), alone_s(QueueId::nvme_write));
  if (!keeps_actions) return out;
  const double start = simulator.ended(kSteps - 3, decide);
  for (int step = kSteps - 2; step < kSteps; ++step)
    for (size_t i = 0; i < list.size(); ++i)
      out.actions.push_back({.name = describe(list[i], shape),
                             .queue = list[i].queue,
                             .verb = list[i].verb,
                             .block = list[i].block,
                             .step = step - (kSteps - 3),
                             .begin_s = simulator.began(step, i) - start,
                             .end_s = simulator.ended(step, i) - start});
  return out;
}

}  // namespace ferry
