// Candidates of placement and micro-batch in order of preference, each laid out until one fits.

#include "src/plan/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/plan/nvme_need.h"
#include "src/plan/search/candidates.h"
#include "src/plan/search/fill.h"
#include "src/plan/search/late_updates.h"
#include "src/plan/search/move_states.h"
#include "src/plan/search/rank_choices.h"

namespace ferry {
namespace {

/** An exbibyte: no machine has it, and twice as much is still far from the end of int64. */
constexpr double kLaidOut_bytes_max = 0x1p60;
/** An upper bound of the bytes that the layout of this shape takes. It is a double: the sum over
 * blocks may leave int64, while each block's numbers do not (kTokens_max, and the limits in
 * models/config_keys.h). */
double bytes_at_most(const StepShape& shape) {
  constexpr double kParameter_bytes = 4 + 4 + 4 + 4 + 4;  // weights, gradients, master, m, v
  double largest_elements = 0, bytes = 0, largest_saved_bytes = 0;
  for (int b = 0; b < shape.n_blocks(); ++b) {
    const auto elements = static_cast<double>(shape.n_slot_elements(b));
    const auto saved = static_cast<double>(shape.blocks[b].saved_bytes);
    bytes += elements * kParameter_bytes + saved * shape.n_live();
    largest_elements = std::max(largest_elements, elements);
    largest_saved_bytes = std::max(largest_saved_bytes, saved);
  }
  double largest_value_bytes = 0;
  for (const ValueShape& value : shape.values) {
    const auto n_bytes = static_cast<double>(value.n_bytes);
    bytes += n_bytes * shape.n_live();
    largest_value_bytes = std::max(largest_value_bytes, n_bytes);
  }
  return bytes + slot_bytes_at_most(shape, largest_elements, largest_elements) +
         largest_saved_bytes * (1 + shape.n_saved_slots) +
         largest_value_bytes * shape.n_layer_input_slots +
         static_cast<double>(shape.scratch_bytes) + static_cast<double>(shape.library_bytes) +
         static_cast<double>(shape.generation_bytes) +
         2.0 * static_cast<double>(shape.batch_bytes) * shape.n_micro_max +
         static_cast<double>(shape.save_buffer_bytes_max);
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

std::string place_text(const PlanRequest& request, const Plan& plan, const Choice& choice) {
  if (choice.place == Place::device) return request.has_gpu ? "on the GPU" : "in memory";
  if (plan.n_states > 0)
    return fmt::format(
        "on the host, streamed block by block but for the states of {} that stay on the GPU, which "
        "updates them",
        plan.n_states);
  if (plan.n_weights == 0) return "on the host, streamed block by block";
  const bool all = plan.n_resident + plan.n_weights == plan.shape.n_blocks();
  return all ? "on the host, the weights on the GPU, too"
             : fmt::format(
                   "on the host, streamed block by block but for {} whose weights stay on "
                   "the GPU",
                   plan.n_weights);
}

std::string reason(const PlanRequest& request, const Plan& plan, const Choice& choice) {
  const std::string resident = plan.n_resident > 0
                                   ? fmt::format("of {} of {} blocks on the GPU, of the others",
                                                 plan.n_resident, plan.shape.n_blocks())
                                   : "";
  const int64_t n_whole = plan.n_micro / plan.shape.ranks.sharing.n_ranks();
  const bool is_vertical = plan.shape.order == AccumulationOrder::vertical && n_whole > 1;
  std::string on_nvme;
  for (const auto& [what, n] :
       {std::pair{"states", plan.n_on_nvme}, std::pair{"weights", plan.n_weights_on_nvme},
        std::pair{"gradients", plan.n_grads_on_nvme}})
    if (n > 0)
      on_nvme += fmt::format("; {} of {} of {} blocks on NVMe", what, n, plan.shape.n_blocks());
  return fmt::format("{} micro-batch{} of {}{}; weights and states {}{}{}{}; saved tensors {}{}{}",
                     n_whole, n_whole == 1 ? "" : "es", plan.micro_batch_size,
                     is_vertical ? ", all through a block before the next block" : "", resident,
                     resident.empty() ? "" : " ", place_text(request, plan, choice), on_nvme,
                     saved_text(plan, choice.activations),
                     choice.layer_inputs == Place::host ? "; outputs of blocks on the host" : "",
                     rank_choices_text(plan.shape));
}

double faster_than_seconds(const Plan& plan) {
  return plan.predicted->step_s * (1 - kPrediction_share);
}

/** A lower bound of the bytes of weights that cross to the GPU in a step. Before fill(), with all
 * blocks on the host (`is_filled` false), as many of them may yet be put on the GPU as its memory
 * holds with their states. */
double least_fetched_bytes(const PlanRequest& request, const Plan& plan, bool is_filled) {
  const StepShape& shape = plan.shape;
  double forward_bytes = 0, backward_bytes = 0, largest_bytes = 0, resident_bytes = 0;
  for (int b = 0; b < shape.n_blocks(); ++b) {
    const BlockShape& block = shape.blocks[b];
    if (block.place.weights == Place::device) continue;
    const auto bytes_of = [&](Segment segment) {
      return static_cast<double>(segment_bytes(shape, b, segment));
    };
    const double weights = bytes_of(Segment::weights);
    double states = 0;
    if (shape.is_trained(b))
      for (const Segment segment : saved_segments(shape.optim))
        states += bytes_of(segment);
    forward_bytes += weights;
    if (b >= shape.first_backward()) backward_bytes += weights;
    largest_bytes = std::max(largest_bytes, weights);
    resident_bytes += weights + states;
  }
  if (resident_bytes <= 0) return 0;
  const bool fills = !is_filled && request.has_gpu && request.trains && !request.placement;
  const double streamed_share =
      fills ? std::max(0.0, 1 - static_cast<double>(gpu_budget_of(request, shape)) / resident_bytes)
            : 1;
  const double n_passes =
      shape.order == AccumulationOrder::vertical ? 1 : static_cast<double>(shape.n_micro_max);
  // A pass finds in the slots what the pass before it left there.
  const double kept_bytes = 2 * shape.n_weight_slots * largest_bytes;
  return n_passes * std::max(0.0, streamed_share * (forward_bytes + backward_bytes) - kept_bytes);
}

/** True where the plan cannot be faster than `than` by more than predictions tell apart, however
 * much they are off: it has the same products, and no queue has less to do. */
bool only_adds_work(const Plan& plan, const Plan& than) {
  constexpr double kSame = 0.01;
  if (plan.micro_batch_size != than.micro_batch_size) return false;
  const double least_s = kSame * than.predicted->step_s;
  for (size_t q = 0; q < kQueues; ++q)
    if (plan.predicted->alone_s[q] < than.predicted->alone_s[q] - least_s) return false;
  return plan.predicted->step_s > than.predicted->step_s - least_s;
}

constexpr int kGradSlots = 2, kGradSlots_most = 8;
/** The numbers of slots for gradients to be tried. A rank with a smaller share begins a backward
 * before the rounds in which others have theirs. None of these waits for it if each round of its
 * turn has a slot. */
std::vector<int> grad_slots_of(const PlanRequest& request, const Choice& choice) {
  const bool has_turns = request.machine && !request.shares.empty() &&
                         request.n_stages.value_or(1) == 1 &&
                         request.reduction.value_or(Reduction::ordered) == Reduction::ordered &&
                         choice.order == AccumulationOrder::vertical;
  if (!has_turns) return {kGradSlots};
  const auto [least, most] = std::ranges::minmax(request.shares);
  const int n = std::min((most + least - 1) / least, kGradSlots_most);
  return n > kGradSlots ? std::vector{n, kGradSlots} : std::vector{kGradSlots};
}

/** A candidate, and what it leaves open. */
struct Variant {
  Candidate candidate;
  int n_weight_slots = kWeightSlots;
  Filling filling;
  bool uses_nvme = false;  ///< states that the host has no room for live on a drive
  int n_grad_slots = kGradSlots;
  bool operator==(const Variant&) const = default;
};

/** The least seconds that a rank's passes take, of the rank that takes the longest. */
double least_passes_seconds(const RankCosts& costs,
                            const Plan& plan,
                            std::optional<Activations> most = {}) {
  const Ranks& ranks = plan.shape.ranks;
  if (ranks.n_stages > 1 || (ranks.shares.empty() && !costs.are_unlike()))
    return costs.first().passes_seconds(plan.shape.n_micro_max, most);
  const Rounds rounds(ranks, static_cast<int>(plan.n_micro));
  // Shares say how fast the GPUs are if the profile does not: the first rank speaks for itself.
  const int n_known = costs.are_unlike() ? ranks.world : 1;
  std::map<int, int> n_micro_of_kind;
  for (int rank = 0; rank < n_known; ++rank) {
    int& n_micro = n_micro_of_kind[costs.kind_of(rank)];
    n_micro = std::max(n_micro, rounds.n_of(rank));
  }
  double most_s = 0;
  for (int rank = 0; rank < n_known; ++rank)
    if (const auto its = n_micro_of_kind.extract(costs.kind_of(rank)))
      most_s = std::max(most_s, costs.of(rank).passes_seconds(its.mapped(), most));
  return most_s;
}

/** False where a lower bound of a step's time is no less than what is wanted. One bound is
 * computing alone, with as little recomputed as keep_more() may leave; the other is copying
 * weights alone. */
bool can_be_faster(const RankCosts& costs,
                   const PlanRequest& request,
                   const Plan& plan,
                   const Variant& variant,
                   double enough_s) {
  const Activations most = one_more_kept(variant.candidate.choice.activations);
  return least_passes_seconds(costs, plan, most) < enough_s &&
         (variant.filling.part == Filling::Part::weights ||
          costs.first().least_fetch_seconds(
              least_fetched_bytes(request, plan, /*is_filled=*/false)) < enough_s);
}

/** The same of a plan that is laid out, before it is simulated. */
bool can_be_faster(const RankCosts& costs,
                   const PlanRequest& request,
                   const Plan& plan,
                   double enough_s) {
  return least_passes_seconds(costs, plan) < enough_s &&
         costs.first().least_fetch_seconds(least_fetched_bytes(request, plan, /*is_filled=*/true)) <
             enough_s;
}

}  // namespace

int64_t n_micro_most(const ModelTable& model, const PlanRequest& request) {
  // A GPU is told of work on the host through flags, one for each piece of a step. Elsewhere the
  // step's list and its regions, about half a KiB for each piece, are in memory beside the plan.
  constexpr int64_t kPieces_max_gpu = 60'000, kPieces_max_cpu = 200'000;
  const auto n_blocks = static_cast<int64_t>(model.blocks.size());
  const Ranks ranks = {
      .world = request.world, .shares = request.shares, .n_stages = request.n_stages.value_or(1)};
  const int64_t n_rounds =
      std::max<int64_t>(1, (request.has_gpu ? kPieces_max_gpu : kPieces_max_cpu) / n_blocks);
  return n_micro_of_rounds(ranks, n_rounds) / model.sharing.n_ranks();
}

namespace {

class Searcher {
 public:
  /** `rival_share` is for rivals(), and `below_s` is as in search_plan(). */
  Searcher(const ModelTable& model,
           const PlanRequest& request,
           Takes takes,
           std::optional<double> rival_share = {},
           std::optional<double> below_s = {})
      : model_(model),
        request_(request),
        compares_times_(request.machine && takes == Takes::fastest),
        keeps_rivals_(rival_share.has_value()),
        near_share_(rival_share),
        below_s_(below_s) {
    if (compares_times_ && may_rebalance()) near_share_ = rival_share.value_or(kRival_share);
  }

