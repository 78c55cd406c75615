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

/** The time of a forward on a stage whose share is 1. */
constexpr int64_t kUnit = 1'000'000;

/** By round: this rank's micro-batches before it, and whether it has one there. */
struct OwnRounds {
  OwnRounds(const Rounds& rounds, int rank) {
    for (int round = 0, n = 0; round < rounds.n(); ++round) {
      micro.push_back(n);
      has.push_back(rounds.has(rank, round));
      n += has.back();
    }
  }
  BlockPass pass(bool backward, int block, int round, const StepShape& shape) const {
    const auto r = static_cast<size_t>(round);
    return {.backward = backward,
            .block = block,
            .micro = micro[r],
            .round = round,
            .has_micro = has[r],
            .runs = has[r] && shape.runs(block)};
  }
  int n() const { return static_cast<int>(micro.size()); }

  std::vector<int> micro;
  std::vector<bool> has;
};

/** The order in which the stages begin the passes, if all passes of a stage take as long, and less
 * on a stage with a larger share. A stage has all micro-batches of a block before the next of its
 * blocks. Passes and the values between ranks follow this order on every rank, so that no rank
 * waits for another one in a circle. */
std::vector<BlockPass> passes_in_turn(const StepShape& shape,
                                      const OwnRounds& rounds,
                                      bool trains) {
  struct Begun {
    int64_t at = 0;
    BlockPass pass;
  };
  std::vector<Begun> all;
  std::vector<int64_t> stage_until(static_cast<size_t>(shape.ranks.n_stages), 0);
  std::vector<int64_t> round_until(static_cast<size_t>(rounds.n()), 0);
  const auto add = [&](bool backward, int b) {
    const int stage = shape.blocks[b].stage;
    const int64_t pass_time = kUnit / share_of(shape.ranks, stage);
    for (int round = 0; round < rounds.n(); ++round) {
      int64_t& until = stage_until[static_cast<size_t>(stage)];
      int64_t& before = round_until[static_cast<size_t>(round)];
      const int64_t at = std::max(until, before);
      all.push_back({at, rounds.pass(backward, b, round, shape)});
      until = before = at + pass_time;
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

/** The passes of a pipeline in the order in which the stages begin them, if a backward takes as
 * long as two forwards. A stage that is free takes a backward before a forward, and an earlier
 * micro-batch before a later one. So forwards and backwards go by turns (1F1B, PipeDream, Narayanan
 * et al. 2019). A micro-batch begins when the micro-batch that used its memory has ended. */
class Pipeline {
 public:
  Pipeline(const StepShape& shape, const OwnRounds& rounds, bool trains)
      : shape_(shape),
        rounds_(rounds),
        stage_until_(static_cast<size_t>(shape.ranks.n_stages), 0),
        micros_(static_cast<size_t>(rounds.n())) {
    for (int b = 0; b < shape.n_blocks(); ++b)
      chain_.push_back({.backward = false, .block = b});
    for (int b : trains ? shape.backward_order() : std::vector<int>())
      chain_.push_back({.backward = true, .block = b});
  }

  std::vector<BlockPass> passes() {
    std::vector<BlockPass> passes;
    while (const std::optional<int> micro = first_to_begin()) {
      Micro& its = micros_[static_cast<size_t>(*micro)];
      const auto& [backward, block] = chain_[its.n_done++];
      const int stage = shape_.blocks[block].stage;
      const int64_t time = kUnit / share_of(shape_.ranks, stage) * (backward ? 2 : 1);
      its.ready_at = until(stage) = std::max(until(stage), its.ready_at) + time;
      passes.push_back(rounds_.pass(backward, block, *micro, shape_));
    }
    return passes;
  }

 private:
  struct Link {
    bool backward = false;
    int block = 0;
  };
  struct Micro {
    size_t n_done = 0;     ///< passes
    int64_t ready_at = 0;  ///< when the last of them ends
  };

  int64_t& until(int stage) { return stage_until_[static_cast<size_t>(stage)]; }

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
      const Link& next = chain_[its.n_done];
      const int stage = shape_.blocks[next.block].stage;
      const std::tuple key(std::max(until(stage), its.ready_at), stage, !next.backward, micro);
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
  const OwnRounds& rounds_;
  std::vector<Link> chain_;  ///< the passes that each micro-batch goes through
  std::vector<int64_t> stage_until_;
  std::vector<Micro> micros_;  ///< by round
  int n_ended_ = 0;            ///< the first micro-batches, all of which have ended
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
  const OwnRounds own(rounds, rank);
  if (shape.deals_blocks())
    return shape.order == AccumulationOrder::vertical ? passes_in_turn(shape, own, trains)
                                                      : Pipeline(shape, own, trains).passes();
  std::vector<BlockPass> passes;
  const auto add = [&](bool backward, int b, int round) {
    passes.push_back(own.pass(backward, b, round, shape));
  };
  // A rank with a smaller share takes longer for a pass. It begins its backward of a block before
  // the rounds in which only others have one: the sums of these rounds would stand before it
  // otherwise, and they wait for the others' backwards.
  const bool begins_early = shape.cuts_blocks() && !shape.exchanges_sums();
  const auto add_backwards = [&](int b) {
    int next = 0;  // the first round that ranks have yet to exchange
    for (int round = 0; round < rounds.n(); ++round) {
      if (!own.has[static_cast<size_t>(round)]) continue;
      const bool is_early = begins_early && next < round;
      const auto ran_in = static_cast<int>(passes.size());
      if (is_early) {
        add(true, b, round);
        passes.back().waits = true;
      }
      for (; next <= round; ++next)
        add(true, b, next);
      if (!is_early) continue;
      passes.back().runs = false;
      passes.back().ran_in = ran_in;
    }
    for (; next < rounds.n(); ++next)
      add(true, b, next);
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
    if (trains) each_block(true, add_backwards);
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
    if (!pass.has_micro) continue;
    const int rank = shape.ranks.rank_at(shape.blocks[pass.block].stage, shape.ranks.replica());
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
