#include "src/request/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr int kRanks_max = 1024;

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/** "2" is two of them, "0,2" are these. */
RunRanks asked_ranks(const config::Config& config) {
  const std::vector<std::string> items = config.list("gpus");
  RunRanks ranks;
  if (items.empty()) return ranks;
  std::vector<int> numbers;
  for (const std::string& item : items) {
    const auto number = number_in(item);
    if (!number || *number > kRanks_max)
      throw Error(Fault::usage, "config.gpus", fmt::format("'{}' is no number of a GPU", item),
                  "write how many GPUs the run takes (--gpus 2), or which ones (--gpus 0,2)");
    numbers.push_back(*number);
  }
  if (numbers.size() == 1) {
    if (numbers.front() == 0)
      throw Error(Fault::usage, "config.gpus", "a run takes at least one GPU",
                  "write --gpus 1, or use device = cpu");
    ranks.world = numbers.front();
    return ranks;
  }
  ranks.world = static_cast<int>(numbers.size());
  ranks.gpus = std::move(numbers);
  std::vector<int> sorted = ranks.gpus;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    throw Error(Fault::usage, "config.gpus", "a GPU is named twice", "name each GPU once");
  return ranks;
}

}  // namespace

RunRanks ranks_of(const config::Config& config) {
  RunRanks ranks = asked_ranks(config);
  ranks.launched = read_rank_environment(std::getenv);
  if (ranks.launched) {
    const int world = ranks.launched->world;
    if (config.is_set("gpus") && ranks.world != world && ranks.world != ranks.launched->local_world)
      throw Error(Fault::usage, "config.gpus",
                  fmt::format("gpus names {} GPUs, and the launcher has started {} processes",
                              ranks.world, world),
                  "leave gpus out: a launcher says how many there are");
    ranks.world = world;
  }
  return ranks;
}

}  // namespace ferry
