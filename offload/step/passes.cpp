#include "offload/step/passes.h"

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

}  // namespace ferry
