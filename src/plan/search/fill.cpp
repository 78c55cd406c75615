#include "src/plan/search/fill.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "src/plan/nvme_need.h"

namespace ferry {
namespace {

/** A region may be that much larger than was asked for. */
constexpr int64_t kBufferRounding_bytes = 8192;

int64_t over(int64_t need, int64_t budget) {
  return need > budget ? need - budget : 0;
}

/** Stages of the run have GPUs with unlike budgets. */
bool has_budgets_by_stage(const PlanRequest& request, const StepShape& shape) {
  return request.has_gpu && !request.gpu_budgets_bytes.empty() && shape.deals_blocks();
}

/** Returns the bytes that a stage lacks on its GPUs. */
int64_t gpu_lacking_of_stage(const PlanRequest& request, StepShape shape, int stage) {
  shape.ranks.rank = shape.ranks.rank_at(stage, 0);
  return over(layout_bytes_of_rank(shape).n_bytes[Place::device], gpu_budget_of(request, shape));
}

/** Returns the most bytes that any rank lacks on its GPU. */
int64_t gpu_lacking_of(const PlanRequest& request,
                       const StepShape& shape,
                       const LayoutBytes& layout) {
  if (!has_budgets_by_stage(request, shape))
    return over(layout.n_bytes[Place::device], request.gpu_budget_bytes);
  int64_t most = 0;
  for (int stage = 0; stage < shape.ranks.n_stages; ++stage)
    most = std::max(most, gpu_lacking_of_stage(request, shape, stage));
  return most;
}

Shortfall lacking_of(const PlanRequest& request,
                     const StepShape& shape,
                     const LayoutBytes& layout) {
  const int64_t gpu = layout.n_bytes[Place::device], host = layout.n_bytes[Place::host];
  const bool has_states = layout.n_bytes[Place::nvme] > 0;
  int64_t nvme = 0;
  StepShape its = shape;
  for (int stage = 0; stage < shape.ranks.n_stages && has_states; ++stage) {
    its.ranks.rank = shape.ranks.rank_at(stage, 0);
    nvme = std::max(nvme, nvme_need_of(its, request.n_nvme_copies).store_bytes);
  }
  const int64_t nvme_over = over(nvme, std::min(request.nvme_budget_bytes, kStore_bytes_max));
  if (!request.has_gpu) return {0, over(gpu + host, request.host_budget_bytes), nvme_over};
  return {gpu_lacking_of(request, shape, layout), over(host, request.host_budget_bytes), nvme_over};
}

/** The most elements of blocks: of their weights, and of their gradients. */
struct Largest {
  int64_t weights = 0, grads = 0;