  Search go() {
    if (request_.placement != Place::nvme) try_candidates(/*uses_nvme=*/false);
    if (may_use_nvme(request_)) try_nvme();
    leave_updates_late();
    if (found_.plan && compares_times_) rebalance();
    if (found_.plan) found_.nearest.reset();
    for (std::optional<Plan>* plan : {&found_.plan, &found_.nearest})
      if (*plan) (*plan)->layout = make_layout((*plan)->shape);
    if (found_.plan) found_.plan->host_lacking_bytes = found_.host_lacking_bytes;
    return std::move(found_);
  }

  std::vector<Plan> rivals() {
    constexpr size_t kMost = 12;
    const std::optional<Plan> taken = go().plan;
    if (!taken || !taken->predicted) return {};
    std::vector<Plan> plans = {*taken};
    for (Found& one : near_plans()) {
      if (plans.size() == kMost) break;
      if (one.variant.candidate == best_.candidate) continue;
      const auto is_beside = [&](const Plan& other) { return only_adds_work(one.plan, other); };
      if (std::ranges::any_of(plans, is_beside)) continue;
      one.plan.layout = make_layout(one.plan.shape);
      plans.push_back(std::move(one.plan));
    }
    return plans;
  }

 private:
  /** A plan, and what it is made of. */
  struct Found {
    Variant variant;
    Plan plan;
  };

