#include "src/comm/names.h"

#include <fmt/format.h>

namespace ferry {

std::string name_ranks(const std::vector<int>& ranks) {
  constexpr size_t kNamed_max = 12;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  const bool all = ranks.size() <= kNamed_max;
  const size_t n_before = (all ? ranks.size() - 1 : kNamed_max);
  std::string text = fmt::format("ranks {}", ranks.front());
  for (size_t i = 1; i < n_before; ++i)
    text += fmt::format(", {}", ranks[i]);
  if (all) return text + fmt::format(" and {}", ranks.back());
  return text + fmt::format(" and {} others", ranks.size() - kNamed_max);
}

std::string name_time(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

}  // namespace ferry
