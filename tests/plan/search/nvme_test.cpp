// Plans with states on a drive: when there are such, that they fit, and what they take.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "offload/step/state_pieces.h"
#include "offload/store/state_store.h"
#include "src/base/error.h"
#include "src/config/models/models.h"
#include "src/plan/nvme_need.h"
#include "src/plan/search/search.h"
#include "src/request/run_plan.h"
#include "tests/plan/requests.h"
#include "tests/plan/search/even_plans.h"
#include "tests/request/settings.h"

namespace ferry::test {
namespace {

constexpr auto kHost = static_cast<size_t>(Place::host),
               kDevice = static_cast<size_t>(Place::device);

PlanRequest with_nvme(PlanRequest request, int64_t host_bytes) {
  request.has_nvme = true;
  request.host_budget_bytes = host_bytes;
  return request;
}

/** A card that holds no states to speak of, and a drive. */
PlanRequest tight_request(int64_t host_bytes, bool clips = true) {
  return with_nvme(on_gpu(with_drive(even_machine({})), 2 * kGiB, clips), host_bytes);
}

std::vector<int> blocks_on_nvme(const Plan& plan) {
  std::vector<int> blocks;
  for (int b = 0; b < plan.shape.n_blocks(); ++b)
    if (plan.shape.n_state_pieces(b) > 0) blocks.push_back(b);
  return blocks;
}

void expect_fits(const PlanRequest& request, const Plan& plan) {
  const NvmeNeed need = nvme_need_of(plan.shape, request.n_nvme_copies);
  if (request.has_gpu) {
    EXPECT_LE(plan.layout.n_bytes[kDevice], request.gpu_budget_bytes) << plan.why;
    EXPECT_LE(plan.layout.n_bytes[kHost], request.host_budget_bytes) << plan.why;
  } else {
    EXPECT_LE(plan.layout.n_bytes[kHost] + plan.layout.n_bytes[kDevice], request.host_budget_bytes)
        << plan.why;
  }
  EXPECT_LE(need.store_bytes, request.nvme_budget_bytes) << plan.why;
  EXPECT_LE(std::ssize(StateStore::segments_of(plan.shape)), kSegments_max) << plan.why;
  EXPECT_EQ(std::ranges::count(plan.shape.blocks, Place::nvme,
                               [](const BlockShape& block) { return block.place.grads; }),
            plan.n_grads_on_nvme)
      << plan.why;
  EXPECT_EQ(need.n_blocks, plan.n_on_nvme) << plan.why;
}

TEST(Nvme, IsNotUsedWhereMemoryIsEnough) {
  const ModelTable model = bert(1024, 24);
  for (const bool has_times : {true, false})
    for (const int64_t gib : {2, 9}) {
      PlanRequest without = on_gpu(with_drive(even_machine({})), gib * kGiB);
      if (!has_times) without.machine.reset();
      const Plan expected = make_plan(model, without),
                 plan = make_plan(model, with_nvme(without, without.host_budget_bytes));
      EXPECT_EQ(plan.why, expected.why);
      EXPECT_EQ(plan.layout.n_bytes, expected.layout.n_bytes);
      EXPECT_EQ(plan.n_on_nvme, 0);
      EXPECT_EQ(plan.predicted ? plan.predicted->step_s : 0,
                expected.predicted ? expected.predicted->step_s : 0);
    }
}

// Smaller micro-batches that fit memory come before states on a drive of unknown speed.
TEST(Nvme, IsTheLastResortWhereTimesAreNotKnown) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = tight_request(16 * kGiB);
  request.machine.reset();
  int n_in_memory = 0, n_on_nvme = 0;
  for (int64_t mib = 1024; mib <= 8192; mib += 512) {
    request.host_budget_bytes = mib * kMiB;
    PlanRequest without = request;
    without.has_nvme = false;
    const std::optional<Plan> in_memory = find_plan(model, without),
                              plan = find_plan(model, request);
    if (!plan) continue;
    expect_fits(request, *plan);
    EXPECT_EQ(plan->n_on_nvme > 0, !in_memory) << plan->why;
    EXPECT_EQ(in_memory.value_or(*plan).why, plan->why);
    ++(in_memory ? n_in_memory : n_on_nvme);
  }
  EXPECT_GT(n_in_memory, 2);
  EXPECT_GT(n_on_nvme, 2);
}

TEST(Nvme, MoreHostMemoryNeverMakesAStepSlower) {
  const ModelTable model = bert(1024, 24);
  for (const auto& [clips, mixed] : {std::pair{true, 1e9}, {false, 4e9}}) {
    PlanRequest request = tight_request(0, clips);
    request.machine = with_drive(*request.machine, 7e9, 5e9, mixed);
    double last_s = 1e9;
    int n_on_nvme = 0;
    for (const int64_t mib : {1792, 2048, 2560, 3072, 3584, 4608, 6144}) {
      request.host_budget_bytes = mib * kMiB;
      const std::optional<Plan> plan = find_plan(model, request);
      if (!plan) continue;
      expect_fits(request, *plan);
      EXPECT_LE(plan->predicted->step_s, last_s * 1.025) << mib << " MiB: " << plan->why;
      last_s = plan->predicted->step_s;
      n_on_nvme += plan->n_on_nvme > 0;
    }
    EXPECT_GT(n_on_nvme, 4);
    EXPECT_EQ(make_plan(model, with_nvme(request, 120 * kGiB)).n_on_nvme, 0);
  }
}

TEST(Nvme, TakesAsFewStatesAsTheHostAsksFor) {
  const ModelTable model = bert(1024, 24);
  for (const int64_t mib : {2560, 3072, 3584}) {
    const PlanRequest request = tight_request(mib * kMiB);
    const Plan plan = make_plan(model, request);
    const std::vector<int> blocks = blocks_on_nvme(plan);
    ASSERT_GT(blocks.size(), 1u) << plan.why;
    for (int b : blocks) {
      StepShape fewer = plan.shape;
      fewer.blocks[b].place.states = Place::host;
      fewer.save_buffer_bytes_max = kSaveBuffer_bytes_least;
      const bool is_layer = fewer.blocks[b].n_trained_elements >= 12'000'000;
      EXPECT_TRUE(!is_layer || layout_bytes(fewer).n_bytes[kHost] > request.host_budget_bytes) << b;
    }
  }
}

// The CPU updates blocks whose states it has while the drive works for the others.
TEST(Nvme, AreSpreadOverTheBlocks) {
  const ModelTable model = bert(1024, 24);
  int n_checked = 0;
  for (int64_t mib = 2048; mib <= 4096; mib += 256) {
    const std::optional<Plan> plan = find_plan(model, tight_request(mib * kMiB));
    if (!plan) continue;
    const int n = plan->shape.n_blocks() - plan->n_resident;
    const double share = static_cast<double>(plan->n_on_nvme) / n;
    if (share < 0.15 || share > 0.85) continue;
    int longest_on = 0, longest_off = 0, run = 0;
    bool last = false;
    for (int b = plan->n_resident; b < plan->shape.n_blocks(); ++b) {
      const bool on = plan->shape.n_state_pieces(b) > 0;
      run = on == last ? run + 1 : 1;
      last = on;
      (on ? longest_on : longest_off) = std::max(on ? longest_on : longest_off, run);
    }
    // No run of either kind is longer than twice what even shares have.
    EXPECT_LE(longest_on, 2 * share / (1 - share) + 2) << plan->why;
    EXPECT_LE(longest_off, 2 * (1 - share) / share + 2) << plan->why;
    ++n_checked;
  }
  EXPECT_GT(n_checked, 2);
}

TEST(Nvme, AStepThatTheDriveBindsTakesItsBytesByItsRates) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = tight_request(5 * kGiB / 2);
  request.machine =
      with_drive(even_machine({.flops_per_s = 4e15, .update_params_per_s = 10e9}), 2e9, 2e9, 1e9);
  const Plan plan = make_plan(model, request);
  const NvmeNeed need = nvme_need_of(plan.shape, request.n_nvme_copies);
  ASSERT_GT(plan.n_on_nvme, 5) << plan.why;
  const double drive_s = static_cast<double>(need.read_bytes + need.written_bytes) / 2e9;
  EXPECT_GE(plan.predicted->step_s, drive_s * 0.99);
  EXPECT_LE(plan.predicted->step_s, drive_s * 1.1) << plan.why;
}

