// Cross entropy in pieces of the classes against autograd in fp64: pieces that are moved 16 bytes
// at a time and ones that are not, more classes than a block has threads and fewer, rows without a
// label, smoothing; and logits that are not finite.

#include <cmath>
#include <utility>
#include <vector>

#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/cross_entropy/logits_state.h"
#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

struct Pieces {
  std::vector<int64_t> widths;
  int64_t n_rows;
};

constexpr int64_t kState_bytes = 4 * 512;  // as LogitsState takes it for up to 128 rows

class CrossEntropy : public ::testing::TestWithParam<DType> {};

TEST_P(CrossEntropy, InPiecesIsThatOfAllClassesAndTheSameAgain) {
  if (!at::hasCUDA() || at::cuda::device_count() == 0) GTEST_SKIP() << "no CUDA GPU here";
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
    constexpr float kSmoothing = 0.2f, factor = 0.5f;

    const auto logits64 = logits.to(at::kDouble).requires_grad_();
    const auto expected = at::cross_entropy_loss(logits64, labels.to(at::kLong), {},
                                                 at::Reduction::Sum, -100, kSmoothing);
    (expected * factor).backward();

    const auto run = [&] {
      Room room(kState_bytes);
      LogitsState state = LogitsState::take(n, room.scratch);
      int64_t first = 0;
      for (int64_t width : pieces.widths) {
        take_logits(logits.narrow(1, first, width).contiguous(), first, labels, state);
        first += width;
      }
      auto lse = at::full({n}, NAN, at::device(at::kCUDA)), loss = at::full({}, NAN, lse.options());
      cross_entropy_forward(state, labels, n_classes, kSmoothing, /*weight=*/1, lse, loss);
      std::vector<at::Tensor> gradients;
      first = 0;
      for (int64_t width : pieces.widths) {
        gradients.push_back(logits.narrow(1, first, width).clone(at::MemoryFormat::Contiguous));
        cross_entropy_backward(gradients.back(), first, labels, lse, n_classes, kSmoothing, factor);
        first += width;
      }
      return std::vector<at::Tensor>{loss, lse, at::cat(gradients, 1)};
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
  const DType type = GetParam();
  const auto labels = at::zeros({1}, at::device(at::kCUDA).dtype(at::kInt));
  for (const int64_t width : {16, 5}) {  // 16 bytes at a time, and not
    const auto piece_of = [&](double value) {
      return at::full({1, width}, value, at::device(at::kCUDA).dtype(torch_type(type)));
    };
    const auto take = [&](const std::vector<at::Tensor>& pieces) {
      Room room(kState_bytes);
      LogitsState state = LogitsState::take(1, room.scratch);
      int64_t first = 0;
      for (const auto& piece : pieces) {
        take_logits(piece, first, labels, state);
        first += width;
      }
      return std::pair(state.largest.item<float>(), state.sum_exp.item<float>());
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
