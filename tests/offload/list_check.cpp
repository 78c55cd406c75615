#include "tests/offload/list_check.h"

#include <array>
#include <compare>
#include <deque>
#include <map>
#include <set>

namespace ferry::test {
namespace {

constexpr int kMain = kQueues;  ///< the main thread, as a queue of its own
constexpr int kAllQueues = kQueues + 1;

enum class Kind {
  weights,  ///< of a block, where it lives
  states,
  grads,           ///< of a block's own tensors
  grads_borrowed,  ///< of its uses of others' tensors
  weight_slot,
  grad_slot,
  grad_temp,
  staging,
  saved,
  saved_recomputed,
  saved_slot,
  saved_on_host,
  boundary,
  grad_boundary,
  batch,
  batch_on_host,
  sum_on_gpu,
  sums_sent,
  square_sum_on_host,
  decision,
};

struct Region {
  Kind kind;
  int a = 0;
  int b = 0;
  auto operator<=>(const Region&) const = default;
};

/** What a region holds: which block's, of which micro-batch and step, after how many additions. */
struct Content {
  int block = -1;
  int micro = -1;
  int step = -1;
  int added = 0;
  auto operator<=>(const Content&) const = default;
};

struct Touch {
  Region region;
  bool writes;
  Content content;  ///< written, or expected
};

struct Node {
  std::string name;
  int queue = 0;
  int place_in_queue = 0;
  std::vector<int> after;
  std::vector<Touch> touches;
};

/** The touches of a run of lists, with contents. */
class Program {
 public:
  Program(const StepShape& shape, const std::vector<ListRun>& runs) : shape_(shape) {
    for (const ListRun& run : runs)
      add(run);
  }
  std::vector<Node> nodes;

 private:
  void add(const ListRun& run) {
    n_micro_ = run.n_micro;
    training_ = run.training;
    Node load{.name = "load", .queue = kMain, .after = {}, .touches = {}};
    for (int m = 0; m < run.n_micro; ++m)
      load.touches.push_back({{Kind::batch_on_host, m}, true, {0, m, step_}});
    push(std::move(load));
    const int base = static_cast<int>(nodes.size());
    std::vector<int> node_of;  // of each action
    for (const Action& action : *run.list) {
      Node node{.name = describe(action, shape_) + " of step " + std::to_string(step_),
                .queue = static_cast<int>(action.queue),
                .after = {last_main_},
                .touches = touches_of(action)};
      for (int before : action.after)
        node.after.push_back(node_of[static_cast<size_t>(before)]);
      for (int b : action.after_update)
        if (auto at = updates_.find(b); at != updates_.end()) node.after.push_back(at->second);
      const int index = push(std::move(node));
      node_of.push_back(index);
      if (action.verb == Verb::update_gpu || action.verb == Verb::update_host)
        updates_[action.block] = index;
      const bool waits = run.training ? action.verb == Verb::decide : &action == &run.list->back();
      if (waits) push({.name = "wait", .queue = kMain, .after = {index}, .touches = {}});
    }
    (void)base;
    ++step_;
    if (run.training) ++version_;
  }

  int push(Node node) {
    node.place_in_queue = n_in_queue_[static_cast<size_t>(node.queue)]++;
    std::erase(node.after, -1);
    const int index = static_cast<int>(nodes.size());
    if (node.queue == kMain) last_main_ = index;
    nodes.push_back(std::move(node));
    return index;
  }

  const BlockShape& block(int b) const { return shape_.blocks[static_cast<size_t>(b)]; }
  int lane(int micro) const { return shape_.order == AccumulationOrder::vertical ? micro : 0; }
  bool sums() const { return shape_.n_micro_max > 1; }

  /** A block's own gradients once every micro-batch and every borrower before `user` is in. */
  Content final_grads(int b, int user) const {
    Content c{b, n_micro_ - 1, step_, 0};
    for (int u = 0; u < user; ++u)
      for (const BorrowedExtent& borrowed : block(u).borrowed)
        if (borrowed.block == b) ++c.added;
    return c;
  }

