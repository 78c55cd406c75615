// Time goes from one end of an action to the next; between two, what is under way goes on at rates
// that depend on what else is.

#include "src/plan/cost/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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

/** The CUDA graphs of a list. Passes with the same key are one graph. The key names a block, a
 * micro-batch and the regions that a pass reads and writes (src/engine/cuda/block_graphs.h). A
 * forward that is done again for a backward is the graph of the first one, where both save in the
 * same place. */
struct Graphs {
  explicit Graphs(const CostModel& cost, const StepList& list) : of_action(list.size(), -1) {
    std::map<std::vector<int>, int> numbers;
    std::vector<int> key;
    for (size_t i = 0; i < list.size(); ++i) {
      const Action& action = list[i];
      if (!cost.may_be_replayed(action)) continue;
      key = {action.verb == Verb::backward, action.block, action.micro};
      for (const std::vector<Bytes>* all : {&action.reads, &action.writes}) {
        const auto begin = static_cast<std::ptrdiff_t>(key.size());
        for (const Bytes& bytes : *all)
          key.push_back(bytes.region);
        std::sort(key.begin() + begin, key.end());  // the order of an action's list says nothing
        key.push_back(-1);
      }
      const auto [at, is_new] = numbers.try_emplace(key, static_cast<int>(all.size()));
      if (is_new) all.push_back({.micro = action.micro});
      of_action[i] = at->second;
      ++all[static_cast<size_t>(at->second)].n_in_step;
    }
  }
  struct Graph {
    int micro = 0;
    int n_in_step = 0;           ///< passes that replay it
    double recorded_share = -1;  ///< of its micro-batches; below 0: not known yet
  };
  std::vector<Graph> all;      ///< in the order of the list
  std::vector<int> of_action;  ///< -1: none
};

/** The share of each action that is replayed as CUDA graphs. A pass is recorded as a graph when it
 * comes the second time, until there are as many graphs as are kept: in the first step those that
 * come twice in a step, in the second step the others. */
std::vector<double> replayed_shares(const CostModel& cost,
                                    const StepList& list,
                                    AccumulationOrder order,
                                    double n_each) {
  using Graph = Graphs::Graph;
  Graphs graphs(cost, list);
  double n_left = kBlockGraphs_max;
  // Micro-batches that are simulated as one come in turn in horizontal order: all passes of the
  // first come before those of the next.
  const bool in_turns = order == AccumulationOrder::horizontal && n_each > 1;
  for (const bool comes_twice : {true, false}) {
    const auto is_recorded_now = [&](const Graph& graph) {
      return (graph.n_in_step > 1) == comes_twice;
    };
    std::map<int, std::vector<Graph*>> turns;  // by micro-batch
    if (in_turns)
      for (Graph& graph : graphs.all)
        if (is_recorded_now(graph)) turns[graph.micro].push_back(&graph);
    for (Graph& graph : graphs.all) {  // in the order in which they come first
      if (!is_recorded_now(graph) || graph.recorded_share >= 0) continue;
      std::vector<Graph*> alone = {&graph};
      const std::vector<Graph*>& turn = in_turns ? turns.at(graph.micro) : alone;
      const double n = static_cast<double>(turn.size()) * n_each, n_here = std::min(n, n_left);
      for (Graph* one : turn)
        one->recorded_share = n_here / n;
      n_left -= n_here;
    }
  }
  std::vector<double> shares(list.size(), 0.0);
  for (size_t i = 0; i < list.size(); ++i)
    if (const int graph = graphs.of_action[i]; graph >= 0)
      shares[i] = graphs.all[static_cast<size_t>(graph)].recorded_share;
  return shares;
}

/** The list of a rank, and what it was made for. */
struct RankSteps {
  const CostModel& cost;
  const StepShape& shape;
  const Layout& layout;
  const StepList& list;
};

/** Runs the lists of all stages of one replica or several, of which the first rank is reported. One
 * replica stands for all those on the same kinds of GPUs. */
