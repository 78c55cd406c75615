// Promise 2 of the design: where the bytes live, and when they move, never changes the result.
// Twenty steps of real BERTs with dropout, ragged rows, several micro-batches, clipping on and off;
// every byte compared.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/core/block.h"
#include "models/family.h"
#include "src/data/hash.h"
#include "src/request/param_groups.h"
#include "tests/config/config_fixture.h"
#include "tests/engine/toy_runs.h"

namespace ferry::test {
namespace {

constexpr int kSteps = 20;

bool long_suite() {
  return std::getenv("FERRY_LONG") != nullptr;
}
/** Under a sanitizer, what is looked for is a bad access: a few placements of each model show it.
 */
bool sanitized() {
  return std::getenv("FERRY_SANITIZED") != nullptr && !long_suite();
}

/** Where everything stays on the device: what the others are compared with. */
ToyPlacement resident(DeviceKind device) {
  ToyPlacement p;
  p.device = device;
  return p;
}

/** Clips about half of the steps. */
void choose_max_grad_norm(ToyModel& model, DeviceKind device) {
  model.max_grad_norm = 0;
  std::vector<double> norms = run_toy(model, resident(device), kSteps).grad_norms;
  std::erase_if(norms, [](double norm) { return !std::isfinite(norm); });
  std::nth_element(norms.begin(), norms.begin() + static_cast<long>(norms.size() / 2), norms.end());
  model.max_grad_norm = norms[norms.size() / 2];
}

/** Every second block on the device for good. */
std::vector<BlockPlacement> mixed_places(const ToyModel& model) {
  std::vector<BlockPlacement> places(model.table.blocks.size(), Place::host);
  for (size_t b = 1; b + 1 < places.size(); ++b)
    if (b % 2 == 1) places[b] = b % 4 == 1 ? BlockPlacement(Place::device) : kWeightsOnDevice;
  return places;
}

/** States on a drive, of all blocks or of some between others; gradients, too, if `one` says so. */
std::vector<BlockPlacement> drive_places(const ToyModel& model, BlockPlacement one, bool is_mixed) {
  std::vector<BlockPlacement> places(model.table.blocks.size(), one);
  if (is_mixed) places = mixed_places(model);
  for (size_t b = 2; b + 1 < places.size() && is_mixed; b += 2)
    places[b] = one;
  // Borrowed tensors stay in memory.
  const auto stay = [&](size_t b) {
    for (Place* place : {&places[b].weights, &places[b].grads})
      if (*place == Place::nvme) *place = Place::host;
  };
  for (size_t b = 0; b < places.size(); ++b)
    for (const BorrowedParam& borrowed : model.table.blocks[b].borrowed) {
      stay(b);
      stay(static_cast<size_t>(borrowed.block));
    }
  return places;
}

/** Queues in an order drawn from the seed, and with it another placement: the seeds pass through
 * all 192 before one returns, and the first few differ in everything. */
ToyPlacement adversarial(const ToyModel& model, uint64_t seed) {
  uint64_t left = seed * 31 % 192;
  auto choose = [&left](uint64_t n) { return std::exchange(left, left / n) % n; };
  const bool is_mixed = choose(2) == 1, is_vertical = choose(2) == 1;
  const uint64_t activations = choose(4);
  ToyPlacement p;
  p.mode = SimulatedMode::adversarial;
  p.queue_seed = seed;
  p.place = Place::host;
  if (is_mixed) p.places = mixed_places(model);
  p.activations = std::array{Activations::keep, Activations::host, Activations::recompute,
                             Activations::selective}[activations];
  p.order = is_vertical ? AccumulationOrder::vertical : AccumulationOrder::horizontal;
  p.overlap = choose(2) == 1;
  p.n_weight_slots = 2 + static_cast<int>(choose(3));
  p.layer_inputs = choose(2) == 1 ? Place::host : Place::device;
  p.name = "adversarial " + std::to_string(seed) + (is_mixed ? ", mixed, " : ", host, ") +
           std::string(name_of(p.activations)) +
           (p.layer_inputs == Place::host ? ", layer inputs on host" : "") +
           (is_vertical ? ", vertical, " : ", horizontal, ") + std::to_string(p.n_weight_slots) +
           " slots, " + (p.overlap ? "overlapped" : "serial") + " optimizer";
  return p;
}

std::vector<ToyPlacement> placements(const ToyModel& model) {
  std::vector<ToyPlacement> all;
  auto add = [&](std::string name, auto&& change) {
    ToyPlacement p;
    p.name = std::move(name);
    change(p);
    all.push_back(std::move(p));
  };
  add("host", [](auto& p) { p.place = Place::host; });
  add("host, 4 slots", [](auto& p) { p.place = Place::host, p.n_weight_slots = 4; });
  add("recompute", [](auto& p) { p.activations = Activations::recompute; });
  add("host, recompute",
      [](auto& p) { p.place = Place::host, p.activations = Activations::recompute; });
  add("selective", [](auto& p) { p.activations = Activations::selective; });
  add("host, vertical, selective", [](auto& p) {
    p.place = Place::host, p.order = AccumulationOrder::vertical,
    p.activations = Activations::selective;
  });
  add("the last kept more", [](auto& p) { p.keeps_last_more = true; });
  add("host, vertical, layer inputs on host, the last kept more", [](auto& p) {
    p.place = Place::host, p.order = AccumulationOrder::vertical, p.layer_inputs = Place::host,
    p.keeps_last_more = true;
  });
  add("saved on host", [](auto& p) { p.activations = Activations::host; });
  add("vertical", [](auto& p) { p.order = AccumulationOrder::vertical; });
  add("host, vertical",
      [](auto& p) { p.place = Place::host, p.order = AccumulationOrder::vertical; });
  add("host, vertical, saved on host", [](auto& p) {
    p.place = Place::host, p.order = AccumulationOrder::vertical, p.activations = Activations::host;
  });
  add("layer inputs on host, recompute",
      [](auto& p) { p.layer_inputs = Place::host, p.activations = Activations::recompute; });
  add("host, vertical, layer inputs on host", [](auto& p) {
    p.place = Place::host, p.order = AccumulationOrder::vertical, p.layer_inputs = Place::host;
  });
  // On the serial device the two are one execution.
  add("host, serial optimizer",
      [](auto& p) { p.place = Place::host, p.mode = SimulatedMode::threads, p.overlap = false; });
  add("host, serial optimizer, adversarial", [](auto& p) {
    p.place = Place::host, p.mode = SimulatedMode::adversarial, p.queue_seed = 1000,
    p.overlap = false;
  });
  add("host, 1 worker", [](auto& p) { p.place = Place::host, p.n_workers = 1; });
  add("host, 7 workers", [](auto& p) { p.place = Place::host, p.n_workers = 7; });
  add("host, threads", [](auto& p) { p.place = Place::host, p.mode = SimulatedMode::threads; });
  constexpr int64_t kLittle_bytes = 128 << 10;
  add("host, threads, little pinned", [](auto& p) {
    p.place = Place::host, p.mode = SimulatedMode::threads, p.pinned_bytes_max = kLittle_bytes;
  });
  add("host, saved on host, little pinned, paused", [](auto& p) {
    p.place = Place::host, p.activations = Activations::host, p.pinned_bytes_max = kLittle_bytes;
    p.pauses = true;
  });
  add("mixed", [&](auto& p) { p.places = mixed_places(model); });
  const auto weights_on_device = [&](auto& p) {
    p.places = std::vector<BlockPlacement>(model.table.blocks.size(), kWeightsOnDevice);
  };
  add("weights on the device, states on host", weights_on_device);
  add("weights on the device, states on host, vertical, threads, paused", [&](auto& p) {
    weights_on_device(p);
    p.order = AccumulationOrder::vertical, p.mode = SimulatedMode::threads, p.pauses = true;
  });
  add("states on the device, weights and gradients on host", [&](auto& p) {
    p.places = std::vector<BlockPlacement>(model.table.blocks.size(), kStatesOnDevice);
  });
  add("states and gradients on the device, weights on host, vertical, threads, paused",
      [&](auto& p) {
        p.places = std::vector<BlockPlacement>(model.table.blocks.size(), kStatesAndGradsOnDevice);
        p.order = AccumulationOrder::vertical, p.mode = SimulatedMode::threads, p.pauses = true;
      });
  const auto on_drive = [&](BlockPlacement one, bool is_mixed) {
    return [&model, one, is_mixed](auto& p) {
      static const config::TemporaryDirectory directory;
      p.places = drive_places(model, one, is_mixed);
      p.drive_files = {(directory.path() / "states").string()};
    };
  };
  constexpr BlockPlacement kOnDrive = {Place::host, Place::nvme, Place::host};
  add("states on a drive", on_drive(kOnDrive, false));
  add("states on a drive, weights on the device, threads, paused", [&](auto& p) {
    on_drive({Place::device, Place::nvme, Place::host}, false)(p);
    p.mode = SimulatedMode::threads, p.pauses = true;
  });
  constexpr BlockPlacement kAllOnDrive = {Place::nvme, Place::nvme, Place::host};
  add("states of some blocks on a drive, weights too, vertical", [&](auto& p) {
    on_drive(kAllOnDrive, true)(p);
    p.order = AccumulationOrder::vertical;
  });
  add("weights and states on a drive", on_drive(kAllOnDrive, false));
  add("weights, states and gradients on a drive, vertical", [&](auto& p) {
    on_drive(Place::nvme, false)(p);
    p.order = AccumulationOrder::vertical;
  });
  add("states and gradients on a drive, vertical, threads", [&](auto& p) {
    on_drive({Place::host, Place::nvme, Place::nvme}, false)(p);
    p.order = AccumulationOrder::vertical, p.mode = SimulatedMode::threads;
  });
  add("paused", [](auto& p) { p.pauses = true; });
  add("host, paused", [](auto& p) { p.place = Place::host, p.pauses = true; });
  add("without CUDA graphs", [](auto& p) { p.graphs = false; });
  add("host, without CUDA graphs", [](auto& p) { p.place = Place::host, p.graphs = false; });
  add("mixed, a driver whose streams cannot wait",
      [&](auto& p) { p.places = mixed_places(model), p.host_waits = HostWaits::threads; });
  add("host, recompute, a driver whose streams cannot wait", [&](auto& p) {
    p.place = Place::host, p.activations = Activations::recompute,
    p.host_waits = HostWaits::threads;
  });
  // Passes that the stepping thread enters itself.
  add("host, recompute, entered, adversarial", [](auto& p) {
    p.place = Place::host, p.activations = Activations::recompute, p.enters = true;
    p.mode = SimulatedMode::adversarial, p.queue_seed = 2000;
  });
  add("mixed, entered, threads", [&](auto& p) {
    p.places = mixed_places(model), p.mode = SimulatedMode::threads, p.enters = true;
  });
  add("mixed, entered, a driver whose streams cannot wait", [&](auto& p) {
    p.places = mixed_places(model), p.enters = true, p.host_waits = HostWaits::threads;
  });
  const uint64_t n_orders = long_suite() ? 50 : sanitized() ? 1 : 3;
  for (uint64_t seed = 1; seed <= n_orders; ++seed)
    all.push_back(adversarial(model, seed));
  if (sanitized()) all.erase(all.begin() + 1, all.end() - 2);
  return all;
}

/** True for one placement of each kind: the sample that a model goes through. All of them are for
 * encoders and decoders in bf16, which share them, and for the full counts: what the other models
 * differ in is not what moves. */
bool is_in_sample(const ToyPlacement& placement) {
  static const std::set<std::string_view> sample = {
      "host",
      "recompute",
      "host, vertical, selective",
      "host, vertical, layer inputs on host, the last kept more",
      "saved on host",
      "host, serial optimizer, adversarial",
      "host, threads",
      "host, threads, little pinned",
      "mixed",
      "states on the device, weights and gradients on host",
      "states of some blocks on a drive, weights too, vertical",
      "weights, states and gradients on a drive, vertical",
      "host, paused",
      "mixed, entered, threads",
  };
  return sample.contains(placement.name) || placement.queue_seed == 1;
}

/** Those that a model goes through; all of them in the long suite. `three`: drawn by the model's
 * name. `share`: every `n_shares`-th, from `share` on; the models of one kind go through all of
 * them together. */
struct Placements {
  enum Kind { sample, all, three, shared };
  Placements(Kind which) : kind(which) {}  // NOLINT: as the kind that it is
  Placements(size_t share_, size_t n_shares_) : kind(shared), share(share_), n_shares(n_shares_) {}

