#pragma once
// Torch meets offload: turns an action of the step's list into a call of the block's forward or
// backward, with views of the memory the executor names. Called inside the compute queue's work;
// keeps the views it has made: a step makes none once its token counts have been seen.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/blocks/generation_memory.h"
#include "models/core/batch_layout.h"
#include "models/core/block.h"
#include "offload/executor/executor.h"
#include "src/base/indexed.h"
#include "src/engine/cuda/block_graphs.h"
#include "src/engine/host_batch.h"

namespace ferry {

struct RunnerOptions {
  LossKind loss = LossKind::cross_entropy;
  uint64_t seed = 42;
  float label_smoothing = 0;
  PreferenceRule preference;         ///< with LossKind::preference
  std::vector<float> class_weights;  ///< of a training with cross_entropy: (n_labels), or none
  BatchShape largest;                ///< the largest shape of the run
  at::Device device = at::kCPU;
  bool graphs = true;                ///< on CUDA: blocks run as CUDA graphs where they can
  GenerationShape generation;        ///< batches that generate have room for this
  RankLink* sharing_link = nullptr;  ///< to the ranks that share micro-batches, where some do
};

class ModelRunner final : public ComputeWork {
 public:
  ModelRunner(const ModelTable& model,
              const StepShape& shape,
              RunMemory& memory,
              Device& device,
              const RunnerOptions& options);
  ~ModelRunner() override;

  /** Copies a micro-batch into its host region, before the executor begins with it. */
  void load(int micro, const HostBatch& batch);
  /** Set before each step, whose index keys its random numbers. */
  void begin_step(int64_t step, float grad_scale, const StepItems& items);
  /** Set before each evaluation; items of each micro-batch. */
  void begin_evaluation(std::vector<StepItems> items);
  /** (n_seqs_real, n_labels) fp32 of a micro-batch of the last evaluation, (tokens before the tail,
   * n_labels) where logits are the tokens', (n_seqs_real, vocabulary) of one that generates; with
   * pairs of answers (n_seqs_real, kPreferenceSums). */
  std::vector<float> logits(int micro = 0);

  /** Null where the blocks run without. */
  const BlockGraphs* graphs() const { return graphs_.get(); }
  /** Drops all graphs before the GPU's memory is given away; everything queued has run. */
  void drop_graphs() {
    if (graphs_) graphs_->drop();
  }

  void forward(const Action& action, const PassMemory& memory) override;
  void backward(const Action& action, const PassMemory& memory) override;

 private:
  friend struct RunnerProbe;  ///< of tests (tests/engine)
  struct Views;
  BlockMemory& views(const Action& action, const PassMemory& memory, const BatchShape& shape);
  /** Cuts the region of keys and values into the blocks' parts. */
  void cut_cache();
  /** Runs the head on the last token of each sequence alone. */
  void generate(const Action& action, const PassMemory& memory);
  BatchTensors& batch(const Action& action, const PassMemory& memory);
  /** A value of a micro-batch of this shape. */
  const at::Tensor& passed(int value, const std::byte* at, const BatchShape& shape);
  /** Fills ports_ for a block's pass; undefined where the pass does not use a port. */
  void set_ports(const Action& action, const PassMemory& memory, const BatchShape& shape);
  RandomKey key(const Action& action) const;
  void run_block(const Action& action,
                 const BatchTensors& batch,
                 const PassMemory& memory,
                 GraphKey graph,
                 const std::function<void(const RandomKey&)>& work);

  const ModelTable& model_;
  const StepShape& shape_;
  RunMemory& memory_;
  Device& device_;
  RunnerOptions options_;
  BatchLayout layout_;
  GenerationLayout generation_;
  EventId logits_sent_;
  Indexed<std::unique_ptr<Block>> blocks_;
  int64_t unwanted_grad_bytes_;  // at the start of the scratch region
  Scratch scratch_;
  std::vector<BatchTensors> batches_;   ///< by micro-batch; tensors on the compute device
  std::vector<int64_t> n_real_tokens_;  ///< by micro-batch
  std::unique_ptr<BlockGraphs> graphs_;
  int64_t step_ = 0;
  bool training_ = false;
  float grad_scale_ = 1;
  std::vector<StepItems> items_;  ///< of the step, or by micro-batch of an evaluation
  at::Tensor class_weights_;      ///< on the device; undefined without
  std::function<void(RandomKey&, const Action&)> key_fault_;  ///< planted by RunnerProbe
  std::vector<KvCache> caches_;                               ///< by block
  bool generates_ = false;                                    ///< the batch that was loaded last
  std::vector<int32_t> cache_places_, cache_lengths_;
  std::unique_ptr<Views> views_;
  std::vector<at::Tensor> ports_;  ///< of the pass that runs
  std::unique_ptr<SharingRanks> sharing_ranks_;
};

}  // namespace ferry
