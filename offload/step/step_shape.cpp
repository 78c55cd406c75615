#include "offload/step/step_shape.h"

#include <algorithm>
#include <numeric>

#include "src/base/bytes.h"

namespace ferry {

namespace {
constexpr int64_t kExtentAlignment_elements = 256;
}

bool StepShape::is_trained(int block) const {
  return trains && blocks[block].n_trained_elements > 0;
}

bool StepShape::has_grads(int block) const {
  if (is_trained(block)) return true;
  const BlockShape& b = blocks[block];
  for (int i = 0; i < static_cast<int>(b.borrowed.size()); ++i)
    if (trains && borrowed_tensor(block, i).trainable) return true;
  return false;
}

int StepShape::first_backward() const {
  int block = 0;
  while (block < n_blocks() && !has_grads(block))
    ++block;
  return block;
}

std::vector<int> StepShape::backward_order() const {
  std::vector<int> order = backwards;
  if (order.empty())
    for (int b = n_blocks(); b-- > 0;)
      order.push_back(b);
  std::erase_if(order, [first = first_backward()](int b) { return b < first; });
  return order;
}

int StepShape::n_state_pieces(int block) const {
  if (!is_trained(block) || blocks[block].place.states != Place::nvme) return 0;
  return static_cast<int>((own_part(block).n + state_piece_elements - 1) / state_piece_elements);
}

int StepShape::n_weight_pieces(int block) const {
  const BlockShape& b = blocks[block];
  if (b.place.weights != Place::nvme || !runs(block)) return 0;
  return static_cast<int>((b.n_elements + state_piece_elements - 1) / state_piece_elements);
}

bool StepShape::tied(int block) const {
  for (int user = 0; user < n_blocks(); ++user) {
    const auto n_borrowed = static_cast<int>(blocks[user].borrowed.size());
    for (int i = 0; i < n_borrowed; ++i) {
      const int owner = blocks[user].borrowed[i].block;
      if ((user == block || owner == block) && borrowed_tensor(user, i).trainable) return true;
    }
  }
  return false;
}

const TensorExtent& StepShape::borrowed_tensor(int block, int i) const {
  const BorrowedExtent& b = blocks[block].borrowed[i];
  return blocks[b.block].tensors[b.tensor];
}

int64_t StepShape::borrowed_in_slot(int block, int i) const {
  int64_t offset = blocks[block].n_elements;
  for (int k = 0; k < i; ++k)
    offset += round_up(borrowed_tensor(block, k).n_elements, kExtentAlignment_elements);
  return offset;
}

int64_t StepShape::borrowed_in_grads(int block, int i) const {
  int64_t offset = blocks[block].n_trained_elements;
  for (int k = 0; k < i; ++k)
    if (const TensorExtent& tensor = borrowed_tensor(block, k); tensor.trainable)
      offset += round_up(tensor.n_elements, kExtentAlignment_elements);
  return offset;
}

ElementRange StepShape::borrowed_part(int block, int i, int rank) const {
  const TensorExtent& tensor = borrowed_tensor(block, i);
  return common({tensor.offset, tensor.n_elements}, part(blocks[block].borrowed[i].block, rank));
}

int64_t StepShape::borrowed_in_part(int block, int i, int rank) const {
  int64_t offset = part(block, rank).n;
  for (int k = 0; k < i; ++k)
    if (borrowed_tensor(block, k).trainable)
      offset += round_up(borrowed_part(block, k, rank).n, kExtentAlignment_elements);
  return offset;
}

int64_t StepShape::n_part_grad_elements(int block, int rank) const {
  return borrowed_in_part(block, static_cast<int>(blocks[block].borrowed.size()), rank);
}

int64_t StepShape::n_slot_elements(int block) const {
  return borrowed_in_slot(block, static_cast<int>(blocks[block].borrowed.size()));
}

int64_t StepShape::n_grad_elements(int block) const {
  return borrowed_in_grads(block, static_cast<int>(blocks[block].borrowed.size()));
}

namespace {

/** By block: the first one that it shares tensors with, or itself. */
std::vector<int> groups_of(const StepShape& shape) {
  std::vector<int> group(shape.blocks.size());
  std::iota(group.begin(), group.end(), 0);
  for (int b = 0; b < shape.n_blocks(); ++b)
    for (const BorrowedExtent& borrowed : shape.blocks[b].borrowed) {
      const auto [first, later] =
          std::minmax({group[static_cast<size_t>(b)], group[static_cast<size_t>(borrowed.block)]});
      std::ranges::replace(group, later, first);
    }
  return group;
}

/** The stage of each block. Each turn goes to the stage that is furthest behind its share. */
std::vector<int> stages_in_turn(const Ranks& ranks, const std::vector<int>& group) {
  std::vector<int> stages(group.size());
  std::vector<int64_t> due(static_cast<size_t>(ranks.n_stages), 0);
  int64_t all = 0;
  for (int stage = 0; stage < ranks.n_stages; ++stage)
    all += share_of(ranks, stage);
  for (size_t b = 0; b < group.size(); ++b) {
    const auto with = static_cast<size_t>(group[b]);
    if (with < b) {
      stages[b] = stages[with];
      continue;
    }
    for (int stage = 0; stage < ranks.n_stages; ++stage)
      due[static_cast<size_t>(stage)] += share_of(ranks, stage);
    const auto furthest = std::ranges::max_element(due);
    *furthest -= all;
    stages[b] = static_cast<int>(furthest - due.begin());
  }
  return stages;
}

/** The stage of each block. Runs of blocks go to the stages in order, again and again; blocks that
 * share tensors with earlier ones are where these are. No run is left empty where there are enough
 * blocks.
 */
std::vector<int> stages_in_line(const StepShape& shape, const std::vector<int>& group) {
  const Ranks& ranks = shape.ranks;
  const int n_runs = ranks.n_stages * shape.n_chunks;
  std::vector<double> n_elements(group.size(), 0);  // by the first block of a group
  for (size_t b = 0; b < group.size(); ++b)
    n_elements[static_cast<size_t>(group[b])] +=
        static_cast<double>(shape.blocks[static_cast<int>(b)].n_elements);
  const auto share = [&](int run) -> double { return share_of(ranks, run % ranks.n_stages); };
  double shares = 0;
  for (int run = 0; run < n_runs; ++run)
    shares += share(run);
  const double each = std::accumulate(n_elements.begin(), n_elements.end(), 0.0) / shares;
  int n_left = 0;  // groups
  for (size_t b = 0; b < group.size(); ++b)
    n_left += static_cast<size_t>(group[b]) == b;
  std::vector<int> stages(group.size());
  int run = 0;
  bool has_any = false;
  double before = 0, until = each * share(0);
  for (size_t b = 0; b < group.size(); ++b) {
    const auto with = static_cast<size_t>(group[b]);
    if (with == b) {
      const double middle = before + n_elements[b] / 2;
      const bool is_due = middle >= until || n_left < n_runs - run;
      if (run + 1 < n_runs && has_any && is_due) {
        until += each * share(++run);
        has_any = false;
      }
      stages[b] = run % ranks.n_stages;
      has_any = true;
      before += n_elements[b];
      --n_left;
    }
    stages[b] = stages[with];
  }
  return stages;
}

}  // namespace

void deal_blocks(StepShape& shape) {
  const std::vector<int> group = groups_of(shape);
  const std::vector<int> stages = shape.order == AccumulationOrder::vertical
                                      ? stages_in_turn(shape.ranks, group)
                                      : stages_in_line(shape, group);
  for (int b = 0; b < shape.n_blocks(); ++b)
    shape.blocks[b].stage = stages[static_cast<size_t>(b)];
}

void chain_blocks(StepShape& shape, int64_t n_bytes) {
  shape.values.clear();
  shape.backwards.clear();
  for (BlockShape& block : shape.blocks)
    block.ports.clear();
  shape.blocks.back().has_loss = true;
  const auto add = [&](std::string name) {
    shape.values.push_back({.name = std::move(name), .n_bytes = n_bytes});
    return static_cast<int>(shape.values.size()) - 1;
  };
  for (size_t b = 0; b + 1 < shape.blocks.size(); ++b) {
    BlockShape &writer = shape.blocks[b], &reader = shape.blocks[b + 1];
    const int output = add("output of " + writer.name), grad = add("gradient of " + writer.name);
    using enum PortUse;
    writer.ports.push_back({output, writes, none});
    writer.ports.push_back({grad, none, reads});
    if (b > 0) writer.ports.push_back({grad - 2, none, writes});
    reader.ports.push_back({output, reads, reads});
    if (b + 2 == shape.blocks.size()) reader.ports.push_back({grad, none, writes});
  }
}

}  // namespace ferry