TEST(Nvme, TheSpaceIsThatOfItsStore) {
  const ModelTable model = bert(1024, 24);
  for (const int n_copies : {2, 4}) {
    PlanRequest request = tight_request(5 * kGiB / 2);
    request.n_nvme_copies = n_copies;
    const Plan plan = make_plan(model, request);
    const int64_t store_bytes = nvme_need_of(plan.shape, n_copies).store_bytes;
    // fp32 states and a master in fp32.
    int64_t n_elements = 0;
    for (int b : blocks_on_nvme(plan))
      n_elements += plan.shape.blocks[b].n_trained_elements;
    EXPECT_NEAR(static_cast<double>(store_bytes), 12.0 * static_cast<double>(n_copies * n_elements),
                0.01 * static_cast<double>(store_bytes));
    request.nvme_budget_bytes = store_bytes;
    EXPECT_EQ(make_plan(model, request).why, plan.why);
    request.nvme_budget_bytes = store_bytes / 2;
    EXPECT_FALSE(find_plan(model, request));
  }
  PlanRequest request = tight_request(5 * kGiB / 2);
  request.n_nvme_copies = 2 + kKept_max + 1;  // more than a store holds
  EXPECT_FALSE(find_plan(model, request));
}

TEST(Nvme, BlocksThatShareTensorsMoveTogether) {
  const ModelTable model = bert(1024, 24, HeadKind::masked_lm);
  int n_moved = 0, n_stayed = 0;
  for (int64_t mib = 1536; mib <= 5120; mib += 256) {
    PlanRequest request = tight_request(mib * kMiB);
    request.gpu_budget_bytes = kGiB;
    request.machine.reset();
    const std::optional<Plan> plan = find_plan(model, request);
    if (!plan) continue;
    const auto& blocks = plan->shape.blocks;
    EXPECT_EQ(blocks.front().place, blocks.back().place) << plan->why;
    ++(blocks.front().place.states == Place::nvme ? n_moved : n_stayed);
  }
  EXPECT_GT(n_moved, 0);
  EXPECT_GT(n_stayed, 0);
}

