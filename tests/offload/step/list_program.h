#pragma once
// Runs of lists as a graph: for each action the regions it reads and writes, with what content, and
// what it comes after. The graph is made from the action's verb and the shape alone, not from the
// executor's code.

#include <array>
#include <compare>
#include <string>
#include <vector>

#include "tests/offload/step/list_check.h"

namespace ferry::test {

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
  layer_input,
  layer_input_slot,
  layer_input_on_host,
  layer_input_grad,
  batch,
  batch_on_host,
  sum_on_gpu,
  sums_sent,
  arrived_sum,
  square_sum_on_host,
  decision,
};

struct Region {
  Kind kind;
  int a = 0;
  int b = 0;
  auto operator<=>(const Region&) const = default;
};

/** The content of a region: its block, micro-batch and step, and after how many additions. */
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

/** Nodes in the order of the lists: a node comes after earlier ones only. */
std::vector<Node> make_program(const StepShape& shape, const std::vector<ListRun>& runs);

}  // namespace ferry::test
