// Question answering's loss against autograd in fp64: sequences of one token, of fewer and of more
// than a block has threads; labels inside, below and past their sequence; a dummy tail.

#include <vector>

#include "models/core/block.h"
#include "models/ops/span_loss/span_loss.h"
#include "tests/models/cuda/kernel_case.h"

namespace ferry::ops::cuda::test {
namespace {

TEST(SpanLoss, IsThatOfEachSequenceAndTheSameAgain) {
  if (!at::hasCUDA() || at::cuda::device_count() == 0) GTEST_SKIP() << "no CUDA GPU here";
  at::manual_seed(11);
  const std::vector<int32_t> starts = {0, 1, 101, 358, 1358, 1400};
  const int64_t T = starts.back(), n_seqs = static_cast<int64_t>(starts.size()) - 2;
  const auto cu_seqlens = at::tensor(starts, at::kInt).to(at::kCUDA);
  const auto labels =
      at::tensor({0, 0, -3, 99, 257, 256, 999, 5000}, at::kInt).view({n_seqs, 2}).to(at::kCUDA);
  const auto logits = at::randn({2, T}, at::device(at::kCUDA).dtype(at::kFloat)) * 4;
  const float weights[] = {0.25f, 0.5f};

  const auto logits64 = logits.to(at::kDouble).requires_grad_();
  auto expected = at::zeros({}, logits64.options());
  for (int64_t s = 0; s < n_seqs; s++) {
    const int64_t first = starts[static_cast<size_t>(s)];
    const int64_t length = starts[static_cast<size_t>(s) + 1] - first;
    const auto places = labels[s].to(at::kLong).clamp(0, length);
    for (int64_t which = 0; which < 2; which++)
      expected = expected + static_cast<double>(weights[which]) *
                                at::cross_entropy_loss(
                                    logits64[which].narrow(0, first, length).unsqueeze(0),
                                    places[which].unsqueeze(0), {}, at::Reduction::Sum, length);
  }
  expected.backward();

  BatchTensors batch;
  batch.n_seqs_real = n_seqs;
  batch.cu_seqlens = cu_seqlens;
  batch.labels = labels;
  batch.loss_weight = 2 * weights[0];
  batch.end_loss_weight = 2 * weights[1];
  const auto run = [&] {
    auto lse = at::full({n_seqs, 2}, NAN, logits.options()), d_logits = at::full_like(logits, NAN);
    auto loss = at::full({}, NAN, logits.options());
    Room room(512);
    span_loss_forward(logits, batch, lse, loss, room.scratch);
    span_loss_backward(logits, batch, lse, d_logits);
    return std::vector<at::Tensor>{lse, loss, d_logits};
  };
  const auto one = run(), again = run();
  for (size_t i = 0; i < one.size(); i++)
    EXPECT_TRUE(at::equal(one[i], again[i])) << i;
  EXPECT_NEAR(one[1].item<double>() / expected.item<double>(), 1, 2e-6);
  const auto grad = logits64.grad();
  EXPECT_LE((one[2].to(at::kDouble) - grad).norm().item<double>(),
            2e-6 * grad.norm().item<double>());
}

}  // namespace
}  // namespace ferry::ops::cuda::test