  std::vector<Touch> touches_of(const Action& a) const {
    std::vector<Touch> t;
    const int b = a.block, m = a.micro;
    auto reads = [&](Region r, Content c) { t.push_back({r, false, c}); };
    auto writes = [&](Region r, Content c) { t.push_back({r, true, c}); };
    const Content now{b, m, step_, 0}, weights{b, -1, version_, 0};
    auto read_weights = [&] {
      if (a.slot >= 0) return reads({Kind::weight_slot, a.slot}, weights);
      reads({Kind::weights, b}, weights);
      for (const BorrowedExtent& borrowed : block(b).borrowed)
        reads({Kind::weights, borrowed.block}, {borrowed.block, -1, version_, 0});
    };
    auto saved = [&]() -> Region {
      if (a.saved_slot >= 0) return {Kind::saved_slot, a.saved_slot};
      if (!training_) return {Kind::saved_recomputed};  // wherever there is room: nobody reads it
      if (block(b).saved_bytes > 0 && block(b).activations == Activations::recompute)
        return {Kind::saved_recomputed};
      return {Kind::saved, b, lane(m)};
    };
    auto grads = [&]() -> Region {
      if (a.grad_slot >= 0) return {Kind::grad_slot, a.grad_slot};
      return {Kind::grads, b};
    };
    // What ends as the block's gradients: own tensors and borrowed uses together.
    auto write_grads = [&](Content c) {
      writes(grads(), c);
      if (a.grad_slot < 0 && !block(b).borrowed.empty()) writes({Kind::grads_borrowed, b}, c);
    };
    auto write_host_grads = [&](Content c) {
      writes({Kind::grads, b}, c);
      if (!block(b).borrowed.empty()) writes({Kind::grads_borrowed, b}, c);
    };
    switch (a.verb) {
      case Verb::fetch_batch:
        reads({Kind::batch_on_host, m}, {0, m, step_});
        writes({Kind::batch, m}, {0, m, step_});
        break;
      case Verb::fetch_weights:
        reads({Kind::weights, b}, weights);
        for (const BorrowedExtent& borrowed : block(b).borrowed)
          reads({Kind::weights, borrowed.block}, {borrowed.block, -1, version_, 0});
        writes({Kind::weight_slot, a.slot}, weights);
        break;
      case Verb::forward:
      case Verb::recompute:
        read_weights();
        reads({Kind::batch, m}, {0, m, step_});
        if (b > 0) reads({Kind::boundary, b - 1, lane(m)}, {b - 1, m, step_});
        if (block(b).saved_bytes > 0) writes(saved(), now);
        if (b < shape_.n_blocks() - 1)
          writes({Kind::boundary, b, lane(m)}, now);
        else
          writes({Kind::sum_on_gpu, shape_.n_blocks() + m}, now);
        if (a.releases_slot) writes({Kind::weight_slot, a.slot}, {});  // poison
        break;
      case Verb::backward: {
        read_weights();
        reads({Kind::batch, m}, {0, m, step_});
        if (b > 0) reads({Kind::boundary, b - 1, lane(m)}, {b - 1, m, step_});
        if (block(b).saved_bytes > 0) reads(saved(), now);
        if (b < shape_.n_blocks() - 1) reads({Kind::grad_boundary, b % 2, lane(m)}, {b, m, step_});
        if (b > 0) writes({Kind::grad_boundary, (b - 1) % 2, lane(m)}, {b - 1, m, step_});
        const bool sums_here =
            (sums() || (shape_.tied(b) && shape_.compute != DType::f32)) &&
            (block(b).place == Place::gpu || shape_.order == AccumulationOrder::vertical);
        if (sums_here) {
          writes({Kind::grad_temp}, now);
          reads({Kind::grad_temp}, now);
          if (m > 0) reads(grads(), {b, m - 1, step_, 0});
        }
        write_grads(now);
        if (a.saved_slot >= 0) writes({Kind::saved_slot, a.saved_slot}, {});
        if (a.releases_slot) writes({Kind::weight_slot, a.slot}, {});
        break;
      }
      case Verb::send_saved:
        reads({Kind::saved_slot, a.saved_slot}, now);
        writes({Kind::saved_on_host, b, lane(m)}, now);
        writes({Kind::saved_slot, a.saved_slot}, {});
        break;
      case Verb::fetch_saved:
        reads({Kind::saved_on_host, b, lane(m)}, now);
        writes({Kind::saved_slot, a.saved_slot}, now);
        break;
      case Verb::square_sum_gpu:
        reads(grads(), final_grads(b, shape_.n_blocks()));
        writes({Kind::sum_on_gpu, b}, {b, -1, step_, 0});
        break;
      case Verb::square_sum_host:
        reads({Kind::grads, b}, final_grads(b, shape_.n_blocks()));
        writes({Kind::square_sum_on_host, b}, {b, -1, step_, 0});
        break;
      case Verb::send_grads: {
        reads({Kind::grad_slot, a.grad_slot}, now);
        const bool staged = shape_.order == AccumulationOrder::horizontal &&
                            (sums() || (shape_.tied(b) && shape_.compute != DType::f32));
        if (staged)
          writes({Kind::staging, a.grad_slot}, now);
        else
          write_host_grads(now);
        writes({Kind::grad_slot, a.grad_slot}, {});
        break;
      }
      case Verb::accumulate:
        reads({Kind::staging, a.grad_slot}, now);
        if (m > 0) reads({Kind::grads, b}, {b, m - 1, step_, 0});
        write_host_grads(now);
        writes({Kind::staging, a.grad_slot}, {});
        break;
      case Verb::combine:
        reads({Kind::grads_borrowed, b}, {b, n_micro_ - 1, step_, 0});
        for (const BorrowedExtent& borrowed : block(b).borrowed) {
          Content before = final_grads(borrowed.block, b);
          for (const BorrowedExtent& earlier : block(b).borrowed) {
            if (&earlier == &borrowed) break;
            if (earlier.block == borrowed.block) ++before.added;
          }
          reads({Kind::grads, borrowed.block}, before);
          ++before.added;
          writes({Kind::grads, borrowed.block}, before);
        }
        break;
      case Verb::send_step_sums:
        for (int micro = 0; micro < n_micro_; ++micro)
          reads({Kind::sum_on_gpu, shape_.n_blocks() + micro},
                {shape_.n_blocks() - 1, micro, step_, 0});
        if (training_)
          for (int s = 0; s < shape_.n_blocks(); ++s)
            if (sum_from_gpu(s)) reads({Kind::sum_on_gpu, s}, {s, -1, step_, 0});
        writes({Kind::sums_sent}, {0, 0, step_, 0});
        break;
      case Verb::decide:
        reads({Kind::sums_sent}, {0, 0, step_, 0});
        for (int s = 0; s < shape_.n_blocks(); ++s)
          if (!sum_from_gpu(s)) reads({Kind::square_sum_on_host, s}, {s, -1, step_, 0});
        writes({Kind::decision}, {0, 0, step_, 0});
        break;
      case Verb::update_gpu:
      case Verb::update_host:
        reads({Kind::decision}, {0, 0, step_, 0});
        reads({Kind::grads, b}, final_grads(b, shape_.n_blocks()));
        reads({Kind::states, b}, weights);
        writes({Kind::states, b}, {b, -1, version_ + 1, 0});
        writes({Kind::weights, b}, {b, -1, version_ + 1, 0});
        break;
    }
    return t;
  }