  Kind kind;
  size_t share = 0, n_shares = 1;
};

/** The products of 16-bit numbers take most of the time on a CPU: these models share it. Each value
 * stands in one case. */
enum class EncoderShare {
  small,
  tied,
  question_answering,
  without_clipping,
  reduced_states,
  one_micro_batch,
  n_shares
};
enum class DecoderShare { llama, llama_without_clipping, tied_gpt2, n_shares };

template <class Share>
Placements only(Share share) {
  return {static_cast<size_t>(share), static_cast<size_t>(Share::n_shares)};
}

/** Three of `n`, ascending. */
std::set<size_t> three_of(size_t n, const std::string& name) {
  uint64_t bits = 0;
  for (const char c : name)
    bits = hash_key(bits, static_cast<unsigned char>(c));
  std::set<size_t> drawn;
  for (uint64_t i = 0; drawn.size() < std::min<size_t>(n, 3); ++i)
    drawn.insert(scale_below(random_bits(bits, i), n));
  return drawn;
}

void expect_same_bits_everywhere(const ToyModel& model,
                                 const ToyResult& reference,
                                 DeviceKind device,
                                 Placements which) {
  int n_compared = 0;
  const bool only_sample = which.kind == Placements::sample && !long_suite();
  // A drive moves the states of a large model in seconds a step, not in milliseconds.
  constexpr int64_t kLarge_bytes = 256 << 20;
  int64_t n_params = 0;
  for (const BlockTable& block : model.table.blocks)
    n_params += block.n_segment_elements;
  const bool is_large = 4 * n_params > kLarge_bytes;
  std::vector<ToyPlacement> compared;
  for (const ToyPlacement& placement : placements(model)) {
    const bool wants_sample = only_sample || (is_large && !placement.drive_files.empty());
    if (wants_sample && !is_in_sample(placement)) continue;
    const bool cuda = device == DeviceKind::cuda;
    // A GPU orders its queues itself, and has graphs and a driver.
    if (!(cuda ? placement.mode == SimulatedMode::adversarial
               : !placement.graphs || placement.host_waits != HostWaits::probed))
      compared.push_back(placement);
  }
  const bool only_three = which.kind == Placements::three && !long_suite();
  const bool only_share = which.kind == Placements::shared && !long_suite() && !sanitized();
  const std::set<size_t> drawn = three_of(compared.size(), model.name);
  for (size_t i = 0; i < compared.size(); ++i) {
    if (only_three && !drawn.contains(i)) continue;
    if (only_share && i % which.n_shares != which.share) continue;
    ToyPlacement placement = compared[i];
    placement.device = device;
    EXPECT_EQ(first_difference(model, reference, run_toy(model, placement, kSteps)), "")
        << placement.name;
    ++n_compared;
  }
  EXPECT_GT(n_compared, 0);
  if (only_sample) {
    EXPECT_EQ(n_compared, 15) << "a placement of the sample has another name";
  }
}

void expect_same_bits(ToyModel model,
                      bool wants_skip,
                      Placements which = Placements::sample,
                      DeviceKind device = DeviceKind::cpu) {
  choose_max_grad_norm(model, device);
  const ToyResult reference = run_toy(model, resident(device), kSteps);
  EXPECT_GE(reference.n_clipped, 3);
  EXPECT_GE(kSteps - reference.n_clipped - reference.n_skipped, 3);
  EXPECT_EQ(reference.n_skipped > 0, wants_skip);
  expect_same_bits_everywhere(model, reference, device, which);
}

/** Blocks are updated as their gradients arrive. */
void expect_same_bits_without_clipping(ToyModel model,
                                       Placements which = Placements::sample,
                                       DeviceKind device = DeviceKind::cpu) {
  model.max_grad_norm = 0;
  const ToyResult reference = run_toy(model, resident(device), kSteps);
  EXPECT_EQ(reference.n_clipped, 0);
  expect_same_bits_everywhere(model, reference, device, which);
}

TEST(SameBits, RunTwice) {
  ToyModel model = small_bert(DType::f32, LossKind::cross_entropy);
  EXPECT_EQ(first_difference(model, run_toy(model, {}, kSteps), run_toy(model, {}, kSteps)), "");
}

TEST(SameBits, SmallBertFp32) {
  expect_same_bits(small_bert(DType::f32, LossKind::cross_entropy), false);
}
TEST(SameBits, SmallBertBf16) {
  expect_same_bits(small_bert(DType::bf16, LossKind::cross_entropy), false,
                   only(EncoderShare::small));
}
TEST(SameBits, SmallBertFp16WithOverflow) {
  expect_same_bits(small_bert(DType::f16, LossKind::cross_entropy), true);
}
ToyModel with_states(ToyModel model, simd::Optim optim, bool split_master) {
  model.optim = optim;
  model.split_master = split_master;
  return model;
}
TEST(SameBits, Bf16StatesFp32) {
  expect_same_bits(
      with_states(small_bert(DType::f32, LossKind::cross_entropy), simd::Optim::adamw_bf16, false),
      false);
}
TEST(SameBits, LionBf16) {
  expect_same_bits(
      with_states(small_bert(DType::bf16, LossKind::cross_entropy), simd::Optim::lion, false),
      false, Placements::three);
}
TEST(SameBits, SgdAndItsMomentum) {
  expect_same_bits(
      with_states(small_bert(DType::f32, LossKind::cross_entropy), simd::Optim::sgd, false), false,
      Placements::three);
  expect_same_bits(
      with_states(small_bert(DType::bf16, LossKind::masked_lm), simd::Optim::sgd_momentum, true),
      false, Placements::three);
}
TEST(SameBits, EightBitStatesAndSplitMasterBf16) {
  expect_same_bits(
      with_states(small_bert(DType::bf16, LossKind::masked_lm), simd::Optim::adamw_8bit, true),
      false, only(EncoderShare::reduced_states));
}
TEST(SameBits, WithoutClippingBf16) {
  expect_same_bits_without_clipping(small_bert(DType::bf16, LossKind::cross_entropy),
                                    only(EncoderShare::without_clipping));
}
TEST(SameBits, WithoutClippingTiedFp32) {
  expect_same_bits_without_clipping(small_bert(DType::f32, LossKind::masked_lm));
}
TEST(SameBits, TiedMaskedLmBf16) {
  expect_same_bits(small_bert(DType::bf16, LossKind::masked_lm), false, only(EncoderShare::tied));
}
TEST(SameBits, TiedMaskedLmFp32) {
  expect_same_bits(small_bert(DType::f32, LossKind::masked_lm), false);
}
TEST(SameBits, TokenClassificationFp32) {
  expect_same_bits(small_bert(DType::f32, LossKind::token_classification), false);
}
TEST(SameBits, QuestionAnsweringBf16) {
  expect_same_bits(small_bert(DType::bf16, LossKind::question_answering), false,
                   only(EncoderShare::question_answering));
}
TEST(SameBits, LlamaFp32) {
  expect_same_bits(small_decoder(DecoderFamily::llama, DType::f32), false);
}
TEST(SameBits, LlamaBf16) {
  expect_same_bits(small_decoder(DecoderFamily::llama, DType::bf16), false,
                   only(DecoderShare::llama));
}
TEST(SameBits, LlamaWithoutClippingBf16) {
  expect_same_bits_without_clipping(small_decoder(DecoderFamily::llama, DType::bf16),
                                    only(DecoderShare::llama_without_clipping));
}
TEST(SameBits, TiedGpt2Bf16) {
  expect_same_bits(small_decoder(DecoderFamily::gpt2, DType::bf16), false,
                   only(DecoderShare::tied_gpt2));
}
TEST(SameBits, PairsOfAnswersBf16) {
  expect_same_bits(small_pairs(DType::bf16), false, Placements::three);
}
TEST(SameBits, WordsInPiecesBf16) {
  expect_same_bits(many_words(DecoderFamily::llama, DType::bf16, /*is_cut=*/true), false,
                   Placements::three);
}
TEST(SameBits, TiedWordsInPiecesBf16) {
  expect_same_bits(many_words(DecoderFamily::gpt2, DType::bf16, /*is_cut=*/true), false,
                   Placements::three);
}
TEST(SameBits, WordsInPiecesWithoutClippingFp32) {
  expect_same_bits_without_clipping(many_words(DecoderFamily::gpt2, DType::f32, /*is_cut=*/true),
                                    Placements::three);
}

/** The bytes of a file's tensor in a segment after a run. */
std::vector<std::byte> bytes_of(const ModelTable& table,
                                const ToyResult& result,
                                const std::string& hf_name,
                                size_t segment) {
  std::vector<std::byte> all;
  for (const HfEntry& entry : table.hf_names) {
    if (entry.hf_name != hf_name) continue;
    const auto b = static_cast<size_t>(entry.block);
    const ParamSpec& param = table.param_of(entry);
    const auto& bytes = result.segments[4 * b + segment];
    const auto width = std::ssize(bytes) / table.blocks[b].n_segment_elements;
    const int64_t row = param.n_elements / param.shape[0];
    const auto first = bytes.begin() + (param.offset + entry.row_begin * row) * width;
    all.insert(all.end(), first, first + entry.rows * row * width);
  }
  return all;
}

/** Clipped steps differ in the last digits of their norm, which is added up block by block. */
class WordsInPieces : public ::testing::TestWithParam<std::tuple<DecoderFamily, DType>> {};
TEST_P(WordsInPieces, TrainAsTheWholeTable) {
  const auto& [family, compute] = GetParam();
  constexpr int kFewSteps = 10;
  ToyModel whole = many_words(family, compute, false), cut = many_words(family, compute, true);
  whole.max_grad_norm = cut.max_grad_norm = 0;
  const ToyResult expected = run_toy(whole, {}, kFewSteps);
  const ToyResult trained = run_toy(cut, {.place = Place::host}, kFewSteps);
  ASSERT_GT(cut.table.blocks.size(), whole.table.blocks.size() + 3);
  EXPECT_EQ(trained.losses, expected.losses);
  EXPECT_EQ(trained.logits, expected.logits);
  for (const HfEntry& entry : whole.table.hf_names)
    for (const size_t segment : {0, 1, 2, 3})
      EXPECT_EQ(bytes_of(cut.table, trained, entry.hf_name, segment),
                bytes_of(whole.table, expected, entry.hf_name, segment))
          << entry.hf_name << ", segment " << segment;

  whole.max_grad_norm = cut.max_grad_norm = 0.5 * expected.grad_norms.front();
  const ToyResult clipped = run_toy(whole, {}, kFewSteps),
                  clipped_in_pieces = run_toy(cut, {}, kFewSteps);
  EXPECT_GE(clipped.n_clipped, 1);
  for (int step = 0; step < kFewSteps; ++step) {
    const auto s = static_cast<size_t>(step);
    EXPECT_NEAR(clipped_in_pieces.losses[s], clipped.losses[s], 1e-6 * clipped.losses[s]) << step;
    EXPECT_NEAR(clipped_in_pieces.grad_norms[s], clipped.grad_norms[s],
                1e-6 * clipped.grad_norms[s])
        << step;
  }
}
INSTANTIATE_TEST_SUITE_P(Builds,
                         WordsInPieces,
                         ::testing::Values(std::tuple(DecoderFamily::llama, DType::bf16),
                                           std::tuple(DecoderFamily::gpt2, DType::f32)));

class SameBitsOfMade : public ::testing::TestWithParam<Made> {};
TEST_P(SameBitsOfMade, Fp32) {
  expect_same_bits(made(GetParam(), DType::f32), false);
}
TEST_P(SameBitsOfMade, Bf16) {
  expect_same_bits(made(GetParam(), DType::bf16), false, Placements::three);
}
INSTANTIATE_TEST_SUITE_P(
    Made,
    SameBitsOfMade,
    ::testing::Values(Made::encoder_decoder, Made::encoder_decoder_of_features, Made::experts),
    [](const auto& param) { return std::string(kMadeNames[static_cast<size_t>(param.param)]); });

/** A frozen layer of nf4 and int8 between trained ones. */
class SameBitsOfStored : public ::testing::TestWithParam<DType> {};
TEST_P(SameBitsOfStored, AsEverywhere) {
  expect_same_bits(small_stored(GetParam()), GetParam() == DType::f16,
                   GetParam() == DType::f32 ? Placements::sample : Placements::three);
}
INSTANTIATE_TEST_SUITE_P(Types,
                         SameBitsOfStored,
                         ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& param) { return std::string(name_of(param.param)); });

TEST(Stored, LayerTrainsOthersAsItsValuesDo) {
  constexpr int kFewSteps = 10;
  const ToyModel stored = small_stored(DType::f32), rounded = small_stored(DType::f32, false);
  EXPECT_EQ(run_toy(stored, {.place = Place::host}, kFewSteps).losses,
            run_toy(rounded, {}, kFewSteps).losses);
}

class SameBitsOfFamilies : public ::testing::TestWithParam<std::string> {};
TEST_P(SameBitsOfFamilies, Bf16) {
  expect_same_bits(small_of_family(GetParam(), DType::bf16), false, Placements::three);
}
std::vector<std::string> model_types() {
  std::vector<std::string> types;
  for (const Family& family : families())
    types.emplace_back(family.model_type);
  types.emplace_back("opt-350m");  // layers and embeddings of its own
  return types;
}
std::string name_of_case(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Families,
                         SameBitsOfFamilies,
                         ::testing::ValuesIn(model_types()),
                         name_of_case);

TEST(SameBits, OneMicroBatch) {
  ToyModel model = small_bert(DType::bf16, LossKind::multi_label);
  model.n_micro = 1;
  expect_same_bits(model, false, only(EncoderShare::one_micro_batch));
}

/** A sample of the placements: what is frozen changes what is moved, not the ways it moves. */
void expect_same_bits_in_some_places(const ToyModel& model) {
  constexpr int kFewer_steps = 5;
  const ToyResult reference = run_toy(model, resident(DeviceKind::cpu), kFewer_steps);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const ToyPlacement placement = adversarial(model, seed);
    EXPECT_EQ(first_difference(model, reference, run_toy(model, placement, kFewer_steps)), "")
        << placement.name;
  }
}

