// Several ranks train as one: each has a part of the model and its own micro-batches, and the
// weights, master, states, losses and norms that they leave have the bits of one rank's run.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "src/engine/state/state_files.h"
#include "src/files/write/write_behind.h"
#include "tests/engine/toy_runs.h"
#include "tests/files/test_files.h"

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
      ToyPlacement placement = with_ranks(world, place);
      EXPECT_EQ(first_difference(model, expected, run_toy(model, placement, kRankSteps)), "")
          << model.name << ", " << placement.name;
      placement.leads = true;
      EXPECT_EQ(first_difference(model, expected, run_toy(model, placement, kRankSteps)), "")
          << model.name << ", " << placement.name << ", one leads";
    }
}

void put_in_turn(ToyPlacement& placement) {
  placement.n_stages = placement.world;
  placement.order = AccumulationOrder::vertical;
}

/** The first of the ranks leads, and each has some of the blocks, in turn or as a pipeline; of four
 * ranks two have a block. */
void expect_bits_of_one_with_blocks(const ToyModel& model, AccumulationOrder order) {
  const ToyResult expected = run_toy(model, {}, kRankSteps);
  int n_runs = 0;
  for (auto [world, place] : {std::pair{2, Place::host}, std::pair{3, Place::device},
                              std::pair{4, Place::host}, std::pair{4, Place::device}}) {
    const bool recomputes = n_runs++ % 2 > 0;
    ToyPlacement placement = with_ranks(world, place);
    placement.n_stages = world == 4 ? 2 : world;
    placement.order = order;
    placement.activations = recomputes ? Activations::recompute : Activations::keep;
    placement.layer_inputs = recomputes ? Place::host : Place::device;
    placement.leads = true;
    EXPECT_EQ(first_difference(model, expected, run_toy(model, placement, kRankSteps)), "")
        << model.name << ", " << placement.name << ", " << model.n_micro << " micro-batches";
  }
}

void expect_bits_of_one_with_blocks(AccumulationOrder order) {
  ToyModel bert = small_bert(DType::f32, LossKind::cross_entropy);
  bert.n_micro = 1;
  expect_bits_of_one_with_blocks(bert, order);
  ToyModel not_clipped = small_decoder(DecoderFamily::gpt2, DType::f32);
  not_clipped.max_grad_norm = 0;
  ToyModel split = small_decoder(DecoderFamily::llama, DType::bf16);
  split.split_master = true;
  for (ToyModel model : {small_bert(DType::f16, LossKind::cross_entropy), split, not_clipped,
                         many_words(DecoderFamily::gpt2, DType::bf16, /*is_cut=*/true)}) {
    model.n_micro = 4;
    expect_bits_of_one_with_blocks(model, order);
  }
  // Their blocks read values of many blocks before them, and give losses of their own.
  expect_bits_of_one_with_blocks(made(Made::encoder_decoder, DType::f32), order);
  expect_bits_of_one_with_blocks(made(Made::experts, DType::f32), order);
}

TEST(RanksTrain, InTurnAsOneDoes) {
  expect_bits_of_one_with_blocks(AccumulationOrder::vertical);
}
TEST(RanksTrain, InAPipelineAsOneDoes) {
  expect_bits_of_one_with_blocks(AccumulationOrder::horizontal);
}

