// Several ranks train as one: each has a part of the model and its own micro-batches, and the
// weights, master, states, losses and norms that they leave have the bits of one rank's run.

#include <gtest/gtest.h>

#include "tests/engine/toy_runs.h"

namespace ferry::test {
namespace {

constexpr int kRankSteps = 8;

ToyPlacement with_ranks(int world, Place place) {
  ToyPlacement placement;
  placement.name = std::to_string(world) + " ranks, " + std::string(name_of(place));
  placement.world = world;
  placement.place = place;
  return placement;
}

void expect_bits_of_one(const ToyModel& model) {
  const ToyResult expected = run_toy(model, {}, kRankSteps);
  for (int world : {2, 3, 4})
    for (Place place : {Place::host, Place::device}) {
      const ToyPlacement placement = with_ranks(world, place);
      EXPECT_EQ(first_difference(model, expected, run_toy(model, placement, kRankSteps)), "")
          << model.name << ", " << placement.name;
    }
}

TEST(RanksTrain, AsOneDoesBertFp32) {
  expect_bits_of_one(small_bert(DType::f32, LossKind::cross_entropy));
}
TEST(RanksTrain, AsOneDoesBertFp16WithOverflow) {
  const ToyModel model = small_bert(DType::f16, LossKind::cross_entropy);
  EXPECT_GT(run_toy(model, with_ranks(2, Place::host), kRankSteps).n_skipped, 0);
  expect_bits_of_one(model);
}
TEST(RanksTrain, AsOneDoesTiedMaskedLmBf16) {
  expect_bits_of_one(small_bert(DType::bf16, LossKind::masked_lm));
}
TEST(RanksTrain, AsOneDoesLlamaBf16) {
  expect_bits_of_one(small_decoder(DecoderFamily::llama, DType::bf16));
}
TEST(RanksTrain, AsOneDoesTiedGpt2WithoutClippingFp32) {
  ToyModel model = small_decoder(DecoderFamily::gpt2, DType::f32);
  model.max_grad_norm = 0;
  expect_bits_of_one(model);
}
TEST(RanksTrain, AsOneDoesASplitMasterBf16) {
  ToyModel model = small_decoder(DecoderFamily::llama, DType::bf16);
  model.split_master = true;
  expect_bits_of_one(model);
}
TEST(RanksTrain, AsOneDoesWordsInPiecesBf16) {
  expect_bits_of_one(many_words(DecoderFamily::gpt2, DType::bf16, /*is_cut=*/true));
}

/** Ranks on a GPU each, which talk through NCCL. */
class RanksOnGpus : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    for (; n_gpus_ < 4 && probe_cuda(n_gpus_).usable; ++n_gpus_) {
    }
    if (n_gpus_ < 2) GTEST_SKIP() << "fewer than two usable GPUs";
  }
  AttentionBackend attention() const {
    return GetParam() == DType::f32 ? AttentionBackend::memory_efficient : AttentionBackend::flash;
  }
  void expect_bits_of_one(const ToyModel& model) const {
    ToyPlacement one;
    one.device = DeviceKind::cuda;
    const ToyResult expected = run_toy(model, one, kRankSteps);
    for (int world = 2; world <= n_gpus_; ++world)
      for (Place place : {Place::host, Place::device})
        for (AccumulationOrder order :
             {AccumulationOrder::horizontal, AccumulationOrder::vertical}) {
          ToyPlacement placement = with_ranks(world, place);
          placement.device = DeviceKind::cuda;
          placement.order = order;
          EXPECT_EQ(first_difference(model, expected, run_toy(model, placement, kRankSteps)), "")
              << model.name << ", " << placement.name << ", order " << static_cast<int>(order);
        }
  }

  int n_gpus_ = 0;
};

TEST_P(RanksOnGpus, TrainBertAsOneDoes) {
  expect_bits_of_one(small_bert(GetParam(), LossKind::cross_entropy, attention()));
}
TEST_P(RanksOnGpus, TrainTiedMaskedLmAsOneDoes) {
  expect_bits_of_one(small_bert(GetParam(), LossKind::masked_lm, attention()));
}
TEST_P(RanksOnGpus, TrainLlamaAsOneDoes) {
  expect_bits_of_one(small_decoder(DecoderFamily::llama, GetParam(), attention()));
}
INSTANTIATE_TEST_SUITE_P(Types,
                         RanksOnGpus,
                         ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace ferry::test