/** The model with some parameters frozen and groups of the others. */
ToyModel with_options(ToyModel model,
                      const std::vector<std::pair<std::string, std::string>>& options) {
  config::Config config;
  for (const auto& [key, value] : options)
    config.set(key, value, {config::Source::command_line, key});
  apply_param_options(config, model.table);
  return model;
}

constexpr const char* kGroups =
    "bert.encoder.layer.2.*.bias:factor=3,decay=0.1; bert.encoder.layer.2.*:lr=2e-3,decay=0";

TEST(SameBits, FrozenBlocksAndParamGroupsFp32) {
  expect_same_bits(
      with_options(small_bert(DType::f32, LossKind::cross_entropy),
                   {{"freeze", "bert.embeddings.*,bert.encoder.layer.0.*,*.LayerNorm.*"},
                    {"param_groups", kGroups},
                    {"layerwise_lr_decay", "0.8"}}),
      false);
}
TEST(SameBits, AFrozenBlockBetweenTrainedOnesBf16) {
  expect_same_bits_in_some_places(with_options(
      small_bert(DType::bf16, LossKind::cross_entropy),
      {{"freeze", "bert.encoder.layer.1.*,*.dense.weight"}, {"param_groups", kGroups}}));
}
TEST(SameBits, FrozenTiedEmbeddingsOrHeadBf16) {
  for (const char* frozen : {"bert.embeddings.*", "bert.embeddings.word*", "cls.*"})
    expect_same_bits_in_some_places(
        with_options(small_bert(DType::bf16, LossKind::masked_lm), {{"freeze", frozen}}));
}

