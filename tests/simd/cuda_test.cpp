// The GPU kernels against the CPU's scalar level, bit for bit: every type, size, offset and hostile
// value. Skipped where no GPU answers.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "simd/cuda/cuda_kernels.h"
#include "tests/simd/support.h"
#include "tests/simd/update_problem.h"

namespace ferry::simd {
namespace {

void check(cudaError_t status) {
  ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status);
}

/** A copy of a Buffer on the GPU, `offset` elements behind a 256-byte layer input, with guards
 * around it. */
class OnGpu {
 public:
  explicit OnGpu(const Buffer& host, int64_t offset = 0)
      : type_(host.type()),
        n_(host.n()),
        begin_(kGuard + static_cast<size_t>(offset) * size_of(type_)) {
    n_bytes_ = begin_ + host.n_bytes() + kGuard;
    check(cudaMalloc(&base_, n_bytes_));
    check(cudaMemset(base_, kFill, n_bytes_));
    if (host.n_bytes() > 0)
      check(cudaMemcpy(data(), host.data(), host.n_bytes(), cudaMemcpyHostToDevice));
  }
  ~OnGpu() { cudaFree(base_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  void* data() const { return static_cast<char*>(base_) + begin_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data());
  }

  /** The array back on the host, after checking that nothing around it was written. */
  std::unique_ptr<Buffer> back() const {
    std::vector<uint8_t> all(n_bytes_);
    check(cudaMemcpy(all.data(), base_, n_bytes_, cudaMemcpyDeviceToHost));
    auto host = std::make_unique<Buffer>(type_, n_);
    if (host->n_bytes() > 0) std::memcpy(host->data(), all.data() + begin_, host->n_bytes());
    for (size_t i = 0; i < n_bytes_; ++i) {
      if (i == begin_) i += host->n_bytes();
      if (i < n_bytes_ && all[i] != kFill) {
        ADD_FAILURE() << "wrote outside its array, at byte " << static_cast<int64_t>(i - begin_);
        break;
      }
    }
    return host;
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr uint8_t kFill = 0xa5;
  DType type_;
  int64_t n_;
  size_t begin_, n_bytes_ = 0;
  void* base_ = nullptr;
};

class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::is_available()) GTEST_SKIP() << "no GPU answers";
    before_ = level();
    set_level(Level::scalar);
  }
  void TearDown() override {
    if (!cuda::is_available()) return;
    set_level(before_);
    check(cudaDeviceSynchronize());
  }
  /** Zero half of the time, so that the wide loads are tested as much as the narrow ones. */
  int64_t offset() { return random_() % 2 == 0 ? 0 : static_cast<int64_t>(random_() % 9); }
  Values values() { return random_() % 2 == 0 ? Values::plain : Values::hostile; }

  std::mt19937_64 random_{21};
  Level before_ = Level::scalar;
};

struct WeightKind {
  DType type;
  bool is_there;
};
constexpr WeightKind kWeightKinds[] = {
    {DType::f32, false}, {DType::f32, true}, {DType::f16, true}, {DType::bf16, true}};

/** One AdamW step on both; compares master, m, v and weights. */
void compare_adamw(DType grad_type,
                   WeightKind kind,
                   int64_t n,
                   Values values,
                   const int64_t (&offsets)[5],
                   uint64_t seed,
                   const UpdateStep& step) {
  Buffer master(DType::f32, n), m(DType::f32, n), v(DType::f32, n), grad(grad_type, n);
  Buffer weights(kind.type, kind.is_there ? n : 0);
  master.fill(values, seed);
  m.fill(values, seed + 1, 1e-3f);
  v.fill(values, seed + 2, 1e-3f);
  grad.fill(values, seed + 3, 0.1f);
  if (values == Values::plain)
    for (int64_t i = 0; i < n; ++i)
      v.f32()[i] = std::abs(v.f32()[i]);
  const OnGpu gpu_master(master, offsets[0]), gpu_m(m, offsets[1]), gpu_v(v, offsets[2]);
  const OnGpu gpu_grad(grad, offsets[3]), gpu_weights(weights, offsets[4]);
  update({.master = master.f32(),
          .states = {{m.f32()}, {v.f32()}},
          .grad = grad.data(),
          .grad_type = grad_type,
          .weights = kind.is_there ? weights.data() : nullptr,
          .weights_type = kind.type,
          .n = n,
          .step = step});
  cuda::update({.master = gpu_master.as<float>(),
                .states = {{gpu_m.as<float>()}, {gpu_v.as<float>()}},
                .grad = gpu_grad.data(),
                .grad_type = grad_type,
                .weights = kind.is_there ? gpu_weights.data() : nullptr,
                .weights_type = kind.type,
                .n = n,
                .step = step},
               nullptr);
  const std::string what = std::string(name_of(grad_type)) + " -> " +
                           std::string(kind.is_there ? name_of(kind.type) : "none") + ", n " +
                           std::to_string(n);
  EXPECT_TRUE(same_bits(*gpu_master.back(), master)) << what << ", master";
  EXPECT_TRUE(same_bits(*gpu_m.back(), m)) << what << ", m";
  EXPECT_TRUE(same_bits(*gpu_v.back(), v)) << what << ", v";
  EXPECT_TRUE(same_bits(*gpu_grad.back(), grad)) << what << ", grad";
  EXPECT_TRUE(same_bits(*gpu_weights.back(), weights)) << what << ", weights";
}