class Simulator {
 public:
  Simulator(const std::vector<RankSteps>& ranks, double n_each, bool serial)
      : serial_(serial), n_each_(n_each), ranks_(ranks.size()) {
    for (size_t r = 0; r < ranks.size(); ++r)
      add(ranks[r], r);
    if (ranks.size() > 1) join(ranks);
    const size_t n_lanes = ranks_.size() * kQueues;
    queues_.resize(n_lanes);
    next_.resize(n_lanes);
    n_seen_.resize(n_lanes);
    blockers_.resize(n_lanes);
    running_.resize(n_lanes);
    ended_.assign(kSteps, std::vector<double>(entries_.size(), 0));
    for (int step = 0; step < kSteps; ++step)
      for (size_t i = 0; i < entries_.size(); ++i)
        if (has_work(i)) {
          queues_[lane_of(i)].push_back({step, i});
          ended_[static_cast<size_t>(step)][i] = kNever;
        }
    began_ = ended_;
    for (size_t lane = 0; lane < n_lanes; ++lane)
      if (!queues_[lane].empty()) used_.push_back(lane);
    for (size_t r = 0; r < ranks.size(); ++r) {
      const bool is_as_before = r > 0 && &ranks[r].cost == &ranks[r - 1].cost;
      if (!is_as_before) speeds_.push_back(speeds_of(ranks[r], serial));
      ranks_[r].speeds = speeds_.size() - 1;
    }
  }

