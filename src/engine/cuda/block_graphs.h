#pragma once
// CUDA graphs of blocks' forward and backward: where a block's kernels take less time than their
// launches, the GPU waits for the CPU, unless one launch starts them all. A block is run once as it
// is, recorded the second time and replayed from then on. Private to src/engine and src/measure.

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>

#include "models/core/block.h"

namespace ferry {

/** The facts that a recorded graph depends on: calls with an equal key differ in random keys and in
 * the content of memory, and in nothing else. */
struct GraphKey {
  bool is_backward = false, training = false;
  const BlockMemory* memory = nullptr;  ///< its address stands for those it holds
  const void* batch = nullptr;          ///< batch region
  /** Values between blocks, by port. Blocks with more ports run without graphs. */
  static constexpr size_t kPorts_max = 8;
  std::array<const void*, kPorts_max> ports{};
  Block::GraphShape shape = {};
  auto operator<=>(const GraphKey&) const = default;
};

class BlockGraphs {
 public:
  BlockGraphs();
  ~BlockGraphs();
  BlockGraphs(const BlockGraphs&) = delete;
  BlockGraphs& operator=(const BlockGraphs&) = delete;

  /** True where this build has CUDA graphs. */
  static bool available();

  /** Does `work` on LibTorch's current stream, by replaying it where it was recorded. It calls
   * `work` where the GPU has no memory for graphs, or kBlockGraphs_max others are in use. */
  void run(const GraphKey& key,
           const RandomKey& random,
           const std::function<void(const RandomKey&)>& work);

  /** Gives the graphs' memory back, after all that was queued has run; they are recorded again as
   * they come. */
  void drop();

  int64_t n_graphs() const;  ///< recorded so far
  int64_t n_replays() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ferry