TEST(RanksTrain, AsOneDoesBertFp32) {
  expect_bits_of_one(small_bert(DType::f32, LossKind::cross_entropy));
}
TEST(RanksTrain, AsOneDoesInUnlikeShares) {
  ToyModel bert = small_bert(DType::f32, LossKind::cross_entropy);
  ToyModel llama = small_decoder(DecoderFamily::llama, DType::bf16);
  for (ToyModel* model : {&bert, &llama}) {
    model->n_micro = 5;
    const ToyResult expected = run_toy(*model, {}, kRankSteps);
    for (const std::vector<int>& shares : {std::vector{1, 2}, std::vector{3, 1, 2}})
      for (AccumulationOrder order : {AccumulationOrder::horizontal, AccumulationOrder::vertical}) {
        ToyPlacement placement = with_ranks(static_cast<int>(shares.size()), Place::host);
        placement.shares = shares;
        placement.order = order;
        placement.leads = true;
        EXPECT_EQ(first_difference(*model, expected, run_toy(*model, placement, kRankSteps)), "")
            << model->name << ", " << placement.name << ", order " << static_cast<int>(order);
      }
  }
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
TEST(RanksTrain, AsOneDoesPairsOfAnswersBf16) {
  expect_bits_of_one(small_pairs(DType::bf16));
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

/** What is left of a run to go on with. */
struct Left {
  SessionState state;
  std::map<std::string, TensorChecksums> checksums;
};

void save_in(const std::filesystem::path& directory,
             Session& session,
             const ModelTable& table,
             Left& left) {
  std::filesystem::create_directories(directory / "state");
  constexpr auto kBuffer_bytes = WriteBehind::kPiece_slots * WriteBehind::kSlot_bytes;
  const std::unique_ptr<std::byte, decltype(&std::free)> buffer(
      static_cast<std::byte*>(std::aligned_alloc(4096, kBuffer_bytes)), &std::free);
  WriteBehind behind({buffer.get(), kBuffer_bytes});
  StateWriter writer(table, session.whole_shape(), session.frozen_weights(), directory, INT64_MAX,
                     behind);
  session.save([&](StateSource& block) { writer.write(block); }, [] {});
  session.executor().await_saving();
  left = {session.state(), writer.finish()};
}

/** Ranks write the files of one, and any number of ranks goes on from them, however the work is
 * split. */
void expect_to_go_on(const ToyModel& model, bool has_stages = false) {
  const ToyResult expected = run_toy(model, {}, kRankSteps);
  TempDir dir;
  constexpr int kSaved_steps = kRankSteps / 2;
  std::map<int, Left> left;
  const auto directory_of = [&](int world) { return dir.path() / std::to_string(world); };
  for (int world : {1, 3}) {
    ToyPlacement placement = with_ranks(world, Place::host);
    placement.leads = true;
    if (has_stages) put_in_turn(placement);
    placement.at_end = [&](Session& session, const ModelTable& table) {
      save_in(directory_of(world), session, table, left[world]);
    };
    run_toy(model, placement, kSaved_steps);
  }
  EXPECT_EQ(left[1].checksums, left[3].checksums);
  for (int world : {1, 2, 4}) {
    ToyPlacement placement = with_ranks(world, Place::device);
    placement.leads = true;
    if (!has_stages && world == 2) put_in_turn(placement);
    if (world == 4) placement.n_stages = 2;
    placement.first_step = kSaved_steps;
    placement.at_start = [&](Session& session, const ModelTable& table) {
      load_states(table, session.whole_shape(), directory_of(3), left[3].checksums,
                  saved_segments(model.optim), session.segments());
      session.restore(left[3].state);
    };
    const ToyResult result = run_toy(model, placement, kRankSteps);
    EXPECT_EQ(result.segments, expected.segments) << model.name << ", " << world << " ranks";
  }
}

TEST(RanksTrain, AndOthersGoOnFromTheirCheckpoint) {
  expect_to_go_on(small_decoder(DecoderFamily::gpt2, DType::f32));
  ToyModel split = small_decoder(DecoderFamily::llama, DType::bf16);
  split.split_master = true;
  expect_to_go_on(split);
  expect_to_go_on(split, /*has_stages=*/true);
  ToyModel in_8_bits = small_bert(DType::bf16, LossKind::masked_lm);
  in_8_bits.optim = simd::Optim::adamw_8bit;
  expect_to_go_on(in_8_bits);
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
          placement.n_stages = world;
          placement.leads = true;
          EXPECT_EQ(first_difference(model, expected, run_toy(model, placement, kRankSteps)), "")
              << model.name << ", " << placement.name << ", blocks, order "
              << static_cast<int>(order);
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