  bool updates_may_be_late() const {
    return compares_times_ && request_.has_gpu && request_.trains && !request_.clips;
  }

  /** Plans with a drive of unknown speed are the last resort. */
  void try_nvme() {
    const bool knows_drive = request_.machine && !request_.machine->nvme.empty();
    if (found_.plan && !(compares_times_ && knows_drive)) return;
    compares_times_ = compares_times_ && knows_drive;
    // The nearest plan uses the drive.
    found_.nearest.reset();
    found_.lacking_bytes = INT64_MAX;
    try_candidates(/*uses_nvme=*/true);
  }
  void try_candidates(bool uses_nvme) {
    try_candidates(kWeightSlots, uses_nvme);
    if (!found_.plan && is_a_slot_short()) try_candidates(kWeightSlots_least, uses_nvme);
  }
  void try_candidates(int n_weight_slots, bool uses_nvme) {
    for (Place layer_inputs : layer_input_places_of(request_)) {
      if (found_.plan && !compares_times_) break;
      try_candidates(layer_inputs, n_weight_slots, uses_nvme);
    }
  }
  /** Tries all candidates with layer inputs in one place. */
  void try_candidates(Place layer_inputs, int n_weight_slots, bool uses_nvme) {
    for (const Candidate& candidate : candidates_of(request_, layer_inputs, model_.sharing)) {
      for (const int n_grad_slots : grad_slots_of(request_, candidate.choice))
        try_variant({.candidate = candidate,
                     .n_weight_slots = n_weight_slots,
                     .uses_nvme = uses_nvme,
                     .n_grad_slots = n_grad_slots});
      if (found_.plan && !compares_times_) break;
    }
  }
  void try_variant(const Variant& variant) {
    if (variant.uses_nvme && fits_in_memory(variant)) return;
    std::optional<Plan> plan = plan_of(variant);
    if (!plan) return;
    if (updates_may_be_late() && may_defer_updates(*plan)) in_time_.push_back({variant, *plan});
    keep_if_faster(variant, std::move(*plan));
  }
  /** True of what was tried without a drive and needs none. */
  bool fits_in_memory(Variant variant) const {
    variant.uses_nvme = false;
    return std::ranges::find(fit_in_memory_, variant) != fit_in_memory_.end();
  }
  /** True where a plan that lacked no more bytes than slots take may fit with fewer slots. */
  bool is_a_slot_short() const {
    if (request_.n_weight_slots || !found_.nearest) return false;
    const StepShape& shape = found_.nearest->shape;
    const int64_t slot_bytes =
        most_slot_elements(shape) * static_cast<int64_t>(size_of(shape.compute));
    return found_.lacking_bytes <= (kWeightSlots - kWeightSlots_least) * slot_bytes;
  }
  /** True where late updates may make the plan the fastest. */
  bool may_defer_updates(const Plan& plan) const {
    const std::optional<double> enough_s = enough_seconds();
    return !enough_s || least_seconds_with_late_updates(plan) < *enough_s;
  }

