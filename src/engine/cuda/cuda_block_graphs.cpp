#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "models/ops/captures/captured_generator.h"
#include "models/ops/captures/cuda_keys.h"
#include "src/engine/cuda/block_graphs.h"
#include "src/engine/cuda/cuda_allocator.h"

namespace ferry {
namespace {

/** A graph is given up for another only when it was not used for so many calls: where more are
 * wanted by turns than are kept, recording them again and again would take longer than launches. */
constexpr int64_t kUnused_calls = 16 * kBlockGraphs_max;
/** Keys that came once and are remembered: texts of ever new lengths bring ever new ones. */
constexpr size_t kSeen_max = 1 << 16;

}  // namespace

struct BlockGraphs::State {
  struct Recorded {
    std::unique_ptr<at::cuda::CUDAGraph> graph;  ///< holds LibTorch's generator
    cudaGraphExec_t runs = nullptr;
    int64_t last_call = 0;

    Recorded() = default;
    Recorded(Recorded&& other) noexcept
        : graph(std::move(other.graph)),
          runs(std::exchange(other.runs, nullptr)),
          last_call(other.last_call) {}
    Recorded& operator=(Recorded&&) = delete;
    ~Recorded() {
      if (runs) cudaGraphExecDestroy(runs);
    }
  };

  std::set<GraphKey> seen;  ///< once
  std::map<GraphKey, Recorded> recorded;
  std::optional<ops::gpu::CapturedGenerator> generator;
  at::Tensor keys;  ///< (kKeys_max) int64 on the GPU: the random keys of the graph that runs
  int64_t n_calls = 0, n_recorded = 0, n_replays = 0;
  /** The bytes of the library region that stay taken outside calls. A graph allocates from the rest
   * while it is in use. */
  int64_t lasting_bytes = -1;
  bool is_full = false;

  /** The work as a graph, or none where the GPU has no memory for it; then nothing of it has run.
   */
  std::optional<Recorded> record(const RandomKey& random,
                                 const std::function<void(const RandomKey&)>& work) {
    Recorded made;
    const ops::gpu::CapturedGenerator::Use use(*generator);
    made.graph = std::make_unique<at::cuda::CUDAGraph>(/*keep_graph=*/true);
    // Other threads of this process wait for events and copy meanwhile.
    made.graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    RandomKey from_memory = random;
    from_memory.on_gpu = static_cast<const uint64_t*>(keys.const_data_ptr());
    try {
      work(from_memory);
    } catch (...) {
      try {  // the generator must not stay behind as one that captures
        made.graph->capture_end();
      } catch (const c10::Error&) {
      }
      throw;
    }
    made.graph->capture_end();
    // CUDAGraph::instantiate() is not used: its errors do not say that memory ran out.
    cudaError_t status = cudaGraphInstantiateWithFlags(&made.runs, made.graph->raw_cuda_graph(), 0);
    if (status == cudaSuccess)
      status = cudaGraphUpload(made.runs, c10::cuda::getCurrentCUDAStream());
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return std::nullopt;
    }
    C10_CUDA_CHECK(status);
    ++n_recorded;
    return made;
  }

  /** True where there is room for another graph, maybe in place of one that is out of use. */
  bool make_room() {
    if (recorded.size() < kBlockGraphs_max) return true;
    const auto oldest = std::ranges::min_element(
        recorded, {}, [](const auto& item) { return item.second.last_call; });
    if (n_calls - oldest->second.last_call < kUnused_calls) return false;
    recorded.erase(oldest);
    return true;
  }

  void replay(Recorded& graph, const RandomKey& random) {
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
    if (random.training) {
      std::array<uint64_t, ops::cuda::kKeys_max> values;
      for (int i = 0; i < ops::cuda::kKeys_max; ++i)
        values[i] = random.of(i);
      ops::cuda::store_keys(stream, values.data(), ops::cuda::kKeys_max,
                            static_cast<uint64_t*>(keys.mutable_data_ptr()));
    }
    // CUDAGraph::replay() is not used: it would launch two more kernels to seed the generator.
    C10_CUDA_CHECK(cudaGraphLaunch(graph.runs, stream));
    graph.last_call = n_calls;
    ++n_replays;
  }
};

BlockGraphs::BlockGraphs() : state_(std::make_unique<State>()) {}
BlockGraphs::~BlockGraphs() = default;

bool BlockGraphs::available() {
  return true;
}

void BlockGraphs::run(const GraphKey& key,
                      const RandomKey& random,
                      const std::function<void(const RandomKey&)>& work) {
  State& state = *state_;
  if (state.is_full) return work(random);
  ++state.n_calls;
  if (!state.keys.defined()) {
    state.generator.emplace();
    state.keys = at::empty({ops::cuda::kKeys_max}, at::dtype(at::kLong).device(at::kCUDA));
  }
  const auto lasting_bytes = [] { return CudaLibraryRegion::current().used_bytes(); };
  // Something lasting was allocated since, maybe where graphs write.
  if (!state.recorded.empty() && state.lasting_bytes != lasting_bytes()) state.recorded.clear();
  auto found = state.recorded.find(key);
  if (found == state.recorded.end()) {
    // The first call loads kernels and has LibTorch allocate what it keeps.
    if (state.seen.size() >= kSeen_max) state.seen.clear();
    if (state.seen.insert(key).second || !state.make_room()) return work(random);
    std::optional<BlockGraphs::State::Recorded> graph = state.record(random, work);
    if (!graph) {
      state.is_full = true;
      state.recorded.clear();
      return work(random);
    }
    found = state.recorded.emplace(key, *std::move(graph)).first;
    state.lasting_bytes = lasting_bytes();
  }
  state.replay(found->second, random);
}

void BlockGraphs::drop() {
  state_->recorded.clear();
  state_->is_full = false;
}

int64_t BlockGraphs::n_graphs() const {
  return state_->n_recorded;
}
int64_t BlockGraphs::n_replays() const {
  return state_->n_replays;
}

}  // namespace ferry