/** Frozen layers with adapters, on the CPU, streamed and resident. */
class SameBitsOfAdapters : public ::testing::TestWithParam<std::string> {};
TEST_P(SameBitsOfAdapters, Bf16) {
  expect_same_bits_in_some_places(
      with_options(small_of_family(GetParam(), DType::bf16),
                   {{"tuning", "lora"}, {"lora_r", "4"}, {"lora_dropout", "0.1"}}));
}
TEST_P(SameBitsOfAdapters, WithLengthsOfRowsBf16) {
  expect_same_bits_in_some_places(with_options(
      small_of_family(GetParam(), DType::bf16),
      {{"tuning", "lora"}, {"lora_r", "4"}, {"lora_dropout", "0.1"}, {"use_dora", "true"}}));
}
INSTANTIATE_TEST_SUITE_P(Families,
                         SameBitsOfAdapters,
                         ::testing::ValuesIn(model_types()),
                         name_of_case);
TEST(SameBits, AdaptersOfBertFp32) {
  expect_same_bits_in_some_places(with_options(small_bert(DType::f32, LossKind::cross_entropy),
                                               {{"tuning", "lora"},
                                                {"lora_targets", "query,value"},
                                                {"modules_to_save", "embeddings"},
                                                {"loraplus_lr_ratio", "4"}}));
}
TEST(SameBits, AdaptersWithABottleneck) {
  for (const char* tuning : {"adapter", "parallel_adapter", "low_rank_adapter", "compacter"})
    for (const DType compute : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(tuning);
      const ToyModel model = compute == DType::f32 ? small_bert(compute, LossKind::cross_entropy)
                                                   : small_of_family("gpt2", compute);
      expect_same_bits_in_some_places(
          with_options(model, {{"tuning", tuning}, {"adapter_size", "8"}}));
    }
}
TEST(SameBits, BiasesAloneBf16) {
  expect_same_bits_in_some_places(
      with_options(small_bert(DType::bf16, LossKind::masked_lm), {{"tuning", "bitfit"}}));
}