  void run() {
    while (start_ready() || n_running_ > 0)
      advance();
    for (size_t lane = 0; lane < queues_.size(); ++lane)
      FERRY_CHECK(next_[lane] == queues_[lane].size(), "the simulation stands still");
  }
  /** By index into the first rank's list. */
  double ended(int step, size_t i) const { return ended_[static_cast<size_t>(step)][i]; }
  double began(int step, size_t i) const { return began_[static_cast<size_t>(step)][i]; }
  size_t decide() const { return ranks_.front().decide; }
  double seconds(size_t i) const { return entries_[i].seconds; }
  /** The seconds of a step that each of these ranks' queues work. */
  std::vector<RankBusy> busy_of(const std::vector<RankSteps>& ranks, int step) const {
    std::vector<RankBusy> all;
    for (const RankSteps& its : ranks)
      all.push_back({.rank = its.shape.ranks.rank});
    for (size_t i = 0; i < entries_.size(); ++i)
      all[entries_[i].rank].busy_s[entries_[i].action->queue] += ended(step, i) - began(step, i);
    return all;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Item {
    int step;
    size_t entry;
  };
  struct Running {
    Item item{};
    double left_s = 0;  ///< seconds of work, at full speed
    bool is_running = false;
  };
  /** An action of a rank's list. */
  struct Entry {
    const Action* action = nullptr;
    size_t rank = 0;
    double seconds = 0;
    CostModel::Submission submission;
    bool has_fewer_graphs = false;  ///< a smaller share than the action before
    std::vector<size_t> after;      ///< entries of other ranks
    /** The same exchange on the other ranks of the stage: all of them begin at once. */
    std::vector<size_t> beside;
  };
  /** By what runs (1: h2d, 2: d2h, 4: host, 8: nvme_read, 16: nvme_write, 32: collective), then by
   * queue. */
  using Speeds = std::array<std::array<double, kQueues>, 64>;
  struct Rank {
    size_t first = 0;               ///< entry, from which the rank's list counts
    size_t decide = 0, commit = 0;  ///< entries
    std::vector<int> update_of;     ///< by block: the entry that ends its update; -1: none
    double submitted_s = 0;         ///< when what was started on the GPU had been launched
    /** The items that were started on the GPU, each with its number of launches. */
    std::vector<std::pair<Item, double>> launched;
    size_t n_done = 0;  ///< the ones that ended long enough ago to hold nobody up
    size_t speeds = 0;  ///< index into speeds_
    double n_launched() const { return launched.empty() ? 0 : launched.back().second; }
    void not_before(double time_s) { submitted_s = std::max(submitted_s, time_s); }
  };

  static Speeds speeds_of(const RankSteps& its, bool serial) {
    const bool has_ring = needs_ring(its.layout, its.shape.pinned_bytes_max);
    Speeds speeds{};
    for (size_t beside = 0; beside < speeds.size(); ++beside)
      for (size_t q = 0; q < kQueues; ++q)
        speeds[beside][q] =
            serial ? 1
                   : its.cost.speed(static_cast<QueueId>(q), {.h2d = (beside & 1) > 0,
                                                              .d2h = (beside & 2) > 0,
                                                              .host = (beside & 4) > 0,
                                                              .nvme_read = (beside & 8) > 0,
                                                              .nvme_write = (beside & 16) > 0,
                                                              .ring = has_ring,
                                                              .exchange = (beside & 32) > 0});
    return speeds;
  }

  void add(const RankSteps& its, size_t r) {
    const CostModel& cost = its.cost;
    const StepList& list = its.list;
    const std::vector<double> replayed = replayed_shares(cost, list, its.shape.order, n_each_);
    const int64_t end_of_pinned = pinned_end(its.layout, its.shape.pinned_bytes_max);
    Rank& rank = ranks_[r];
    const size_t first = rank.first = entries_.size();
    double last_share = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      Entry& entry = entries_.emplace_back();
      entry.action = &list[i];
      entry.rank = r;
      const double times = list[i].micro >= 0 ? n_each_ : 1;
      entry.seconds =
          cost.seconds(list[i], replayed[i], ring_bytes_of(its.layout, list[i], end_of_pinned),
                       its.shape.ranks.rank) *
          times;
      // The number of launches stays that of one micro-batch, however many are simulated as one. A
      // stream holds about as many launches as a micro-batch has, and a pass with few of them is
      // made up for by another pass of the same micro-batch.
      const CostModel::Submission submission = cost.submission(list[i], replayed[i]);
      entry.submission = {submission.seconds * times, submission.n_launches};
      if (cost.may_be_replayed(list[i])) {
        entry.has_fewer_graphs = replayed[i] < last_share;
        last_share = replayed[i];
      }
      if (list[i].verb == Verb::decide) rank.decide = first + i;
      if (list[i].verb == Verb::commit) rank.commit = first + i;
      if (list[i].verb != Verb::update && list[i].verb != Verb::send_weights) continue;
      const auto block = static_cast<size_t>(list[i].block);
      rank.update_of.resize(std::max(rank.update_of.size(), block + 1), -1);
      rank.update_of[block] = static_cast<int>(first + i);
    }
  }
  void join(const std::vector<RankSteps>& ranks) {
    std::map<int, std::vector<size_t>> replicas, stages;  // each with the ranks that are simulated
    for (size_t r = 0; r < ranks.size(); ++r) {
      const Ranks& its = ranks[r].shape.ranks;
      replicas[its.replica()].push_back(r);
      stages[its.stage()].push_back(r);
    }
    for (const auto& [replica, members] : replicas)
      join_values(members);
    for (const auto& [stage, members] : stages)
      join_exchanges(members);
    join_decisions();
    // Shares say how fast the GPUs are if the profile does not.
    const bool are_known = std::ranges::any_of(
        ranks, [&](const RankSteps& its) { return &its.cost != &ranks.front().cost; });
    if (are_known) return;
    for (Entry& entry : entries_)
      if (is_pass(entry.action->verb))
        entry.seconds *= times_as_long(ranks[entry.rank].shape.ranks);
  }
  /** The nth action of such a kind of each of these ranks, by n. Each rank has as many of them, in
   * the same order. */
  std::vector<std::vector<size_t>> in_step(const std::vector<size_t>& members, const auto& is_one) {
    std::vector<std::vector<size_t>> all;
    for (const size_t r : members) {
      size_t n = 0;
      const size_t end = r + 1 < ranks_.size() ? ranks_[r + 1].first : entries_.size();
      for (size_t i = ranks_[r].first; i < end; ++i) {
        if (!is_one(entries_[i].action->verb)) continue;
        if (n == all.size()) all.emplace_back();
        all[n++].push_back(i);
      }
    }
    for (const std::vector<size_t>& one : all)
      FERRY_CHECK(one.size() == members.size(), "{} of {} ranks have an action that all of them do",
                  one.size(), members.size());
    return all;
  }
  /** A value takes its time on the rank that gives it. */
  void join_values(const std::vector<size_t>& members) {
    for (const std::vector<size_t>& all :
         in_step(members, [](Verb verb) { return verb == Verb::pass_value; })) {
      const auto gives = [&](size_t i) { return !entries_[i].action->reads.empty(); };
      const size_t giver = *std::ranges::find_if(all, gives);
      for (size_t i : all) {
        if (i == giver) continue;
        entries_[i].seconds = 0;
        if (entries_[i].action->writes.empty()) continue;
        entries_[i].after.push_back(giver);
        for (int before : entries_[i].action->after)  // the value has room there
          entries_[giver].after.push_back(ranks_[entries_[i].rank].first +
                                          static_cast<size_t>(before));
      }
    }
  }
  void join_exchanges(const std::vector<size_t>& members) {
    if (members.size() == 1) return;
    const auto is_exchange = [](Verb verb) {
      return is_between_ranks(verb) && verb != Verb::pass_value;
    };
    for (const std::vector<size_t>& all : in_step(members, is_exchange))
      for (size_t i : all)
        std::ranges::copy_if(all, std::back_inserter(entries_[i].beside),
                             [&](size_t other) { return other != i; });
  }
  /** Decisions wait for all ranks. */
  void join_decisions() {
    for (const Rank& one : ranks_)
      for (const Rank& other : ranks_) {
        for (int before : entries_[other.decide].action->after)
          if (&one != &other)
            entries_[one.decide].after.push_back(other.first + static_cast<size_t>(before));
      }
  }