  double near_seconds(const Plan& of) const {
    return of.predicted->step_s * (1 + near_share_.value_or(0));
  }
  /** A plan that takes longer is of no use. Nothing where any plan is. */
  std::optional<double> enough_seconds() const {
    std::optional<double> enough_s;
    if (below_s_) enough_s = *below_s_ * (1 + near_share_.value_or(0));
    if (!found_.plan || !found_.plan->predicted) return enough_s;
    const double found_s =
        near_share_ ? near_seconds(*found_.plan) : faster_than_seconds(*found_.plan);
    return std::min(found_s, enough_s.value_or(found_s));
  }
  /** The fastest plan of each candidate, if it is near the fastest of all; the fastest first. */
  std::vector<Found> near_plans() const {
    std::vector<Found> all = near_, plans;
    std::ranges::stable_sort(all, {}, [](const Found& one) { return one.plan.predicted->step_s; });
    for (Found& one : all) {
      if (one.plan.predicted->step_s > near_seconds(*found_.plan)) break;
      const auto is_same = [&](const Found& other) {
        return other.variant.candidate == one.variant.candidate;
      };
      if (std::ranges::none_of(plans, is_same)) plans.push_back(std::move(one));
    }
    return plans;
  }

  /** The fastest first: others whose bound is above what comes of that need not be tried. */
  void leave_updates_late() {
    if (!found_.plan || !updates_may_be_late()) return;
    choose_late_updates(model_, request_, *found_.plan);
    std::erase_if(in_time_, [&](const Found& one) { return one.variant == best_; });
    std::ranges::stable_sort(in_time_, {},
                             [](const Found& one) { return one.plan.predicted->step_s; });
    for (Found& one : in_time_) {
      if (!may_defer_updates(one.plan)) continue;
      choose_late_updates(model_, request_, one.plan);
      keep_if_faster(one.variant, std::move(one.plan));
    }
  }

