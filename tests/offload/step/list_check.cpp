#include "tests/offload/step/list_check.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>

#include "tests/offload/step/list_program.h"

namespace ferry::test {
namespace {

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
  const auto [nodes, complaints] = make_program(shape, runs);
  const std::vector<Clock> clocks = clocks_of(nodes);
  auto happens_before = [&](int a, int b) {
    const Node& first = nodes[static_cast<size_t>(a)];
    return clocks[static_cast<size_t>(b)][static_cast<size_t>(first.queue)] > first.place_in_queue;
  };
  // Each region in pieces that every touch has whole or not at all.
  std::map<RegionId, std::set<int64_t>> cuts;
  for (const Node& node : nodes)
    for (const Touch& touch : node.touches)
      cuts[touch.region].insert({touch.begin, touch.end});
  struct History {
    int writer = -1;
    std::vector<int> readers;
  };
  std::map<std::pair<RegionId, int64_t>, History> pieces;
  std::vector<std::string> hazards = complaints;
  auto name = [&](int i) { return nodes[static_cast<size_t>(i)].name; };
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
    for (const Touch& touch : nodes[static_cast<size_t>(i)].touches) {
      const std::set<int64_t>& all = cuts[touch.region];
      for (auto at = all.find(touch.begin); *at < touch.end; ++at) {
        History& h = pieces[{touch.region, *at}];
        if (h.writer >= 0 && h.writer != i && !happens_before(h.writer, i))
          hazards.push_back(name(i) + " may come before the write of " + name(h.writer));
        if (!touch.writes) {
          h.readers.push_back(i);
          continue;
        }
        for (int reader : h.readers)
          if (reader != i && !happens_before(reader, i))
            hazards.push_back(name(i) + " may overwrite what " + name(reader) + " reads");
        h = {i, {}};
      }
    }
  return hazards;
}

bool can_go_wrong(const StepShape& shape, const std::vector<ListRun>& runs, size_t* n_states) {
  const std::vector<Node> nodes = make_program(shape, runs).nodes;
  std::array<std::vector<int>, kAllQueues> queues;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
    queues[static_cast<size_t>(nodes[static_cast<size_t>(i)].queue)].push_back(i);
  // If two nodes touch one region and one writes, the first in list order must be done first.
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i)
    for (int j = i + 1; j < static_cast<int>(nodes.size()); ++j) {
      bool conflict = false;
      for (const Touch& a : nodes[static_cast<size_t>(i)].touches)
        for (const Touch& b : nodes[static_cast<size_t>(j)].touches)
          conflict |= a.overlaps(b) && (a.writes || b.writes);
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
