// Stands in for cuda_block_graphs.cpp in a build without CUDA: work is called as it is.

#include "src/engine/cuda/block_graphs.h"

namespace ferry {

struct BlockGraphs::State {};

BlockGraphs::BlockGraphs() = default;
BlockGraphs::~BlockGraphs() = default;

bool BlockGraphs::available() {
  return false;
}

void BlockGraphs::run(const GraphKey&,
                      const RandomKey& random,
                      const std::function<void(const RandomKey&)>& work) {
  work(random);
}

void BlockGraphs::drop() {}

int64_t BlockGraphs::n_graphs() const {
  return 0;
}
int64_t BlockGraphs::n_replays() const {
  return 0;
}

}  // namespace ferry