TEST(Nvme, AllStatesMoveWhereTheUserSaysSo) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = tight_request(64 * kGiB);
  request.placement = Place::nvme;
  for (const bool has_gpu : {true, false}) {
    request.has_gpu = has_gpu;
    request.machine->host.attentions = request.machine->gpu->attentions;
    const Plan plan = make_plan(model, request);
    expect_fits(request, plan);
    EXPECT_EQ(plan.n_on_nvme, plan.shape.n_blocks());
    EXPECT_NE(plan.why.find("states of 26 of 26 blocks on NVMe"), std::string::npos) << plan.why;
    EXPECT_EQ(plan.shape.blocks[3].place.weights, has_gpu ? Place::host : Place::device);
  }
  request.has_nvme = false;
  EXPECT_FALSE(find_plan(model, request));
  // Who asks for the host gets the host alone.
  request = tight_request(3 * kGiB);
  request.placement = Place::host;
  EXPECT_FALSE(find_plan(model, request));
}

TEST(Nvme, HoldsStatesOfARunOnACpu) {
  const ModelTable model = bert(512, 12);
  PlanRequest request;
  request.machine = with_drive(even_machine({.flops_per_s = 1e12}));
  request.train_batch_size = request.micro_batch_size.emplace(1);
  request.max_length = 64;
  const Plan roomy = make_plan(model, request);
  const int64_t in_memory = host_bytes_of(roomy, false);
  request.has_nvme = true;
  double last_s = 1e9;
  int n_on_nvme = 0;
  for (const double share : {0.6, 0.7, 0.8, 0.9, 1.0}) {
    request.host_budget_bytes = static_cast<int64_t>(share * static_cast<double>(in_memory));
    const Plan plan = make_plan(model, request);
    expect_fits(request, plan);
    for (int b : blocks_on_nvme(plan))
      EXPECT_EQ(plan.shape.blocks[b].place,
                BlockPlacement(Place::device, Place::nvme, Place::device));
    EXPECT_LE(plan.predicted->step_s, last_s * 1.025) << plan.why;
    last_s = plan.predicted->step_s;
    n_on_nvme += plan.n_on_nvme > 0;
  }
  EXPECT_EQ(n_on_nvme, 4);
  EXPECT_EQ(last_s, roomy.predicted->step_s);
}

