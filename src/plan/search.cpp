// Candidates of placement and micro-batch in order of preference, each laid out until one fits.

#include "src/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ferry {
namespace {

/** Token counts are multiples of this. */
constexpr int64_t kTokenMultiple = 64;
/** The tokens of a micro-batch are counted in int32 (cu_seqlens). */
constexpr int64_t kTokens_max = INT32_MAX - kTokenMultiple;
/** An exbibyte: no machine has it, and twice as much is still far from the end of int64. */
constexpr double kLaidOut_bytes_max = 0x1p60;
/** A region may be that much larger than was asked for. */
constexpr int64_t kBufferRounding_bytes = 8192;

/** The largest micro-batch and the one whose time is told. */
struct Shapes {
  BatchShape largest, typical;
};
Shapes shapes_of(const PlanRequest& request, int64_t micro_batch_size) {
  // The token count is rounded up to one of a few sizes, the largest of which holds every
  // micro-batch there is; what is left over is cut into dummy sequences of max_length.
  const int64_t full = micro_batch_size * request.max_length;
  // The last micro-batch may be a short one.
  const int64_t n_micro = (request.train_batch_size + micro_batch_size - 1) / micro_batch_size;
  const int64_t mean = (request.train_batch_size + n_micro - 1) / n_micro * request.max_length;
  const TextTokens texts = request.text_tokens
                               ? request.text_tokens(request.train_batch_size, micro_batch_size)
                               : TextTokens{full, mean, request.max_length};
  const auto shape = [&](int64_t n_tokens, int64_t length) -> BatchShape {
    const int64_t tokens = round_up(std::clamp<int64_t>(n_tokens, 1, full), kTokenMultiple);
    const int64_t n_dummies = (tokens + request.max_length - 1) / request.max_length;
    return {.tokens = tokens,
            .n_seqs_max = micro_batch_size + n_dummies,
            .max_length = std::clamp<int64_t>(length, 1, request.max_length)};
  };
  return {shape(texts.most, request.max_length), shape(texts.typical, texts.attended)};
}

struct Choice {
  Place place;
  Activations activations;
  Place boundaries;
};

std::vector<Choice> choices_of(const PlanRequest& request, Place boundaries) {
  std::vector<Choice> all = {{Place::gpu, Activations::keep, boundaries},
                             {Place::gpu, Activations::selective, boundaries},
                             {Place::gpu, Activations::recompute, boundaries},
                             {Place::host, Activations::keep, boundaries},
                             {Place::host, Activations::selective, boundaries},
                             {Place::host, Activations::recompute, boundaries},
                             {Place::gpu, Activations::host, boundaries},
                             {Place::host, Activations::host, boundaries}};
  // Where times are not known, what a PCIe link may be too slow for is only had for the asking.
  const bool may_save_on_host = request.machine && request.has_gpu && request.trains;
  std::erase_if(all, [&](const Choice& c) {
    return (request.placement && c.place != *request.placement) ||
           (request.activations ? c.activations != *request.activations
                                : c.activations == Activations::host && !may_save_on_host);
  });
  return all;
}

/** In order of preference: where times are not known, boundaries are on the host only where nothing
 * fits with them on the GPU. */
std::vector<Place> boundary_places_of(const PlanRequest& request) {
  if (request.boundaries) return {*request.boundaries};
  if (!request.has_gpu || !request.trains) return {Place::gpu};
  return {Place::gpu, Place::host};
}

/** Fewer tokens than this leave a GPU idle between launches: smaller micro-batches are tried last.
 */
constexpr int64_t kMicroBatchTokens_min = 2048;

struct Candidate {
  Choice choice;
  int64_t micro_batch_size;
  AccumulationOrder order = AccumulationOrder::horizontal;
};

/** Vertical moves each block's weights once a step and keeps more alive: resident blocks gain
 * nothing by it, and where times are not known horizontal is taken. */
std::vector<AccumulationOrder> orders_of(const PlanRequest& request,
                                         const Choice& choice,
                                         int64_t size) {
  if (request.order) return {*request.order};
  const bool can_gain = request.machine && request.trains && choice.place == Place::host &&
                        size < request.train_batch_size;
  if (can_gain) return {AccumulationOrder::vertical, AccumulationOrder::horizontal};
  return {AccumulationOrder::horizontal};
}

/** In order of preference. Smaller micro-batches cost less than recomputing, recomputing less than
 * streaming. */
std::vector<Candidate> candidates_of(const PlanRequest& request, Place boundaries) {
  std::vector<int64_t> sizes;
  if (request.micro_batch_size) {
    sizes = {std::min(*request.micro_batch_size, request.train_batch_size)};
  } else {
    for (int64_t size = request.train_batch_size; size > 1; size = (size + 1) / 2)
      sizes.push_back(size);
    sizes.push_back(1);
  }
  std::vector<Candidate> preferred, last;
  for (const Choice& choice : choices_of(request, boundaries))
    for (int64_t size : sizes) {
      const bool large =
          size == sizes.front() || size * request.max_length >= kMicroBatchTokens_min;
      for (AccumulationOrder order : orders_of(request, choice, size))
        (large ? preferred : last).push_back({choice, size, order});
    }
  preferred.insert(preferred.end(), last.begin(), last.end());
  return preferred;
}

/** No less than the layout of this shape takes. In double: the sum over blocks may leave int64,
 * while each block's numbers do not (kTokens_max, and the limits in models/bert/bert_config.cpp).
 */
double bytes_at_most(const StepShape& shape) {
  constexpr double kParameter_bytes = 4 + 4 + 4 + 4 + 4;  // weights, gradients, master, m, v
  double largest_elements = 0, bytes = 0, largest_saved_bytes = 0;
  for (int b = 0; b < shape.n_blocks(); ++b) {
    const auto elements = static_cast<double>(shape.n_grad_elements(b));
    const auto saved = static_cast<double>(shape.blocks[static_cast<size_t>(b)].saved_bytes);
    bytes += elements * kParameter_bytes +
             (saved + static_cast<double>(shape.boundary_bytes)) * shape.n_live();
    largest_elements = std::max(largest_elements, elements);
    largest_saved_bytes = std::max(largest_saved_bytes, saved);
  }
  const double slots = shape.n_weight_slots + 2.0 * shape.n_grad_slots + 1;
  return bytes + largest_elements * 4 * slots + largest_saved_bytes * (1 + shape.n_saved_slots) +
         static_cast<double>(shape.boundary_bytes) *
             (2.0 * shape.n_live() + shape.n_boundary_slots) +
         static_cast<double>(shape.scratch_bytes) + static_cast<double>(shape.library_bytes) +
         2.0 * static_cast<double>(shape.batch_bytes) * shape.n_micro_max +
         static_cast<double>(shape.save_buffer_bytes_max);
}

/** What a layout takes beyond the budgets; 0: it fits. Without a GPU all is in host memory. */
struct Lacking {
  int64_t gpu_bytes = 0, host_bytes = 0;
  int64_t total() const { return gpu_bytes + host_bytes; }
};
Lacking lacking_of(const PlanRequest& request, const Layout& layout) {
  const int64_t gpu = layout.n_bytes[static_cast<size_t>(Place::gpu)],
                host = layout.n_bytes[static_cast<size_t>(Place::host)];
  const auto over = [](int64_t need, int64_t budget) { return need > budget ? need - budget : 0; };
  if (!request.has_gpu) return {0, over(gpu + host, request.host_budget_bytes)};
  return {over(gpu, request.gpu_budget_bytes), over(host, request.host_budget_bytes)};
}

/** Lays out the plan's shape, with a smaller buffer for checkpoints where that alone makes it fit
 * the host. */
Lacking lay_out(const PlanRequest& request, Plan& plan, Search& search) {
  const auto noted = [&](Lacking lacking) {
    if (lacking.host_bytes > 0)
      search.host_lacking_bytes = std::min(search.host_lacking_bytes, lacking.host_bytes);
    return lacking;
  };
  plan.layout = make_layout(plan.shape);
  const Lacking lacking = noted(lacking_of(request, plan.layout));
  if (lacking.host_bytes == 0 || plan.layout.save_buffer < 0) return lacking;
  const int64_t buffer = plan.layout.region(plan.layout.save_buffer).n_bytes;
  if (buffer <= kSaveBuffer_bytes_least + kBufferRounding_bytes) return lacking;
  plan.shape.save_buffer_bytes_max = std::clamp(buffer - lacking.host_bytes - kBufferRounding_bytes,
                                                kSaveBuffer_bytes_least, kSaveBuffer_bytes);
  plan.layout = make_layout(plan.shape);
  return noted(lacking_of(request, plan.layout));
}

/** Blocks that live together because they share tensors, in forward order of the first. */
std::vector<std::vector<int>> groups_of(const StepShape& shape) {
  std::vector<int> group(shape.blocks.size());
  for (int b = 0; b < shape.n_blocks(); ++b)
    group[static_cast<size_t>(b)] = b;
  for (int b = 0; b < shape.n_blocks(); ++b)
    for (const BorrowedExtent& borrowed : shape.blocks[static_cast<size_t>(b)].borrowed) {
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

/** The plan with the first `n` groups of blocks on the GPU: the CPU then has the longest until the
 * next forward needs what it updates. */
Plan with_resident(const Plan& plan, const std::vector<std::vector<int>>& groups, size_t n) {
  Plan out = plan;
  out.n_resident = 0;
  for (size_t g = 0; g < n; ++g)
    for (int b : groups[g]) {
      out.shape.blocks[static_cast<size_t>(b)].place = Place::gpu;
      ++out.n_resident;
    }
  return out;
}

/** Fills the card: what slots, activations and workspace leave holds weights and states of as many
 * blocks as fit, or of a share of these; the host may only then have room for the others. What is
 * lacking after that. */
Lacking fill(const PlanRequest& request, Plan& plan, Search& search, double share) {
  const auto groups = groups_of(plan.shape);
  Lacking lacking = lay_out(request, plan, search);
  // All of them would be the choice "on the GPU".
  size_t fits = 0, too_many = groups.size();
  Plan empty = plan;
  empty.layout = {};  // copied for each attempt
  while (lacking.gpu_bytes == 0 && too_many - fits > 1) {
    const size_t n = (fits + too_many) / 2;
    Plan tried = with_resident(empty, groups, n);
    const Lacking its = lay_out(request, tried, search);
    if (its.gpu_bytes > 0) {
      too_many = n;
      continue;
    }
    plan = std::move(tried);
    lacking = its;
    fits = n;
  }
  if (const auto n = static_cast<size_t>(share * static_cast<double>(fits)); n < fits) {
    plan = with_resident(empty, groups, n);
    lacking = lay_out(request, plan, search);
  }
  return lacking;
}

/** What keeps more of the saved tensors by one step: the largest are the first to be made again and
 * the last to be kept. The same where nothing is made again. */
constexpr Activations one_more_kept(Activations activations) {
  return activations == Activations::recompute   ? Activations::selective
         : activations == Activations::selective ? Activations::keep
                                                 : activations;
}

/** What a plan that fits has left keeps more of the saved tensors: those of the last blocks. */
void keep_more(const PlanRequest& request, Plan& plan, const Choice& choice, Search& search) {
  const Activations more = one_more_kept(choice.activations);
  if (more == choice.activations || !request.trains || request.activations) return;
  std::vector<size_t> blocks;
  for (size_t b = plan.shape.blocks.size(); b-- > 0;)
    if (plan.shape.blocks[b].activations == choice.activations &&
        plan.shape.blocks[b].saved_remade_bytes > 0)
      blocks.push_back(b);
  Plan less = plan;
  less.layout = {};  // copied for each attempt
  // All of them would be the choice before this one.
  for (size_t fits = 0, too_many = blocks.size(); too_many - fits > 1;) {
    const size_t n = (fits + too_many) / 2;
    Plan tried = less;
    for (size_t i = 0; i < n; ++i)
      tried.shape.blocks[blocks[i]].activations = more;
    tried.n_kept_more = static_cast<int>(n);
    if (lay_out(request, tried, search).total() > 0) {
      too_many = n;
      continue;
    }
    plan = std::move(tried);
    fits = n;
  }
}

/** What no order of its actions makes the plan's step shorter than: its busiest resource's time. */
double least_seconds(const Plan& plan) {
  return *std::ranges::max_element(plan.predicted->busy_s);
}

/** Leaves a share of the updates for the next forward, where that is faster: spread over the
 * blocks, as the forward needs them. */
void choose_late_updates(const CostModel& cost, const PlanRequest& request, Plan& plan) {
  std::vector<int> on_host;
  for (int b = 0; b < plan.shape.n_blocks(); ++b)
    if (plan.shape.blocks[static_cast<size_t>(b)].place == Place::host &&
        plan.shape.is_trained(b) && !plan.shape.tied(b))
      on_host.push_back(b);
  if (request.clips || on_host.empty()) return;
  constexpr double kNearlyAll = 1.01;
  const double enough_s = least_seconds(plan) * kNearlyAll;
  Plan tried = plan;
  for (double share : {0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0}) {
    if (plan.predicted->step_s < enough_s) return;
    double late = 0;
    for (size_t i = 0; i < on_host.size(); ++i) {
      const bool is_late = std::floor(late + share) > std::floor(late);
      tried.shape.blocks[static_cast<size_t>(on_host[i])].updates_late = is_late;
      late += share;
    }
    tried.predicted = simulate_plan(cost, request, tried);
    constexpr double kWorthIt = 0.995;
    if (tried.predicted->step_s < plan.predicted->step_s * kWorthIt) {
      plan.shape = tried.shape;
      plan.predicted = tried.predicted;
    }
  }
}

std::string_view words_of(Activations activations) {
  switch (activations) {
    case Activations::keep:
      return "kept";
    case Activations::selective:
      return "kept but for the largest";
    case Activations::recompute:
      return "recomputed";
    case Activations::host:
      return "on the host";
  }
  return "";
}

std::string saved_text(const Plan& plan, Activations activations) {
  if (plan.n_kept_more == 0) return std::string(words_of(activations));
  return fmt::format("of the last {} of {} blocks {}, of the others {}", plan.n_kept_more + 1,
                     plan.shape.n_blocks(), words_of(one_more_kept(activations)),
                     words_of(activations));
}

std::string reason(const PlanRequest& request, const Plan& plan, const Choice& choice) {
  const std::string resident = plan.n_resident > 0
                                   ? fmt::format("of {} of {} blocks on the GPU, of the others",
                                                 plan.n_resident, plan.shape.n_blocks())
                                   : "";
  const bool is_vertical = plan.shape.order == AccumulationOrder::vertical && plan.n_micro > 1;
  return fmt::format("{} micro-batch{} of {}{}; weights and states {}{}{}; saved tensors {}{}",
                     plan.n_micro, plan.n_micro == 1 ? "" : "es", plan.micro_batch_size,
                     is_vertical ? ", all through a block before the next block" : "", resident,
                     resident.empty() ? "" : " ",
                     choice.place == Place::gpu ? (request.has_gpu ? "on the GPU" : "in memory")
                                                : "on the host, streamed block by block",
                     saved_text(plan, choice.activations),
                     choice.boundaries == Place::host ? "; outputs of blocks on the host" : "");
}

/** A prediction tells no smaller difference: then the one that moves less is taken, which comes
 * first. */
constexpr double kPrediction_share = 0.02;

bool is_faster(const Plan& plan, const Plan& than) {
  return plan.predicted->step_s < than.predicted->step_s * (1 - kPrediction_share);
}

/** No fewer bytes of weights than these cross to the GPU in a step with all blocks on the host, of
 * which fill() may put as many on the GPU as its memory holds with their states. */
double least_fetched_bytes(const PlanRequest& request, const Plan& plan) {
  const StepShape& shape = plan.shape;
  double forward_bytes = 0, backward_bytes = 0, largest_bytes = 0, resident_bytes = 0;
  for (int b = 0; b < shape.n_blocks(); ++b) {
    const BlockShape& block = shape.blocks[static_cast<size_t>(b)];
    if (block.place == Place::gpu) continue;
    const auto bytes_of = [&](Segment segment) {
      return static_cast<double>(segment_bytes(shape, b, segment, block.n_elements));
    };
    const double weights = bytes_of(Segment::weights);
    forward_bytes += weights;
    if (b >= shape.first_backward()) backward_bytes += weights;
    largest_bytes = std::max(largest_bytes, weights);
    resident_bytes +=
        weights + bytes_of(Segment::master) + bytes_of(Segment::adam_m) + bytes_of(Segment::adam_v);
  }
  if (resident_bytes <= 0) return 0;
  const bool fills = request.has_gpu && request.trains && !request.placement;
  const double streamed_share =
      fills ? std::max(0.0, 1 - static_cast<double>(request.gpu_budget_bytes) / resident_bytes) : 1;
  const double n_passes =
      shape.order == AccumulationOrder::vertical ? 1 : static_cast<double>(plan.n_micro);
  // What a pass leaves in slots the next one finds there.
  const double kept_bytes = 2 * shape.n_weight_slots * largest_bytes;
  return n_passes * std::max(0.0, streamed_share * (forward_bytes + backward_bytes) - kept_bytes);
}

/** Whether a step would be if nothing but computing took time, and as little was made again as
 * keep_more() may leave; nor if nothing but copying weights did. */
bool can_be_faster(const CostModel& cost,
                   const PlanRequest& request,
                   const Plan& plan,
                   const Choice& choice,
                   const Plan& than) {
  const Activations most = one_more_kept(choice.activations);
  const double enough_s = than.predicted->step_s * (1 - kPrediction_share);
  return cost.passes_seconds(plan.n_micro, most) < enough_s &&
         cost.least_fetch_seconds(least_fetched_bytes(request, plan)) < enough_s;
}

}  // namespace

int64_t n_micro_most(const ModelTable& model, const PlanRequest& request) {
  // A GPU is told of work on the host through flags, one for each piece of a step. Elsewhere the
  // step's list and its regions, about half a KiB for each piece, are in memory beside the plan.
  constexpr int64_t kPieces_max_gpu = 60'000, kPieces_max_cpu = 200'000;
  const auto n_blocks = static_cast<int64_t>(model.blocks.size());
  return std::max<int64_t>(1, (request.has_gpu ? kPieces_max_gpu : kPieces_max_cpu) / n_blocks);
}

namespace {

/** A candidate, and what it leaves open. */
struct Variant {
  Candidate candidate;
  int n_weight_slots = kWeightSlots;
  double resident_share = 1;  ///< of the blocks that the card could hold
};

/** Lays a variant out and tells its time; keeps it as the plan if it is faster, or as the nearest
 * to one that fits. Whether it was kept as the plan. */
bool try_variant(const ModelTable& model,
                 const PlanRequest& request,
                 const Variant& variant,
                 Search& search) {
  const auto& [choice, size, order] = variant.candidate;
  if (size > kTokens_max / request.max_length) return false;
  Plan plan;
  const Shapes shapes = shapes_of(request, size);
  plan.largest = shapes.largest;
  plan.typical = shapes.typical;
  plan.micro_batch_size = size;
  plan.n_micro = (request.train_batch_size + size - 1) / size;
  if (plan.n_micro > n_micro_most(model, request)) {
    search.too_many = std::move(plan);
    return false;
  }
  plan.shape = make_step_shape(model, plan.largest, request, choice.place, choice.activations,
                               order, plan.n_micro, choice.boundaries);
  if (!request.n_weight_slots) plan.shape.n_weight_slots = variant.n_weight_slots;
  if (bytes_at_most(plan.shape) > kLaidOut_bytes_max) return false;
  // Where blocks live changes what passes between them, not what they cost.
  std::optional<CostModel> cost;
  if (request.machine)
    cost.emplace(*request.machine, request.has_gpu, model, plan.shape, plan.typical);
  if (search.plan && cost && !can_be_faster(*cost, request, plan, choice, *search.plan))
    return false;
  const bool fills =
      request.has_gpu && request.trains && !request.placement && choice.place == Place::host;
  const int64_t lacking =
      (fills ? fill(request, plan, search, variant.resident_share) : lay_out(request, plan, search))
          .total();
  if (lacking > 0) {
    plan.why = reason(request, plan, choice);
    if (lacking < search.lacking_bytes) {
      search.lacking_bytes = lacking;
      search.nearest = std::move(plan);
    }
    return false;
  }
  keep_more(request, plan, choice, search);
  if (cost) {
    plan.predicted = simulate_plan(*cost, request, plan);
    // What is late leaves the end of the step, and no more than that.
    const double least_s = std::max(
        least_seconds(plan),
        plan.predicted->step_s - plan.predicted->busy_s[static_cast<size_t>(QueueId::host)]);
    if (!search.plan || least_s < search.plan->predicted->step_s)
      choose_late_updates(*cost, request, plan);
  }
  plan.why = reason(request, plan, choice);
  if (search.plan && !is_faster(plan, *search.plan)) return false;
  search.plan = std::move(plan);
  return true;
}

/** All candidates with the outputs of blocks in one place; what was kept as the plan, if any was.
 */
std::optional<Variant> search_with(const ModelTable& model,
                                   const PlanRequest& request,
                                   Place boundaries,
                                   Search& search) {
  std::optional<Variant> kept;
  for (const Candidate& candidate : candidates_of(request, boundaries)) {
    const Variant variant = {.candidate = candidate};
    if (try_variant(model, request, variant, search)) kept = variant;
    if (search.plan && !request.machine) break;
  }
  return kept;
}

/** The plan's GPU memory shared out otherwise: fewer slots, fewer blocks whose states live there,
 * so that more of the saved tensors are kept. */
void share_out_otherwise(const ModelTable& model,
                         const PlanRequest& request,
                         const Variant& best,
                         Search& search) {
  if (!request.has_gpu || !request.trains || best.candidate.choice.place != Place::host) return;
  for (const int n_slots : {kWeightSlots, kWeightSlots_least})
    for (const double share : {1.0, 0.5, 0.0}) {
      if (n_slots == kWeightSlots && share == 1) continue;  // that is the plan
      if (n_slots != kWeightSlots && request.n_weight_slots) continue;
      if (share < 1 && (request.placement || search.plan->n_resident == 0)) continue;
      try_variant(model, request, {best.candidate, n_slots, share}, search);
    }
}

}  // namespace

Search search_plan(const ModelTable& model, const PlanRequest& request) {
  Search search;
  std::optional<Variant> best;
  for (Place boundaries : boundary_places_of(request)) {
    if (search.plan && !request.machine) break;
    if (const auto kept = search_with(model, request, boundaries, search)) best = kept;
  }
  if (best && request.machine) share_out_otherwise(model, request, *best, search);
  if (search.plan) search.plan->host_lacking_bytes = search.host_lacking_bytes;
  return search;
}

}  // namespace ferry