  /** Only the memory of a GPU is divided. */
  bool may_rebalance() const { return request_.has_gpu && request_.trains; }
  /** Divides the memory in another way. What that gains is not known before it was tried, so it is
   * tried of each plan that is near the fastest: one that is slower as it is may become the
   * fastest.
   */
  void rebalance() {
    if (!may_rebalance()) return;
    std::vector<Found> near = near_plans();
    near.insert(near.begin(), {best_, *found_.plan});
    // Plans that are slower than the fastest are wanted of whoever asks for rivals alone.
    if (!keeps_rivals_) near_share_.reset();
    for (size_t i = 0; i < near.size(); ++i) {
      const Candidate& candidate = near[i].variant.candidate;
      if (candidate.choice.place == Place::host &&
          (i == 0 || candidate != near[0].variant.candidate))
        rebalance(near[i].variant, near[i].plan);
    }
  }
  /** Fewer slots, and fewer blocks that live on the GPU, so that more activations are kept, or the
   * weights or the states of more blocks. */
  void rebalance(const Variant& start, const Plan& started) {
    using Part = Filling::Part;
    const bool may_gain_by_weights = !request_.placement && copies_bind(started),
               may_gain_by_states = !request_.placement && updates_bind(started);
    for (const Part part : {Part::none, Part::weights, Part::states})
      for (const int n_slots : {kWeightSlots, kWeightSlots_least})
        for (const double share : shares_for(part)) {
          const Variant variant = {
              start.candidate, n_slots, {share, part}, start.uses_nvme, start.n_grad_slots};
          if (variant == start) continue;
          if (part == Part::weights && !may_gain_by_weights) continue;
          const bool are_cut = request_.n_stages.value_or(1) < request_.world;
          if (part == Part::states && (!may_gain_by_states || are_cut)) continue;
          if (n_slots != kWeightSlots && request_.n_weight_slots) continue;
          if (share < 1 && (request_.placement || started.n_resident == 0)) continue;
          std::optional<Plan> plan = plan_of(variant);
          if (!plan) continue;
          if (updates_may_be_late() && may_defer_updates(*plan))
            choose_late_updates(model_, request_, *plan);
          keep_if_faster(variant, std::move(*plan));
        }
  }
  /** The shares of the blocks that the card could hold, to be tried. With all of them there is no
   * room for more states; with few, copies take longer than the updates that they save. */
  static std::vector<double> shares_for(Filling::Part part) {
    if (part == Filling::Part::states) return {0.75, 0.5};
    return {1.0, 0.5, 0.0};
  }
  /** Weights that stay cross once a step. Where copies take little of it, that gains little. */
  static bool copies_bind(const Plan& plan) {
    constexpr double kShare = 0.3;
    return plan.predicted->busy_s[QueueId::h2d] > kShare * plan.predicted->step_s;
  }
  /** States that stay are updated there, of more blocks than where their weights and gradients
   * stay, too. Where the host's updates take little of the step, that gains little. */
  static bool updates_bind(const Plan& plan) {
    constexpr double kShare = 0.2;
    return plan.predicted->host_updates_s > kShare * plan.predicted->step_s;
  }

