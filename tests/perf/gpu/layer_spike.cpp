// BERT-Large's 24 layers, forward and backward, bf16, on explicit operations: resident, and
// streamed from pinned host memory through 2 slots. Prints time of each, whether their output and
// gradients are the same bits, and the driver's bytes against the plan. layer_peer.py times the
// same layers under torch.compile; run both in one go.
//
//   layer_spike [--layers N] [--seqs N] [--length N] [--iterations N] [--once]

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_profiler_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include "models/bert/bert_table.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/median.h"
#include "src/engine/cuda/cuda_allocator.h"
#include "src/engine/torch_setup.h"
#include "tests/perf/gpu/spike_memory.h"

namespace ferry::spike {
namespace {

struct Options {
  int layers = 24;
  int seqs = 16;
  int length = 512;
  int iterations = 9;
  bool once = false;  ///< one pass of two layers between cudaProfilerStart and Stop
};

class Event {
 public:
  Event() { SPIKE_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { SPIKE_CUDA(cudaEventRecord(event_, stream)); }
  void hold(cudaStream_t stream) { SPIKE_CUDA(cudaStreamWaitEvent(stream, event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

/** The layers of the model, their sizes, and where their weights and gradients lie on the host. */
struct Stack {
  ModelTable model;
  BatchShape shape;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<const BlockTable*> tables;
  int64_t segment_bytes = 0;
  std::unique_ptr<PinnedBytes> weights;  ///< (layers, segment)

  int n() const { return static_cast<int>(blocks.size()); }
};

Stack make_stack(const Options& options) {
  BertConfig config;
  config.vocab_size = 30522;
  config.hidden_size = 1024;
  config.num_hidden_layers = options.layers;
  config.num_attention_heads = 16;
  config.intermediate_size = 4096;
  config.max_position_embeddings = options.length;
  TableOptions table;
  table.compute = DType::bf16;
  table.attention = AttentionBackend::flash;
  SPIKE_CUDA(cudaDeviceGetAttribute(&table.gpu_multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  Stack stack;
  stack.model = make_bert_table(config, table);
  stack.shape = {.tokens = static_cast<int64_t>(options.seqs) * options.length,
                 .n_seqs_max = options.seqs,
                 .max_length = options.length};
  for (int block = 0; block < static_cast<int>(stack.model.blocks.size()); block++) {
    const BlockTable& entry = stack.model.blocks[static_cast<size_t>(block)];
    if (entry.kind != BlockKind::layer) continue;
    stack.blocks.push_back(make_block(stack.model, block, LossKind::cross_entropy));
    stack.tables.push_back(&entry);
    stack.segment_bytes = entry.n_segment_elements * 2;
  }
  stack.weights = std::make_unique<PinnedBytes>(stack.n() * stack.segment_bytes);
  at::manual_seed(5);
  const int64_t n_elements = stack.segment_bytes / 2;
  const auto noise = at::randn({n_elements}).mul_(0.02).to(at::kBFloat16);
  for (int layer = 0; layer < stack.n(); layer++) {
    std::byte* segment = stack.weights->data() + layer * stack.segment_bytes;
    auto values = at::from_blob(segment, {n_elements}, at::kBFloat16);
    values.copy_(noise.roll(layer * 977));
    for (const ParamSpec& param : stack.tables[static_cast<size_t>(layer)]->params) {
      if (param.init == Init::ones) values.narrow(0, param.offset, param.n_elements).add_(1.0);
    }
  }
  return stack;
}

/** Everything one pass needs on the GPU. With 2 slots, segments cross from and to the host. */
class Pass {
 public:
  Pass(Stack& stack, const Options& options, int n_slots, PinnedBytes* host_grads)
      : stack_(stack),
        n_slots_(n_slots),
        host_grads_(host_grads),
        saved_bytes_(laid_out_bytes(stack.tables[0]->saved(stack.shape))),
        arena_(planned_bytes()),
        compute_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true)) {
    const ScratchNeed need = stack.tables[0]->scratch(stack.shape);
    SPIKE_CUDA(cudaStreamCreateWithFlags(&h2d_, cudaStreamNonBlocking));
    SPIKE_CUDA(cudaStreamCreateWithFlags(&d2h_, cudaStreamNonBlocking));
    weights_ = arena_.take("weights", n_slots * stack.segment_bytes);
    grads_ = arena_.take("grads", n_slots * stack.segment_bytes);
    saved_ = arena_.take("saved", stack.n() * saved_bytes_);
    hidden_ = arena_.take("hidden", (stack.n() + 4) * hidden_bytes());
    const int64_t scratch_bytes = std::max(need.forward_bytes, need.backward_bytes);
    scratch_.emplace(arena_.take("scratch", scratch_bytes), scratch_bytes,
                     at::Device(at::kCUDA, 0));
    cu_seqlens_ = arena_.take("batch", (options.seqs + 1) * 4);
    std::byte* library = arena_.take("library", library_bytes());
    library_.emplace(library, library_bytes());

    for (int seq = 0; seq <= options.seqs; seq++)
      starts_.push_back(seq * options.length);
    SPIKE_CUDA(cudaMemcpy(cu_seqlens_, starts_.data(), starts_.size() * 4, cudaMemcpyHostToDevice));
    batch_.shape = stack.shape;
    batch_.n_seqs = batch_.n_seqs_real = options.seqs;
    batch_.cu_seqlens = view_of(cu_seqlens_, {options.seqs + 1}, DType::i32);
    batch_.cu_seqlens_host = starts_;
    at::manual_seed(6);
    const std::array<int64_t, 2> sizes = {stack.shape.tokens, stack.model.width};
    hidden(0).copy_(at::randn(sizes).to(at::kBFloat16));
    gradient(2).copy_((at::randn(sizes) * 1e-3).to(at::kBFloat16));
    if (n_slots == stack.n()) {
      SPIKE_CUDA(cudaMemcpy(weights_, stack.weights->data(),
                            static_cast<size_t>(stack.weights->n_bytes()), cudaMemcpyHostToDevice));
    }
    SPIKE_CUDA(cudaDeviceSynchronize());
  }

  ~Pass() {
    cudaDeviceSynchronize();
    cudaStreamDestroy(h2d_);
    cudaStreamDestroy(d2h_);
  }

  /** Queues one forward and backward; the gradients are complete after a synchronize. */
  void run() {
    const c10::cuda::CUDAStreamGuard guard(compute_);
    gradient(0).copy_(gradient(2));
    at::Tensor none;
    const int last = stack_.n() - 1;
    if (streamed()) {
      for (int layer = 0; layer < std::min(n_slots_, stack_.n()); layer++)
        fetch(layer);
    }
    for (int layer = 0; layer <= last; layer++) {
      BlockMemory memory = memory_of(layer);
      if (streamed()) fetched_[slot(layer)].hold(compute_);
      at::Tensor y = hidden(layer + 1);
      stack_.blocks[static_cast<size_t>(layer)]->forward(key_of(layer), batch_, memory,
                                                         hidden(layer), y, none, none);
      if (streamed() && layer + n_slots_ <= last) {
        released_[slot(layer)].record(compute_);
        fetch(layer + n_slots_);
      }
    }
    int now = 0;
    for (int layer = last; layer >= 0; layer--) {
      BlockMemory memory = memory_of(layer);
      if (streamed()) {
        fetched_[slot(layer)].hold(compute_);
        sent_[slot(layer)].hold(compute_);
      }
      at::Tensor dy = gradient(now), dx = gradient(1 - now);
      stack_.blocks[static_cast<size_t>(layer)]->backward(key_of(layer), batch_, memory,
                                                          hidden(layer), dy, dx);
      now = 1 - now;
      if (!streamed()) continue;
      released_[slot(layer)].record(compute_);
      if (layer >= n_slots_) fetch(layer - n_slots_);
      send(layer);
    }
  }

  /** The gradients of all layers on the host. */
  void collect() {
    SPIKE_CUDA(cudaDeviceSynchronize());
    if (streamed()) return;
    SPIKE_CUDA(cudaMemcpy(host_grads_->data(), grads_, static_cast<size_t>(host_grads_->n_bytes()),
                          cudaMemcpyDeviceToHost));
  }

  at::Tensor output() { return hidden(stack_.n()).cpu(); }
  void print_plan() const {
    arena_.print();
    const ScratchNeed need = stack_.tables[0]->scratch(stack_.shape);
    fmt::print(
        "  scratch peak {} of {}, library peak {} of {}\n", format_bytes(scratch_->peak_bytes()),
        format_bytes(std::max(need.forward_bytes, need.backward_bytes)),
        format_bytes(CudaLibraryRegion::allocator().peak_bytes()), format_bytes(library_bytes()));
  }
  int64_t planned_bytes() const {
    const ScratchNeed need = stack_.tables[0]->scratch(stack_.shape);
    return 2 * n_slots_ * stack_.segment_bytes + stack_.n() * saved_bytes_ +
           (stack_.n() + 4) * hidden_bytes() + std::max(need.forward_bytes, need.backward_bytes) +
           library_bytes() + 8 * kTensorAlignment_bytes;
  }

 private:
  bool streamed() const { return n_slots_ < stack_.n(); }
  size_t slot(int layer) const { return static_cast<size_t>(layer % n_slots_); }
  int64_t hidden_bytes() const { return stack_.model.layer_input_bytes(stack_.shape); }
  int64_t library_bytes() const {
    return round_up(
        stack_.tables[0]->scratch(stack_.shape).library_bytes + cuda_library_workspace_bytes(),
        kMiB);
  }
  at::Tensor hidden(int index) const {
    return view_of(hidden_ + index * hidden_bytes(), {stack_.shape.tokens, stack_.model.width},
                   DType::bf16);
  }
  /** Two that take turns, and (2) the one the backward starts from. */
  at::Tensor gradient(int which) const { return hidden(stack_.n() + 1 + which); }
  RandomKey key_of(int layer) const { return {.training = true, .seed = 7, .block = layer + 1}; }

  BlockMemory memory_of(int layer) {
    const BlockTable& table = *stack_.tables[static_cast<size_t>(layer)];
    const auto offset = static_cast<int64_t>(slot(layer)) * stack_.segment_bytes;
    scratch_->reset();
    BlockMemory memory;
    memory.params = segment_views(table, weights_ + offset, DType::bf16);
    memory.grads = segment_views(table, grads_ + offset, DType::bf16);
    memory.saved = saved_views(table.saved(stack_.shape), saved_ + layer * saved_bytes_);
    memory.scratch = &*scratch_;
    memory.room = stack_.shape;
    return memory;
  }

  void fetch(int layer) {
    released_[slot(layer)].hold(h2d_);
    SPIKE_CUDA(cudaMemcpyAsync(weights_ + slot(layer) * stack_.segment_bytes,
                               stack_.weights->data() + layer * stack_.segment_bytes,
                               static_cast<size_t>(stack_.segment_bytes), cudaMemcpyHostToDevice,
                               h2d_));
    fetched_[slot(layer)].record(h2d_);
  }

  void send(int layer) {
    released_[slot(layer)].hold(d2h_);
    SPIKE_CUDA(cudaMemcpyAsync(host_grads_->data() + layer * stack_.segment_bytes,
                               grads_ + slot(layer) * stack_.segment_bytes,
                               static_cast<size_t>(stack_.segment_bytes), cudaMemcpyDeviceToHost,
                               d2h_));
    sent_[slot(layer)].record(d2h_);
  }

  Stack& stack_;
  int n_slots_;
  PinnedBytes* host_grads_;
  int64_t saved_bytes_;
  GpuArena arena_;
  c10::cuda::CUDAStream compute_;
  cudaStream_t h2d_ = nullptr, d2h_ = nullptr;
  std::byte *weights_ = nullptr, *grads_ = nullptr, *saved_ = nullptr, *hidden_ = nullptr,
            *cu_seqlens_ = nullptr;
  std::optional<Scratch> scratch_;
  std::optional<CudaLibraryRegion> library_;
  std::vector<int32_t> starts_;
  BatchTensors batch_;
  std::array<Event, 2> fetched_, released_, sent_;
};

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void time_pass(const char* name, Pass& pass, const Options& options) {
  for (int i = 0; i < 3; i++)
    pass.run();
  SPIKE_CUDA(cudaDeviceSynchronize());
  std::vector<double> queued, done;
  for (int i = 0; i < options.iterations; i++) {
    const auto start = std::chrono::steady_clock::now();
    pass.run();
    queued.push_back(milliseconds_since(start));
    SPIKE_CUDA(cudaDeviceSynchronize());
    done.push_back(milliseconds_since(start));
  }
  fmt::print("{}: {:.2f} ms ({:.1f} samples/s), queued in {:.2f} ms\n", name, median(done),
             options.seqs * 1000.0 / median(done), median(queued));
}

uint64_t hash_of(const std::byte* data, int64_t n_bytes) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (int64_t at = 0; at + 8 <= n_bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data + at, 8);
    hash = (hash ^ word) * 0x100000001b3ull;
    hash ^= hash >> 29;
  }
  return hash;
}

void report_driver(int64_t context_bytes, const Pass& pass) {
  const int64_t used = driver_used_bytes() - context_bytes;
  fmt::print("  driver counts {} beyond the bare context, the plan says {}: {} more\n",
             format_bytes(used), format_bytes(pass.planned_bytes()),
             format_bytes(used - pass.planned_bytes()));
}

void profile_once(Pass& pass) {
  for (int i = 0; i < 2; i++)
    pass.run();
  SPIKE_CUDA(cudaDeviceSynchronize());
  SPIKE_CUDA(cudaProfilerStart());
  pass.run();
  SPIKE_CUDA(cudaDeviceSynchronize());
  SPIKE_CUDA(cudaProfilerStop());
}

void compare(Stack& stack, const Options& options, int64_t context_bytes) {
  PinnedBytes resident_grads(stack.n() * stack.segment_bytes);
  PinnedBytes streamed_grads(stack.n() * stack.segment_bytes);
  at::Tensor resident_output, streamed_output;
  {
    Pass resident(stack, options, stack.n(), &resident_grads);
    time_pass("resident", resident, options);
    resident.collect();
    resident_output = resident.output();
    resident.print_plan();
    report_driver(context_bytes, resident);
  }
  {
    Pass streamed(stack, options, 2, &streamed_grads);
    time_pass("streamed through 2 slots", streamed, options);
    streamed.collect();
    streamed_output = streamed.output();
    streamed.print_plan();
    report_driver(context_bytes, streamed);
  }
  const bool same = std::memcmp(resident_grads.data(), streamed_grads.data(),
                                static_cast<size_t>(resident_grads.n_bytes())) == 0;
  const auto gradients =
      at::from_blob(resident_grads.data(), {resident_grads.n_bytes() / 2}, at::kBFloat16);
  fmt::print("gradients: {}, hash {:016x}, norm {:.6g}; output: {}, norm {:.6g}\n",
             same ? "same bits" : "DIFFERENT BITS",
             hash_of(streamed_grads.data(), streamed_grads.n_bytes()),
             gradients.to(at::kFloat).norm().item<double>(),
             at::equal(resident_output, streamed_output) ? "same bits" : "DIFFERENT BITS",
             resident_output.to(at::kFloat).norm().item<double>());
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i++) {
    const std::string_view name = argv[i];
    const auto number = [&] { return std::atoi(++i < argc ? argv[i] : "0"); };
    if (name == "--layers") options.layers = number();
    if (name == "--seqs") options.seqs = number();
    if (name == "--length") options.length = number();
    if (name == "--iterations") options.iterations = number();
    if (name == "--once") options.once = true;
  }
  return options;
}

int spike(const Options& options) {
  set_up_torch({});
  // LibTorch takes another allocator only before its first use of the GPU.
  { const CudaLibraryRegion installed(nullptr, 0); }
  at::globalContext().lazyInitDevice(at::kCUDA);
  SPIKE_CUDA(cudaFree(nullptr));
  const int64_t context_bytes = driver_used_bytes();
  Stack stack = make_stack(options);
  if (options.once) {
    PinnedBytes grads(stack.n() * stack.segment_bytes);
    Pass pass(stack, options, stack.n(), &grads);
    profile_once(pass);
  } else {
    compare(stack, options, context_bytes);
  }
  return 0;
}

}  // namespace
}  // namespace ferry::spike

int main(int argc, char** argv) {
  try {
    return ferry::spike::spike(ferry::spike::parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 5;
  }
}