  void add(const StepShape& shape, int block) {
    weights = std::max(weights, shape.n_slot_elements(block));
    grads = std::max(grads, shape.n_grad_elements(block));
  }
  bool operator==(const Largest&) const = default;
};

Largest largest_of(const StepShape& shape) {
  Largest largest;
  for (int b = 0; b < shape.n_blocks(); ++b)
    largest.add(shape, b);
  return largest;
}

/** A number of groups on the GPU, and the largest blocks that stream then. */
struct Streamed {
  size_t n_groups = 0;
  Largest largest;
};

/** Numbers of groups, ascending, with which slots are smaller than with one group fewer: a slot is
 * as large as the largest block that streams. With any other number the GPU holds more than with
 * the number before it. */
std::vector<Streamed> smaller_slots(const StepShape& shape,
                                    const std::vector<std::vector<int>>& groups) {
  std::vector<Streamed> numbers;
  Largest streamed;  // of the groups from g on
  for (size_t g = groups.size(); g-- > 0;) {
    Largest with_group = streamed;
    for (int b : groups[g])
      with_group.add(shape, b);
    if (with_group != streamed && g + 1 < groups.size()) numbers.push_back({g + 1, streamed});
    streamed = with_group;
  }
  std::ranges::reverse(numbers);
  return numbers;
}

/** Puts the first `n` groups of blocks on the GPU and the others on the host: the CPU then has the
 * longest until the next forward needs what it updates. */
void set_resident(Plan& plan, const std::vector<std::vector<int>>& groups, size_t n) {
  plan.n_resident = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    for (int b : groups[g]) {
      plan.shape.blocks[b].place = g < n ? Place::device : Place::host;
      plan.n_resident += g < n;
    }
}

}  // namespace

std::vector<std::vector<int>> groups_of(const StepShape& shape) {
  std::vector<int> group(shape.blocks.size());
  for (int b = 0; b < shape.n_blocks(); ++b)
    group[static_cast<size_t>(b)] = b;
  std::vector<std::set<int>> borrowers(shape.blocks.size());
  for (int b = 0; b < shape.n_blocks(); ++b)
    for (const BorrowedExtent& borrowed : shape.blocks[b].borrowed)
      borrowers[static_cast<size_t>(borrowed.block)].insert(b);
  for (int b = 0; b < shape.n_blocks(); ++b)
    for (const BorrowedExtent& borrowed : shape.blocks[b].borrowed) {
      if (borrowers[static_cast<size_t>(borrowed.block)].size() > 1) continue;
      const int from = group[static_cast<size_t>(b)],
                to = group[static_cast<size_t>(borrowed.block)];
      std::ranges::replace(group, std::max(from, to), std::min(from, to));
    }
  std::vector<std::vector<int>> groups;
  for (int first = 0; first < shape.n_blocks(); ++first) {
    std::vector<int> members;
    for (int b = 0; b < shape.n_blocks(); ++b)
      if (group[static_cast<size_t>(b)] == first) members.push_back(b);
    if (!members.empty()) groups.push_back(std::move(members));
  }
  return groups;
}

int64_t most_slot_elements(const StepShape& shape) {
  return largest_of(shape).weights;
}

double slot_bytes_at_most(const StepShape& shape, double weights, double grads) {
  constexpr double kWidest_bytes = 4;
  return kWidest_bytes * (weights * shape.n_weight_slots + grads * (2.0 * shape.n_grad_slots + 1));
}

Shortfall fit(const PlanRequest& request, StepShape& shape, Search& search) {
  const auto noted = [&](Shortfall lacking) {
    if (lacking.host_bytes > 0)
      search.host_lacking_bytes = std::min(search.host_lacking_bytes, lacking.host_bytes);
    return lacking;
  };
  shape.save_buffer_bytes_max = most_save_buffer_bytes(request);
  const LayoutBytes layout = layout_bytes(shape);
  const Shortfall lacking = noted(lacking_of(request, shape, layout));
  const int64_t buffer = layout.save_buffer_bytes;
  if (lacking.host_bytes == 0 || buffer <= kSaveBuffer_bytes_least + kBufferRounding_bytes)
    return lacking;
  shape.save_buffer_bytes_max = std::clamp(buffer - lacking.host_bytes - kBufferRounding_bytes,
                                           kSaveBuffer_bytes_least, kSaveBuffer_bytes);
  return noted(lacking_of(request, shape, layout_bytes(shape)));
}

namespace {

/** Leaves a part of the blocks after the resident ones on the card, of as many as fit there. */
Shortfall fill_with(Filling::Part part, const PlanRequest& request, Plan& plan, Search& search) {
  const bool is_weights = part == Filling::Part::weights;
  const BlockPlacement with_part = is_weights ? kWeightsOnDevice : kStatesOnDevice;
  int& n_blocks = is_weights ? plan.n_weights : plan.n_states;
  std::vector<BlockShape*> blocks;
  for (int b = 0; b < plan.shape.n_blocks(); ++b)
    if (BlockShape& block = plan.shape.blocks[b];
        block.place.weights == Place::host && (is_weights || plan.shape.is_trained(b)))
      blocks.push_back(&block);
  const auto lacking_with = [&](size_t n) {
    for (size_t i = 0; i < blocks.size(); ++i)
      blocks[i]->place = i < n ? with_part : BlockPlacement(Place::host);
    n_blocks = static_cast<int>(n);
    return fit(request, plan.shape, search);
  };
  return lacking_with(most_possible(0, blocks.size() + 1,
                                    [&](size_t n) { return lacking_with(n).gpu_bytes == 0; }));
}

/** Fills the GPU of each stage with the stage's blocks, as far as the GPU's budget goes. */
Shortfall fill_stages(const PlanRequest& request,
                      Plan& plan,
                      Search& search,
                      const Filling& filling) {
  StepShape& shape = plan.shape;
  const auto all = groups_of(shape);
  set_resident(plan, all, 0);
  int n_resident = 0;
  for (int stage = 0; stage < shape.ranks.n_stages; ++stage) {
    std::vector<std::vector<int>> groups;  // of the stage
    for (const std::vector<int>& group : all)
      if (shape.blocks[group.front()].stage == stage) groups.push_back(group);
    const auto lacking_with = [&](size_t n) {
      set_resident(plan, groups, n);
      return gpu_lacking_of_stage(request, shape, stage);
    };
    // More blocks may take less, as smaller blocks then stream through smaller slots.
    size_t least = 0;
    while (lacking_with(least) > 0 && least < groups.size())
      ++least;
    if (lacking_with(least) > 0) return fit(request, shape, search);
    const size_t most =
        most_possible(least, groups.size() + 1, [&](size_t n) { return lacking_with(n) == 0; });
    lacking_with(least +
                 static_cast<size_t>(filling.resident_share * static_cast<double>(most - least)));
    n_resident += plan.n_resident;
  }
  plan.n_resident = n_resident;
  return filling.part == Filling::Part::none ? fit(request, shape, search)
                                             : fill_with(filling.part, request, plan, search);
}

/** The stages whose blocks keep more, each as far as its budget goes; -1: all of them together. */
std::vector<int> stages_that_keep(const PlanRequest& request, const StepShape& shape) {
  if (!has_budgets_by_stage(request, shape)) return {-1};
  std::vector<int> stages(static_cast<size_t>(shape.ranks.n_stages));
  std::iota(stages.begin(), stages.end(), 0);
  return stages;
}

}  // namespace

Shortfall fill(const PlanRequest& request, Plan& plan, Search& search, const Filling& filling) {
  if (has_budgets_by_stage(request, plan.shape)) return fill_stages(request, plan, search, filling);
  const auto groups = groups_of(plan.shape);
  const auto lacking_with = [&](size_t n) {
    set_resident(plan, groups, n);
    return fit(request, plan.shape, search);
  };
  size_t least = 0;
  if (Shortfall lacking = lacking_with(0); lacking.gpu_bytes > 0) {
    const Largest all = largest_of(plan.shape);
    for (const auto& [n, largest] : smaller_slots(plan.shape, groups)) {
      const auto fewer_weights = static_cast<double>(all.weights - largest.weights);
      const auto fewer_grads = static_cast<double>(all.grads - largest.grads);
      if (slot_bytes_at_most(plan.shape, fewer_weights, fewer_grads) <
          static_cast<double>(lacking.gpu_bytes))
        continue;
      const Shortfall with_fewer = lacking_with(n);
      if (with_fewer.gpu_bytes >= lacking.gpu_bytes) continue;
      lacking = with_fewer;
      least = n;
      if (lacking.gpu_bytes == 0) break;
    }
    if (lacking.gpu_bytes > 0) return lacking_with(least);
  }
  // All blocks would be the choice "on the GPU".
  const size_t most =
      most_possible(least, groups.size(), [&](size_t n) { return lacking_with(n).gpu_bytes == 0; });
  const Shortfall lacking = lacking_with(
      least + static_cast<size_t>(filling.resident_share * static_cast<double>(most - least)));
  return filling.part == Filling::Part::none ? lacking
                                             : fill_with(filling.part, request, plan, search);
}

void keep_more(const PlanRequest& request, Plan& plan, const Choice& choice, Search& search) {
  const Activations more = one_more_kept(choice.activations);
  if (more == choice.activations || !request.trains || request.activations) return;
  int n_kept_more = 0;
  for (const int stage : stages_that_keep(request, plan.shape)) {
    std::vector<BlockShape*> blocks;
    for (size_t b = plan.shape.blocks.size(); b-- > 0;)
      if (BlockShape& block = plan.shape.blocks[b]; block.activations == choice.activations &&
                                                    block.saved_recomputed_bytes > 0 &&
                                                    (stage < 0 || block.stage == stage))
        blocks.push_back(&block);
    const auto fits_with = [&](size_t n) {
      for (size_t i = 0; i < blocks.size(); ++i)
        blocks[i]->activations = i < n ? more : choice.activations;
      plan.n_kept_more = n_kept_more + static_cast<int>(n);
      return fit(request, plan.shape, search).total() == 0;
    };
    // All blocks would be the choice before this one.
    const size_t too_many = blocks.size() + (stage < 0 ? 0 : 1);
    if (!blocks.empty()) fits_with(most_possible(0, too_many, fits_with));
    n_kept_more = plan.n_kept_more;
  }
}

}  // namespace ferry