/** Frozen parameters have the bits that they began with, and no others have. */
TEST(Frozen, ParametersKeepTheirBits) {
  for (DType compute : {DType::f32, DType::bf16})
    for (const char* frozen :
         {"bert.embeddings.*,bert.encoder.layer.0.*", "*.layer.1.*", "*.weight", "*.bias"}) {
      const ToyModel model =
          with_options(small_bert(compute, LossKind::cross_entropy), {{"freeze", frozen}});
      const ToyResult before = run_toy(model, {}, 0), after = run_toy(model, {}, 3);
      for (size_t b = 0; b < model.table.blocks.size(); ++b)
        for (size_t s : {size_t{0}, size_t{1}}) {  // weights, master
          if (s == 1 && compute == DType::f32) continue;
          const size_t width = s == 0 ? size_of(compute) : sizeof(float);
          for (const ParamSpec& p : model.table.blocks[b].params) {
            if (s == 1 && !p.trainable) continue;  // it has no master
            const auto part = [&](const ToyResult& result) {
              return std::span(result.segments[4 * b + s])
                  .subspan(static_cast<size_t>(p.offset) * width,
                           static_cast<size_t>(p.n_elements) * width);
            };
            const bool is_same = std::ranges::equal(part(before), part(after));
            // Three small steps may be lost in the rounding of 16-bit weights, never in the master.
            if (p.trainable && s == 0 && compute != DType::f32) continue;
            EXPECT_EQ(is_same, !p.trainable)
                << frozen << ": " << model.table.blocks[b].name << " " << p.name;
          }
        }
    }
}

