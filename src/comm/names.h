#pragma once
// Ranks and times in messages.

#include <chrono>
#include <string>
#include <vector>

namespace ferry {

/** "rank 2", "ranks 0, 1 and 3"; of many the first ones. `ranks` is not empty. */
std::string name_ranks(const std::vector<int>& ranks);

/** "60 s", "1.5 s" */
std::string name_time(std::chrono::milliseconds time);

}  // namespace ferry
