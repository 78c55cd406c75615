#include "src/plan/advice/changes.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/plan/search/search.h"

namespace ferry {
namespace {

/** Texts cut shorter than this are no advice. */
constexpr int64_t kLength_least = 32;

}  // namespace

PlanRequest changed(PlanRequest request, const Changes& changes) {
  for (const Change& change : changes)
    change.make(request);
  return request;
}

std::string words_of(const Changes& changes) {
  std::vector<std::string> parts;
  for (bool leaves_out : {true, false}) {
    std::vector<std::string> options;
    for (const Change& change : changes)
      if (change.leaves_out == leaves_out) options.push_back(change.option);
    if (!options.empty())
      parts.push_back(
          fmt::format("{} {}", leaves_out ? "without" : "with", fmt::join(options, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

bool fits(const ModelTable& model, const PlanRequest& request) {
  return search_plan(model, request, Takes::first).plan.has_value();
}

Changes without_wishes(const PlanRequest& request) {
  Changes changes;
  const auto leave_out = [&](std::string option, auto wish) {
    changes.push_back({std::move(option), [wish](PlanRequest& r) { (r.*wish).reset(); }, true});
  };
  if (request.placement)
    leave_out(
        fmt::format("placement = {}",
                    *request.placement == Place::device ? "resident" : name_of(*request.placement)),
        &PlanRequest::placement);
  if (request.activations)
    leave_out(fmt::format("activations = {}", name_of(*request.activations)),
              &PlanRequest::activations);
  if (request.layer_inputs)
    leave_out(fmt::format("layer_inputs = {}", name_of(*request.layer_inputs)),
              &PlanRequest::layer_inputs);
  if (request.order == AccumulationOrder::vertical)
    leave_out("accumulation_order = vertical", &PlanRequest::order);
  if (request.trains && request.generation.n_sequences > 0)
    changes.push_back({"sample_prompts", [](PlanRequest& r) { r.generation = {}; }, true});
  // The planner tries fewer slots by itself where their number is left open.
  if (request.has_gpu && request.n_weight_slots.value_or(0) > kWeightSlots_least)
    changes.push_back({fmt::format("slots = {}", kWeightSlots_least),
                       [](PlanRequest& r) { r.n_weight_slots = kWeightSlots_least; }});
  return changes;
}

Changes with_saved_on_host(const PlanRequest& request) {
  if (!request.has_gpu || !request.trains || request.activations == Activations::host ||
      (request.machine && !request.activations))
    return {};
  return {{"activations = host", [](PlanRequest& r) { r.activations = Activations::host; }}};
}

Changes with_nvme(const PlanRequest& request) {
  if (!request.trains || request.has_nvme) return {};
  return {{"nvme_path = DIR", [](PlanRequest& r) {
             r.has_nvme = true;
             r.nvme_budget_bytes = INT64_MAX;
           }}};
}

namespace {

/** A micro-batch of `size`. Steps are named as well, so that the samples of a step stay the same
 * however the user gave them: `size` divides them. */
Change with_micro_batch(const PlanRequest& request, int64_t size) {
  std::string option = fmt::format("per_device_train_batch_size = {}", size);
  if (request.trains)
    option += fmt::format(", gradient_accumulation_steps = {}", request.train_batch_size / size);
  return {std::move(option), [size](PlanRequest& r) {
            r.micro_batch_size = size;
            if (!r.trains) r.train_batch_size = size;
          }};
}

/** Largest divisor of n that is no more than `most`. */
int64_t divisor_below(int64_t n, int64_t most) {
  while (n % most != 0)
    --most;
  return most;
}

}  // namespace

Changes with_smaller_micro_batches(const PlanRequest& request) {
  Changes changes;
  for (int64_t size = request.micro_batch_size.value_or(1); size > 1;) {
    size = divisor_below(request.train_batch_size, std::max<int64_t>(1, size / 2));
    changes.push_back(with_micro_batch(request, size));
  }
  return changes;
}

Changes with_smallest_micro_batch(const ModelTable& model, const PlanRequest& request) {
  if (request.micro_batch_size.value_or(1) <= 1) return {};
  int64_t size = 1;
  const int64_t most = n_micro_most(model, request);
  if (request.trains)
    while (request.train_batch_size % size != 0 || request.train_batch_size / size > most)
      ++size;
  return {with_micro_batch(request, size)};
}

Changes with_shorter_texts(const PlanRequest& request) {
  Changes changes;
  for (int64_t length = request.max_length / 2; length >= kLength_least; length /= 2)
    changes.push_back({fmt::format("max_length = {}", length),
                       [length](PlanRequest& r) { r.max_length = length; }});
  return changes;
}

Changes with_smaller_steps(const PlanRequest& request) {
  Changes changes;
  for (int64_t size = request.train_batch_size / 2; size > 0 && request.trains; size /= 2)
    changes.push_back({fmt::format("train_batch_size = {}", size),
                       [size](PlanRequest& r) { r.train_batch_size = size; }});
  return changes;
}

Changes with_reduced_states(const ModelTable& model, const PlanRequest& request) {
  Changes changes;
  if (!request.trains) return changes;
  constexpr simd::Optim kFewest = simd::Optim::adamw_8bit;
  if (simd::state_bytes(request.optim, 1 << 20) > simd::state_bytes(kFewest, 1 << 20))
    changes.push_back({fmt::format("optim = {}", simd::spec_of(kFewest).name),
                       [](PlanRequest& r) { r.optim = kFewest; }});
  if (model.compute == DType::bf16 && !request.split_master)
    changes.push_back({"master = split", [](PlanRequest& r) { r.split_master = true; }});
  return changes;
}

namespace {

/** Several changes at once, the mildest first: all that leave placement and micro-batches to the
 * planner, and shorter and shorter texts. */
std::vector<Changes> several_at_once(const ModelTable& model, const PlanRequest& request) {
  const Changes micro = with_smallest_micro_batch(model, request);
  PlanRequest any_activations = request;
  any_activations.activations.reset();
  Changes open = without_wishes(request), on_host = without_wishes(any_activations);
  const Changes saved = with_saved_on_host(request);
  for (Changes* changes : {&open, &on_host})
    changes->insert(changes->end(), micro.begin(), micro.end());
  on_host.insert(on_host.end(), saved.begin(), saved.end());
  std::vector<Changes> all = {open};
  if (!saved.empty()) all.push_back(on_host);
  for (const Change& shorter : with_shorter_texts(request))
    for (const Changes* changes : {&open, &on_host}) {
      if (changes == &on_host && saved.empty()) continue;
      all.push_back(*changes);
      all.back().push_back(shorter);
    }
  return all;
}

/** The changes that are needed: it fits without the others. */
Changes needed_of(const ModelTable& model, const PlanRequest& request, Changes changes) {
  for (size_t i = changes.size(); i-- > 0;) {
    Changes fewer = changes;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (fits(model, changed(request, fewer))) changes = std::move(fewer);
  }
  return changes;
}

}  // namespace

std::optional<Changes> several_that_fit(const ModelTable& model,
                                        const PlanRequest& request,
                                        bool is_too_large) {
  const Changes reduced = with_reduced_states(model, request);
  const std::vector<Changes> at_once = several_at_once(model, request);
  std::vector<Changes> tried;
  if (const Changes nvme = with_nvme(request); !nvme.empty()) {
    tried.push_back(at_once.front());
    tried.back().insert(tried.back().end(), nvme.begin(), nvme.end());
  }
  // A model that is too large fits only with fewer bytes a parameter.
  if (!is_too_large || reduced.empty()) tried.insert(tried.end(), at_once.begin(), at_once.end());
  if (!reduced.empty())
    for (Changes changes : at_once) {
      changes.insert(changes.end(), reduced.begin(), reduced.end());
      tried.push_back(std::move(changes));
    }
  for (Changes& changes : tried)
    if (fits(model, changed(request, changes)))
      return needed_of(model, request, std::move(changes));
  return std::nullopt;
}

}  // namespace ferry