TEST(SameBits, MiniLm) {
  if (!long_suite()) GTEST_SKIP() << "72 s; the small models stand for it but in --long";
  auto model = minilm();
  if (!model) GTEST_SKIP() << "all-MiniLM-L6-v2 is not in .venv: run scripts/setup";
  expect_same_bits(*model, false);
}

/** The same on a real GPU: everything but the order of the queues is the test's to choose. */
class SameBitsOnGpu : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (CudaProbe probe = probe_cuda(); !probe.usable)
      GTEST_SKIP() << "no usable GPU: " << probe.why_not;
  }
  static AttentionBackend attention() {
    return GetParam() == DType::f32 ? AttentionBackend::memory_efficient : AttentionBackend::flash;
  }
  static bool has_graphs() { return attention() == AttentionBackend::flash; }
  static void expect_same_bits_on_gpu(const ToyModel& model) {
    expect_same_bits(model, GetParam() == DType::f16, Placements::all, DeviceKind::cuda);
  }
};

TEST_P(SameBitsOnGpu, SmallBert) {
  expect_same_bits_on_gpu(small_bert(GetParam(), LossKind::cross_entropy, attention()));
}
TEST_P(SameBitsOnGpu, SmallBertWithMemoryEfficientAttention) {  // what Turing trains with
  if (GetParam() == DType::f32) GTEST_SKIP() << "SmallBert has it in fp32";
  expect_same_bits_on_gpu(
      small_bert(GetParam(), LossKind::cross_entropy, AttentionBackend::memory_efficient));
}
TEST_P(SameBitsOnGpu, WithoutClipping) {
  if (GetParam() == DType::f16) GTEST_SKIP() << "its loss scale needs all gradients";
  for (int n_micro : {1, 3}) {
    ToyModel model = small_bert(GetParam(), LossKind::cross_entropy, attention());
    model.n_micro = n_micro;
    expect_same_bits_without_clipping(model, Placements::all, DeviceKind::cuda);
  }
}
TEST_P(SameBitsOnGpu, TiedMaskedLm) {
  expect_same_bits_on_gpu(small_bert(GetParam(), LossKind::masked_lm, attention()));
}
TEST_P(SameBitsOnGpu, TokenClassification) {
  expect_same_bits_on_gpu(small_bert(GetParam(), LossKind::token_classification, attention()));
}
TEST_P(SameBitsOnGpu, QuestionAnswering) {
  expect_same_bits_on_gpu(small_bert(GetParam(), LossKind::question_answering, attention()));
}
TEST_P(SameBitsOnGpu, Llama) {
  expect_same_bits_on_gpu(small_decoder(DecoderFamily::llama, GetParam(), attention()));
}
TEST_P(SameBitsOnGpu, PairsOfAnswers) {
  expect_same_bits_on_gpu(small_pairs(GetParam(), attention()));
}
TEST_P(SameBitsOnGpu, LlamaWithMemoryEfficientAttention) {
  if (GetParam() == DType::f32) GTEST_SKIP() << "Llama has it in fp32";
  expect_same_bits_on_gpu(
      small_decoder(DecoderFamily::llama, GetParam(), AttentionBackend::memory_efficient));
}
TEST_P(SameBitsOnGpu, TiedGpt2) {
  expect_same_bits_on_gpu(small_decoder(DecoderFamily::gpt2, GetParam(), attention()));
}
TEST_P(SameBitsOnGpu, FrozenAndGrouped) {
  expect_same_bits_on_gpu(
      with_options(small_bert(GetParam(), LossKind::cross_entropy, attention()),
                   {{"freeze", "bert.embeddings.*,bert.encoder.layer.1.*,*.LayerNorm.*"},
                    {"param_groups", kGroups},
                    {"layerwise_lr_decay", "0.8"}}));
}
TEST_P(SameBitsOnGpu, ReducedStates) {
  const ToyModel model = small_bert(GetParam(), LossKind::cross_entropy, attention());
  if (GetParam() != DType::bf16)
    expect_same_bits_on_gpu(with_states(model, simd::Optim::adamw_bf16, /*split_master=*/false));
  expect_same_bits_on_gpu(
      with_states(model, simd::Optim::adamw_8bit, /*split_master=*/GetParam() == DType::bf16));
}
TEST_P(SameBitsOnGpu, OtherOptimizers) {
  const ToyModel model = small_bert(GetParam(), LossKind::cross_entropy, attention());
  for (const simd::Optim optim : {simd::Optim::lion, simd::Optim::sgd, simd::Optim::sgd_momentum})
    expect_same_bits(with_states(model, optim, /*split_master=*/GetParam() == DType::bf16),
                     GetParam() == DType::f16, Placements::three, DeviceKind::cuda);
}
TEST_P(SameBitsOnGpu, EachFamily) {
  if (GetParam() != DType::bf16) GTEST_SKIP() << "they are compared in bf16";
  for (const Family& family : families()) {
    SCOPED_TRACE(family.model_type);
    expect_same_bits(small_of_family(family.model_type, DType::bf16, attention()), false,
                     Placements::three, DeviceKind::cuda);
  }
}
TEST_P(SameBitsOnGpu, MadeModels) {
  for (const Made which :
       {Made::encoder_decoder, Made::encoder_decoder_of_features, Made::experts}) {
    SCOPED_TRACE(kMadeNames[static_cast<size_t>(which)]);
    expect_same_bits(made(which, GetParam(), attention()), GetParam() == DType::f16,
                     Placements::all, DeviceKind::cuda);
  }
}
TEST_P(SameBitsOnGpu, AFrozenLayerOfNf4AndInt8) {
  expect_same_bits_on_gpu(small_stored(GetParam(), /*is_stored=*/true, attention()));
}
/** Else the rows without graphs would compare a thing with itself. */
TEST_P(SameBitsOnGpu, BlocksAreReplayedAsGraphs) {
  const ToyModel model = small_bert(GetParam(), LossKind::cross_entropy, attention());
  const ToyResult with = run_toy(model, resident(DeviceKind::cuda), kSteps);
  ToyPlacement placement = resident(DeviceKind::cuda);
  placement.graphs = false;
  const ToyResult without = run_toy(model, placement, kSteps);
  EXPECT_EQ(without.n_graph_replays, 0);
  if (has_graphs())
    EXPECT_GT(with.n_graph_replays, kSteps);
  else
    EXPECT_EQ(with.n_graph_replays, 0);
}
TEST_P(SameBitsOnGpu, MiniLm) {
  auto model = minilm(GetParam(), attention());
  if (!model) GTEST_SKIP() << "all-MiniLM-L6-v2 is not in .venv: run scripts/setup";
  expect_same_bits_on_gpu(*model);
}
INSTANTIATE_TEST_SUITE_P(Types,
                         SameBitsOnGpu,
                         ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& param) { return std::string(name_of(param.param)); });