  /** False of a value that others pass. */
  bool has_work(size_t i) const {
    const Action& action = *entries_[i].action;
    return action.verb != Verb::pass_value || !action.reads.empty() || !action.writes.empty();
  }
  /** A rank's passes beside those of the first one, by their shares. */
  static double times_as_long(const Ranks& ranks) {
    return static_cast<double>(share_of(ranks, 0)) / share_of(ranks, ranks.rank);
  }
  size_t lane_of(size_t i) const {
    const Entry& entry = entries_[i];
    return entry.rank * kQueues + (serial_ ? 0 : static_cast<size_t>(entry.action->queue));
  }
  /** True where the entry has not ended in that step, and it is noted for the lane. */
  bool waits_for(size_t lane, int step, size_t i) {
    if (step < 0) return false;
    const double& ended_s = ended_[static_cast<size_t>(step)][i];
    if (ended_s <= now_) return false;
    blockers_[lane] = &ended_s;
    return true;
  }
  /** n_seen_ of what the lane's next item waits for have been seen to have ended. */
  bool is_ready(size_t lane, const Item& item) {
    if (blockers_[lane] && *blockers_[lane] > now_) return false;
    const Entry& entry = entries_[item.entry];
    const Action& action = *entry.action;
    const Rank& rank = ranks_[entry.rank];
    // The stepping thread waits for the decision before it submits what follows.
    if (item.entry > rank.decide && waits_for(lane, item.step, rank.decide)) return false;
    if (waits_for(lane, item.step - 1, rank.decide)) return false;
    if (action.after_commit && waits_for(lane, item.step - 1, rank.commit)) return false;
    for (size_t& n_seen = n_seen_[lane]; n_seen < action.after.size(); ++n_seen)
      if (waits_for(lane, item.step, rank.first + static_cast<size_t>(action.after[n_seen])))
        return false;
    for (size_t other : entry.after)
      if (waits_for(lane, item.step, other)) return false;
    if (waits_for_updates(lane, item.step - 1, entry)) return false;
    return std::ranges::none_of(
        entry.beside, [&](size_t other) { return waits_to_begin(lane, item.step, other); });
  }
  /** Blocks whose update of that step the entry waits for have not all been updated. */
  bool waits_for_updates(size_t lane, int step, const Entry& entry) {
    const Rank& rank = ranks_[entry.rank];
    for (int block : entry.action->after_update) {
      const auto b = static_cast<size_t>(block);
      if (b < rank.update_of.size() && rank.update_of[b] >= 0 &&
          waits_for(lane, step, static_cast<size_t>(rank.update_of[b])))
        return true;
    }
    return false;
  }
  /** An exchange cannot begin on another rank yet. */
  bool waits_to_begin(size_t lane, int step, size_t i) {
    const Entry& entry = entries_[i];
    const size_t first = ranks_[entry.rank].first;
    for (int before : entry.action->after)
      if (waits_for(lane, step, first + static_cast<size_t>(before))) return true;
    return waits_for_updates(lane, step - 1, entry);
  }
  bool start_ready() {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      for (const size_t lane : used_) {
        if (running_[lane].is_running || next_[lane] == queues_[lane].size()) continue;
        const Item item = queues_[lane][next_[lane]];
        if (!is_ready(lane, item)) continue;
        ++next_[lane];
        n_seen_[lane] = 0;
        blockers_[lane] = nullptr;
        began_[static_cast<size_t>(item.step)][item.entry] = now_;
        running_[lane] = {item, submit(item), true};
        ++n_running_;
        any = again = true;
        if (running_[lane].left_s > 0) continue;
        end(lane);
      }
    }
    return any;
  }
  /** The seconds from now on that the item takes: at least until its last kernel was launched,
   * behind those of the actions before it. Nothing is launched before the decision that the item
   * waits for, nor while too much is pending. Called once for each item, in the queue's order. */
  double submit(const Item& item) {
    const Entry& entry = entries_[item.entry];
    if (serial_ || entry.action->queue != QueueId::compute) return entry.seconds;
    Rank& rank = ranks_[entry.rank];
    const CostModel::Submission& submission = entry.submission;
    const int decided = item.entry > rank.decide ? item.step : item.step - 1;
    if (decided >= 0) rank.not_before(ended_at({decided, rank.decide}));
    hold_back_behind_graphs(entry);
    rank.launched.push_back({item, rank.n_launched() + submission.n_launches});
    for (; rank.launched[rank.n_done].second <= rank.n_launched() - kPendingLaunches; ++rank.n_done)
      rank.not_before(ended_at(rank.launched[rank.n_done].first));
    rank.submitted_s += submission.seconds;
    return std::max(entry.seconds, rank.submitted_s - now_);
  }
  /** Holds back the submitting thread where graphs end: it is ahead by no more launches than a
   * stream takes. For micro-batches that are simulated as one, a launch stands for as many
   * launches as there are micro-batches. */
  void hold_back_behind_graphs(const Entry& entry) {
    const CostModel::Submission& submission = entry.submission;
    if (n_each_ > 1 && entry.has_fewer_graphs)
      ranks_[entry.rank].not_before(now_ - kPendingLaunches * submission.seconds / n_each_ /
                                               submission.n_launches);
  }
  double ended_at(const Item& item) const {
    return ended_[static_cast<size_t>(item.step)][item.entry];
  }
  void end(size_t lane) {
    const Item item = running_[lane].item;
    ended_[static_cast<size_t>(item.step)][item.entry] = now_;
    running_[lane].is_running = false;
    --n_running_;
  }
  /** The speeds of a rank's queues beside each other. */
  const std::array<double, kQueues>& speeds_of(size_t rank) const {
    const auto runs = [&](QueueId queue) {
      return static_cast<size_t>(running_[rank * kQueues + static_cast<size_t>(queue)].is_running);
    };
    return speeds_[ranks_[rank].speeds][runs(QueueId::h2d) + 2 * runs(QueueId::d2h) +
                                        4 * runs(QueueId::host) + 8 * runs(QueueId::nvme_read) +
                                        16 * runs(QueueId::nvme_write) +
                                        32 * runs(QueueId::collective)];
  }
  void advance() {
    if (n_running_ == 0) return;
    speeds_now_.clear();
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      speeds_now_.push_back(&speeds_of(rank));
    const auto speed_of = [&](size_t lane) {
      return (*speeds_now_[lane / kQueues])[lane % kQueues];
    };
    double step_s = kNever;
    for (const size_t lane : used_)
      if (running_[lane].is_running)
        step_s = std::min(step_s, running_[lane].left_s / speed_of(lane));
    FERRY_CHECK(step_s < kNever, "an action of the simulation never ends");
    now_ += step_s;
    for (const size_t lane : used_) {
      if (!running_[lane].is_running) continue;
      running_[lane].left_s -= step_s * speed_of(lane);
      if (running_[lane].left_s <= 1e-12) end(lane);
    }
  }

  bool serial_;
  double n_each_;
  std::vector<Rank> ranks_;
  std::vector<Entry> entries_;  ///< rank by rank
  std::vector<Speeds> speeds_;
  std::vector<size_t> used_;  ///< the lanes that have work
  // By lane, a queue of a rank.
  std::vector<std::vector<Item>> queues_;
  std::vector<size_t> next_, n_seen_;
  std::vector<const double*> blockers_;  ///< the end that the next item was last seen to wait for
  std::vector<Running> running_;
  int n_running_ = 0;
  std::vector<const std::array<double, kQueues>*> speeds_now_;  ///< by rank; kept for its memory
  std::vector<std::vector<double>> began_, ended_;              ///< by step, entry
  double now_ = 0;
};

