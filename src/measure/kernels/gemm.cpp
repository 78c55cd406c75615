#include "src/measure/kernels/gemm.h"

#include "models/core/block.h"
#include "models/ops/linear/linear.h"
#include "simd/cuda/cuda_kernels.h"

namespace ferry::measure {
namespace {

constexpr int64_t kLoadRows = 8192, kLoadWidth = 2048, kLoadElements = 16 << 20;
constexpr int kFigureSamples = 3;

}  // namespace

StepLoad::StepLoad(Bench& bench, DType type) : bench_(bench) {
  if (!bench.is_cuda()) return;
  bench.load.reset();
  const at::ScalarType scalar = scalar_type_of(type);
  x_ = bench.tensor({kLoadRows, kLoadWidth}, scalar, bench.load);
  w_ = bench.tensor({kLoadWidth, kLoadWidth}, scalar, bench.load);
  y_ = bench.tensor({kLoadRows, kLoadWidth}, scalar, bench.load);
  sum_ = bench.tensor({kLoadElements}, at::kFloat, bench.load).data_ptr<float>();
  grad_ = bench.tensor({kLoadElements}, at::kFloat, bench.load).data_ptr<float>();
}

void StepLoad::run(double seconds) {
  if (!bench_.is_cuda()) return;
  constexpr int kProducts = 2;  // of BERT-Large's steps they are two thirds
  const auto start = Clock::now();
  do {
    bench_.seconds_of(4, [&] {
      for (int i = 0; i < kProducts; ++i)
        ops::linear_forward(x_, w_, /*bias=*/{}, y_);
      simd::cuda::accumulate(sum_, grad_, DType::f32, kLoadElements,
                             bench_.device().compute_stream());
    });
  } while (seconds_since(start) < seconds);
}

Bound StepLoad::bound(double seconds) {
  Bound bound = {.seconds = seconds, .n_samples = kFigureSamples};
  if (bench_.is_cuda()) bound.before = [this](double s) { run(s); };
  return bound;
}

void wake(Bench& bench, double seconds) {
  constexpr int64_t kWidth = 2048;
  bench.gpu.reset();
  const at::Tensor x = bench.tensor({kWidth, kWidth}, at::kFloat);
  at::Tensor y = bench.tensor({kWidth, kWidth}, at::kFloat);
  const auto start = Clock::now();
  while (seconds_since(start) < seconds)
    bench.seconds_of(10, [&] { ops::linear_forward(x, x, /*bias=*/{}, y); });
}

std::vector<GemmRate> measure_gemms(Bench& bench,
                                    const GemmGrid& grid,
                                    double seconds,
                                    Allotted& allotted) {
  const auto n_figures =
      static_cast<double>(grid.types.size() * grid.rows.size() * grid.widths.size());
  std::vector<GemmRate> rates;
  for (const DType type : grid.types) {
    StepLoad load(bench, type);
    const Bound bound = load.bound(seconds / n_figures);
    for (const int64_t rows : grid.rows) {
      for (const int64_t width : grid.widths) {
        if (allotted.is_over()) continue;
        bench.gpu.reset();
        const at::Tensor x = bench.tensor({rows, width}, scalar_type_of(type));
        const at::Tensor w = bench.tensor({width, width}, scalar_type_of(type));
        at::Tensor y = bench.tensor({rows, width}, scalar_type_of(type));
        Replayed product(bench, /*can_be_recorded=*/true,
                         [&](const RandomKey&) { ops::linear_forward(x, w, /*bias=*/{}, y); });
        const double took = sample(bound, [&](int n) { return product.seconds_of(n); });
        const auto flops = static_cast<double>(2 * rows * width * width);
        rates.push_back({type, rows, width, rounded(flops / took)});
      }
    }
  }
  return rates;
}

}  // namespace ferry::measure