/** A model of 75 M parameters, whose placements take ten minutes and more: each test has a share.
 */
class SameBitsOfSixLayers : public ::testing::TestWithParam<std::tuple<DType, size_t>> {};

constexpr size_t kSixLayersShares = 8;
TEST_P(SameBitsOfSixLayers, OnGpu) {
  if (CudaProbe probe = probe_cuda(); !probe.usable)
    GTEST_SKIP() << "no usable GPU: " << probe.why_not;
  const auto [type, share] = GetParam();
  expect_same_bits(six_layers(type, type == DType::f32 ? AttentionBackend::memory_efficient
                                                       : AttentionBackend::flash),
                   type == DType::f16, {share, kSixLayersShares}, DeviceKind::cuda);
}
INSTANTIATE_TEST_SUITE_P(Types,
                         SameBitsOfSixLayers,
                         ::testing::Combine(::testing::Values(DType::f32, DType::bf16, DType::f16),
                                            ::testing::Range<size_t>(0, kSixLayersShares)),
                         [](const auto& param) {
                           return fmt::format("{}_{}", name_of(std::get<0>(param.param)),
                                              std::get<1>(param.param));
                         });

/** The comparison must notice what it is for. */
class PlantedFault : public ::testing::Test {
 protected:
  /** True if some queue order shows the fault: other bits. */
  bool shows(const std::function<void(StepList&)>& fault) {
    ToyModel model = small_bert(DType::bf16, LossKind::cross_entropy);
    model.max_grad_norm = 0.5;
    const ToyResult reference = run_toy(model, {}, 4);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      ToyPlacement p;
      p.place = Place::host;
      p.mode = SimulatedMode::adversarial;
      p.queue_seed = seed;
      p.fault = fault;
      if (!first_difference(model, reference, run_toy(model, p, 4)).empty()) return true;
    }
    return false;
  }
};