/** Simulates these ranks, and reports the first. */
Simulation simulate_ranks(const std::vector<RankSteps>& ranks,
                          bool serial,
                          bool keeps_actions,
                          double n_each) {
  const CostModel& cost = ranks.front().cost;
  const StepShape& shape = ranks.front().shape;
  const StepList& list = ranks.front().list;
  Simulator simulator(ranks, n_each, serial);
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
  out.ranks = simulator.busy_of(ranks, kSteps - 2);
  // The steps that were simulated may not follow each other at their pace yet.
  if (ranks.size() > 1) out.step_s = std::max(out.step_s, out.busiest_s());
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

}  // namespace

QueueId Simulation::binding() const {
  return static_cast<QueueId>(std::ranges::max_element(busy_s) - busy_s.begin());
}

double Simulation::busiest_s() const {
  double most_s = 0;
  for (const RankBusy& its : ranks)
    most_s = std::max(most_s, std::ranges::max(its.busy_s));
  return most_s;
}

namespace {

/** One of the replicas on each choice of GPUs and shares: one stands for all where these are alike.
 */
std::vector<int> unlike_replicas(const RankCosts& costs, const Ranks& ranks) {
  std::vector<int> replicas;
  std::set<std::vector<int>> seen;
  for (int replica = 0; replica < ranks.n_replicas(); ++replica) {
    std::vector<int> its;
    for (int stage = 0; stage < ranks.n_stages; ++stage) {
      const int rank = ranks.rank_at(stage, replica);
      its.insert(its.end(), {costs.kind_of(rank), share_of(ranks, rank)});
    }
    if (seen.insert(its).second) replicas.push_back(replica);
  }
  return replicas;
}

}  // namespace

