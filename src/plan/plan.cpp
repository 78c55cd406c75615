#include "src/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"

namespace ferry {
namespace {

/** Token counts are multiples of this. */
constexpr int64_t kTokenMultiple = 64;

BatchShape largest_shape(const PlanRequest& request, int64_t micro_batch_size) {
  // The token count is rounded up to one of a few sizes, the largest of which holds every row at
  // full length; what is left over is cut into dummy sequences of max_length.
  const int64_t tokens = round_up(micro_batch_size * request.max_length, kTokenMultiple);
  const int64_t n_dummies = (tokens + request.max_length - 1) / request.max_length;
  return {.tokens = tokens,
          .n_seqs_max = micro_batch_size + n_dummies,
          .max_length = request.max_length};
}

/** What cuBLAS and cuBLASLt keep for a stream (32 MiB each with CUBLAS_WORKSPACE_CONFIG=:4096:8,
 * and slack for their alignment). */
constexpr int64_t kCublasWorkspace_bytes = 72 * kMiB;

struct Choice {
  Place place;
  Activations activations;
};

std::vector<Choice> choices_of(const PlanRequest& request) {
  std::vector<Choice> all = {
      {Place::gpu, Activations::keep},  {Place::gpu, Activations::recompute},
      {Place::host, Activations::keep}, {Place::host, Activations::recompute},
      {Place::gpu, Activations::host},  {Place::host, Activations::host}};
  std::erase_if(all, [&](const Choice& c) {
    return (request.placement && c.place != *request.placement) ||
           (request.activations ? c.activations != *request.activations
                                : c.activations == Activations::host);
  });
  return all;
}

/** Fewer tokens than this leave a GPU idle between launches: smaller micro-batches are tried last.
 */
constexpr int64_t kMicroBatchTokens_min = 2048;

struct Candidate {
  Choice choice;
  int64_t micro_batch_size;
};

/** In order of preference. Smaller micro-batches cost less than recomputing, recomputing less than
 * streaming. */
std::vector<Candidate> candidates_of(const PlanRequest& request) {
  std::vector<int64_t> sizes;
  if (request.micro_batch_size) {
    sizes = {std::min(*request.micro_batch_size, request.train_batch_size)};
  } else {
    for (int64_t size = request.train_batch_size; size > 1; size = (size + 1) / 2)
      sizes.push_back(size);
    sizes.push_back(1);
  }
  std::vector<Candidate> preferred, last;
  for (const Choice& choice : choices_of(request))
    for (int64_t size : sizes) {
      const bool large =
          size == sizes.front() || size * request.max_length >= kMicroBatchTokens_min;
      (large ? preferred : last).push_back({choice, size});
    }
  preferred.insert(preferred.end(), last.begin(), last.end());
  return preferred;
}

bool fits(const PlanRequest& request, const Layout& layout) {
  const int64_t gpu = layout.n_bytes[static_cast<size_t>(Place::gpu)],
                host = layout.n_bytes[static_cast<size_t>(Place::host)];
  if (!request.has_gpu) return gpu + host <= request.host_budget_bytes;
  return gpu <= request.gpu_budget_bytes && host <= request.host_budget_bytes;
}

[[noreturn]] void refuse(const PlanRequest& request, const Layout& smallest) {
  Tag largest = Tag::weights;
  Place place = Place::gpu;
  int64_t most = -1;
  auto is_over = [&](Place p) {
    if (!request.has_gpu) return true;
    return smallest.n_bytes[static_cast<size_t>(p)] >
           (p == Place::gpu ? request.gpu_budget_bytes : request.host_budget_bytes);
  };
  for (Place p : {Place::gpu, Place::host}) {
    if (!is_over(p)) continue;
    for (int t = 0; t < kTags; ++t)
      if (int64_t bytes = smallest.bytes_of(static_cast<Tag>(t), p); bytes > most) {
        most = bytes;
        largest = static_cast<Tag>(t);
        place = p;
      }
  }
  const int64_t gpu = smallest.n_bytes[0], host = smallest.n_bytes[1];
  std::string need =
      request.has_gpu
          ? fmt::format(
                "needs {} of GPU memory ({} are left beside the driver's context) and {} of "
                "host memory ({} are left beside LibTorch)",
                format_bytes(gpu), format_bytes(request.gpu_budget_bytes), format_bytes(host),
                format_bytes(request.host_budget_bytes))
          : fmt::format("needs {} of host memory ({} are left beside LibTorch)",
                        format_bytes(gpu + host), format_bytes(request.host_budget_bytes));
  const bool per_token =
      largest == Tag::saved || largest == Tag::scratch || largest == Tag::library;
  std::string change = per_token ? (request.micro_batch_size && *request.micro_batch_size > 1
                                        ? "lower per_device_train_batch_size, or max_length"
                                        : "lower max_length")
                       : request.placement == Place::gpu
                           ? "leave out placement = resident, so that blocks live in host memory"
                           : "raise the budget, or take a smaller model";
  throw Error(Fault::does_not_fit, "plan",
              fmt::format("the model does not fit: it {}; largest: {} on the {}, {}", need,
                          name_of(largest), name_of(place), format_bytes(most)),
              change);
}

/** The GPU is told of work on the host through flags, one for each piece of a step. */
void check_actions(const PlanRequest& request, const Plan& plan) {
  constexpr int64_t kActions_max = 60'000;
  const auto n_blocks = static_cast<int64_t>(plan.shape.blocks.size());
  if (!request.has_gpu || plan.n_micro * n_blocks <= kActions_max) return;
  throw Error(Fault::usage, "config.train_batch_size",
              fmt::format("{} micro-batches of {} in one step, with {} blocks at most {}",
                          plan.n_micro, plan.micro_batch_size, n_blocks, kActions_max / n_blocks),
              "lower train_batch_size, or raise per_device_train_batch_size");
}

}  // namespace

StepShape make_step_shape(const ModelTable& model,
                          const BatchShape& largest,
                          const PlanRequest& request,
                          Place place,
                          Activations activations,
                          AccumulationOrder order,
                          int64_t n_micro) {
  StepShape shape;
  shape.compute = model.compute;
  shape.n_micro_max = static_cast<int>(n_micro);
  shape.order = order;
  shape.n_weight_slots = request.n_weight_slots.value_or(3);
  shape.trains = request.trains;
  shape.boundary_bytes = model.boundary_bytes(largest);
  shape.batch_bytes = make_batch_layout(largest, model.n_labels).n_bytes;
  for (const BlockTable& table : model.blocks) {
    BlockShape block;
    block.name = table.name;
    block.n_elements = table.n_segment_elements;
    for (const ParamSpec& p : table.params)
      block.tensors.push_back({p.offset, p.n_elements, p.decay});
    for (const BorrowedParam& b : table.borrowed)
      block.borrowed.push_back({b.block, b.param});
    block.saved_bytes = laid_out_bytes(table.saved(largest));
    block.place = place;
    // The head's backward follows its forward at once: nothing is gained by dropping what it saved.
    block.activations = table.kind == BlockKind::head && activations == Activations::recompute
                            ? Activations::keep
                            : activations;
    ScratchNeed need = table.scratch(largest);
    shape.scratch_bytes = std::max({shape.scratch_bytes, need.forward_bytes, need.backward_bytes});
    shape.library_bytes = std::max(shape.library_bytes, need.library_bytes);
    shape.blocks.push_back(std::move(block));
  }
  if (request.has_gpu) shape.library_bytes += kCublasWorkspace_bytes;
  return shape;
}

Plan make_plan(const ModelTable& model, const PlanRequest& request) {
  std::optional<Layout> smallest;
  for (const auto& [choice, size] : candidates_of(request)) {
    Plan plan;
    plan.largest = largest_shape(request, size);
    plan.micro_batch_size = size;
    plan.n_micro = (request.train_batch_size + size - 1) / size;
    // Vertical moves each block's weights once a step; resident blocks gain nothing by it and it
    // keeps more alive.
    auto order = request.order.value_or(AccumulationOrder::horizontal);
    plan.shape = make_step_shape(model, plan.largest, request, choice.place, choice.activations,
                                 order, plan.n_micro);
    plan.layout = make_layout(plan.shape);
    if (!fits(request, plan.layout)) {
      auto total = [](const Layout& l) { return l.n_bytes[0] + l.n_bytes[1]; };
      if (!smallest || plan.layout.n_bytes[0] < smallest->n_bytes[0] ||
          (plan.layout.n_bytes[0] == smallest->n_bytes[0] && total(plan.layout) < total(*smallest)))
        smallest = plan.layout;
      continue;
    }
    check_actions(request, plan);
    plan.why =
        fmt::format("{} micro-batch{} of {}; weights and states {}; saved tensors {}", plan.n_micro,
                    plan.n_micro == 1 ? "" : "es", size,
                    choice.place == Place::gpu ? (request.has_gpu ? "on the GPU" : "in memory")
                                               : "on the host, streamed block by block",
                    choice.activations == Activations::keep        ? "kept"
                    : choice.activations == Activations::recompute ? "recomputed"
                                                                   : "on the host");
    return plan;
  }
  FERRY_CHECK(smallest.has_value(), "nothing to choose from");
  refuse(request, *smallest);
}

std::vector<PlanRow> rows_of(const Plan& plan) {
  std::vector<PlanRow> rows;
  for (int t = 0; t < kTags; ++t)
    for (Place place : {Place::gpu, Place::host})
      if (int64_t bytes = plan.layout.bytes_of(static_cast<Tag>(t), place); bytes > 0)
        rows.push_back({static_cast<Tag>(t), place, bytes});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const PlanRow& a, const PlanRow& b) { return a.n_bytes > b.n_bytes; });
  return rows;
}

}  // namespace ferry
