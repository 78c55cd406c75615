// The message when no candidate fits: the missing memory, the largest tag, and changes that help.
// Every change is planned first and named only when it fits. Every figure of memory is the least
// that the same search accepts.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.h"
#include "src/plan/advice/changes.h"
#include "src/plan/nvme_need.h"
#include "src/plan/search/candidates.h"
#include "src/plan/search/search.h"

namespace ferry {
namespace {

/** "{} of memory ({} are left beside LibTorch)", by place where there are two. */
std::string memory_text(const PlanRequest& request, const Layout& layout) {
  const int64_t gpu = layout.n_bytes[Place::device], host = layout.n_bytes[Place::host];
  if (!request.has_gpu)
    return fmt::format("{} of memory ({} are left beside LibTorch)", format_bytes(gpu + host),
                       format_bytes(request.host_budget_bytes));
  return fmt::format(
      "{} of GPU memory ({} are left beside the driver's context) and {} of host memory ({} are "
      "left beside LibTorch)",
      format_bytes(gpu), format_bytes(request.gpu_budget_bytes), format_bytes(host),
      format_bytes(request.host_budget_bytes));
}

/** The same, and the space on a drive. */
std::string need_text(const PlanRequest& request, const Plan& plan) {
  const std::string memory = memory_text(request, plan.layout);
  if (plan.n_on_nvme == 0) return memory;
  const bool has_limit = request.nvme_budget_bytes < kStore_bytes_max;
  return fmt::format(
      "{}, and {} on the drive{}", memory,
      format_bytes(nvme_need_of(plan.shape, request.n_nvme_copies).store_bytes),
      has_limit ? fmt::format(" ({} may be taken)", format_bytes(request.nvme_budget_bytes)) : "");
}

constexpr Place kBudgets[] = {Place::device, Place::host, Place::nvme};

/** The budget of one memory in a request, const or not. */
auto& budget_of(auto& request, Place memory) {
  return memory == Place::device ? request.gpu_budget_bytes
         : memory == Place::host ? request.host_budget_bytes
                                 : request.nvme_budget_bytes;
}

/** Bytes that count against the budget of a place, where `bytes_at` has them by place: without a
 * GPU all memory is the host's. */
template <class BytesAt>
int64_t counted(const PlanRequest& request, Place place, BytesAt&& bytes_at) {
  if (request.has_gpu || place == Place::nvme) return bytes_at(place);
  return place == Place::host ? bytes_at(Place::device) + bytes_at(Place::host) : 0;
}

/** "saved on the GPU, 3.2 GiB": the largest tag of a place that is too small. */
std::string largest_text(const PlanRequest& request, const Plan& plan) {
  PlanRow largest{};
  for (Place place : kBudgets) {
    const int64_t taken =
        place == Place::nvme
            ? nvme_need_of(plan.shape, request.n_nvme_copies).store_bytes
            : counted(request, place, [&](Place at) { return plan.layout.n_bytes[at]; });
    if (taken <= std::min(budget_of(request, place), kStore_bytes_max)) continue;
    for (int t = 0; t < kTags; ++t) {
      const auto tag = static_cast<Tag>(t);
      const int64_t bytes =
          counted(request, place, [&](Place at) { return plan.layout.bytes_of(tag, at); });
      if (bytes > largest.n_bytes) largest = {tag, place, bytes, name_of(tag, plan.shape.optim)};
    }
  }
  const std::string where = largest.place == Place::nvme     ? "on the drive"
                            : !request.has_gpu               ? "in memory"
                            : largest.place == Place::device ? "on the GPU"
                                                             : "on the host";
  return fmt::format("{} {}, {}", largest.name, where, format_bytes(largest.n_bytes));
}

/** An amount that no machine has. */
constexpr int64_t kAnyMemory_bytes = 64 * 1024 * kGiB;

int64_t reserved_of(const PlanRequest& request, Place memory) {
  return memory == Place::device ? request.gpu_reserved_bytes
         : memory == Place::host ? request.host_reserved_bytes
                                 : 0;
}
/** The value of gpu_memory, host_memory or nvme_memory that gives this budget. */
int64_t option_of(const PlanRequest& request, Place memory) {
  return reserved_of(request, memory) + std::min(budget_of(request, memory), kAnyMemory_bytes);
}

constexpr int64_t kTenths_bytes = 10 * kGiB;  ///< from here on in tenths of a GiB

/** The amount as one would write it for gpu_memory, never less than n_bytes: "812MiB", "12.4GiB".
 */
std::string rounded_up(int64_t n_bytes) {
  if (n_bytes < kTenths_bytes) return fmt::format("{}MiB", (n_bytes + kMiB - 1) / kMiB);
  const double tenths = std::ceil(static_cast<double>(n_bytes) * 10 / static_cast<double>(kGiB));
  return fmt::format("{:.1f}GiB", tenths / 10);
}

/** The bytes that such a text is read back as. Less than none is none: a budget may be smaller than
 * what the process takes beside it. */
int64_t written(int64_t n_bytes) {
  return parse_bytes(rounded_up(std::clamp(n_bytes, int64_t{0}, kAnyMemory_bytes))).value();
}

/** The request, which does not fit, with the least of one memory with which it fits; that amount is
 * tried as it is written. Nothing where no amount is enough. */
std::optional<PlanRequest> with_least(const ModelTable& model, PlanRequest request, Place memory) {
  int64_t too_little = option_of(request, memory), enough = kAnyMemory_bytes;
  const auto search_with = [&](int64_t option) {
    budget_of(request, memory) = option - reserved_of(request, memory);
    return search_plan(model, request, Takes::first);
  };
  if (!search_with(enough).plan) return std::nullopt;
  constexpr int64_t kNear = 512;  // it is told within that share
  // The missing bytes are mostly enough, unless more of one memory takes less of the other.
  Search search = search_with(too_little);
  for (int64_t least_step = kMiB; !search.plan; least_step *= 4) {
    const int64_t lacking = std::min(search.lacking_bytes, kAnyMemory_bytes);
    enough = written(too_little + std::max({lacking, least_step, too_little / kNear}));
    search = search_with(enough);
    if (!search.plan) too_little = enough;
  }
  int64_t tried = written(enough - (enough < kTenths_bytes ? kMiB : kGiB / 10));
  while (enough - too_little > enough / kNear && too_little < tried && tried < enough) {
    (search_with(tried).plan ? enough : too_little) = tried;
    tried = written(too_little + (enough - too_little) / 2);
  }
  budget_of(request, memory) = enough - reserved_of(request, memory);
  return request;
}

/** The factor by which `more` has more memory than there is; 1 for a memory that stays as it is. */
double growth(const PlanRequest& request, const PlanRequest& more) {
  double sum = 0;
  for (Place memory : kBudgets)
    sum += static_cast<double>(option_of(more, memory)) /
           static_cast<double>(std::max(option_of(request, memory), kMiB));
  return sum;
}

/** True where the machine has the memory that `more` asks for, as far as it is known. A plan for a
 * machine that is not here may take so much host memory. */
bool is_available(const PlanRequest& request, const PlanRequest& more) {
  if (!more.machine) return true;
  const MachineProfile& machine = *more.machine;
  const auto has = [&](Place memory, int64_t n_bytes) {
    const bool is_known = n_bytes > 0;
    return !is_known || option_of(more, memory) <= std::max(n_bytes, option_of(request, memory));
  };
  return has(Place::host, machine.host.memory_bytes / 10 * 9) &&
         (!more.has_gpu || has(Place::device, machine.gpu->memory_bytes));
}

/** The request with the least of one memory with which it fits. Where no amount is enough, the
 * other memory becomes the least that there must be. Nothing where the other memory alone is
 * enough, or where nothing is. */
std::optional<PlanRequest> with_more_of(const ModelTable& model,
                                        const PlanRequest& request,
                                        Place memory) {
  std::optional<PlanRequest> more = with_least(model, request, memory);
  if (more || !request.has_gpu || memory == Place::nvme) return more;
  PlanRequest any = request;
  budget_of(any, memory) = kAnyMemory_bytes;
  more = with_least(model, std::move(any), memory == Place::device ? Place::host : Place::device);
  if (!more) return std::nullopt;
  budget_of(*more, memory) = budget_of(request, memory);
  if (fits(model, *more)) return std::nullopt;
  return with_least(model, std::move(*more), memory);
}

/** The requests with more memory, ordered by growth, without one that grows far more than the
 * other. A request for more than the machine has is in it only where nothing else is enough. */
std::vector<PlanRequest> with_more_of_memory(const ModelTable& model, const PlanRequest& request) {
  std::vector<PlanRequest> found;
  const auto is_there = [&](Place memory) {
    return memory == Place::host || (memory == Place::device ? request.has_gpu : request.has_nvme);
  };
  for (Place memory : {Place::host, Place::device, Place::nvme})
    if (is_there(memory))
      if (auto more = with_more_of(model, request, memory)) found.push_back(std::move(*more));
  if (found.empty()) return found;
  const auto growth_of = [&](const PlanRequest& more) { return growth(request, more); };
  const auto has_it = [&](const PlanRequest& more) { return is_available(request, more); };
  std::ranges::stable_sort(found, {}, growth_of);
  std::stable_partition(found.begin(), found.end(), has_it);
  constexpr double kFarMore = 1.5;
  if (!has_it(found.back()) || growth_of(found.back()) > kFarMore * growth_of(found.front()))
    found.resize(1);
  return found;
}

/** "with optim = adamw_8bit and at least gpu_memory = 877MiB": what was changed, and what `more`
 * has more. */
std::string words_with_memory(const Changes& changes,
                              const PlanRequest& request,
                              const PlanRequest& more) {
  std::vector<std::string> options;
  for (Place memory : kBudgets)
    if (option_of(more, memory) > option_of(request, memory))
      options.push_back(
          fmt::format("{} = {}", budget_option_of(memory), rounded_up(option_of(more, memory))));
  return fmt::format("{} at least {}", changes.empty() ? "with" : words_of(changes) + " and",
                     fmt::join(options, " and "));
}

/** True where weights and states alone are larger than the memory; no other change makes them
 * fewer. */
bool is_model_too_large(const PlanRequest& request, const Search& search) {
  if (!search.nearest) return false;
  int64_t n_bytes = 0;
  for (const Region& region : search.nearest->layout.regions)
    if (is_of_model(region.tag) && region.place != Place::nvme) n_bytes += region.n_bytes;
  return n_bytes - (request.has_gpu ? request.gpu_budget_bytes : 0) > request.host_budget_bytes;
}

/** The sentence on changes with which it fits, and on changes that take more memory than the
 * machine has. */
std::string sentence_of(const std::vector<std::string>& words,
                        const std::vector<std::string>& beyond) {
  std::string text = words.empty() ? "" : fmt::format("it fits {}", fmt::join(words, ", or "));
  if (!beyond.empty())
    text += fmt::format("{} {}, more than this machine can give",
                        words.empty() ? "it would fit" : "; else only", fmt::join(beyond, ", or "));
  if (words.empty()) text += beyond.empty() ? "take a smaller model" : "; take a smaller model";
  return text;
}

/** The drive with which it fits: "with nvme_path = DIR (a directory on an SSD, 96.2 GiB free)";
 * empty where none helps. */
std::string nvme_words(const ModelTable& model, const PlanRequest& request) {
  const Changes nvme = with_nvme(request);
  if (nvme.empty()) return "";
  const PlanRequest with_drive = changed(request, nvme);
  const std::optional<Plan> plan = search_plan(model, with_drive, Takes::first).plan;
  if (!plan) return "";
  return fmt::format("{} (a directory on an SSD, {} free)", words_of(nvme),
                     format_bytes(nvme_need_of(plan->shape, with_drive.n_nvme_copies).store_bytes));
}

/** Changes with which it fits. First what leaves the results as they are: wishes left out, saved
 * tensors on the host, more memory, a drive. Then the mildest of each other kind, or several at
 * once where one is too little, or some beside more memory where that is notably less then. */
std::string advice(const ModelTable& model, const PlanRequest& request, const Search& search) {
  std::vector<std::string> words, beyond;
  const auto try_these = [&](const Changes& changes) {
    for (const Change& change : changes)
      if (fits(model, changed(request, {change}))) return words.push_back(words_of({change}));
  };
  const auto say = [&](const Changes& changes, const PlanRequest& more) {
    (is_available(request, more) ? words : beyond)
        .push_back(words_with_memory(changes, request, more));
  };
  const bool is_too_large = is_model_too_large(request, search);
  if (!is_too_large) {
    try_these(without_wishes(request));
    try_these(with_saved_on_host(request));
  }
  const bool is_placed_otherwise = !words.empty();
  const std::vector<PlanRequest> more = with_more_of_memory(model, request);
  for (const PlanRequest& one : more)
    say({}, one);
  const std::string on_nvme = nvme_words(model, request);
  if (!on_nvme.empty()) words.push_back(on_nvme);

  const size_t n_same_results = words.size();
  if (!is_too_large) {
    try_these(with_smaller_micro_batches(request));
    try_these(with_shorter_texts(request));
    if (search.too_many) try_these(with_smaller_steps(request));
  }
  const Changes reduced = with_reduced_states(model, request);
  for (auto end = reduced.begin(); end != reduced.end();)
    if (const Changes some(reduced.begin(), ++end); fits(model, changed(request, some))) {
      words.push_back(words_of(some));
      break;
    }
  if (is_placed_otherwise || !on_nvme.empty() || words.size() > n_same_results)
    return sentence_of(words, beyond);

  if (const auto several = several_that_fit(model, request, is_too_large)) {
    words.push_back(words_of(*several));
    return sentence_of(words, beyond);
  }
  constexpr double kNotablyLess = 0.9;
  std::optional<PlanRequest> least;  // the least of what was said
  if (!more.empty()) least = more.front();
  Changes made;
  for (const Changes& some : {with_smallest_micro_batch(model, request), reduced}) {
    if (some.empty()) continue;
    Changes changes = made;
    changes.insert(changes.end(), some.begin(), some.end());
    const std::vector<PlanRequest> less = with_more_of_memory(model, changed(request, changes));
    if (less.empty()) continue;
    const bool is_notably_less =
        !least || (is_available(request, less.front()) && !is_available(request, *least)) ||
        growth(request, less.front()) < kNotablyLess * growth(request, *least);
    if (!is_notably_less) continue;
    say(changes, less.front());
    made = std::move(changes);
    least = less.front();
  }
  return sentence_of(words, beyond);
}

}  // namespace

void refuse(const ModelTable& model, const PlanRequest& request, const Search& search) {
  const int64_t n_most = n_micro_most(model, request);
  if (!search.nearest && search.too_many && request.micro_batch_size)
    throw Error(Fault::usage, "config.train_batch_size",
                fmt::format("{} micro-batches of {} in one step, with {} blocks at most {}",
                            search.too_many->n_micro / model.sharing.n_ranks(),
                            search.too_many->micro_batch_size, model.blocks.size(), n_most),
                "lower train_batch_size, or raise per_device_train_batch_size");
  if (!search.nearest && search.is_too_large && request.micro_batch_size)
    throw Error(
        Fault::usage, "config.per_device_train_batch_size",
        fmt::format("{} texts of {} tokens at once; a GPU's kernels take at most {} texts "
                    "and {} tokens, what they are filled up with among them",
                    *request.micro_batch_size, request.max_length, kGridRows_max, kGpuTokens_max),
        "lower per_device_train_batch_size");
  const std::string what =
      search.nearest
          ? fmt::format("it needs {}; largest: {}", need_text(request, *search.nearest),
                        largest_text(request, *search.nearest))
          : fmt::format("{} texts of {} tokens in {} are more than any machine holds",
                        request.train_batch_size, request.max_length,
                        search.too_many ? fmt::format("at most {} micro-batches", n_most)
                                        : fmt::format("micro-batches of {}",
                                                      request.micro_batch_size.value_or(1)));
  throw Error(Fault::does_not_fit, "plan", "the model does not fit: " + what,
              advice(model, request, search));
}

}  // namespace ferry