TEST_F(PlantedFault, NoneShowsNothing) {
  EXPECT_FALSE(shows([](StepList&) {}));
}

TEST_F(PlantedFault, MissingEventWait) {
  EXPECT_TRUE(shows([](StepList& list) {
    for (Action& a : list)
      if (a.verb == Verb::forward && a.block == 2) a.after.clear();
  }));
}

TEST_F(PlantedFault, SlotReusedOneBlockEarly) {
  EXPECT_TRUE(shows([](StepList& list) {
    for (Action& a : list)
      if (a.verb == Verb::fetch_weights) a.after.clear();
  }));
}

TEST_F(PlantedFault, UpdateNotAwaited) {
  EXPECT_TRUE(shows([](StepList& list) {
    for (Action& a : list)
      a.after_update.clear();
  }));
}

TEST_F(PlantedFault, StaleRandomKey) {
  ToyModel model = small_bert(DType::f32, LossKind::cross_entropy);
  ToyPlacement honest, stale;
  honest.activations = stale.activations = Activations::recompute;
  stale.key_fault = [](RandomKey& key, const Action& action) {
    if (action.verb == Verb::recompute && action.block == 2 && key.step > 0) --key.step;
  };
  const ToyResult reference = run_toy(model, {}, 3);
  EXPECT_EQ(first_difference(model, reference, run_toy(model, honest, 3)), "");
  EXPECT_NE(first_difference(model, reference, run_toy(model, stale, 3)), "");
}

}  // namespace
}  // namespace ferry::test
