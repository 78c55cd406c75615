// What is said when no candidate fits: what is missing, which tag is the largest, and what to
// change. Every change is planned first and only named when it fits.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.h"
#include "src/plan/search.h"

namespace ferry {
namespace {

/** Texts cut shorter than this are no advice. */
constexpr int64_t kLength_least = 32;

/** "{} of memory ({} are left beside LibTorch)", by place where there are two. */
std::string need_text(const PlanRequest& request, const Layout& layout) {
  const int64_t gpu = layout.n_bytes[static_cast<size_t>(Place::gpu)],
                host = layout.n_bytes[static_cast<size_t>(Place::host)];
  if (!request.has_gpu)
    return fmt::format("{} of memory ({} are left beside LibTorch)", format_bytes(gpu + host),
                       format_bytes(request.host_budget_bytes));
  return fmt::format(
      "{} of GPU memory ({} are left beside the driver's context) and {} of host memory ({} are "
      "left beside LibTorch)",
      format_bytes(gpu), format_bytes(request.gpu_budget_bytes), format_bytes(host),
      format_bytes(request.host_budget_bytes));
}

/** "saved on the gpu, 3.2 GiB": the largest tag of a place that is too small. */
std::string largest_text(const PlanRequest& request, const Layout& layout) {
  const auto bytes_of = [&](Tag tag, Place place) {
    if (!request.has_gpu)
      return layout.bytes_of(tag, Place::gpu) + layout.bytes_of(tag, Place::host);
    const bool is_over =
        layout.n_bytes[static_cast<size_t>(place)] >
        (place == Place::gpu ? request.gpu_budget_bytes : request.host_budget_bytes);
    return is_over ? layout.bytes_of(tag, place) : 0;
  };
  PlanRow largest{};
  for (Place place : {Place::gpu, Place::host})
    for (int t = 0; t < kTags; ++t)
      if (int64_t bytes = bytes_of(static_cast<Tag>(t), place); bytes > largest.n_bytes)
        largest = {static_cast<Tag>(t), place, bytes};
  const std::string where =
      request.has_gpu ? fmt::format("on the {}", name_of(largest.place)) : "in memory";
  return fmt::format("{} {}, {}", name_of(largest.tag), where, format_bytes(largest.n_bytes));
}

struct Change {
  std::string words;  ///< what "it fits" goes on with
  PlanRequest request;
};

/** Of two changes at once. */
std::string joined(const std::string& words, const std::string& more) {
  return words.empty() ? more : words + " and " + more;
}

/** Whatever time it takes. */
Search search_for_room(const ModelTable& model, PlanRequest request) {
  request.machine.reset();
  return search_plan(model, request);
}

bool fits(const ModelTable& model, const Change& change) {
  return search_for_room(model, change.request).plan.has_value();
}

std::optional<Change> first_that_fits(const ModelTable& model, const std::vector<Change>& changes) {
  const auto found =
      std::find_if(changes.begin(), changes.end(), [&](const Change& c) { return fits(model, c); });
  return found == changes.end() ? std::nullopt : std::optional(*found);
}

/** Each wish about placement left out, one by one. */
std::vector<Change> without_wishes(const PlanRequest& request) {
  std::vector<Change> changes;
  const auto add = [&](std::string words) -> PlanRequest& {
    changes.push_back({std::move(words), request});
    return changes.back().request;
  };
  if (request.placement)
    add(fmt::format("without placement = {}",
                    *request.placement == Place::host ? "host" : "resident"))
        .placement.reset();
  if (request.activations)
    add(fmt::format("without activations = {}", name_of(*request.activations))).activations.reset();
  if (request.boundaries)
    add(fmt::format("without boundaries = {}", name_of(*request.boundaries))).boundaries.reset();
  if (request.order == AccumulationOrder::vertical)
    add("without accumulation_order = vertical").order.reset();
  // Where they are left open the planner tries fewer by itself.
  if (request.has_gpu && request.n_weight_slots.value_or(0) > kWeightSlots_least)
    add(fmt::format("with slots = {}", kWeightSlots_least)).n_weight_slots = kWeightSlots_least;
  return changes;
}

/** A micro-batch of `size`. Steps are named as well, so that the samples of a step stay the same
 * however the user gave them: `size` divides them. */
Change with_micro_batch(const PlanRequest& request, int64_t size) {
  Change change = {fmt::format("with per_device_train_batch_size = {}", size), request};
  change.request.micro_batch_size = size;
  if (request.trains)
    change.words +=
        fmt::format(", gradient_accumulation_steps = {}", request.train_batch_size / size);
  else
    change.request.train_batch_size = size;
  return change;
}

/** Largest divisor of n that is no more than `most`. */
int64_t divisor_below(int64_t n, int64_t most) {
  while (n % most != 0)
    --most;
  return most;
}

/** Where the micro-batch was fixed: smaller ones, about half each. */
std::vector<Change> with_smaller_micro_batches(const PlanRequest& request) {
  std::vector<Change> changes;
  for (int64_t size = request.micro_batch_size.value_or(1); size > 1;) {
    size = divisor_below(request.train_batch_size, std::max<int64_t>(1, size / 2));
    changes.push_back(with_micro_batch(request, size));
  }
  return changes;
}

std::vector<int64_t> shorter_lengths(int64_t max_length) {
  std::vector<int64_t> lengths;
  while ((max_length /= 2) >= kLength_least)
    lengths.push_back(max_length);
  return lengths;
}

std::vector<Change> with_shorter_texts(const PlanRequest& request) {
  std::vector<Change> changes;
  for (int64_t length : shorter_lengths(request.max_length)) {
    changes.push_back({fmt::format("with max_length = {}", length), request});
    changes.back().request.max_length = length;
  }
  return changes;
}

std::vector<Change> with_saved_on_host(const PlanRequest& request) {
  if (!request.has_gpu || !request.trains || request.activations == Activations::host) return {};
  Change change = {"with activations = host", request};
  change.request.activations = Activations::host;
  return {change};
}

/** Where a step has more micro-batches than can be listed: fewer samples. */
std::vector<Change> with_smaller_steps(const PlanRequest& request) {
  std::vector<Change> changes;
  for (int64_t size = request.train_batch_size; size > 1 && request.trains;) {
    size /= 2;
    changes.push_back({fmt::format("with train_batch_size = {}", size), request});
    changes.back().request.train_batch_size = size;
  }
  return changes;
}

/** All of the above at once, down to texts of `max_length`. */
Change with_everything(const ModelTable& model, const PlanRequest& request, int64_t max_length) {
  Change all = {"", request};
  const auto say = [&](const std::string& words) { all.words = joined(all.words, words); };
  for (const Change& change : without_wishes(request))
    say(change.words);
  all.request.placement.reset();
  all.request.activations.reset();
  all.request.boundaries.reset();
  all.request.order.reset();
  if (request.has_gpu) all.request.n_weight_slots = kWeightSlots_least;
  if (request.micro_batch_size.value_or(1) > 1) {
    int64_t size = 1;
    const int64_t most = n_micro_most(model, request);
    if (request.trains)
      while (request.train_batch_size % size != 0 || request.train_batch_size / size > most)
        ++size;
    Change micro = with_micro_batch(all.request, size);
    say(micro.words);
    all.request = std::move(micro.request);
  }
  if (max_length < request.max_length) {
    say(fmt::format("with max_length = {}", max_length));
    all.request.max_length = max_length;
  }
  return all;
}

/** At each length with saved tensors kept or recomputed, then with them on the host. */
std::vector<Change> with_everything_by_length(const ModelTable& model, const PlanRequest& request) {
  std::vector<int64_t> lengths = shorter_lengths(request.max_length);
  lengths.insert(lengths.begin(), request.max_length);
  PlanRequest any_activations = request;
  any_activations.activations.reset();
  std::vector<Change> changes;
  for (int64_t length : lengths) {
    changes.push_back(with_everything(model, request, length));
    const Change all = with_everything(model, any_activations, length);
    for (const Change& on_host : with_saved_on_host(all.request))
      changes.push_back({joined(all.words, on_host.words), on_host.request});
  }
  return changes;
}

/** As one would write it for gpu_memory, never less than n_bytes: "812MiB", "12.4GiB". */
std::string no_less_than(int64_t n_bytes) {
  if (n_bytes < 10 * kGiB) return fmt::format("{}MiB", (n_bytes + kMiB - 1) / kMiB);
  const double tenths = std::ceil(static_cast<double>(n_bytes) * 10 / static_cast<double>(kGiB));
  return fmt::format("{:.1f}GiB", tenths / 10);
}

/** How near the search comes that comes nearest: with a GPU one pair of two memories of which more
 * of one takes less of the other. */
std::string nearest_text(const Change& change, const Search& search) {
  if (!search.nearest) return "";
  const PlanRequest& request = change.request;
  const Layout& layout = search.nearest->layout;
  const int64_t gpu = layout.n_bytes[static_cast<size_t>(Place::gpu)],
                host = layout.n_bytes[static_cast<size_t>(Place::host)];
  const std::string host_memory =
      "host_memory = " +
      no_less_than(request.host_reserved_bytes + host + (request.has_gpu ? 0 : gpu));
  const std::string even = change.words.empty() ? "" : fmt::format(", even {}", change.words);
  if (!request.has_gpu) return fmt::format("it takes at least {}{}; ", host_memory, even);
  return fmt::format("the nearest is gpu_memory = {} beside {}{}; ",
                     no_less_than(request.gpu_reserved_bytes + gpu), host_memory, even);
}

/** What the host would have to have for the GPU that there is. */
std::string more_host_text(const ModelTable& model, const Change& change) {
  if (!change.request.has_gpu) return "";
  PlanRequest request = change.request;
  constexpr int64_t kAnyHost_bytes = int64_t{1} << 60;
  request.host_budget_bytes = kAnyHost_bytes;
  const Search found = search_for_room(model, request);
  if (!found.plan) return "";
  return fmt::format("with this GPU memory host_memory = {} would do{}{}; ",
                     no_less_than(request.host_reserved_bytes +
                                  found.plan->layout.n_bytes[static_cast<size_t>(Place::host)]),
                     change.words.empty() ? "" : " ", change.words);
}

/** What a run may keep in fewer bytes: not the planner's to choose, for it changes what comes out.
 */
std::vector<Change> with_reduced_states(const ModelTable& model, const PlanRequest& request) {
  std::vector<Change> changes;
  if (!request.trains) return changes;
  Change change = {"", request};
  if (request.states != simd::StateType::block8) {
    change.words = "with optim = adamw_8bit";
    change.request.states = simd::StateType::block8;
    changes.push_back(change);
  }
  if (model.compute == DType::bf16 && !request.split_master) {
    change.words += change.words.empty() ? "with master = split" : ", master = split";
    change.request.split_master = true;
    changes.push_back(change);
  }
  return changes;
}

/** Several changes at once; the least it takes where none of them helps. */
std::string advice_of_many(const ModelTable& model, const PlanRequest& request, bool is_too_large) {
  Search smallest;
  Change its_change;
  const std::vector<Change> reduced = with_reduced_states(model, request);
  std::vector<Change> changes;
  // Nothing but fewer bytes a parameter makes a model that is too large fit.
  if (!is_too_large || reduced.empty()) changes = with_everything_by_length(model, request);
  if (!reduced.empty())
    for (const Change& change : with_everything_by_length(model, reduced.back().request))
      changes.push_back({joined(change.words, reduced.back().words), change.request});
  for (Change& change : changes) {
    Search found = search_for_room(model, change.request);
    if (found.plan) return "it fits " + change.words;
    if (!found.nearest || found.lacking_bytes >= smallest.lacking_bytes) continue;
    smallest = std::move(found);
    its_change = std::move(change);
  }
  return fmt::format("{}{}take a smaller model or more memory", nearest_text(its_change, smallest),
                     more_host_text(model, reduced.empty() ? Change{"", request} : reduced.back()));
}

/** Whether weights and states alone, which no other change makes fewer, are more than there is. */
bool is_model_too_large(const PlanRequest& request, const Search& search) {
  if (!search.nearest) return false;
  int64_t n_bytes = 0;
  for (Tag tag : {Tag::weights, Tag::master, Tag::adam_m, Tag::adam_v})
    for (Place place : {Place::gpu, Place::host})
      n_bytes += search.nearest->layout.bytes_of(tag, place);
  return n_bytes - (request.has_gpu ? request.gpu_budget_bytes : 0) > request.host_budget_bytes;
}

/** Changes with which it fits, the mildest of each kind; several at once where one is too little;
 * the least it takes where nothing helps. */
std::string advice(const ModelTable& model, const PlanRequest& request, const Search& search) {
  std::vector<std::string> words;
  const auto try_these = [&](const std::vector<Change>& changes) {
    if (auto change = first_that_fits(model, changes)) words.push_back(change->words);
  };
  const bool is_too_large = is_model_too_large(request, search);
  if (!is_too_large) {
    try_these(without_wishes(request));
    try_these(with_smaller_micro_batches(request));
    try_these(with_shorter_texts(request));
    try_these(with_saved_on_host(request));
    if (search.too_many) try_these(with_smaller_steps(request));
  }
  try_these(with_reduced_states(model, request));
  if (words.empty()) return advice_of_many(model, request, is_too_large);
  return fmt::format("it fits {}", fmt::join(words, ", or "));
}

}  // namespace

void refuse(const ModelTable& model, const PlanRequest& request, const Search& search) {
  const int64_t n_most = n_micro_most(model, request);
  if (!search.nearest && search.too_many && request.micro_batch_size)
    throw Error(Fault::usage, "config.train_batch_size",
                fmt::format("{} micro-batches of {} in one step, with {} blocks at most {}",
                            search.too_many->n_micro, search.too_many->micro_batch_size,
                            model.blocks.size(), n_most),
                "lower train_batch_size, or raise per_device_train_batch_size");
  const std::string what =
      search.nearest
          ? fmt::format("it needs {}; largest: {}", need_text(request, search.nearest->layout),
                        largest_text(request, search.nearest->layout))
          : fmt::format("{} texts of {} tokens in {} are more than any machine holds",
                        request.train_batch_size, request.max_length,
                        search.too_many ? fmt::format("at most {} micro-batches", n_most)
                                        : fmt::format("micro-batches of {}",
                                                      request.micro_batch_size.value_or(1)));
  throw Error(Fault::does_not_fit, "plan", "the model does not fit: " + what,
              advice(model, request, search));
}

}  // namespace ferry