TEST(Nvme, WeightsFollowWhereStatesAreNotEnough) {
  const ModelTable model = bert(1024, 24);
  double last_s = 1e9;
  int n_with_weights = 0;
  for (const int64_t mib : {1280, 1536, 2048, 4096}) {
    const PlanRequest request = tight_request(mib * kMiB);
    const std::optional<Plan> plan = find_plan(model, request);
    if (!plan) continue;
    expect_fits(request, *plan);
    n_with_weights += plan->n_weights_on_nvme > 0;
    if (plan->n_weights_on_nvme > 0) {
      EXPECT_EQ(plan->n_on_nvme, plan->shape.n_blocks() - plan->n_resident) << plan->why;
    }
    // Reads come twice for each micro-batch, beside what the update moves.
    const NvmeNeed need = nvme_need_of(plan->shape, kNvmeCopies_least);
    int64_t weights = 0;
    for (int b = 0; b < plan->shape.n_blocks(); ++b)
      weights += drive_weights_bytes(plan->shape, b);
    EXPECT_GE(need.read_bytes, 2 * weights);
    EXPECT_LE(plan->predicted->step_s, last_s * 1.025) << plan->why;
    last_s = plan->predicted->step_s;
  }
  EXPECT_GT(n_with_weights, 0);
}

TEST(Nvme, GradientsFollowWhereWeightsAreNotEnough) {
  const ModelTable model = bert(1024, 24);
  double last_s = 1e9;
  int n_some = 0, n_most = 0;
  for (const int64_t mib : {160, 224, 288, 384, 512, 640, 768, 896, 1024, 1152, 1280, 1536}) {
    const PlanRequest request = tight_request(mib * kMiB);
    const std::optional<Plan> plan = find_plan(model, request);
    if (!plan) continue;
    expect_fits(request, *plan);
    EXPECT_LE(plan->predicted->step_s, last_s * 1.025) << mib << " MiB: " << plan->why;
    last_s = plan->predicted->step_s;
    if (plan->n_grads_on_nvme == 0) continue;
    const int n_movable = plan->shape.n_blocks() - plan->n_resident;
    (plan->n_grads_on_nvme < n_movable - 2 ? n_some : n_most) += 1;
    EXPECT_EQ(plan->n_weights_on_nvme, n_movable) << plan->why;
    EXPECT_EQ(plan->n_on_nvme, n_movable) << plan->why;
    EXPECT_NE(
        plan->why.find(fmt::format("gradients of {} of 26 blocks on NVMe", plan->n_grads_on_nvme)),
        std::string::npos)
        << plan->why;
    // They are written and read once a step, and the store has them once.
    StepShape without = plan->shape;
    int64_t grad_bytes = 0;
    for (int b = 0; b < without.n_blocks(); ++b)
      if (without.grads_on_drive(b)) {
        grad_bytes += round_up(segment_bytes(without, b, Segment::grads), kDrivePage_bytes);
        without.blocks[b].place.grads = Place::host;
      }
    const NvmeNeed need = nvme_need_of(plan->shape, 3), less = nvme_need_of(without, 3);
    EXPECT_EQ(need.grad_bytes, grad_bytes);
    EXPECT_EQ(need.read_bytes - less.read_bytes, grad_bytes);
    EXPECT_EQ(need.written_bytes - less.written_bytes, grad_bytes);
    EXPECT_EQ(need.store_bytes - less.store_bytes, grad_bytes);
    EXPECT_EQ(contents_text(need), "states, weights and gradients");
    EXPECT_EQ(contents_text(less), "states and weights");
    // No layer's gradients moved though there was room for them.
    for (int b = 0; b < plan->shape.n_blocks(); ++b) {
      StepShape fewer = plan->shape;
      BlockShape& block = fewer.blocks[b];
      if (block.place.grads != Place::nvme || block.n_trained_elements < 12'000'000) continue;
      block.place.grads = Place::host;
      fewer.save_buffer_bytes_max = kSaveBuffer_bytes_least;
      EXPECT_GT(layout_bytes(fewer).n_bytes[kHost], request.host_budget_bytes) << plan->why;
    }
  }
  EXPECT_GT(n_some, 1);
  EXPECT_GT(n_most, 0);
}