TEST_F(CudaKernels, AdamwEqualsScalarAtEverySizeAndOffset) {
  uint64_t seed = 1;
  for (const int64_t n : test_sizes()) {
    for (const DType grad_type : kFloatTypes) {
      for (const WeightKind kind : kWeightKinds) {
        int64_t offsets[5] = {};
        if (random_() % 2 == 0)
          for (int64_t& each : offsets)
            each = offset();
        const UpdateStep step = make_step(Optim::adamw, {.lr = 1e-3, .weight_decay = 0.01},
                                          1 + static_cast<int64_t>(random_() % 5000),
                                          random_() % 2 == 0 ? 1.0f : 0.37f / 1024.0f);
        compare_adamw(grad_type, kind, n, values(), offsets, seed += 10, step);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(CudaKernels, AdamwEqualsScalarOnMany) {
  const int64_t n = is_long() ? 100'000'000 : 3'000'001;
  const UpdateStep step = make_step(Optim::adamw, {.lr = 1e-3, .weight_decay = 0.1}, 2, 0.5f);
  compare_adamw(DType::bf16, {DType::bf16, true}, n, Values::plain, {0, 0, 0, 0, 0}, 5, step);
  compare_adamw(DType::f32, {DType::f16, true}, 3'000'001, Values::hostile, {1, 2, 3, 4, 5}, 6,
                step);
  compare_adamw(DType::f16, {DType::f32, true}, 3'000'001, Values::hostile, {0, 0, 0, 0, 0}, 7,
                step);
}

/** One step of an optimizer on both; compares all that was written. */
void compare_updates(
    const UpdateKind& kind, int64_t n, Values values, bool aligned, uint64_t seed) {
  UpdateProblem host(kind, n, seed, aligned);
  host.draw_place();
  host.fill(values, seed);
  std::vector<std::unique_ptr<OnGpu>> gpu;
  for (Buffer* buffer : host.buffers())
    gpu.push_back(
        std::make_unique<OnGpu>(*buffer, aligned ? 0 : static_cast<int64_t>(host.random() % 9)));
  const UpdateStep step = host.usual_step(7);
  UpdateArgs args = host.args(step);
  args.master = gpu[0]->data();
  args.states[0] = {gpu[1]->data(), gpu[5]->as<uint8_t>()};
  args.states[1] = {gpu[2]->data(), gpu[6]->as<uint8_t>()};
  args.grad = gpu[3]->data();
  args.weights = kind.has_weights ? gpu[4]->data() : nullptr;
  host.run(step);
  cuda::update(args, nullptr);
  const std::vector<Buffer*> expected = host.buffers();
  for (size_t i = 0; i < gpu.size(); ++i)
    EXPECT_TRUE(same_bits(*gpu[i]->back(), *expected[i])) << text_of(kind, n) << ", array " << i;
}

TEST_F(CudaKernels, EveryOptimizerEqualsScalarAtEverySizeAndOffset) {
  uint64_t seed = 1;
  for (const int64_t n : test_sizes())
    for (const Optim optim : {Optim::adamw, Optim::adamw_bf16, Optim::adamw_8bit, Optim::lion,
                              Optim::sgd, Optim::sgd_momentum})
      for (const DType grad : kFloatTypes) {
        for (const WeightKind kind : kWeightKinds)
          compare_updates({grad, kind.type, kind.is_there, optim, false}, n, values(),
                          random_() % 2 == 0, seed += 10);
        compare_updates({grad, DType::bf16, true, optim, true}, n, values(), random_() % 2 == 0,
                        seed += 10);
        if (HasFailure()) return;
      }
}

TEST_F(CudaKernels, EveryOptimizerEqualsScalarOnMany) {
  for (const bool split : {false, true})
    for (const Optim optim :
         {Optim::adamw_bf16, Optim::adamw_8bit, Optim::lion, Optim::sgd, Optim::sgd_momentum}) {
      compare_updates({DType::bf16, DType::bf16, true, optim, split}, 3'000'001, Values::plain,
                      true, 5);
      compare_updates({DType::bf16, DType::bf16, true, optim, split}, 300'001, Values::hostile,
                      false, 6);
    }
}

TEST_F(CudaKernels, AdamwTakesTheMasterAsWeights) {
  Buffer master(DType::f32, 1000), m(DType::f32, 1000), v(DType::f32, 1000), grad(DType::f32, 1000);
  master.fill(Values::plain, 1);
  grad.fill(Values::plain, 2);
  std::fill_n(m.f32(), 1000, 0.0f);
  std::fill_n(v.f32(), 1000, 0.0f);
  const OnGpu gpu_master(master), gpu_m(m), gpu_v(v), gpu_grad(grad);
  const UpdateStep step = make_step(Optim::adamw, {}, 1, 1.0f);
  update({master.f32(),
          {{m.f32()}, {v.f32()}},
          grad.data(),
          DType::f32,
          master.data(),
          DType::f32,
          1000,
          step});
  cuda::update({gpu_master.as<float>(),
                {{gpu_m.as<float>()}, {gpu_v.as<float>()}},
                gpu_grad.data(),
                DType::f32,
                gpu_master.data(),
                DType::f32,
                1000,
                step},
               nullptr);
  EXPECT_TRUE(same_bits(*gpu_master.back(), master));
}

TEST_F(CudaKernels, ConvertEqualsScalar) {
  const auto compare = [&](const Buffer& from, DType to_type, int64_t from_offset,
                           int64_t to_offset) {
    Buffer to(to_type, from.n());
    const OnGpu gpu_from(from, from_offset), gpu_to(to, to_offset);
    convert(to.data(), to_type, from.data(), from.type(), from.n());
    cuda::convert(gpu_to.data(), to_type, gpu_from.data(), from.type(), from.n(), nullptr);
    ASSERT_TRUE(same_bits(*gpu_to.back(), to))
        << name_of(from.type()) << " to " << name_of(to_type);
  };
  for (const int64_t n : test_sizes()) {
    for (const DType type : {DType::f16, DType::bf16}) {
      compare(Buffer(type, n).fill(Values::hostile, random_()), DType::f32, offset(), offset());
      compare(Buffer(DType::f32, n).fill(Values::hostile, random_()), type, offset(), offset());
      compare(Buffer(type, n).fill(Values::hostile, random_()), type, offset(), offset());
      if (HasFailure()) return;
    }
  }
  for (const DType type : {DType::f16, DType::bf16}) {
    Buffer all(type, 65536);
    for (int i = 0; i < 65536; ++i)
      all.u16()[i] = static_cast<uint16_t>(i);
    compare(all, DType::f32, 0, 0);
  }
  const int64_t n = 1 << 22;  // quick: every 257th float; long: all of them
  const uint64_t stride = is_long() ? 1 : 257;
  Buffer floats(DType::f32, n);
  for (uint64_t start = 0; start < uint64_t{1} << 32; start += stride * static_cast<uint64_t>(n)) {
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t bits = static_cast<uint32_t>(start + stride * static_cast<uint64_t>(i));
      std::memcpy(floats.at(i), &bits, 4);
    }
    compare(floats, DType::f16, 0, 0);
    compare(floats, DType::bf16, 0, 0);
    if (HasFailure()) return;
  }
}

TEST_F(CudaKernels, AccumulateEqualsScalar) {
  for (const int64_t n : test_sizes()) {
    for (const DType type : kFloatTypes) {
      Buffer first(type, n), second(type, n), sum(DType::f32, n);
      first.fill(values(), random_());
      second.fill(values(), random_());
      const OnGpu gpu_first(first, offset()), gpu_second(second, offset()), gpu_sum(sum, offset());
      accumulate_first(sum.f32(), first.data(), type, n);
      accumulate(sum.f32(), second.data(), type, n);
      cuda::accumulate_first(gpu_sum.as<float>(), gpu_first.data(), type, n, nullptr);
      cuda::accumulate(gpu_sum.as<float>(), gpu_second.data(), type, n, nullptr);
      ASSERT_TRUE(same_bits(*gpu_sum.back(), sum)) << name_of(type) << ", n " << n;
    }
  }
}

/** Doubles on the GPU, with their bits readable. */
struct GpuDoubles {
  explicit GpuDoubles(int64_t n) : values(static_cast<size_t>(n)) {
    check(cudaMalloc(&data, values.size() * sizeof(double) + 8));
  }
  ~GpuDoubles() { cudaFree(data); }
  GpuDoubles(const GpuDoubles&) = delete;
  GpuDoubles& operator=(const GpuDoubles&) = delete;
  uint64_t bits(size_t i) {
    check(cudaMemcpy(values.data(), data, values.size() * sizeof(double), cudaMemcpyDeviceToHost));
    uint64_t bits;
    std::memcpy(&bits, &values[i], sizeof bits);
    return bits;
  }
  std::vector<double> values;
  double* data = nullptr;
};

uint64_t bits_of_double(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

TEST_F(CudaKernels, SquareSumEqualsScalar) {
  std::vector<int64_t> sizes = test_sizes();
  for (const int64_t n : {8192, 8193, 12'289, 262'144, 3'000'001})
    sizes.push_back(n);
  if (is_long()) sizes.push_back(100'000'000);
  for (const int64_t n : sizes) {
    for (const DType type : kFloatTypes) {
      Buffer grad(type, n);
      grad.fill(n % 5 == 0 ? Values::hostile : Values::plain, random_());
      const OnGpu gpu_grad(grad, offset());
      GpuDoubles sum(1), scratch(norm_chunks(n));
      cuda::square_sum(gpu_grad.data(), type, n, sum.data, scratch.data, nullptr);
      ASSERT_EQ(sum.bits(0), bits_of_double(square_sum(grad.data(), type, n)))
          << name_of(type) << ", n " << n;
    }
  }
}

TEST_F(CudaKernels, SquareSumShowsNonFiniteElements) {
  for (const DType type : kFloatTypes) {
    for (const bool is_nan : {false, true}) {
      Buffer grad(type, 9000);
      grad.fill(Values::plain, 3);
      const uint32_t pattern =
          type == DType::f16 ? (is_nan ? 0x7c01u : 0xfc00u) : (is_nan ? 0x7f81u : 0xff80u);
      const uint32_t bits = type == DType::f32 ? pattern << 16 : pattern;
      std::memcpy(grad.at(8999), &bits, size_of(type));
      const OnGpu gpu_grad(grad);
      GpuDoubles sum(1), scratch(norm_chunks(9000));
      cuda::square_sum(gpu_grad.data(), type, 9000, sum.data, scratch.data, nullptr);
      EXPECT_EQ(sum.bits(0), is_nan ? 0x7ff8000000000000u : 0x7ff0000000000000u);
    }
  }
}

TEST_F(CudaKernels, RunsOnTheStreamItIsGiven) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Buffer from(DType::f32, 100'000), to(DType::bf16, 100'000);
  from.fill(Values::plain, 1);
  convert(to.data(), DType::bf16, from.data(), DType::f32, from.n());
  const OnGpu gpu_from(from), gpu_to(to);
  check(cudaMemsetAsync(gpu_to.data(), 0, to.n_bytes(), stream));
  cuda::convert(gpu_to.data(), DType::bf16, gpu_from.data(), DType::f32, from.n(), stream);
  check(cudaStreamSynchronize(stream));
  EXPECT_TRUE(same_bits(*gpu_to.back(), to));
  check(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace ferry::simd
