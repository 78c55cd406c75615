#include "src/plan/plan.h"

#include <algorithm>

#include "models/blocks/generation_memory.h"
#include "offload/step/ring_size.h"
#include "src/plan/learnt_steps.h"
#include "src/plan/search/rank_choices.h"
#include "src/plan/search/search.h"

namespace ferry {
namespace {

/** The workspace that cuBLAS and cuBLASLt keep for a stream (32 MiB each with
 * CUBLAS_WORKSPACE_CONFIG=:4096:8, and slack for their alignment). */
constexpr int64_t kCublasWorkspace_bytes = 72 * kMiB;
/** Random keys, seed and offset that CUDA graphs read (src/engine/cuda/block_graphs.h). */
constexpr int64_t kGraphKeys_bytes = 3 * kTensorAlignment_bytes;

/** Adds the values that pass between blocks. */
void link_blocks(StepShape& shape, const ModelTable& model, const BatchShape& largest) {
  for (const ModelValue& value : model.values)
    shape.values.push_back({.name = value.name, .n_bytes = value.n_bytes(largest)});
  shape.backwards = model.backwards;
  for (size_t b = 0; b < shape.blocks.size(); ++b) {
    shape.blocks[b].ports = model.blocks[b].ports;
    shape.blocks[b].has_loss = model.blocks[b].has_loss;
  }
}

/** The most values that a block's forward and backward both read; 1 at least. */
int most_read_again(const StepShape& shape) {
  int most = 1;
  for (const BlockShape& block : shape.blocks)
    most = std::max(most, static_cast<int>(std::ranges::count_if(block.ports, [](const Port& its) {
                      return its.forward == PortUse::reads && its.backward == PortUse::reads;
                    })));
  return most;
}

}  // namespace

GenerationShape generation_shape(const GenerationShape& most, const BatchShape& largest) {
  return {.n_sequences = std::min(most.n_sequences, n_seqs_without_tail(largest)),
          .cache_tokens = most.cache_tokens};
}

StepShape make_step_shape(const ModelTable& model,
                          const BatchShape& largest,
                          const PlanRequest& request,
                          int64_t n_micro) {
  StepShape shape;
  shape.compute = model.compute;
  shape.optim = request.optim;
  shape.split_master = request.split_master;
  shape.ranks = {.world = request.world,
                 .shares = request.shares,
                 .n_stages = request.n_stages.value_or(1),
                 .sharing = model.sharing};
  shape.reduction = request.reduction.value_or(Reduction::ordered);
  shape.n_chunks = request.n_chunks;
  shape.n_ranks_per_host = request.n_per_host;
  shape.n_micro_max = Rounds(shape.ranks, static_cast<int>(n_micro)).n();
  shape.n_weight_slots = request.n_weight_slots.value_or(kWeightSlots);
  shape.trains = request.trains;
  shape.save_buffer_bytes_max = most_save_buffer_bytes(request);
  shape.batch_bytes = make_batch_layout(largest, model).n_bytes;
  for (const BlockTable& table : model.blocks) {
    BlockShape block;
    block.name = table.name;
    block.n_elements = table.n_segment_elements;
    block.n_trained_elements = table.n_trained_elements;
    for (const ParamSpec& p : table.params)
      block.tensors.push_back({.offset = p.offset,
                               .n_elements = p.n_elements,
                               .group = p.group,
                               .trainable = p.trainable});
    for (const BorrowedParam& b : table.borrowed)
      block.borrowed.push_back({b.block, b.param});
    const std::vector<SavedSpec> saved = table.saved(largest);
    block.saved_bytes = laid_out_bytes(saved);
    block.saved_recomputed_bytes = recomputed_bytes(saved);
    ScratchNeed need = table.scratch(largest);
    shape.scratch_bytes = std::max({shape.scratch_bytes, need.forward_bytes, need.backward_bytes});
    shape.library_bytes = std::max(shape.library_bytes, need.library_bytes);
    block.gathers_each_pass = request.zero_level == kZeroLevel_most;
    shape.blocks.push_back(std::move(block));
  }
  link_blocks(shape, model, largest);
  if (shape.trains) shape.scratch_bytes += unwanted_grad_bytes(model);
  if (const GenerationShape generation = generation_shape(request.generation, largest);
      generation.n_sequences > 0) {
    shape.generation_bytes = make_generation_layout(model, generation).n_bytes;
    shape.scratch_bytes += cached_attention_scratch_bytes(model, generation);
  }
  if (request.has_gpu) shape.pinned_bytes_max = request.pinned_bytes_max;
  if (request.has_gpu) shape.library_bytes += kCublasWorkspace_bytes + kGraphKeys_bytes;
  shape.computes_on_host = !request.has_gpu;
  choose(shape, model, {});
  return shape;
}

void choose(StepShape& shape, const ModelTable& model, const Choice& choice) {
  shape.order = choice.order;
  if (shape.deals_blocks()) deal_blocks(shape);
  shape.layer_inputs_on_host = choice.layer_inputs == Place::host;
  // Those that a block reads, one is written, and one is on its way; in vertical order the next
  // block's forwards find all of them where the last block's wrote them.
  shape.n_layer_input_slots = shape.n_live() + 1 + most_read_again(shape);
  for (size_t b = 0; b < shape.blocks.size(); ++b) {
    BlockShape& block = shape.blocks[b];
    block.place = choice.place;
    // The head's backward follows its forward at once: nothing is gained by dropping what it saved.
    const bool gains_nothing =
        (choice.activations == Activations::recompute && model.blocks[b].kind == BlockKind::head) ||
        (choice.activations == Activations::selective && block.saved_recomputed_bytes == 0);
    block.activations = gains_nothing ? Activations::keep : choice.activations;
  }
}

int64_t n_graphs_of(const ModelTable& model,
                    const Plan& plan,
                    std::span<const int64_t> token_sizes) {
  int64_t n = 0;
  for (const int64_t tokens : token_sizes) {
    BatchShape batch = plan.typical;
    batch.tokens = tokens;
    for (int b = 0; b < static_cast<int>(model.blocks.size()); ++b)
      for (const bool backward : {false, true})
        n += runs_as_graph(model, b, batch, backward) ? plan.n_micro : 0;
  }
  return std::min<int64_t>(n, kBlockGraphs_max);
}

int64_t n_graphs_max(const ModelTable& model) {
  return model.attention == AttentionBackend::flash ? kBlockGraphs_max : 0;
}

int64_t loaded_kernels_bytes(const ModelTable& model,
                             const KernelMemory& measured,
                             int64_t n_graphs) {
  // On an H200, where 13 G parameters had rows of 10 KiB, whose norms spill 248 bytes a thread in
  // their backward.
  constexpr KernelMemory kH200 = {.loaded_bytes = 134 * kMiB,
                                  .wide_heads_bytes = 84 * kMiB,
                                  .wide_rows_bytes = 176 * kMiB,
                                  .graph_bytes = 136 * kKiB};
  // Models of other sizes choose other products of cuBLAS: 134 to 142 MiB on the H200. A measured
  // figure is the most of several placements, which no other size was seen to exceed.
  const int64_t other_products_bytes = measured.loaded_bytes > 0 ? 0 : 8 * kMiB;
  const auto bytes_of = [&](int64_t KernelMemory::*figure) {
    return measured.*figure > 0 ? measured.*figure : kH200.*figure;
  };
  const int64_t head_width = model.head_width;
  const bool has_wide_rows =
      model.width * static_cast<int64_t>(size_of(model.compute)) > kWideRow_bytes;
  const KernelMemory& spills = measured.has_seen_spills() ? measured : kH200;
  const int64_t spilled = std::max(head_width > 64 ? spills.wide_heads_bytes : 0,
                                   has_wide_rows ? spills.wide_rows_bytes : 0);
  return bytes_of(&KernelMemory::loaded_bytes) + other_products_bytes +
         n_graphs * bytes_of(&KernelMemory::graph_bytes) + spilled;
}

int64_t n_token_sizes(const ModelTable& model, const Plan& plan) {
  constexpr int64_t kMost = 8, kFewest = 4;
  const int64_t n_graphs = n_graphs_of(model, plan, {{plan.typical.tokens}});
  const int64_t n_kept = kBlockGraphs_max / std::max<int64_t>(1, n_graphs);
  return n_kept < kFewest ? kMost : std::min(n_kept, kMost);
}

Simulation simulate_plan(const ModelTable& model,
                         const PlanRequest& request,
                         const Plan& plan,
                         bool keeps_actions) {
  const RankCosts costs(*request.machine, request.has_gpu, model, plan.shape, plan.typical);
  return simulate_plan(costs, request, plan, keeps_actions);
}

SimulatedMicroBatches simulated_micro_batches(const Plan& plan, int64_t n_passes) {
  const int64_t n_rounds = plan.shape.n_micro_max;
  // Where there are stages, all of them are at work in half of these rounds already.
  constexpr int64_t kRoundsOfStage = 4;
  const int64_t n_enough = plan.shape.deals_blocks()
                               ? kRoundsOfStage * plan.shape.ranks.n_stages
                               : std::max<int64_t>(2, n_passes / plan.shape.n_blocks());
  const std::vector<int>& shares = plan.shape.ranks.shares;
  const bool has_turns = !shares.empty() && !plan.shape.deals_blocks();
  constexpr int kTurns_most = 64;  // a rank with a smaller share than that hardly counts
  const int64_t n_turns = has_turns ? std::min(std::ranges::max(shares), kTurns_most) : 1;
  const int64_t n = std::min(n_rounds, round_up(n_enough, n_turns));
  if (n_rounds <= 2 * n) return {.n = static_cast<int>(plan.n_micro)};
  return {static_cast<int>(n_micro_of_rounds(plan.shape.ranks, n)),
          static_cast<double>(n_rounds) / static_cast<double>(n)};
}

namespace {

/** The step with `times` as many micro-batches as `whole`, which has twice as many as `half`. */
Simulation beyond(const Simulation& half, const Simulation& whole, double times) {
  const auto value = [&](double of_half, double of_whole) {
    return of_whole + 2 * (times - 1) * (of_whole - of_half);
  };
  Simulation simulation;
  simulation.step_s = value(half.step_s, whole.step_s);
  for (size_t q = 0; q < kQueues; ++q) {
    const auto queue = static_cast<QueueId>(q);
    simulation.busy_s[queue] = value(half.busy_s[queue], whole.busy_s[queue]);
    simulation.alone_s[queue] = value(half.alone_s[queue], whole.alone_s[queue]);
  }
  simulation.ranks = whole.ranks;
  for (size_t r = 0; r < whole.ranks.size(); ++r)
    for (size_t q = 0; q < kQueues; ++q)
      simulation.ranks[r].busy_s[q] = value(half.ranks[r].busy_s[q], whole.ranks[r].busy_s[q]);
  // A queue that something else hides in a few micro-batches may take the longest in many.
  simulation.step_s = std::max(simulation.step_s, simulation.busiest_s());
  simulation.host_updates_s = value(half.host_updates_s, whole.host_updates_s);
  simulation.least_drive_s = value(half.least_drive_s, whole.least_drive_s);
  return simulation;
}

}  // namespace

Simulation simulate_plan(const RankCosts& costs,
                         const PlanRequest& request,
                         const Plan& plan,
                         bool keeps_actions,
                         int64_t n_passes) {
  const auto steps_of = [&](int n_micro, double n_each, bool keeps) {
    return simulate_steps(costs, plan.shape, n_micro, update_order_of(request),
                          /*serial=*/!request.has_gpu, keeps, n_each);
  };
  const auto [n, n_each] = simulated_micro_batches(plan, n_passes);
  if (n_each == 1) return steps_of(n, 1, keeps_actions);
  // Where stages wait for each other at the ends of a step, more micro-batches make these no
  // longer.
  Simulation simulation = plan.shape.deals_blocks()
                              ? beyond(steps_of(n / 2, 1, false), steps_of(n, 1, false), n_each)
                              : steps_of(n, n_each, false);
  if (keeps_actions) simulation.actions = steps_of(n, 1, true).actions;
  return simulation;
}

std::optional<Plan> find_plan(const ModelTable& model, const PlanRequest& wishes) {
  auto [request, found] = settle_rank_choices(model, wishes);
  if (auto plan = find_learnt_plan(model, request)) return plan;
  return found ? std::move(found) : search_plan(model, request).plan;
}

Plan make_plan(const ModelTable& model, const PlanRequest& wishes, std::optional<Plan>* nearest) {
  auto [request, found] = settle_rank_choices(model, wishes);
  if (auto plan = find_learnt_plan(model, request)) return std::move(*plan);
  if (found) return std::move(*found);
  Search search = search_plan(model, request);
  if (search.plan) return std::move(*search.plan);
  if (nearest) *nearest = search.nearest;
  refuse(model, request, search);
}

std::vector<PlanRow> rows_of(const Plan& plan, bool has_gpu) {
  std::vector<PlanRow> rows;
  for (int t = 0; t < kTags; ++t) {
    const auto tag = static_cast<Tag>(t);
    const int64_t on_device = plan.layout.bytes_of(tag, Place::device),
                  on_host = plan.layout.bytes_of(tag, Place::host);
    const std::string_view name = name_of(tag, plan.shape.optim);
    if (has_gpu && on_device > 0) rows.push_back({tag, Place::device, on_device, name});
    const int64_t host_bytes = on_host + (has_gpu ? 0 : on_device);
    if (host_bytes > 0) rows.push_back({tag, Place::host, host_bytes, name});
    if (const int64_t on_nvme = plan.layout.bytes_of(tag, Place::nvme); on_nvme > 0)
      rows.push_back({tag, Place::nvme, on_nvme, name});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const PlanRow& a, const PlanRow& b) { return a.n_bytes > b.n_bytes; });
  return rows;
}