TEST(Nvme, GradientsThatAreAddedToStayInMemory) {
  PlanRequest request = tight_request(512 * kMiB);
  EXPECT_GT(make_plan(bert(1024, 24), request).n_grads_on_nvme, 0);
  request.order = AccumulationOrder::horizontal;
  request.micro_batch_size = 2;
  request.train_batch_size = 4;
  EXPECT_FALSE(find_plan(bert(1024, 24), request));
  // Tensors that blocks share: embeddings and a head of words.
  const ModelTable tied = bert(1024, 24, HeadKind::masked_lm);
  request = tight_request(0);
  int n_plans = 0;
  for (int64_t mib = 512; mib <= 2048; mib += 256) {
    request.host_budget_bytes = mib * kMiB;
    const std::optional<Plan> plan = find_plan(tied, request);
    if (!plan || plan->n_grads_on_nvme == 0) continue;
    ++n_plans;
    for (const BlockShape* block : {&plan->shape.blocks.front(), &plan->shape.blocks.back()})
      EXPECT_NE(block->place.grads, Place::nvme) << plan->why;
  }
  EXPECT_GT(n_plans, 0);
}

TEST(Nvme, HoldsGradientsOfARunOnACpu) {
  const ModelTable model = bert(512, 12);
  PlanRequest request;
  request.machine = with_drive(even_machine({.flops_per_s = 1e12}));
  request.train_batch_size = request.micro_batch_size.emplace(1);
  request.max_length = 64;
  request.has_nvme = true;
  int n_with_grads = 0;
  for (int64_t mib = 120; mib <= 240; mib += 10) {
    request.host_budget_bytes = mib * kMiB;
    const std::optional<Plan> plan = find_plan(model, request);
    if (!plan) continue;
    expect_fits(request, *plan);
    if (plan->n_grads_on_nvme == 0) continue;
    ++n_with_grads;
    EXPECT_EQ(plan->layout.grad_slots.size(), 1u);
    EXPECT_TRUE(plan->layout.grad_windows.empty());
  }
  EXPECT_GT(n_with_grads, 1);
}

TEST(Nvme, WeightsOfAModelThatIsAskedMoveAlone) {
  const ModelTable model = bert(512, 12);
  for (const bool has_gpu : {true, false}) {
    PlanRequest request;
    if (has_gpu) request = on_gpu(with_drive(even_machine({})), 112 * kMiB, true);
    request.machine = with_drive(even_machine({.flops_per_s = 1e12}));
    request.trains = false;
    request.train_batch_size = request.micro_batch_size.emplace(1);
    request.max_length = 64;
    const Plan roomy = make_plan(model, request);
    EXPECT_EQ(roomy.n_weights_on_nvme, 0);
    request.host_budget_bytes = host_bytes_of(roomy, has_gpu) / 4 * 3;
    EXPECT_FALSE(find_plan(model, request));
    request.has_nvme = true;
    const Plan plan = make_plan(model, request);
    EXPECT_GT(plan.n_weights_on_nvme, 0) << plan.why;
    EXPECT_EQ(plan.n_on_nvme, 0) << plan.why;
    EXPECT_EQ(nvme_need_of(plan.shape, kNvmeCopies_least).written_bytes, 0);
    EXPECT_LE(host_bytes_of(plan, has_gpu), request.host_budget_bytes) << plan.why;
  }
}

// The least memory: with 1 Mi elements of each block in a window.
TEST(Nvme, WindowsShrinkWithTheMemory) {
  const ModelTable model = bert(1024, 24);
  std::set<int64_t> sizes;
  for (int64_t mib = 1536; mib <= 4608; mib += 256) {
    const std::optional<Plan> plan = find_plan(model, tight_request(mib * kMiB));
    if (plan && plan->n_on_nvme > 0) sizes.insert(plan->shape.state_piece_elements);
  }
  EXPECT_GT(sizes.size(), 1u);
  for (int64_t size : sizes)
    EXPECT_EQ(size % (1 << 20), 0);
}