  /** A plan of micro-batches of this size with nothing chosen; nothing where it cannot be laid
   * out. */
  std::optional<Plan> bare_plan(int64_t size) {
    if (size > kTokens_max / request_.max_length) return {};
    Plan plan;
    const Shapes shapes = shapes_of(request_, size, model_.sharing);
    if (request_.has_gpu &&
        (shapes.largest.tokens > kGpuTokens_max || shapes.largest.n_seqs_max > kGridRows_max)) {
      found_.is_too_large = true;
      return {};
    }
    plan.largest = shapes.largest;
    plan.typical = shapes.typical;
    plan.micro_batch_size = size;
    plan.n_micro = (request_.train_batch_size + size - 1) / size * model_.sharing.n_ranks();
    if (plan.n_micro > n_micro_most(model_, request_) * model_.sharing.n_ranks()) {
      found_.too_many = std::move(plan);
      return {};
    }
    plan.shape = make_step_shape(model_, plan.largest, request_, plan.n_micro);
    return plan;
  }

  /** Lays a variant out and tells its time; nothing where it cannot be faster than what was found,
   * or does not fit: then it may be the nearest to one that does. */
  std::optional<Plan> plan_of(const Variant& variant) {
    const auto& [choice, size] = variant.candidate;
    auto bare = bare_plans_.find(size);
    if (bare == bare_plans_.end()) bare = bare_plans_.emplace(size, bare_plan(size)).first;
    if (!bare->second) return {};
    Plan plan = *bare->second;
    plan.choice = choice;
    choose(plan.shape, model_, choice);
    if (!request_.n_weight_slots) plan.shape.n_weight_slots = variant.n_weight_slots;
    plan.shape.n_grad_slots = variant.n_grad_slots;
    if (bytes_at_most(plan.shape) > kLaidOut_bytes_max) return {};
    // One model for all plans: the place of a block changes what passes between blocks, not what
    // they cost.
    std::optional<RankCosts> costs;
    if (compares_times_)
      costs.emplace(*request_.machine, request_.has_gpu, model_, plan.shape, plan.typical);
    if (const auto enough_s = enough_seconds();
        enough_s && costs && !can_be_faster(*costs, request_, plan, variant, *enough_s))
      return {};
    const bool fills =
        request_.has_gpu && request_.trains && !request_.placement && choice.place == Place::host;
    const Shortfall in_memory =
        fills ? fill(request_, plan, found_, variant.filling) : fit(request_, plan.shape, found_);
    int64_t lacking = in_memory.total();
    if (variant.uses_nvme && in_memory.gpu_bytes == 0) {
      if (lacking > 0 && costs && !can_be_faster_on_nvme(costs->first(), lacking)) return {};
      if (lacking > 0 || request_.placement) lacking = move_states(request_, plan, found_).total();
    }
    if (lacking == 0 && !variant.uses_nvme) fit_in_memory_.push_back(variant);
    if (lacking == 0) keep_more(request_, plan, choice, found_);
    plan.why = reason(request_, plan, choice);
    if (lacking > 0) {
      if (lacking >= found_.lacking_bytes) return {};
      found_.lacking_bytes = lacking;
      found_.nearest = std::move(plan);
      return {};
    }
    if (!costs) return plan;
    if (const auto enough_s = enough_seconds();
        enough_s && !can_be_faster(*costs, request_, plan, *enough_s))
      return {};
    plan.predicted = simulate_plan(*costs, request_, plan);
    return plan;
  }
  /** False where the drive takes too long for so many bytes of states that memory lacks. */
  bool can_be_faster_on_nvme(const CostModel& cost, int64_t lacking_bytes) const {
    const std::optional<double> enough_s = enough_seconds();
    if (!enough_s) return true;
    const NvmeProfile& drive = request_.machine->nvme.front();
    const auto n_bytes = static_cast<double>(lacking_bytes);
    return cost.least_drive_seconds(n_bytes / drive.read_bytes_per_s,
                                    n_bytes / drive.write_bytes_per_s) < *enough_s;
  }

