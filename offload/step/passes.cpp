#include "offload/step/passes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace ferry {
namespace {

template <class IsUsed>
std::vector<UsedPort> ports_of(const StepShape& shape, const BlockPass& pass, IsUsed is_used) {
  const std::vector<Port>& ports = shape.blocks[pass.block].ports;
  std::vector<UsedPort> used;
  for (size_t p = 0; p < ports.size(); ++p)
    if (is_used(ports[p].of(pass.backward))) used.push_back({static_cast<int>(p), ports[p].value});
  return used;
}

/** Of time, of a forward where the share is 1. */
constexpr int64_t kUnit = 1'000'000;

/** The order in which the ranks begin the passes, if all passes of a rank take as long, and less on
 * a rank with a larger share. A rank has all micro-batches of a block before the next of its
 * blocks. Passes and the values between ranks follow this order on every rank, so that no rank
 * waits for another one in a circle. */
std::vector<BlockPass> passes_in_turn(const StepShape& shape, int n_micro, bool trains) {
  struct Begun {
    int64_t at = 0;
    BlockPass pass;
  };
  std::vector<Begun> all;
  std::vector<int64_t> rank_until(static_cast<size_t>(shape.ranks.world), 0);
  std::vector<int64_t> micro_until(static_cast<size_t>(n_micro), 0);
  const auto add = [&](bool backward, int b) {
    const int64_t pass_time = kUnit / share_of(shape.ranks, shape.blocks[b].rank);
    for (int micro = 0; micro < n_micro; ++micro) {
      int64_t& rank = rank_until[static_cast<size_t>(shape.blocks[b].rank)];
      int64_t& before = micro_until[static_cast<size_t>(micro)];
      const int64_t at = std::max(rank, before);
      all.push_back({at, {backward, b, micro, micro, shape.runs(b)}});
      rank = before = at + pass_time;
    }
  };
  for (int b = 0; b < shape.n_blocks(); ++b)
    add(false, b);
  for (int b : trains ? shape.backward_order() : std::vector<int>())
    add(true, b);
  std::ranges::stable_sort(all, {}, &Begun::at);
  std::vector<BlockPass> passes;
  for (const Begun& begun : all)
    passes.push_back(begun.pass);
  return passes;
}

/** The passes of a pipeline in the order in which the ranks begin them, if a backward takes as long
 * as two forwards. A rank that is free takes a backward before a forward, and an earlier
 * micro-batch before a later one: one forward and one backward by turns (1F1B: PipeDream, Narayanan
 * et al. 2019). A micro-batch begins when the one that used its memory has ended. */
class Pipeline {
 public:
  Pipeline(const StepShape& shape, int n_micro, bool trains)
      : shape_(shape),
        rank_until_(static_cast<size_t>(shape.ranks.world), 0),
        micros_(static_cast<size_t>(n_micro)) {
    for (int b = 0; b < shape.n_blocks(); ++b)
      chain_.push_back({.backward = false, .block = b});
    for (int b : trains ? shape.backward_order() : std::vector<int>())
      chain_.push_back({.backward = true, .block = b});
  }

  std::vector<BlockPass> passes() {
    std::vector<BlockPass> passes;
    while (const std::optional<int> micro = first_to_begin()) {
      Micro& its = micros_[static_cast<size_t>(*micro)];
      BlockPass pass = chain_[its.n_done++];
      pass.micro = pass.round = *micro;
      pass.runs = shape_.runs(pass.block);
      const int rank = rank_of(pass);
      const int64_t time = kUnit / share_of(shape_.ranks, rank) * (pass.backward ? 2 : 1);
      its.ready_at = until(rank) = std::max(until(rank), its.ready_at) + time;
      passes.push_back(pass);
    }
    return passes;
  }

 private:
  struct Micro {
    size_t n_done = 0;     ///< passes
    int64_t ready_at = 0;  ///< when the last of them ends
  };

  int rank_of(const BlockPass& pass) const { return shape_.blocks[pass.block].rank; }
  int64_t& until(int rank) { return rank_until_[static_cast<size_t>(rank)]; }

