// Cross entropy in pieces of the classes against autograd in fp64: pieces that are moved 16 bytes
// at a time and ones that are not, more classes than a block has threads and fewer, rows without a
// label, smoothing; and logits that are not finite.

#include <cmath>
#include <utility>
#include <vector>

#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

struct Pieces {
  std::vector<int64_t> widths;
  int64_t n_rows;
};

class CrossEntropy : public ::testing::TestWithParam<DType> {};

TEST_P(CrossEntropy, InPiecesIsThatOfAllClassesAndTheSameAgain) {
  if (!at::hasCUDA() || at::cuda::device_count() == 0) GTEST_SKIP() << "no CUDA GPU here";
  const Launch on = {.stream = at::cuda::getCurrentCUDAStream().stream()};
  const DType type = GetParam();
  for (const Pieces& pieces : {Pieces{{3}, 5}, Pieces{{20, 41}, 70}, Pieces{{4096, 4096, 1850}, 33},
                               Pieces{{520, 8}, 1}}) {
    at::manual_seed(5);
    int64_t n_classes = 0;
    for (int64_t width : pieces.widths)
      n_classes += width;
    const int64_t n = pieces.n_rows;
    const auto logits = (at::randn({n, n_classes}, at::device(at::kCUDA)) * 4).to(torch_type(type));
    auto labels = at::randint(n_classes, {n}, at::device(at::kCUDA).dtype(at::kInt));
    if (n > 1) labels[1].fill_(-100);
    labels[0].fill_(n_classes - 1);
    constexpr double kSmoothing = 0.2;
    const float uniform = static_cast<float>(kSmoothing / static_cast<double>(n_classes));
    const float on_label = static_cast<float>(1 - kSmoothing), factor = 0.5f;

    const auto logits64 = logits.to(at::kDouble).requires_grad_();
    const auto expected = at::cross_entropy_loss(logits64, labels.to(at::kLong), {},
                                                 at::Reduction::Sum, -100, kSmoothing);
    (expected * factor).backward();

    const auto run = [&] {
      const auto row = [&](float value) { return at::full({n}, value, at::device(at::kCUDA)); };
      const auto largest = row(-INFINITY), sum_exp = row(0), sum = row(0), label_logit = row(0);
      int64_t first = 0;
      for (int64_t width : pieces.widths) {
        const auto piece = logits.narrow(1, first, width).contiguous();
        cuda_kernels().take_logits({.type = type,
                                    .n_rows = n,
                                    .n_classes = width,
                                    .first_class = first,
                                    .logits = piece.data_ptr(),
                                    .labels = ints(labels),
                                    .largest = floats(largest),
                                    .sum_exp = floats(sum_exp),
                                    .sum = floats(sum),
                                    .label_logit = floats(label_logit)},
                                   on);
        first += width;
      }
      const auto lse = at::log(sum_exp) + largest;
      std::vector<at::Tensor> gradients;
      first = 0;
      for (int64_t width : pieces.widths) {
        gradients.push_back(logits.narrow(1, first, width).clone(at::MemoryFormat::Contiguous));
        cuda_kernels().logits_backward({.type = type,
                                        .n_rows = n,
                                        .n_classes = width,
                                        .first_class = first,
                                        .logits = gradients.back().data_ptr(),
                                        .labels = ints(labels),
                                        .lse = floats(lse),
                                        .uniform = uniform,
                                        .on_label = on_label,
                                        .factor = factor},
                                       on);
        first += width;
      }
      const auto item = lse - label_logit * on_label - sum * uniform;
      return std::vector<at::Tensor>{at::where(labels.ge(0), item, at::zeros_like(item)).sum(), lse,
                                     at::cat(gradients, 1)};
    };
    const auto one = run(), again = run();
    for (size_t i = 0; i < one.size(); i++)
      EXPECT_TRUE(at::equal(one[i], again[i])) << i;
    EXPECT_NEAR(one[0].item<double>() / expected.item<double>(), 1, 2e-6) << n_classes;
    const auto grad = logits64.grad();
    // Errors left by rounding to the type, of about 2^-9 and 2^-12 a value.
    const double bar = type == DType::f32 ? 2e-6 : type == DType::bf16 ? 2e-3 : 3e-4;
    EXPECT_LE((one[2].to(at::kDouble) - grad).norm().item<double>(),
              bar * grad.norm().item<double>())
        << n_classes;
    if (n > 1) {
      EXPECT_EQ(one[2][1].abs().sum().item<double>(), 0) << "no label, no gradient";
    }
  }
}

TEST_P(CrossEntropy, APieceOfMinusInfinitiesAddsNothingAndNanStays) {
  if (!at::hasCUDA() || at::cuda::device_count() == 0) GTEST_SKIP() << "no CUDA GPU here";
  const Launch on = {.stream = at::cuda::getCurrentCUDAStream().stream()};
  const DType type = GetParam();
  const auto labels = at::zeros({1}, at::device(at::kCUDA).dtype(at::kInt));
  for (const int64_t width : {16, 5}) {  // 16 bytes at a time, and not
    const auto piece_of = [&](double value) {
      return at::full({1, width}, value, at::device(at::kCUDA).dtype(torch_type(type)));
    };
    const auto take = [&](const std::vector<at::Tensor>& pieces) {
      const auto state = at::zeros({4}, at::device(at::kCUDA).dtype(at::kFloat));
      state[0].fill_(-INFINITY);
      auto* values = state.mutable_data_ptr<float>();
      int64_t first = 0;
      for (const auto& piece : pieces) {
        cuda_kernels().take_logits({.type = type,
                                    .n_rows = 1,
                                    .n_classes = width,
                                    .first_class = first,
                                    .logits = piece.data_ptr(),
                                    .labels = ints(labels),
                                    .largest = values,
                                    .sum_exp = values + 1,
                                    .sum = values + 2,
                                    .label_logit = values + 3},
                                   on);
        first += width;
      }
      const auto taken = state.cpu();
      return std::pair(taken[0].item<float>(), taken[1].item<float>());
    };
    const auto finite = piece_of(3), none = piece_of(-INFINITY), nan = piece_of(NAN);
    const auto expected = std::pair(3.0f, static_cast<float>(width));
    EXPECT_EQ(take({finite}), expected);
    EXPECT_EQ(take({none, finite}), expected);
    EXPECT_EQ(take({none, none, finite, none}), expected);
    EXPECT_EQ(take({none}), std::pair(-INFINITY, 0.0f));
    for (const auto& pieces : {std::vector{nan}, std::vector{nan, none}, std::vector{none, nan},
                               std::vector{nan, finite}, std::vector{finite, nan}})
      EXPECT_TRUE(std::isnan(take(pieces).second));
    EXPECT_TRUE(std::isnan(take({piece_of(INFINITY), finite}).second));
  }
}

INSTANTIATE_TEST_SUITE_P(Types,
                         CrossEntropy,
                         ::testing::Values(DType::f32, DType::f16, DType::bf16),
                         [](const auto& param) { return std::string(name_of(param.param)); });

}  // namespace
}  // namespace ferry::ops::cuda::test