  void keep_if_faster(const Variant& variant, Plan plan) {
    if (near_share_ && plan.predicted &&
        (!found_.plan || plan.predicted->step_s <= near_seconds(*found_.plan)))
      near_.push_back({variant, plan});
    if (found_.plan && plan.predicted->step_s >= faster_than_seconds(*found_.plan)) return;
    found_.plan = std::move(plan);
    best_ = variant;
  }

  const ModelTable& model_;
  const PlanRequest& request_;
  bool compares_times_;
  bool keeps_rivals_;
  /** Plans that take no more than this share longer than the fastest are kept, too. */
  std::optional<double> near_share_;
  std::optional<double> below_s_;                      ///< slower plans are of no use to the caller
  std::map<int64_t, std::optional<Plan>> bare_plans_;  ///< by size of the micro-batch
  Search found_;
  Variant best_;                ///< the variant of the plan that was found
  std::vector<Found> in_time_;  ///< plans whose updates all end within their step
  std::vector<Found> near_;
  std::vector<Variant> fit_in_memory_;
};

}  // namespace

namespace {

bool also_generates(const PlanRequest& request) {
  return request.trains && request.generation.n_sequences > 0;
}

}  // namespace

Search search_plan(const ModelTable& model,
                   const PlanRequest& request,
                   Takes takes,
                   std::optional<double> below_s) {
  if (!also_generates(request) || request.micro_batch_size)
    return Searcher(model, request, takes, {}, below_s).go();
  // The micro-batch fixes the bits of a training: it is chosen as if nothing was generated.
  PlanRequest both = request, trains = request;
  trains.generation = {};
  Search search = Searcher(model, trains, takes).go();
  if (!search.plan) return search;
  both.micro_batch_size = search.plan->micro_batch_size;
  return Searcher(model, both, takes).go();
}

std::vector<Plan> search_rivals(const ModelTable& model, const PlanRequest& wishes, double share) {
  const PlanRequest request = settle_rank_choices(model, wishes).request;
  const auto rivals_of = [&](const PlanRequest& of) {
    return Searcher(model, of, Takes::fastest, share).rivals();
  };
  if (!also_generates(request) || request.micro_batch_size) return rivals_of(request);
  PlanRequest both = request, trains = request;
  trains.generation = {};
  std::vector<Plan> plans;
  std::vector<int64_t> sizes;
  for (const Plan& plan : rivals_of(trains)) {
    if (std::ranges::find(sizes, plan.micro_batch_size) != sizes.end()) continue;
    sizes.push_back(plan.micro_batch_size);
    both.micro_batch_size = plan.micro_batch_size;
    std::ranges::move(rivals_of(both), std::back_inserter(plans));
  }
  if (plans.empty()) return plans;
  std::stable_sort(plans.begin() + 1, plans.end(), [](const Plan& a, const Plan& b) {
    return a.predicted->step_s < b.predicted->step_s;
  });
  const double most_s = plans.front().predicted->step_s * (1 + share);
  std::erase_if(plans, [&](const Plan& plan) { return plan.predicted->step_s > most_s; });
  return plans;
}

}  // namespace ferry