  /** The micro-batch whose next pass begins before all others; none: all have ended. */
  std::optional<int> first_to_begin() {
    std::optional<int> first;
    std::tuple<int64_t, int, bool, int> first_key;
    while (n_ended_ < std::ssize(micros_) && has_ended(n_ended_))
      ++n_ended_;
    const int end = std::min(static_cast<int>(micros_.size()), n_ended_ + shape_.n_live());
    for (int micro = n_ended_; micro < end; ++micro) {
      if (has_ended(micro)) continue;
      Micro& its = micros_[static_cast<size_t>(micro)];
      if (its.n_done == 0 && micro >= shape_.n_live())
        its.ready_at = micros_[static_cast<size_t>(micro - shape_.n_live())].ready_at;
      const BlockPass& next = chain_[its.n_done];
      const int rank = rank_of(next);
      const std::tuple key(std::max(until(rank), its.ready_at), rank, !next.backward, micro);
      if (first && first_key < key) continue;
      first = micro;
      first_key = key;
    }
    return first;
  }
  bool has_ended(int micro) const {
    return micros_[static_cast<size_t>(micro)].n_done == chain_.size();
  }

  const StepShape& shape_;
  std::vector<BlockPass> chain_;  ///< of each micro-batch
  std::vector<int64_t> rank_until_;
  std::vector<Micro> micros_;
  int n_ended_ = 0;  ///< micro-batches; all before them have
};

}  // namespace

std::vector<UsedPort> ports_read(const StepShape& shape, const BlockPass& pass) {
  return ports_of(shape, pass, [](PortUse use) { return reads(use); });
}

std::vector<UsedPort> ports_written(const StepShape& shape, const BlockPass& pass) {
  return ports_of(shape, pass, [](PortUse use) { return writes(use); });
}

std::vector<BlockPass> passes_of(const StepShape& shape,
                                 const Rounds& rounds,
                                 int rank,
                                 bool trains) {
  if (shape.deals_blocks())
    return shape.order == AccumulationOrder::vertical
               ? passes_in_turn(shape, rounds.n(), trains)
               : Pipeline(shape, rounds.n(), trains).passes();
  std::vector<BlockPass> passes;
  std::vector<int> n_before(static_cast<size_t>(rounds.n()) + 1, 0);  // by round
  for (int round = 0; round < rounds.n(); ++round)
    n_before[static_cast<size_t>(round) + 1] =
        n_before[static_cast<size_t>(round)] + rounds.has(rank, round);
  const auto add = [&](bool backward, int b, int round) {
    passes.push_back(
        {backward, b, n_before[static_cast<size_t>(round)], round, rounds.has(rank, round)});
  };
  const std::vector<int> backward_order = shape.backward_order();
  auto each_block = [&](bool backward, auto&& each) {
    if (backward)
      for (int b : backward_order)
        each(b);
    else
      for (int b = 0; b < shape.n_blocks(); ++b)
        each(b);
  };
  if (shape.order == AccumulationOrder::vertical) {
    each_block(false, [&](int b) {
      for (int round = 0; round < rounds.n(); ++round)
        add(false, b, round);
    });
    if (trains)
      each_block(true, [&](int b) {
        for (int round = 0; round < rounds.n(); ++round)
          add(true, b, round);
      });
  } else {
    for (int round = 0; round < rounds.n(); ++round) {
      each_block(false, [&](int b) { add(false, b, round); });
      if (trains) each_block(true, [&](int b) { add(true, b, round); });
    }
  }
  return passes;
}

std::vector<std::vector<PassedValue>> values_passed(const StepShape& shape,
                                                    std::span<const BlockPass> passes) {
  std::vector<std::vector<PassedValue>> passed(passes.size());
  if (!shape.deals_blocks()) return passed;
  /** The last pass that wrote a value of a micro-batch, and the ranks that have it as it is. */
  struct Written {
    size_t pass = 0;
    std::vector<int> ranks;
  };
  std::map<std::pair<int, int>, Written> written;
  for (size_t t = 0; t < passes.size(); ++t) {
    const BlockPass& pass = passes[t];
    const int rank = shape.blocks[pass.block].rank;
    for (const auto& [port, value] : ports_read(shape, pass)) {
      const auto found = written.find({value, pass.micro});
      if (found == written.end()) continue;
      auto& [at, ranks] = found->second;
      if (std::ranges::find(ranks, rank) != ranks.end()) continue;
      passed[at].push_back({.value = value, .from = ranks.front(), .to = rank});
      ranks.push_back(rank);
    }
    for (const auto& [port, value] : ports_written(shape, pass))
      written[{value, pass.micro}] = {t, {rank}};
  }
  return passed;
}

}  // namespace ferry