PlannedPinning pinning_of(const Plan& plan, const PlanRequest& request) {
  const ByteRange& copied = plan.layout.copied_on_host;
  const int64_t end = pinned_end(plan.layout, request.pinned_bytes_max);
  PlannedPinning pinning = {.pinned_bytes = end - copied.offset,
                            .unpinned_bytes = copied.offset + copied.n_bytes - end};
  if (pinning.unpinned_bytes == 0) return pinning;
  pinning.ring_bytes = ring_size(request.pinned_bytes_max).n_bytes;
  pinning.pinned_bytes += pinning.ring_bytes;
  const StepList list = plan.shape.trains ? make_training_list(plan.shape, plan.layout,
                                                               static_cast<int>(plan.n_micro),
                                                               update_order_of(request))
                                          : make_evaluation_list(plan.shape, plan.layout);
  for (const Action& action : list)
    pinning.step_ring_bytes += ring_bytes_of(plan.layout, action, end);
  return pinning;
}

int64_t gpu_budget_of(const PlanRequest& request, const StepShape& shape) {
  const std::vector<int64_t>& all = request.gpu_budgets_bytes;
  if (all.empty() || !shape.deals_blocks()) return request.gpu_budget_bytes;
  int64_t least_bytes = INT64_MAX;  // of the ranks that have the same blocks
  for (int replica = 0; replica < shape.ranks.n_replicas(); ++replica) {
    const int rank = shape.ranks.rank_at(shape.ranks.stage(), replica);
    least_bytes = std::min(least_bytes, all[static_cast<size_t>(rank) % all.size()]);
  }
  return std::max(least_bytes, request.gpu_budget_bytes);
}

int64_t host_bytes_of(const Plan& plan, bool has_gpu) {
  const auto& bytes = plan.layout.n_bytes;
  const int64_t host_bytes = bytes[static_cast<size_t>(Place::host)];
  if (!has_gpu) return host_bytes + bytes[static_cast<size_t>(Place::device)];
  const int64_t pinned_bytes_max = plan.shape.pinned_bytes_max;
  const bool has_ring = needs_ring(plan.layout, pinned_bytes_max);
  return host_bytes + (has_ring ? ring_size(pinned_bytes_max).n_bytes : 0);
}

}  // namespace ferry
