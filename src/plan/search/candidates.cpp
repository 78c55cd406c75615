#include "src/plan/search/candidates.h"

#include <algorithm>
#include <numeric>

#include "src/base/bytes.h"

namespace ferry {
namespace {

/** The choices with layer inputs in this place, the preferred one first. The order of accumulation
 * is left open. */
std::vector<Choice> choices_of(const PlanRequest& request, Place layer_inputs) {
  constexpr std::pair<Place, Activations> kAll[] = {
      {Place::device, Activations::keep},      {Place::device, Activations::selective},
      {Place::device, Activations::recompute}, {Place::host, Activations::keep},
      {Place::host, Activations::selective},   {Place::host, Activations::recompute},
      {Place::device, Activations::host},      {Place::host, Activations::host}};
  // Without times, activations go to the host only where the user asks for it: the PCIe link may be
  // too slow.
  const bool may_save_on_host = request.machine && request.has_gpu && request.trains;
  std::optional<Place> wish = request.placement;
  if (wish == Place::nvme) wish = request.has_gpu ? Place::host : Place::device;
  std::vector<Choice> choices;
  for (const auto& [place, activations] : kAll)
    if (place == wish.value_or(place) &&
        (request.activations ? activations == *request.activations
                             : activations != Activations::host || may_save_on_host))
      choices.push_back({.place = place, .activations = activations, .layer_inputs = layer_inputs});
  return choices;
}

/** Fewer tokens than this leave a GPU idle between launches: smaller micro-batches are tried last.
 */
constexpr int64_t kMicroBatchTokens_min = 2048;

/** Vertical moves each block's weights once a step and keeps more alive: resident blocks gain
 * nothing by it, and where times are not known horizontal is taken. With several stages both are
 * tried for resident blocks, which the orders deal in another way. */
std::vector<AccumulationOrder> orders_of(const PlanRequest& request,
                                         const Choice& choice,
                                         int64_t size) {
  if (request.order) return {*request.order};
  const bool has_stages = request.n_stages.value_or(1) > 1;
  if (has_stages && size < request.train_batch_size && choice.place == Place::device)
    return {AccumulationOrder::vertical, AccumulationOrder::horizontal};
  if (has_stages) return {AccumulationOrder::vertical};
  // Ranks in unlike shares wait for each other less often, too.
  const bool may_gain = choice.place == Place::host || !request.shares.empty();
  const bool can_gain =
      request.machine && request.trains && may_gain && size < request.train_batch_size;
  if (can_gain) return {AccumulationOrder::vertical, AccumulationOrder::horizontal};
  return {AccumulationOrder::horizontal};
}

}  // namespace

Shapes shapes_of(const PlanRequest& request, int64_t micro_batch_size, const Sharing& sharing) {
  // The token count is rounded up to one of a few sizes, the largest of which holds every
  // micro-batch there is; what is left over is cut into dummy sequences of max_length.
  const int64_t sample = request.sequences_per_sample * request.max_length;
  const int64_t full = micro_batch_size * sample;
  // The last micro-batch may be a short one.
  const int64_t n_micro = (request.train_batch_size + micro_batch_size - 1) / micro_batch_size;
  const int64_t mean = (request.train_batch_size + n_micro - 1) / n_micro * sample;
  const TextTokens texts = request.text_tokens
                               ? request.text_tokens(request.train_batch_size, micro_batch_size)
                               : TextTokens{full, mean, request.max_length,
                                            micro_batch_size * request.sequences_per_sample};
  const auto shape = [&](int64_t n_tokens, int64_t length) -> BatchShape {
    const int64_t tokens =
        round_up(std::clamp<int64_t>(n_tokens, 1, full), token_multiple(sharing.sp_size));
    const int64_t n_dummies = (tokens + request.max_length - 1) / request.max_length;
    const BatchShape whole = {.tokens = tokens,
                              .n_seqs_max = std::max(texts.n_seqs, micro_batch_size) + n_dummies,
                              .max_length = std::clamp<int64_t>(length, 1, request.max_length)};
    return sharing.sp_size > 1 ? part_of_tokens(whole, sharing.sp_size) : whole;
  };
  return {shape(texts.most, request.max_length), shape(texts.typical, texts.attended)};
}

std::vector<Place> layer_input_places_of(const PlanRequest& request) {
  if (request.layer_inputs) return {*request.layer_inputs};
  if (!request.has_gpu || !request.trains) return {Place::device};
  return {Place::device, Place::host};
}

std::vector<Candidate> candidates_of(const PlanRequest& request,
                                     Place layer_inputs,
                                     const Sharing& sharing) {
  std::vector<int64_t> sizes;
  if (request.micro_batch_size) {
    sizes = {std::min(*request.micro_batch_size, request.train_batch_size)};
  } else {
    // Each rank has as many as its share at least; with several stages, so many keep all of them at
    // work.
    const int64_t n_least =
        std::accumulate(request.shares.begin(), request.shares.end(), int64_t{0});
    const int64_t n = std::max<int64_t>(n_least, request.world / sharing.n_ranks());
    for (int64_t size = (request.train_batch_size + n - 1) / n; size > 1; size = (size + 1) / 2)
      sizes.push_back(size);
    sizes.push_back(1);
  }
  std::vector<Candidate> preferred, last;
  for (Choice choice : choices_of(request, layer_inputs))
    for (int64_t size : sizes) {
      const bool large =
          size == sizes.front() || size * request.max_length >= kMicroBatchTokens_min;
      for (AccumulationOrder order : orders_of(request, choice, size)) {
        choice.order = order;
        (large ? preferred : last).push_back({choice, size});
      }
    }
  preferred.insert(preferred.end(), last.begin(), last.end());
  return preferred;
}

}  // namespace ferry
