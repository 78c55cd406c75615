#include "src/measure/kernels/gemm.h"

#include "models/block.h"
#include "models/ops/linear/linear.h"

namespace ferry::measure {

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
  const Bound bound = {.seconds = seconds / n_figures, .n_samples = 3};
  std::vector<GemmRate> rates;
  for (const DType type : grid.types) {
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
