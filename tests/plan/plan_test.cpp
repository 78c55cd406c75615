#include "src/plan/plan.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "models/decoder/decoder_table.h"
#include "offload/step/ring_size.h"
#include "tests/plan/machines.h"
#include "tests/plan/requests.h"

namespace ferry {
namespace {

using test::bert_large, test::even_machine, test::refusal, test::request, test::request_on_cpu;

TEST(Plan, BertLargeHasTheParametersThatTheWorldCounts) {
  // BertForSequenceClassification of bert-large-uncased with two labels, as transformers counts it
  EXPECT_EQ(bert_large(DType::bf16).n_params(), 335'143'938);
}

TEST(Plan, FillsTheBudgetAndNeverExceedsIt) {
  ModelTable model = bert_large(DType::bf16);
  int64_t last_micro = 0;
  for (int64_t gib : {3, 4, 6, 8, 11, 16, 24, 80}) {
    Plan plan = make_plan(model, request(gib * kGiB));
    EXPECT_LE(plan.layout.n_bytes[0], gib * kGiB) << gib << " GiB";
    EXPECT_EQ(plan.n_micro * plan.micro_batch_size, 32) << plan.why;
    last_micro = plan.micro_batch_size;
  }
  EXPECT_EQ(last_micro, 32) << "80 GiB hold the whole batch";
}

/** 11 GiB less a context and the kernels that LibTorch loads. */
PlanRequest large_batch_in_eleven_gib() {
  PlanRequest r = request(11 * kGiB - 524 * kMiB - 224 * kMiB);
  r.train_batch_size = 256;
  r.micro_batch_size = 256;
  return r;
}

TEST(Plan, BertLargeFitsElevenGibWith256TextsAtOnceWithOutputsOfBlocksOnTheHost) {
  const ModelTable model = bert_large(DType::bf16);
  PlanRequest r = large_batch_in_eleven_gib();
  const Plan plan = make_plan(model, r);
  EXPECT_LE(plan.layout.n_bytes[Place::device], r.gpu_budget_bytes);
  EXPECT_EQ(plan.micro_batch_size, 256);
  EXPECT_TRUE(plan.shape.layer_inputs_on_host);
  EXPECT_NE(plan.why.find("saved tensors recomputed; outputs of blocks on the host"),
            std::string::npos)
      << plan.why;
  // 256 texts of 512 tokens of 1024 values of 2 bytes, for the embeddings and 24 layers; three
  // slots hold the last.
  EXPECT_EQ(plan.shape.values[0].n_bytes, 256 * kMiB);
  EXPECT_EQ(plan.layout.value_slots.size(), 3u);
  EXPECT_EQ(plan.layout.bytes_of(Tag::saved, Place::host), (25 - 3) * 256 * kMiB);
  const std::vector<PlanRow> rows = rows_of(plan, /*has_gpu=*/true);
  EXPECT_TRUE(std::ranges::any_of(rows, [](const PlanRow& row) {
    return row.tag == Tag::saved && row.place == Place::host && row.n_bytes == 22 * 256 * kMiB;
  }));
  for (Place place : {Place::device, Place::host}) {
    int64_t n_bytes = 0;
    for (const PlanRow& row : rows)
      if (row.place == place) n_bytes += row.n_bytes;
    EXPECT_EQ(n_bytes, plan.layout.n_bytes[place]);
    EXPECT_EQ(n_bytes, make_layout(plan.shape).n_bytes[place]);
  }
  r.layer_inputs = Place::device;
  const std::string message = refusal(model, r);
  EXPECT_NE(message.find("it fits without layer_inputs = device"), std::string::npos) << message;
  // A plan that the host has no room for does not fit either.
  r = large_batch_in_eleven_gib();
  r.host_budget_bytes = plan.layout.n_bytes[Place::host] - kGiB;
  EXPECT_NE(refusal(model, r), "");
}

TEST(Plan, OutputsOfBlocksStayOnTheGpuWhereAnythingFitsSo) {
  const ModelTable model = bert_large(DType::bf16);
  int n_on_host = 0, n_on_gpu = 0;
  for (int64_t gib : {2, 3, 5, 8, 11, 24})
    for (std::optional<int64_t> micro : {std::optional<int64_t>(), std::optional<int64_t>(8),
                                         std::optional<int64_t>(32), std::optional<int64_t>(128)}) {
      PlanRequest r = request(gib * kGiB);
      r.train_batch_size = 128;
      r.micro_batch_size = micro;
      r.layer_inputs = Place::device;
      const bool fits = refusal(model, r).empty();
      const std::string why = fits ? make_plan(model, r).why : "";
      r.layer_inputs.reset();
      if (fits) {
        EXPECT_EQ(make_plan(model, r).why, why);
        ++n_on_gpu;
      } else if (refusal(model, r).empty()) {
        EXPECT_TRUE(make_plan(model, r).shape.layer_inputs_on_host);
        ++n_on_host;
      }
    }
  EXPECT_GT(n_on_gpu, 5);
  EXPECT_GT(n_on_host, 0);
}

TEST(Plan, ForcedOutputsOfBlocksGoWithEveryWish) {
  const ModelTable model = bert_large(DType::bf16);
  for (Place place : {Place::device, Place::host})
    for (Activations activations : {Activations::keep, Activations::recompute, Activations::host})
      for (auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical}) {
        PlanRequest r = request(80 * kGiB);
        r.micro_batch_size = 8;
        r.placement = place;
        r.activations = activations;
        r.order = order;
        r.layer_inputs = Place::host;
        const Plan plan = make_plan(model, r);
        const size_t n_live = order == AccumulationOrder::vertical ? 4 : 1;
        EXPECT_TRUE(plan.shape.layer_inputs_on_host);
        EXPECT_EQ(plan.layout.value_slots.size(), n_live + 2);
      }
}

TEST(Plan, TheBufferOfCheckpointsTakesWhatTheHostHasLeft) {
  const ModelTable model = bert_large(DType::bf16);
  const auto buffer_of = [](const Plan& plan) {
    return plan.layout.region(plan.layout.save_buffer).n_bytes;
  };
  PlanRequest r = request(24 * kGiB);
  r.placement = Place::host;
  const Plan roomy = make_plan(model, r);
  EXPECT_GE(buffer_of(roomy), kSaveBuffer_bytes);
  EXPECT_LE(buffer_of(roomy), kSaveBuffer_bytes + 8192);
  const int64_t rest = roomy.layout.n_bytes[1] - buffer_of(roomy);
  for (int64_t mib : {400, 100}) {
    r.host_budget_bytes = rest + mib * kMiB;
    const Plan tight = make_plan(model, r);
    EXPECT_EQ(tight.why, roomy.why);
    EXPECT_LE(tight.layout.n_bytes[1], r.host_budget_bytes);
    EXPECT_GE(tight.layout.n_bytes[1], r.host_budget_bytes - 16384) << "what is given is used";
  }
  r.host_budget_bytes = rest + kSaveBuffer_bytes_least / 2;
  EXPECT_THROW(make_plan(model, r), Error);
  EXPECT_LE(buffer_of(make_plan(model, request_on_cpu(64 * kGiB))), kSaveBuffer_bytes_least + 8192);
}

TEST(Plan, MoreHostMemoryChangesNothingUntilItIsWhatWasLacking) {
  const ModelTable model = bert_large(DType::bf16);
  PlanRequest r = request(4 * kGiB);
  r.machine = even_machine({});
  r.activations = Activations::host;  // what takes the most of it
  EXPECT_EQ(make_plan(model, r).host_lacking_bytes, INT64_MAX);
  int n_lacking = 0, n_changed = 0;
  std::optional<Plan> before;
  constexpr int64_t kStep_bytes = kGiB / 4;
  for (int64_t budget = 6 * kGiB; budget < 16 * kGiB; budget += kStep_bytes) {
    r.host_budget_bytes = budget;
    const Plan plan = make_plan(model, r);
    if (before && before->why != plan.why) {
      ++n_changed;
      EXPECT_LE(before->host_lacking_bytes, kStep_bytes);
    }
    before = plan;
    if (plan.host_lacking_bytes == INT64_MAX || plan.host_lacking_bytes <= kSaveBuffer_bytes)
      continue;
    ++n_lacking;
    r.host_budget_bytes = budget + plan.host_lacking_bytes - 1;
    const Plan same = make_plan(model, r);
    EXPECT_EQ(same.why, plan.why);
    EXPECT_EQ(same.layout.n_bytes, plan.layout.n_bytes);
    EXPECT_EQ(same.host_lacking_bytes, 1);
  }
  EXPECT_GT(n_lacking, 0);
  EXPECT_GT(n_changed, 0);
}

TEST(Plan, StatesOnTheHostTakeSixteenBytesAParameterAndEighteenWithSeveralMicroBatches) {
  ModelTable model = bert_large(DType::bf16);
  for (int64_t micro : {32, 8}) {
    PlanRequest r = request(24 * kGiB);
    r.placement = Place::host;
    r.micro_batch_size = micro;
    Plan plan = make_plan(model, r);
    int64_t states = 0;
    for (Tag tag : {Tag::weights, Tag::grads, Tag::master, Tag::state_0, Tag::state_1})
      states += plan.layout.bytes_of(tag, Place::host);
    const double per_param = static_cast<double>(states) / static_cast<double>(model.n_params());
    EXPECT_NEAR(per_param, micro == 32 ? 16.0 : 18.0, 0.01);
  }
}

// A byte more for each 256 states of 8 bits; a tensor's last block counts as a whole one.
TEST(Plan, ReducedStatesAndASplitMasterTakeLessOfTheHost) {
  ModelTable model = bert_large(DType::bf16);
  const auto bytes_per_parameter = [&](simd::Optim optim, bool split_master) {
    PlanRequest r = request(24 * kGiB);
    r.placement = Place::host;
    r.micro_batch_size = 32;
    r.optim = optim;
    r.split_master = split_master;
    const Plan plan = make_plan(model, r);
    int64_t bytes = 0;
    for (Tag tag : {Tag::weights, Tag::grads, Tag::master, Tag::state_0, Tag::state_1})
      bytes += plan.layout.bytes_of(tag, Place::host);
    return static_cast<double>(bytes) / static_cast<double>(model.n_params());
  };
  EXPECT_NEAR(bytes_per_parameter(simd::Optim::adamw_bf16, false), 12, 0.01);
  EXPECT_NEAR(bytes_per_parameter(simd::Optim::adamw_8bit, false), 10 + 2 / 256.0, 0.01);
  EXPECT_NEAR(bytes_per_parameter(simd::Optim::adamw, true), 14, 0.01);
  EXPECT_NEAR(bytes_per_parameter(simd::Optim::adamw_8bit, true), 8 + 2 / 256.0, 0.01);
}

TEST(Plan, ThirteenThousandMillionParametersFitElevenGibAndTheirHost) {
  const ModelTable model = make_decoder_table(
      gpt2_13g(), {.compute = DType::bf16, .attention = AttentionBackend::flash});
  constexpr int64_t kHost = 118 * kGiB, kContext = 600 * kMiB, kProcess = 3 * kGiB;
  for (const int64_t batch : {8, 16, 24, 32}) {
    PlanRequest request{
        .train_batch_size = batch,
        .micro_batch_size = batch,
        .has_gpu = true,
        .gpu_budget_bytes =
            11 * kGiB - kContext - loaded_kernels_bytes(model, KernelMemory{}, n_graphs_max(model)),
        .host_budget_bytes = kHost - kProcess};
    request.optim = simd::Optim::adamw_8bit;
    request.split_master = true;
    const Plan plan = make_plan(model, request);
    EXPECT_EQ(plan.n_micro, 1);
    // Weights, their lower halves, gradients in 16 bits, two codes: 8 bytes a parameter, less
    // what is on the GPU.
    const double host = static_cast<double>(plan.layout.n_bytes[Place::host]);
    EXPECT_GT(host, 0.8 * 8 * 12.845e9) << plan.why;
    EXPECT_LT(host, 1.1 * 8.1 * 12.845e9) << plan.why;
  }
}

TEST(Plan, KeepsAsMuchOfTheSavedTensorsAsFitsTheLargestLast) {
  const ModelTable model = bert_large(DType::bf16);
  PlanRequest request{.micro_batch_size = 32, .has_gpu = true, .gpu_budget_bytes = INT64_MAX};
  request.placement = Place::device;
  const auto bytes_with = [&](Activations activations) {
    PlanRequest wish = request;
    wish.activations = activations;
    return make_plan(model, wish).layout.n_bytes[Place::device];
  };
  const int64_t all = bytes_with(Activations::keep), none = bytes_with(Activations::recompute),
                selective = bytes_with(Activations::selective);
  EXPECT_LT(none, selective);
  EXPECT_LT(selective, all);
  const BatchShape largest = make_plan(model, request).largest;
  // Bytes that the next block would take: the largest tensor, or all but it.
  const std::vector<SavedSpec> saved = model.blocks[1].saved(largest);
  const int64_t recomputed = recomputed_bytes(saved), others = laid_out_bytes(saved) - recomputed;
  EXPECT_EQ(recomputed, int64_t{32} * 512 * 4096 * 2);
  int64_t kept_before = 0;
  std::set<std::string> ways;
  std::set<int64_t> budgets = {none, selective, all};
  for (int i = 1; i < 40; ++i)
    budgets.insert(none + (all - none) * i / 40);
  for (const int64_t budget : budgets) {
    request.gpu_budget_bytes = budget;
    const Plan plan = make_plan(model, request);
    const int64_t taken = plan.layout.n_bytes[Place::device];
    EXPECT_LE(taken, budget);
    int64_t kept = 0;
    std::map<Activations, int> n_layers;
    for (const BlockShape& block : plan.shape.blocks) {
      kept += block.saved_kept_bytes();
      if (block.saved_recomputed_bytes > 0) ++n_layers[block.activations];
    }
    EXPECT_GE(kept, kept_before) << budget;
    kept_before = kept;
    // The last blocks more than the others, never two steps more.
    EXPECT_TRUE(std::ranges::is_sorted(
        plan.shape.blocks.begin() + 1, plan.shape.blocks.end() - 1, std::greater<>(),
        [](const BlockShape& block) { return static_cast<int>(block.activations); }));
    EXPECT_FALSE(n_layers[Activations::keep] > 0 && n_layers[Activations::recompute] > 0);
    // The first that is kept more needs a region to be made again in, which others share.
    if (n_layers[Activations::keep] < 23) {
      const int64_t next =
          n_layers[Activations::recompute] > 1 ? others + recomputed : 2 * recomputed;
      EXPECT_LT(budget - taken, next) << plan.why;
    }
    ways.insert(std::regex_replace(plan.why, std::regex("last [0-9]+"), "last N"));
  }
  std::string said;
  for (const std::string& way : ways)
    said += way + "\n";
  for (const char* part :
       {"saved tensors kept\n", "saved tensors kept but for the largest\n",
        "of the last N of 26 blocks kept, of the others kept but for the largest",
        "of the last N of 26 blocks kept but for the largest, of the others recomputed",
        "saved tensors recomputed\n"})
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

TEST(Plan, TextsThatAreKnownTakeTheMemoryOfTheirTokens) {
  const ModelTable model = bert_large(DType::bf16);
  PlanRequest request{.micro_batch_size = 32, .has_gpu = true, .gpu_budget_bytes = 10 * kGiB};
  const Plan full = make_plan(model, request);
  EXPECT_EQ(full.largest.tokens, 32 * 512);
  EXPECT_EQ(full.typical, full.largest);
  // As of questions and answers: 174 tokens on average, 512 at most.
  std::vector<std::pair<int64_t, int64_t>> asked;
  request.text_tokens = [&](int64_t train_batch_size, int64_t micro_batch_size) {
    asked.emplace_back(train_batch_size, micro_batch_size);
    return TextTokens{.most = std::min<int64_t>(7'001, 512 * micro_batch_size),
                      .typical = 174 * micro_batch_size,
                      .attended = 200};
  };
  const Plan ragged = make_plan(model, request);
  EXPECT_EQ(asked.front(), std::pair(request.train_batch_size, int64_t{32}));
  EXPECT_EQ(ragged.micro_batch_size, 32);
  EXPECT_EQ(ragged.largest.tokens, 7'040);  // a multiple of 64
  EXPECT_EQ(ragged.largest.max_length, 512);
  EXPECT_EQ(ragged.typical.tokens, 5'568);
  EXPECT_EQ(ragged.typical.max_length, 200);
  // All of it is on the card now, with nothing recomputed.
  EXPECT_NE(ragged.why.find("weights and states on the GPU; saved tensors kept"), std::string::npos)
      << ragged.why;
  EXPECT_EQ(full.why.find("weights and states on the GPU; saved tensors kept"), std::string::npos)
      << full.why;
  // Neither more than texts of max_length nor nothing.
  request.text_tokens = [](int64_t, int64_t) { return TextTokens{.most = 1 << 30, .typical = 0}; };
  const Plan clamped = make_plan(model, request);
  EXPECT_EQ(clamped.largest.tokens, clamped.micro_batch_size * 512);
  EXPECT_EQ(clamped.typical.tokens, 64);
}

/** A training's micro-batch fixes its bits: what samples take comes out of the rest. */
TEST(Plan, SamplesLeaveTheMicroBatchAsItIs) {
  const ModelTable model = bert_large(DType::bf16);
  const GenerationShape samples = {.n_sequences = 8, .cache_tokens = 8192};
  int n_moved = 0, n_refused = 0;
  for (int64_t budget = 2 * kGiB; budget <= 24 * kGiB; budget += kGiB) {
    PlanRequest bare = request(budget), sampled = bare;
    sampled.generation = samples;
    const auto plan = find_plan(model, bare), with_samples = find_plan(model, sampled);
    ASSERT_TRUE(plan) << budget;
    if (!with_samples) {
      ++n_refused;
      EXPECT_NE(refusal(model, sampled).find("without sample_prompts"), std::string::npos);
      continue;
    }
    EXPECT_EQ(with_samples->micro_batch_size, plan->micro_batch_size) << budget;
    const GenerationShape at_once = generation_shape(samples, plan->largest);
    EXPECT_EQ(at_once.n_sequences, std::min<int64_t>(8, plan->micro_batch_size));
    EXPECT_EQ(with_samples->layout.bytes_of(Tag::cache, Place::device),
              make_generation_layout(model, at_once).n_bytes);
    EXPECT_LE(with_samples->layout.n_bytes[Place::device], budget);
    n_moved += with_samples->why != plan->why;
  }
  EXPECT_GT(n_moved, 0);
  EXPECT_GT(n_refused, 0);
}

TEST(Plan, WithoutAGpuTheTotalCountsAndAllIsMemory) {
  const ModelTable model = bert_large(DType::bf16);
  const std::string message = refusal(model, request_on_cpu(1 * kGiB));
  EXPECT_EQ(message.find("gpu"), std::string::npos) << message;
  EXPECT_EQ(message.find("on the host"), std::string::npos) << message;
  EXPECT_NE(message.find("in memory"), std::string::npos) << message;
  // Streaming takes slots besides: of all candidates the resident ones need the least.
  PlanRequest resident = request_on_cpu(1 * kGiB);
  resident.placement = Place::device;
  const auto need = [](const std::string& text) {
    return text.substr(text.find("needs "), text.find(" of memory") - text.find("needs "));
  };
  EXPECT_EQ(need(message), need(refusal(model, resident)));
}

TEST(Plan, SaysWhatIsPinnedAndWhatGoesThroughARing) {
  const ModelTable model = bert_large(DType::bf16);
  PlanRequest r = request(80 * kGiB);
  r.placement = Place::host;
  const Plan all = make_plan(model, r);
  const PlannedPinning all_pinned = pinning_of(all, r);
  EXPECT_EQ(all_pinned.pinned_bytes, all.layout.copied_on_host.n_bytes);
  EXPECT_EQ(all_pinned.ring_bytes + all_pinned.unpinned_bytes + all_pinned.step_ring_bytes, 0);
  // 4 bytes a parameter or 6 are copied; master and both moments are not, 12 bytes.
  const auto n_params = static_cast<double>(model.n_params());
  const int64_t host_bytes = all.layout.n_bytes[Place::host];
  EXPECT_GT(all_pinned.pinned_bytes, 4 * n_params);
  EXPECT_GE(host_bytes - all_pinned.pinned_bytes, 12 * n_params);

  int64_t moved_bytes = 0;
  for (const Action& action :
       make_training_list(all.shape, all.layout, static_cast<int>(all.n_micro)))
    if (is_move(action.verb))
      for (const Bytes& bytes : action.reads)
        moved_bytes += bytes.n_bytes;
  for (const int64_t limit : {2 * kMiB, 512 * kMiB}) {
    r.pinned_bytes_max = limit;
    const Plan plan = make_plan(model, r);
    EXPECT_EQ(plan.layout.n_bytes, all.layout.n_bytes);
    const PlannedPinning pinning = pinning_of(plan, r);
    EXPECT_LE(pinning.pinned_bytes, limit);
    EXPECT_GT(pinning.pinned_bytes, limit - 2 * kPinnedPage_bytes);
    EXPECT_EQ(pinning.ring_bytes, std::min(limit / 2, 32 * kMiB));
    EXPECT_EQ(pinning.pinned_bytes - pinning.ring_bytes + pinning.unpinned_bytes,
              all_pinned.pinned_bytes);
    EXPECT_LT(pinning.step_ring_bytes, moved_bytes);
    // Weights are fetched twice and gradients sent once.
    EXPECT_GE(pinning.step_ring_bytes, moved_bytes - 3 * limit);
  }
}

TEST(Plan, RegionsNeverOverlap) {
  for (Place place : {Place::device, Place::host}) {
    PlanRequest r = request(80 * kGiB);
    r.placement = place;
    Plan plan = make_plan(bert_large(DType::f16), r);
    int64_t end[kPlaces] = {0, 0};
    for (const Region& region : plan.layout.regions) {
      auto p = static_cast<size_t>(region.place);
      EXPECT_EQ(region.offset % kTensorAlignment_bytes, 0) << region.name;
      EXPECT_GE(region.offset, end[p]) << region.name;
      end[p] = region.offset + region.n_bytes;
    }
  }
}

}  // namespace
}  // namespace ferry