Simulation simulate_steps(const RankCosts& costs,
                          const StepShape& shape,
                          int n_micro,
                          UpdateOrder order,
                          bool serial,
                          bool keeps_actions,
                          double n_each) {
  std::vector<StepShape> shapes;
  for (const int replica : unlike_replicas(costs, shape.ranks))
    for (int stage = 0; stage < shape.ranks.n_stages; ++stage) {
      shapes.push_back(shape);
      if (shape.has_peers()) shapes.back().ranks.rank = shape.ranks.rank_at(stage, replica);
    }
  std::vector<Layout> layouts;
  std::vector<StepList> lists;
  for (const StepShape& its : shapes) {
    layouts.push_back(make_layout(its));
    lists.push_back(make_training_list(its, layouts.back(), n_micro, order));
  }
  std::vector<RankSteps> ranks;
  for (size_t r = 0; r < shapes.size(); ++r)
    ranks.push_back({costs.of(shapes[r].ranks.rank), shapes[r], layouts[r], lists[r]});
  return simulate_ranks(ranks, serial, keeps_actions, n_each);
}

Simulation simulate_list(const CostModel& cost,
                         const StepShape& shape,
                         const Layout& layout,
                         const StepList& list,
                         bool serial,
                         bool keeps_actions,
                         double n_each) {
  return simulate_ranks({{cost, shape, layout, list}}, serial, keeps_actions, n_each);
}

}  // namespace ferry
