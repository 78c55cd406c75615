// Ranks that share the work on a micro-batch, as threads. In each family loss and gradients, added
// up over the ranks, are the loss and the gradients of one rank alone, with dropout.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "models/family.h"
#include "tests/models/model_runner.h"
#include "tests/models/small_configs.h"
#include "tests/offload/executor/thread_link.h"

namespace ferry {
namespace {

constexpr int64_t kVocab = 100;
constexpr RandomKey kKey = {.training = true, .seed = 3, .step = 7, .micro_batch = 1};

/** A rank that is a thread, and its way to the others. */
class SharingThread final : public SharingRanks {
 public:
  SharingThread(test::ThreadRanks& all, int rank, int world)
      : link_(*all.link(rank)), rank_(rank), world_(world) {}
  int rank() const override { return rank_; }
  int world() const override { return world_; }
  void exchange(std::span<const std::span<const std::byte>> sends,
                std::span<const std::span<std::byte>> receives) override {
    link_.exchange(sends, receives, /*stream=*/nullptr);
  }

 private:
  RankLink& link_;
  int rank_, world_;
};

/** Ragged sequences and a dummy tail; each token's label is the next one of its sequence. */
test::TestBatch batch_of(const std::vector<int64_t>& lengths) {
  test::TestBatch batch(lengths, 1, kVocab, 4);
  batch.label_next_tokens();
  batch.tensors.loss_weight = 1.0f / 41;
  return batch;
}

/** A rank's part, by its tokens. */
BatchTensors part_of(const BatchTensors& whole, const Sharing& sharing, int rank) {
  BatchTensors part = whole;
  if (sharing.sp_size == 1) return part;
  part.shape = part_of_tokens(whole.shape, sharing.sp_size);
  const int64_t n = part.shape.tokens;
  for (at::Tensor* x : {&part.input_ids, &part.type_ids, &part.position_ids, &part.labels})
    *x = x->narrow(0, rank * n, n);
  part.streams = {part, whole};
  return part;
}

struct Found {
  double loss = 0;
  std::map<std::string, at::Tensor> grads;
  size_t n_blocks = 0;
};

Found run(const nlohmann::ordered_json& config,
          const Family& family,
          const Sharing& sharing,
          int64_t piece_elements_max = kPieceElements_max,
          const std::vector<int64_t>& lengths = {13, 7, 20, 1, 5, 2}) {
  TableOptions options = {.head = family.is_decoder ? HeadKind::causal_lm : HeadKind::masked_lm};
  options.hidden_dropout = options.attention_dropout = 0.1f;
  options.sharing = sharing;
  options.piece_elements_max = piece_elements_max;
  const JsonReader reader = JsonReader::of(config, {"config.json", "model.config", ""});
  const ModelTable table = make_table(reader, options);
  const LossKind loss = family.is_decoder ? LossKind::causal_lm : LossKind::masked_lm;
  const test::TestBatch whole = batch_of(lengths);
  const int n_ranks = sharing.n_ranks();
  test::ThreadRanks ranks(n_ranks);
  std::vector<Found> found(static_cast<size_t>(n_ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n_ranks; ++rank)
    threads.emplace_back([&, rank] {
      BatchTensors part = part_of(whole.tensors, sharing, rank);
      SharingThread its_ranks(ranks, rank, n_ranks);
      if (n_ranks > 1) part.sharing_ranks = &its_ranks;
      RandomKey key = kKey;
      key.first_token = sharing.sp_size > 1 ? rank * part.shape.tokens : 0;
      test::ModelRunner runner(table, loss, part.shape);
      runner.randomise(5, 0.3f);
      runner.poison();
      Found& its = found[static_cast<size_t>(rank)];
      its.loss = runner.forward(key, part);
      runner.backward(key, part);
      its.grads = runner.hf_grads();
    });
  for (std::thread& thread : threads)
    thread.join();
  Found sum = std::move(found.front());
  sum.n_blocks = table.blocks.size();
  for (size_t rank = 1; rank < found.size(); ++rank) {
    sum.loss += found[rank].loss;
    for (const auto& [name, grad] : found[rank].grads)
      sum.grads.at(name) = sum.grads.at(name) + grad;
  }
  return sum;
}

void expect_like(const Found& shared, const Found& one, double tolerance = 2e-5) {
  EXPECT_NEAR(shared.loss, one.loss, 1e-5 * one.loss);
  ASSERT_EQ(shared.grads.size(), one.grads.size());
  for (const auto& [name, grad] : one.grads) {
    const at::Tensor difference = shared.grads.at(name) - grad;
    const double size = grad.norm().item<double>();
    EXPECT_LT(difference.norm().item<double>(), tolerance * size + 1e-7) << name << " of " << size;
  }
}

class SharedWork : public ::testing::TestWithParam<std::string_view> {};

TEST_P(SharedWork, IsThatOfOneRank) {
  const nlohmann::ordered_json config = test::small_config(
      GetParam(),
      {.vocab = kVocab, .width = 32, .layers = 2, .heads = 4, .inner = 40, .positions = 24});
  const JsonReader reader = JsonReader::of(config, {"config.json", "model.config", ""});
  const Family& family = family_of(reader);
  const Found one = run(config, family, {});
  for (const Sharing& sharing : {Sharing{.sp_size = 2}, Sharing{.sp_size = 4},
                                 Sharing{.tp_size = 2}, Sharing{.tp_size = 4}}) {
    SCOPED_TRACE(testing::Message() << "sp " << sharing.sp_size << ", tp " << sharing.tp_size);
    const Found shared = run(config, family, sharing);
    expect_like(shared, one);
  }
}

/** Keys and values come round, of sequences that begin and end anywhere and of one that all ranks
 * have. */
TEST_P(SharedWork, IsThatOfOneRankInARing) {
  for (const bool is_whole : {false, true}) {
    const nlohmann::ordered_json config = test::small_config(GetParam(),
                                                             {.vocab = kVocab,
                                                              .width = 32,
                                                              .layers = 2,
                                                              .heads = 4,
                                                              .inner = 40,
                                                              .positions = 64,
                                                              .window = 9},
                                                             is_whole);
    const JsonReader reader = JsonReader::of(config, {"config.json", "model.config", ""});
    const Family& family = family_of(reader);
    if (family.model_type == "gemma2") {
      EXPECT_THROW(run(config, family, {.sp_size = 2, .sp_attention = SpAttention::ring}), Error);
      return;
    }
    for (const std::vector<int64_t>& lengths :
         std::vector<std::vector<int64_t>>{{13, 7, 20, 1, 5, 2}, {1, 46, 1}, {22, 3, 23}}) {
      const Found one = run(config, family, {}, kPieceElements_max, lengths);
      for (const int n : {2, 4}) {
        SCOPED_TRACE(testing::Message() << n << " ranks, first text of " << lengths.front()
                                        << (is_whole ? ", whole" : ""));
        expect_like(run(config, family, {.sp_size = n, .sp_attention = SpAttention::ring},
                        kPieceElements_max, lengths),
                    one, 1e-4);
      }
    }
  }
}

/** Heads that two ranks cannot share go round by themselves. */
TEST(SharedHeads, ThatCannotBeSharedLeaveTokensWhereTheyAre) {
  const nlohmann::ordered_json config = test::small_config(
      "llama",
      {.vocab = kVocab, .width = 24, .layers = 2, .heads = 3, .inner = 40, .positions = 64});
  const JsonReader reader = JsonReader::of(config, {"config.json", "model.config", ""});
  const Family& family = family_of(reader);
  expect_like(run(config, family, {.sp_size = 2}), run(config, family, {}));
  EXPECT_THROW(run(config, family, {.sp_size = 2, .sp_attention = SpAttention::heads}), Error);
}

/** More ranks than heads of keys and values: a head is of several ranks. */
TEST(SharedHeads, OfSeveralRanksGiveTheSumOfTheirGradients) {
  for (const char* const name : {"llama", "qwen2", "qwen3"}) {
    SCOPED_TRACE(name);
    nlohmann::ordered_json config = test::small_config(
        name,
        {.vocab = kVocab, .width = 32, .layers = 2, .heads = 4, .inner = 40, .positions = 24});
    config["num_key_value_heads"] = 2;
    const JsonReader reader = JsonReader::of(config, {"config.json", "model.config", ""});
    const Family& family = family_of(reader);
    const Found one = run(config, family, {});
    for (const Sharing& sharing : {Sharing{.sp_size = 2}, Sharing{.sp_size = 4},
                                   Sharing{.tp_size = 2}, Sharing{.tp_size = 4}}) {
      SCOPED_TRACE(testing::Message() << "sp " << sharing.sp_size << ", tp " << sharing.tp_size);
      expect_like(run(config, family, sharing), one);
    }
  }
}

/** A vocabulary in pieces, of each of which a rank has a share. */
TEST(SharedWordsInPieces, AreThoseOfOneRank) {
  constexpr int64_t kWords = 9000, kPiece_elements = 4096 * 32;
  const nlohmann::ordered_json config = test::small_config(
      "llama",
      {.vocab = kWords, .width = 32, .layers = 1, .heads = 4, .inner = 40, .positions = 24});
  const JsonReader reader = JsonReader::of(config, {"config.json", "model.config", ""});
  const Family& family = family_of(reader);
  const Found one = run(config, family, {}, kPiece_elements);
  EXPECT_GT(one.n_blocks, 5U) << "no pieces";
  for (const Sharing& sharing : {Sharing{.tp_size = 2}, Sharing{.tp_size = 4}})
    expect_like(run(config, family, sharing, kPiece_elements), one);
}

std::vector<std::string_view> all_families() {
  std::vector<std::string_view> names;
  for (const Family& family : families())
    names.push_back(family.model_type);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Families,
                         SharedWork,
                         ::testing::ValuesIn(all_families()),
                         [](const auto& param) {
                           std::string name(param.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ferry
