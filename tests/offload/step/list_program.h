#pragma once
// Runs of lists as a graph: for each action the bytes it touches and what it comes after, and in
// list order what those bytes hold. The contents follow from what an action says it does with its
// bytes, from its verb and from the shape; nothing here is shared with the maker of lists.

#include <array>
#include <string>
#include <vector>

#include "offload/step/layout.h"
#include "tests/offload/step/list_check.h"

namespace ferry::test {

constexpr int kMain = kQueues;  ///< the main thread, as a queue of its own
constexpr int kAllQueues = kQueues + 1;

struct Touch {
  RegionId region = -1;
  int64_t begin = 0, end = 0;
  bool writes = false;
  bool overlaps(const Touch& other) const {
    return region == other.region && begin < other.end && other.begin < end;
  }
};

struct Node {
  std::string name;
  int queue = 0;
  int place_in_queue = 0;
  std::vector<int> after;
  std::vector<Touch> touches;
};

struct Program {
  std::vector<Node> nodes;  ///< in the order of the lists: a node comes after earlier ones only
  std::vector<std::string> complaints;  ///< about what bytes hold, run in that order
};
Program make_program(const StepShape& shape, const std::vector<ListRun>& runs);

}  // namespace ferry::test