  /** The square sum of this block's gradients is taken on the GPU: they pass through it complete.
   */
  bool sum_from_gpu(int b) const {
    if (block(b).place == Place::gpu) return true;
    return !shape_.tied(b) &&
           (shape_.order == AccumulationOrder::vertical || shape_.n_micro_max == 1);
  }

  const StepShape& shape_;
  std::map<int, int> updates_;  ///< by block: node of its last update
  std::array<int, kAllQueues> n_in_queue_{};
  int last_main_ = -1;
  int step_ = 0;
  int version_ = 0;  ///< of the weights
  int n_micro_ = 1;
  bool training_ = true;
};

/** For each node, how many of each queue's nodes are known to have happened once it has. */
using Clock = std::array<int, kAllQueues>;

std::vector<Clock> clocks_of(const std::vector<Node>& nodes) {
  std::vector<Clock> clocks(nodes.size());
  std::array<int, kAllQueues> last;
  last.fill(-1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    Clock& clock = clocks[i];
    clock.fill(0);
    auto join = [&](int before) {
      for (size_t q = 0; q < kAllQueues; ++q)
        clock[q] = std::max(clock[q], clocks[static_cast<size_t>(before)][q]);
    };
    int& previous = last[static_cast<size_t>(node.queue)];
    if (previous >= 0) join(previous);
    for (int before : node.after)
      join(before);
    clock[static_cast<size_t>(node.queue)] = node.place_in_queue + 1;
    previous = static_cast<int>(i);
  }
  return clocks;
}

}  // namespace

std::vector<std::string> find_hazards(const StepShape& shape, const std::vector<ListRun>& runs) {
  const Program program(shape, runs);
  const std::vector<Node>& nodes = program.nodes;
  const std::vector<Clock> clocks = clocks_of(nodes);
  auto happens_before = [&](int a, int b) {
    const Node& first = nodes[static_cast<size_t>(a)];
    return clocks[static_cast<size_t>(b)][static_cast<size_t>(first.queue)] > first.place_in_queue;
  };
  struct History {
    int writer = -1;
    std::vector<int> readers;
    Content content;
  };
  std::map<Region, History> regions;
  std::vector<std::string> hazards;
  auto name = [&](int i) { return nodes[static_cast<size_t>(i)].name; };
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
    for (const Touch& touch : nodes[static_cast<size_t>(i)].touches) {
      History& h = regions[touch.region];
      if (h.writer >= 0 && h.writer != i && !happens_before(h.writer, i))
        hazards.push_back(name(i) + " may come before the write of " + name(h.writer));
      if (!touch.writes) {
        // What nobody has written yet is as the run began.
        const bool from_start =
            touch.region.kind == Kind::weights || touch.region.kind == Kind::states;
        if ((h.writer >= 0 || !from_start) && h.content != touch.content)
          hazards.push_back(name(i) + " reads what is not meant for it" +
                            (h.writer >= 0 ? ", by " + name(h.writer) : ""));
        h.readers.push_back(i);
        continue;
      }
      for (int reader : h.readers)
        if (reader != i && !happens_before(reader, i))
          hazards.push_back(name(i) + " may overwrite what " + name(reader) + " reads");
      h = {i, {}, touch.content};
    }
  return hazards;
}

bool can_go_wrong(const StepShape& shape, const std::vector<ListRun>& runs, size_t* n_states) {
  const Program program(shape, runs);
  const std::vector<Node>& nodes = program.nodes;
  std::array<std::vector<int>, kAllQueues> queues;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
    queues[static_cast<size_t>(nodes[static_cast<size_t>(i)].queue)].push_back(i);
  // Of two that touch one region, one writing, the first in list order must be done first.
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
    for (int j = i + 1; j < static_cast<int>(nodes.size()); ++j) {
      bool conflict = false;
      for (const Touch& a : nodes[static_cast<size_t>(i)].touches)
        for (const Touch& b : nodes[static_cast<size_t>(j)].touches)
          conflict |= a.region == b.region && (a.writes || b.writes);
      if (conflict && nodes[static_cast<size_t>(i)].queue != nodes[static_cast<size_t>(j)].queue)
        pairs.push_back({i, j});
    }
  using State = std::array<int, kAllQueues>;  // nodes done, by queue
  auto done = [&](const State& s, int i) {
    const Node& node = nodes[static_cast<size_t>(i)];
    return s[static_cast<size_t>(node.queue)] > node.place_in_queue;
  };
  std::set<State> seen{State{}};
  std::deque<State> open{State{}};
  bool wrong = false;
  while (!open.empty() && !wrong) {
    const State state = open.front();
    open.pop_front();
    for (const auto& [first, second] : pairs)
      wrong |= done(state, second) && !done(state, first);
    for (size_t q = 0; q < kAllQueues; ++q) {
      if (state[q] == static_cast<int>(queues[q].size())) continue;
      const Node& head = nodes[static_cast<size_t>(queues[q][static_cast<size_t>(state[q])])];
      bool ready = true;
      for (int before : head.after)
        ready &= done(state, before);
      if (!ready) continue;
      State next = state;
      ++next[q];
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  if (n_states) *n_states = seen.size();
  return wrong;
}

}  // namespace ferry::test