/** The size that a message says after some words; "12.3 GiB", "12.3GiB". */
int64_t bytes_after(const std::string& message, const std::string& words) {
  std::smatch found;
  EXPECT_TRUE(std::regex_search(message, found, std::regex(words + "([0-9.]+ ?[MG]iB)")))
      << message;
  return found.empty() ? 0 : parse_bytes(found[1].str()).value_or(0);
}

TEST(NvmeRefusal, TellsTheSpaceOfADriveWithWhichItFits) {
  const ModelTable model = bert(1024, 24);
  for (const bool has_times : {true, false}) {
    PlanRequest request = tight_request(2 * kGiB);
    request.has_nvme = false;
    if (!has_times) request.machine.reset();
    const std::string message = refusal(model, request);
    const int64_t space = bytes_after(message, R"(with nvme_path = DIR \(a directory on an SSD, )");
    request.has_nvme = true;
    request.nvme_budget_bytes = space / 100 * 101;  // it is rounded
    EXPECT_TRUE(find_plan(model, request)) << message;
  }
  // It is no cure for a card that is too small.
  PlanRequest request = tight_request(64 * kGiB);
  request.has_nvme = false;
  request.gpu_budget_bytes = 100 * kMiB;
  const std::string message = refusal(model, request);
  EXPECT_EQ(message.find("nvme"), std::string::npos) << message;
}

TEST(NvmeRefusal, TellsTheLeastSpaceWhereTheDriveIsTooSmall) {
  const ModelTable model = bert(1024, 24);
  PlanRequest request = tight_request(2 * kGiB);
  request.nvme_budget_bytes = kGiB;
  const std::string message = refusal(model, request);
  EXPECT_NE(message.find("on the drive (1.00 GiB may be taken); largest: "), std::string::npos)
      << message;
  request.nvme_budget_bytes = bytes_after(message, "at least nvme_memory = ");
  EXPECT_TRUE(find_plan(model, request)) << message;
  request.nvme_budget_bytes = request.nvme_budget_bytes / 20 * 19;
  EXPECT_FALSE(find_plan(model, request)) << message;
}

/** Llama-3-8B as `ferry train` asks for it, on a card of 11 GiB with 56 GiB of host memory and one
 * PCIe 4 SSD. */
TEST(Nvme, EightThousandMillionParametersFitElevenGibAndAnSsd) {
  const config::Config config = config_of({{"gpu_memory", "11GiB"},
                                           {"host_memory", "56GiB"},
                                           {"max_length", "1024"},
                                           {"train_batch_size", "16"}});
  PlanMachine machine = machine_of(find_machine_preset("2080ti-11g"));
  machine.profile = with_drive(*machine.profile, 7e9, 5e9, 2.9e9);
  const HfConfig hf =
      HfConfig::parse(config::known_model_config("Meta-Llama-3-8B").value(), "config.json");
  const ModelTable model = make_model_table(config, hf, HeadKind::causal_lm, 0, machine);
  ASSERT_GT(model.n_params(), 8e9);
  PlanRequest request = make_plan_request(config, model, machine, /*trains=*/true);
  EXPECT_FALSE(find_plan(model, request));
  request.has_nvme = true;
  const Plan plan = make_plan(model, request);
  expect_fits(request, plan);
  for (const Tag tag : {Tag::master, Tag::state_0, Tag::state_1})
    EXPECT_TRUE(std::ranges::any_of(rows_of(plan, true), [&](const PlanRow& row) {
      return row.tag == tag && row.place == Place::nvme &&
             row.n_bytes == plan.layout.bytes_of(tag, Place::nvme);
    }));
  const NvmeNeed need = nvme_need_of(plan.shape, request.n_nvme_copies);
  const auto on_nvme = static_cast<double>(plan.layout.n_bytes[Place::nvme]);
  EXPECT_NEAR(static_cast<double>(need.read_bytes), on_nvme, 1e-3 * on_nvme);
  const double drive_s = static_cast<double>(need.read_bytes + need.written_bytes) / 2 / 2.9e9;
  EXPECT_GE(plan.predicted->step_s, 0.99 * drive_s);
  EXPECT_LE(plan.predicted->step_s, 1.1 * (drive_s + busy(plan, QueueId::compute))) << plan.why;
}

}  // namespace
}  // namespace ferry::test
