#include "src/plan/unlike_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "src/plan/search/candidates.h"

namespace ferry {
namespace {

bool has_unlike_gpus(const PlanRequest& request) {
  return request.has_gpu && request.machine && request.machine->has_unlike_gpus() &&
         request.world > 1;
}

int n_ranks_of_host(const PlanRequest& request) {
  return request.n_per_host > 0 ? std::min(request.n_per_host, request.world) : request.world;
}

/** The request of one rank that runs all of each micro-batch. */
PlanRequest alone(PlanRequest request) {
  request.world = request.n_per_host = 1;
  request.n_stages = 1;
  request.n_chunks = 1;
  request.shares.clear();
  request.zero_level = kZeroLevel_least;
  request.reduction = Reduction::ordered;
  return request;
}

/** Shares of these ranks as small numbers; empty where all get as many. */
std::vector<int> some_of(const std::vector<int>& shares, const std::vector<int>& ranks) {
  if (shares.empty()) return {};
  std::vector<int> some;
  for (const int rank : ranks)
    some.push_back(shares[static_cast<size_t>(rank)]);
  const int common = std::accumulate(some.begin(), some.end(), 0, std::gcd<int, int>);
  for (int& share : some)
    share /= common;
  const bool are_equal = std::ranges::all_of(some, [](int share) { return share == 1; });
  return are_equal ? std::vector<int>() : some;
}

/** The run on these GPUs of its host; nothing where the blocks cannot be split as was asked. */
std::optional<PlanRequest> on_some(const PlanRequest& request, const std::vector<int>& gpus) {
  const auto n = static_cast<int>(gpus.size());
  PlanRequest some = request;
  const int64_t of_host_bytes =
      (request.host_budget_bytes + request.host_reserved_bytes) * int64_t{n_ranks_of_host(request)};
  some.host_budget_bytes = std::max<int64_t>(0, of_host_bytes / n - request.host_reserved_bytes);
  some.machine = with_gpus(*request.machine, gpus);
  some.world = some.n_per_host = n;
  some.shares = some_of(request.shares, gpus);
  some.gpu_budgets_bytes.clear();
  if (!request.gpu_budgets_bytes.empty()) {
    for (const int gpu : gpus)
      some.gpu_budgets_bytes.push_back(request.gpu_budgets_bytes[static_cast<size_t>(gpu)]);
    some.gpu_budget_bytes = std::ranges::min(some.gpu_budgets_bytes);
  }
  if (request.n_stages == request.world)
    some.n_stages = n;
  else if (n % request.n_stages.value_or(1) != 0)
    return std::nullopt;
  if (n == 1) return alone(some);
  return some;
}

}  // namespace

std::vector<double> pass_seconds_by_rank(const ModelTable& model, const PlanRequest& request) {
  if (!has_unlike_gpus(request)) return {};
  const int n_of_host = n_ranks_of_host(request);
  const int64_t n_each = (request.train_batch_size + request.world - 1) / request.world,
                most = std::max<int64_t>(1, kTokens_max / request.max_length);
  const PlanRequest one = alone(request);
  const BatchShape batch =
      shapes_of(one, std::clamp<int64_t>(request.micro_batch_size.value_or(n_each), 1, most),
                model.sharing)
          .typical;
  const StepShape shape = make_step_shape(model, batch, one, 1);
  std::vector<double> of_host;
  for (int gpu = 0; gpu < n_of_host; ++gpu) {
    const MachineProfile machine = machine_of_gpu(*request.machine, gpu, n_of_host);
    of_host.push_back(CostModel(machine, /*gpu=*/true, model, shape, batch).passes_seconds(1));
  }
  std::vector<double> seconds;
  for (int rank = 0; rank < request.world; ++rank)
    seconds.push_back(of_host[static_cast<size_t>(rank % n_of_host)]);
  return seconds;
}

std::optional<GpuSubset> fastest_subset(const ModelTable& model, const PlanRequest& request) {
  if (!has_unlike_gpus(request) || model.sharing.n_ranks() > 1 ||
      n_ranks_of_host(request) < request.world)
    return std::nullopt;
  const std::vector<double> seconds = pass_seconds_by_rank(model, request);
  std::vector<int> gpus(seconds.size());
  std::iota(gpus.begin(), gpus.end(), 0);
  std::ranges::stable_sort(gpus, {}, [&](int gpu) { return seconds[static_cast<size_t>(gpu)]; });
  std::optional<GpuSubset> fastest;
  for (size_t n = 1; n < gpus.size(); ++n) {
    const MachineProfile& machine = *request.machine;
    if (n > 1 && machine.gpu_at(gpus[n]) == machine.gpu_at(gpus[n - 1])) continue;
    GpuSubset subset;
    subset.gpus.assign(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(n));
    const std::optional<PlanRequest> some = on_some(request, subset.gpus);
    const std::optional<Plan> plan = some ? find_plan(model, *some) : std::nullopt;
    if (!plan || !plan->predicted) continue;
    subset.step_s = plan->predicted->step_s;
    if (!fastest || subset.step_s < fastest->step_s) fastest = std::move(subset);
  }
  return fastest;
}

namespace {

/** "The NVIDIA GeForce RTX 4090", "2 x NVIDIA GeForce RTX 4090". */
std::string words_of(const GpuSubset& subset, const MachineProfile& machine) {
  std::vector<std::pair<std::string, int>> names;
  for (const int gpu : subset.gpus) {
    const std::string& name = machine.gpu_at(gpu).name;
    if (names.empty() || names.back().first != name) names.emplace_back(name, 0);
    ++names.back().second;
  }
  std::string words;
  for (const auto& [name, n] : names)
    words += fmt::format("{}{} {}", words.empty() ? "" : " and ",
                         n > 1           ? fmt::format("{} x", n)
                         : words.empty() ? "The"
                                         : "the",
                         name);
  return words;
}

/** The option gpus takes a single number for a number of GPUs. */
std::string how_to_take(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  if (numbers.size() > 1) return fmt::format("--gpus {}", fmt::join(numbers, ","));
  return numbers.front() == 0
             ? std::string("--gpus 1")
             : fmt::format("CUDA_VISIBLE_DEVICES={} without --gpus", numbers.front());
}

}  // namespace

std::string comparison_text(const GpuSubset& subset,
                            const PlanRequest& request,
                            double step_s,
                            const std::vector<int>& numbers) {
  const double times = subset.step_s / step_s;
  std::string text =
      fmt::format("{} alone would take {:.1f} ms a step: all {} GPUs are {:.2f} times as fast",
                  words_of(subset, *request.machine), 1e3 * subset.step_s, request.world, times);
  if (times >= kGpusHelp) return text;
  std::vector<int> to_take = subset.gpus;
  for (int& gpu : to_take)
    if (!numbers.empty()) gpu = numbers[static_cast<size_t>(gpu)];
  const bool is_one = subset.gpus.size() == 1;
  return text + fmt::format(", so the slower ones do not help here ({} takes the faster {})",
                            how_to_take(std::move(to_take)), is_one ? "one" : "ones");
}

}  // namespace ferry
