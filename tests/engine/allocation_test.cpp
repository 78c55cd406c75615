// Every large allocation is made before step 1 (promise 1): after warm-up nothing of 1 MiB or more
// comes from malloc or mmap, and on a GPU the driver counts the same bytes step after step, and
// what LibTorch takes stays within its region. This program stands in front of the C library's
// allocators.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "models/bert/bert_table.h"
#include "src/plan/plan.h"
#include "tests/engine/toy_runs.h"

namespace {

std::atomic<bool> armed{false};
std::atomic<int> n_large{0};
std::atomic<size_t> largest{0};

void count(size_t size) {
  constexpr size_t kLarge_bytes = 1 << 20;
  if (size < kLarge_bytes || !armed.load(std::memory_order_relaxed)) return;
  ++n_large;
  size_t seen = largest.load();
  while (seen < size && !largest.compare_exchange_weak(seen, size)) {
  }
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/** The system call itself: the loader maps before dlsym can answer. */
void* map_and_count(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  if (flags & MAP_ANONYMOUS) count(size);
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}

}  // namespace

extern "C" {
void* __libc_calloc(size_t n, size_t size);  // dlsym itself may call calloc

void* malloc(size_t size) {
  static auto real = next<void* (*)(size_t)>("malloc");
  count(size);
  return real(size);
}
void* calloc(size_t n, size_t size) {
  count(n * size);
  return __libc_calloc(n, size);
}
void* realloc(void* old, size_t size) {
  static auto real = next<void* (*)(void*, size_t)>("realloc");
  count(size);
  return real(old, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  static auto real = next<int (*)(void**, size_t, size_t)>("posix_memalign");
  count(size);
  return real(out, alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  static auto real = next<void* (*)(size_t, size_t)>("aligned_alloc");
  count(size);
  return real(alignment, size);
}
void* memalign(size_t alignment, size_t size) {
  static auto real = next<void* (*)(size_t, size_t)>("memalign");
  count(size);
  return real(alignment, size);
}
// By these names, since the headers may declare mmap as another name of mmap64.
void* counted_mmap(
    void* at, size_t size, int protection, int flags, int file, off_t offset) __asm__("mmap");
void* counted_mmap64(
    void* at, size_t size, int protection, int flags, int file, off_t offset) __asm__("mmap64");
void* counted_mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  return map_and_count(at, size, protection, flags, file, offset);
}
void* counted_mmap64(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  return map_and_count(at, size, protection, flags, file, offset);
}
}

namespace ferry::test {
namespace {

constexpr int kWarmup_steps = 6,  // step 5 has fewer micro-batches: its list is made then
    kSteps = 7;

int large_allocations_after_warmup(const ToyModel& model, ToyPlacement placement) {
  n_large = 0;
  largest = 0;
  placement.before_step = [](int step) { armed = step >= kWarmup_steps && step < kSteps; };
  run_toy(model, placement, kSteps);
  armed = false;
  return n_large;
}

/** An allocation of 2 MiB, given back; volatile, or the compiler would leave the pair out. */
void* volatile planted = nullptr;
constexpr size_t kPlanted_bytes = 2 << 20;
const std::map<std::string, std::function<void()>> kPlants = {
    {"malloc", [] { planted = std::malloc(kPlanted_bytes), std::free(planted); }},
    {"calloc", [] { planted = std::calloc(2, kPlanted_bytes / 2), std::free(planted); }},
    {"realloc", [] { planted = std::realloc(nullptr, kPlanted_bytes), std::free(planted); }},
    {"new", [] { planted = ::operator new(kPlanted_bytes), ::operator delete(planted); }},
    {"memalign", [] { planted = memalign(64, kPlanted_bytes), std::free(planted); }},
    {"aligned_alloc", [] { planted = std::aligned_alloc(64, kPlanted_bytes), std::free(planted); }},
    {"posix_memalign",
     [] {
       void* p = nullptr;
       EXPECT_EQ(posix_memalign(&p, 64, kPlanted_bytes), 0);
       planted = p, std::free(planted);
     }},
    {"mmap",
     [] {
       planted = mmap(nullptr, kPlanted_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       EXPECT_EQ(munmap(planted, kPlanted_bytes), 0);
     }},
};

/** Planted where an operation would make it: in the forward pass of a layer, once a micro-batch. */
TEST(Allocations, APlantedAllocationIsCounted) {
  const ToyModel model = small_bert(DType::f32, LossKind::cross_entropy);
  ToyPlacement placement;
  EXPECT_EQ(large_allocations_after_warmup(model, placement), 0) << "with none planted";
  for (const auto& [name, plant] : kPlants) {
    placement.key_fault = [&plant](RandomKey&, const Action& action) {
      if (action.verb == Verb::forward && action.block == 2) plant();
    };
    EXPECT_EQ(large_allocations_after_warmup(model, placement),
              model.n_micro * (kSteps - kWarmup_steps))
        << name;
    EXPECT_EQ(largest, kPlanted_bytes) << name;
  }
}

/** Few heads and layers, but wide: in about 1,000 tokens the narrowest activation has 1.5 MiB. */
ToyModel wide_bert(LossKind loss) {
  const nlohmann::json config = {{"model_type", "bert"},
                                 {"vocab_size", 2048},
                                 {"hidden_size", 384},
                                 {"num_hidden_layers", 2},
                                 {"num_attention_heads", 2},
                                 {"intermediate_size", 768},
                                 {"max_position_embeddings", 128},
                                 {"type_vocab_size", 2},
                                 {"layer_norm_eps", 1e-12},
                                 {"hidden_act", "gelu"},
                                 {"hidden_dropout_prob", 0.1},
                                 {"attention_probs_dropout_prob", 0.1},
                                 {"pad_token_id", 0},
                                 {"initializer_range", 0.02}};
  ToyModel model = small_bert(DType::f32, loss);
  model.table = make_bert_table(parse_bert_config(config), {.head = head_of(loss), .n_labels = 3});
  model.n_micro = 2;
  model.micro_batch_size = 16;
  model.max_length = 128;
  return model;
}

/** As wide, with a vocabulary of several chunks. */
ToyModel wide_decoder(DecoderFamily family) {
  ToyModel model = small_decoder(family, DType::f32);
  model.table = make_decoder_table({.family = family,
                                    .vocab_size = 9000,
                                    .hidden_size = 384,
                                    .num_hidden_layers = 2,
                                    .num_attention_heads = 4,
                                    .num_key_value_heads = family == DecoderFamily::llama ? 2 : 4,
                                    .intermediate_size = 768,
                                    .max_position_embeddings = 128,
                                    .hidden_dropout = 0.1f,
                                    .attention_dropout = 0.1f},
                                   {});
  model.n_micro = 2;
  model.micro_batch_size = 16;
  model.max_length = 128;
  return model;
}

void expect_none_after_warmup(const ToyModel& model) {
  // MKL keeps packing buffers per thread, as large as the largest product it has met: here it meets
  // all of these batches' products, as a run does in its rehearsal.
  run_toy(model, {}, kSteps);
  for (Place place : {Place::device, Place::host}) {
    ToyPlacement placement;
    placement.place = place;
    // Each of the two places has its own way to keep what the backward pass needs.
    if (place == Place::host) placement.activations = Activations::recompute;
    // Reading the segments for comparison comes after the last step, so the count is the steps'
    // own.
    EXPECT_EQ(large_allocations_after_warmup(model, placement), 0)
        << name_of(place) << ", " << model.table.hf_architecture << ", largest " << largest.load();
  }
}

TEST(Allocations, NoneAfterWarmup) {
  for (LossKind loss : {LossKind::cross_entropy, LossKind::masked_lm,
                        LossKind::token_classification, LossKind::question_answering})
    expect_none_after_warmup(wide_bert(loss));
}

TEST(Allocations, NoneAfterWarmupOfDecoders) {
  for (DecoderFamily family : {DecoderFamily::llama, DecoderFamily::gpt2})
    expect_none_after_warmup(wide_decoder(family));
}

/** The size of the region that run_toy plans for LibTorch's own allocations on a GPU. */
int64_t planned_library_bytes(const ToyModel& model) {
  const BatchShape batch{.tokens = round_up(model.micro_batch_size * model.max_length, 16),
                         .n_seqs_max = model.micro_batch_size + 1,
                         .max_length = model.max_length};
  PlanRequest request;
  request.has_gpu = true;
  return make_step_shape(model.table, batch, request, model.n_micro).library_bytes;
}

TEST(Allocations, OnAGpuTheDriverCountsTheSameStepAfterStep) {
  if (CudaProbe probe = probe_cuda(); !probe.usable)
    GTEST_SKIP() << "no usable GPU: " << probe.why_not;
  const ToyModel model = small_bert(DType::bf16, LossKind::cross_entropy, AttentionBackend::flash);
  for (Place place : {Place::device, Place::host}) {
    ToyPlacement placement;
    placement.device = DeviceKind::cuda;
    placement.place = place;
    placement.graphs = false;  // these ragged batches bring new ones all the time
    int64_t after_warmup = 0, largest_since = 0;
    placement.before_step = [&](int step) {
      if (step < kWarmup_steps) return;
      const int64_t used = cuda_driver_used_bytes();
      if (step == kWarmup_steps) after_warmup = used;
      largest_since = std::max(largest_since, used);
    };
    const ToyResult result = run_toy(model, placement, kWarmup_steps + 4);
    EXPECT_GT(after_warmup, 0);
    EXPECT_EQ(largest_since, after_warmup) << name_of(place);
    EXPECT_GT(result.library_peak_bytes, 0) << name_of(place) << ": LibTorch allocates elsewhere";
    EXPECT_LE(result.library_peak_bytes, planned_library_bytes(model)) << name_of(place);
  }
}

}  // namespace
}  // namespace ferry::test
