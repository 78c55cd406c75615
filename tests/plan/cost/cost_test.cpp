// Times of actions by a machine's rates.

#include "src/plan/cost/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "offload/step/pager.h"
#include "src/plan/cost/rates.h"
#include "tests/plan/search/even_plans.h"

namespace ferry::test {
namespace {

TEST(GemmRate, IsTheMeasuredOneAndBetweenItsNeighbours) {
  const std::vector<GemmRate> rates = {{DType::bf16, 1024, 1024, 100e12},
                                       {DType::bf16, 1024, 4096, 300e12},
                                       {DType::bf16, 16384, 1024, 400e12},
                                       {DType::bf16, 16384, 4096, 600e12},
                                       {DType::f32, 1024, 1024, 1e12}};
  EXPECT_NEAR(gemm_rate(rates, DType::bf16, {16384, 4096, 4096}), 600e12, 1e6);
  EXPECT_NEAR(gemm_rate(rates, DType::bf16, {16384, 1024, 1024}), 400e12, 1e6);
  // The gradient of the weights is the same work turned round.
  EXPECT_NEAR(gemm_rate(rates, DType::bf16, {1024, 16384, 1024}), 400e12, 1e6);
  const double between = gemm_rate(rates, DType::bf16, {16384, 1024, 4096});
  EXPECT_GT(between, 400e12);
  EXPECT_LT(between, 600e12);
  EXPECT_NEAR(gemm_rate(rates, DType::bf16, {1 << 20, 8192, 8192}), 600e12, 1e6);
  EXPECT_LT(gemm_rate(rates, DType::bf16, {16384, 256, 256}), 400e12);
  EXPECT_DOUBLE_EQ(gemm_rate(rates, DType::f32, {1024, 1024, 1024}), 1e12);
  EXPECT_DOUBLE_EQ(gemm_rate(rates, DType::f16, {1024, 1024, 1024}), 0);
}

TEST(Work, OfBertLargeIsWhatTheWorldCounts) {
  // 6 FLOPs a matrix parameter and token, and 12 * width * length of attention: 1.006 TFLOP a
  // sequence of 512.
  ModelTable model = bert(1024, 24);
  const BatchShape batch = {.tokens = 512, .n_seqs_max = 1, .max_length = 512};
  const StepShape shape = make_step_shape(model, batch, {}, 1);
  const MachineProfile machine = even_machine({});
  EXPECT_NEAR(CostModel(machine, true, model, shape, batch).step_flops(1), 1.006e12, 0.01e12);
}

// A GPU compares all tokens with all, for each of three tables; nothing else of theirs grows so.
TEST(Work, OfEmbeddingsOfVeryManyTokensIsFindingTheirRows) {
  const ModelTable model = bert(384, 6);
  const MachineProfile machine = even_machine({});
  const auto backward_s = [&](int64_t tokens, bool gpu) {
    const BatchShape batch = {.tokens = tokens, .n_seqs_max = tokens / 512, .max_length = 512};
    const StepShape shape = make_step_shape(model, batch, {}, 1);
    return CostModel(machine, gpu, model, shape, batch)
        .seconds({.verb = Verb::backward, .block = 0});
  };
  const auto more_s = [&](bool gpu) {
    return backward_s(1 << 20, gpu) - 4 * backward_s(1 << 18, gpu);
  };
  EXPECT_NEAR(more_s(true) - more_s(false), 3 * (0x1p40 - 4 * 0x1p36) / 7.4e12, 1e-3);
}

// An update takes the time of the bytes it moves: 28 a parameter, 20, 16, and 2 less with a split
// master.
TEST(Simulation, ReducedStatesUpdateByTheirBytes) {
  const ModelTable model = bert(1024, 24);
  for (const Place place : {Place::host, Place::device}) {
    // So slow that nothing else shows.
    MachineProfile machine = even_machine({.update_params_per_s = 1e6});
    machine.gpu->update_params_per_s = 1e6;
    const BatchShape batch = {.tokens = 512, .n_seqs_max = 1, .max_length = 512};
    const auto update_s = [&](simd::Optim optim, bool split_master) {
      PlanRequest request;
      request.optim = optim;
      request.split_master = split_master;
      StepShape shape = make_step_shape(model, batch, request, 1);
      choose(shape, model, {.place = place});
      const StepList list = make_training_list(shape, make_layout(shape), 1);
      const auto update = std::ranges::find_if(
          list, [](const Action& a) { return a.verb == Verb::update && a.block == 1; });
      return CostModel(machine, true, model, shape, batch).seconds(*update);
    };
    const double fp32 = update_s(simd::Optim::adamw, false);
    EXPECT_NEAR(update_s(simd::Optim::adamw_bf16, false) / fp32, 20.0 / 28, 1e-3);
    EXPECT_NEAR(update_s(simd::Optim::adamw_8bit, false) / fp32, 16.0 / 28, 1e-3);
    EXPECT_NEAR(update_s(simd::Optim::adamw, true) / fp32, 26.0 / 28, 1e-3);
    EXPECT_NEAR(update_s(simd::Optim::adamw_8bit, true) / fp32, 14.0 / 28, 1e-3);
  }
}

/** All on the host, on so many ranks; a micro-batch of 32 for each. */
Plan of_ranks(const ModelTable& model, const MachineProfile& machine, int world, int n_per_host) {
  PlanRequest request = on_gpu(machine, 200 * kGiB);
  request.placement = Place::host;
  request.activations = Activations::keep;
  request.train_batch_size = 32 * world;
  request.micro_batch_size = 32;
  request.world = world;
  request.n_per_host = n_per_host;
  return make_plan(model, request);
}

TEST(CostModel, RanksExchangeAtTheRatesOfTheProfile) {
  const ModelTable model = bert(1024, 4);
  MachineProfile machine = even_machine({});
  machine.gpu->exchange = {.bytes_per_s = 10e9,
                           .message_s = 1e-3,
                           .network_bytes_per_s = 1e9,
                           .network_message_s = 2e-3};
  const auto exchanges = [&](const Plan& plan) {
    std::vector<Action> all;
    for (const Action& action : make_training_list(plan.shape, plan.layout, 1))
      if (is_between_ranks(action.verb)) all.push_back(action);
    return all;
  };
  const auto bytes_between = [](const Action& action, int first, int last) {
    int64_t sent = 0, received = 0;
    for (const Bytes& bytes : action.reads)
      if (bytes.peer >= first && bytes.peer <= last) sent += bytes.n_bytes;
    for (const Bytes& bytes : action.writes)
      if (bytes.peer >= first && bytes.peer <= last) received += bytes.n_bytes;
    return static_cast<double>(std::max(sent, received));
  };
  const Plan two = of_ranks(model, machine, 2, 2);
  const CostModel cost(machine, true, model, two.shape, two.largest);
  ASSERT_GE(exchanges(two).size(), 8u);
  for (const Action& action : exchanges(two)) {
    ASSERT_GT(bytes_between(action, 1, 1), 0);
    EXPECT_NEAR(cost.seconds(action), 1e-3 + bytes_between(action, 1, 1) / 10e9, 1e-9);
  }
  // Two hosts of two: a neighbour, and two ranks over the network.
  const Plan four = of_ranks(model, machine, 4, 2);
  const CostModel cost_of_four(machine, true, model, four.shape, four.largest);
  for (const Action& action : exchanges(four)) {
    const double near = bytes_between(action, 1, 1), far = bytes_between(action, 2, 3);
    EXPECT_NEAR(cost_of_four.seconds(action), std::max(1e-3 + near / 10e9, 2e-3 + far / 1e9), 1e-9);
    EXPECT_GT(far, 0);
  }
  // Without the profile's rates: 45 % of the link, which has 50 GB/s.
  const Plan unknown = of_ranks(model, even_machine({}), 2, 2);
  const MachineProfile plain = even_machine({});
  const CostModel assumed(plain, true, model, unknown.shape, unknown.largest);
  for (const Action& action : exchanges(unknown))
    EXPECT_NEAR(assumed.seconds(action), 20e-6 + bytes_between(action, 1, 1) / 22.5e9, 1e-9);
}

TEST(CostModel, ExchangesShareTheLinksUnlessTheyHaveTheirOwn) {
  const ModelTable model = bert(1024, 4);
  MachineProfile machine = even_machine({.copy_bytes_per_s = 50e9});
  machine.host.dram_bytes_per_s = 1000e9;
  const CostModel::Beside copying = {.h2d = true, .exchange = true};
  const auto speed_of = [&](QueueId queue, const CostModel::Beside& beside, bool has_peer_access,
                            double rate) {
    machine.gpu->exchange = {.has_peer_access = has_peer_access, .bytes_per_s = rate};
    const Plan plan = of_ranks(model, machine, 2, 2);
    return CostModel(machine, true, model, plan.shape, plan.largest).speed(queue, beside);
  };
  for (const QueueId queue : {QueueId::h2d, QueueId::collective}) {
    EXPECT_EQ(speed_of(queue, copying, true, 200e9), 1) << "faster than the link: another one";
    EXPECT_DOUBLE_EQ(speed_of(queue, copying, true, 25e9), 50.0 / 75);
    EXPECT_DOUBLE_EQ(speed_of(queue, copying, false, 25e9), 50.0 / 75);
  }
  EXPECT_EQ(speed_of(QueueId::compute, copying, false, 25e9), 1);
  EXPECT_EQ(speed_of(QueueId::collective, {.exchange = true}, false, 25e9), 1);
  // Through memory that gives a rank 60 GB/s: sent and received, 50; and the copy.
  machine.host.updates = {{.n_threads = 8, .alone = 1e9}};
  machine.host.dram_bytes_per_s = 120e9;
  machine.host.memory_bytes_per_s = 0;
  EXPECT_DOUBLE_EQ(speed_of(QueueId::collective, copying, false, 25e9), 60.0 / 100);
  // Three threads of each rank, six of eight, ask for 10.5.
  EXPECT_DOUBLE_EQ(speed_of(QueueId::host, {.host = true, .exchange = true}, false, 25e9),
                   60.0 / 60.5);
  EXPECT_EQ(speed_of(QueueId::host, {.host = true, .exchange = true}, true, 25e9), 1);
}

// 8 threads update 5 G parameters a second, 140 GB/s; a quarter of them copies 17.5 GB/s, each byte
// read and written.
TEST(CostModel, WhatIsNotPinnedTakesTheSlowerOfTheHostsCopyAndTheLinks) {
  const ModelTable model = bert(1024, 4);
  for (const double link : {50e9, 10e9}) {
    const MachineProfile machine = even_machine({.copy_bytes_per_s = link});
    Plan plan = all_on_host(model, machine, true);
    plan.shape.pinned_bytes_max = 512 * kMiB;
    const CostModel cost(machine, true, model, plan.shape, plan.largest);
    for (const Action& action : make_training_list(plan.shape, plan.layout, 1)) {
      if (action.verb != Verb::fetch_weights && action.verb != Verb::send_grads) continue;
      int64_t n_bytes = 0;
      for (const Bytes& bytes : action.reads)
        n_bytes += bytes.n_bytes;
      if (n_bytes < 8 * kMiB) continue;
      const double direct_s = cost.seconds(action), ring_s = cost.seconds(action, 0, n_bytes);
      const double bytes = static_cast<double>(n_bytes);
      EXPECT_NEAR(direct_s, bytes / link, 1e-5);
      // The other one of the two copies takes its time for one chunk; starts take 20 us each.
      // Two of eight threads copy: a quarter of 5e9 * 28 bytes a second, three for each byte.
      constexpr double kThreads = 35e9 / 3;
      const double slower = std::min(link, kThreads);
      const double faster = link < kThreads ? kThreads / 2 : link;  // a chunk has one thread
      const double chunks = std::ceil(bytes / (2 << 20)), chunk = bytes / chunks;
      EXPECT_NEAR(ring_s, bytes / slower + chunk / faster, 1e-4 + chunks * 2e-5);
      EXPECT_GT(ring_s, bytes / slower + chunk / faster);
      // Half of it pinned.
      EXPECT_NEAR(cost.seconds(action, 0, n_bytes / 2), (direct_s + ring_s) / 2,
                  1e-4 + chunk / slower);
    }
  }
}

TEST(CostModel, UpdatesAndTheRingShareTheMemory) {
  const ModelTable model = bert(1024, 4);
  const MachineProfile machine = even_machine({.copy_bytes_per_s = 50e9});
  Plan plan = all_on_host(model, machine, true);
  plan.shape.pinned_bytes_max = 512 * kMiB;
  const CostModel cost(machine, true, model, plan.shape, plan.largest);
  // Seven threads update and two copy, with a memory that eight threads saturate.
  const CostModel::Beside update = {.host = true, .ring = true}, copy = {.h2d = true, .ring = true};
  EXPECT_NEAR(cost.speed(QueueId::h2d, update), 8.0 / 9, 1e-9);
  EXPECT_NEAR(cost.speed(QueueId::host, copy), 8.0 / 9, 1e-9);
  EXPECT_NEAR(cost.speed(QueueId::d2h, {.h2d = true, .host = true, .ring = true}), 8.0 / 11, 1e-9);
  EXPECT_EQ(cost.speed(QueueId::d2h, {.h2d = true, .ring = true}), 1) << "four of eight threads";
  EXPECT_EQ(cost.speed(QueueId::host, {.h2d = true}), 1) << "what is pinned takes no thread";
}

TEST(CostModel, ADriveReadsAndWritesAtItsRatesAndSlowerAtOnce) {
  const ModelTable model = bert(1024, 4);
  const MachineProfile machine = with_drive(even_machine({}), 7e9, 5e9, 3e9);
  Plan plan = all_on_host(model, machine, true);
  for (BlockShape& block : plan.shape.blocks)
    block.place.states = Place::nvme;
  const CostModel cost(machine, true, model, plan.shape, plan.largest);
  double read_s = 0, write_s = 0;
  int n_pieces = 0, n_commits = 0;
  for (const Action& action : make_training_list(plan.shape, make_layout(plan.shape), 1)) {
    if (action.verb == Verb::fetch_states) read_s += cost.seconds(action);
    if (action.verb == Verb::send_states) write_s += cost.seconds(action);
    n_pieces += action.verb == Verb::fetch_states;
    if (action.verb != Verb::commit) continue;
    EXPECT_GE(cost.seconds(action), 2e-3) << "two flushes";
    ++n_commits;
  }
  ASSERT_GE(n_pieces, 6);
  EXPECT_EQ(n_commits, 1);
  // Master and both of Adam's states, fp32; a piece begins some time later.
  const double bytes = 12.0 * static_cast<double>(model.n_trainable_params());
  EXPECT_NEAR(read_s, bytes / 7e9 + n_pieces * 1e-4, 0.01 * bytes / 7e9);
  EXPECT_NEAR(write_s, bytes / 5e9 + n_pieces * 1e-4, 0.01 * bytes / 5e9);
  EXPECT_EQ(cost.speed(QueueId::nvme_read, {.nvme_write = true}), 3.0 / 7);
  EXPECT_EQ(cost.speed(QueueId::nvme_write, {.nvme_read = true}), 3.0 / 5);
  EXPECT_EQ(cost.speed(QueueId::nvme_read, {.h2d = true, .host = true}), 1);
  // 7 GB and 5 GB: 5 GB of each at once, the rest alone.
  EXPECT_NEAR(cost.least_drive_seconds(1, 1), 5.0 / 3 + 2.0 / 7, 1e-9);
  // At once is slower than in turns.
  const MachineProfile slow = with_drive(even_machine({}), 7e9, 5e9, 2e9);
  const CostModel cost_slow(slow, true, model, plan.shape, plan.largest);
  EXPECT_NEAR(cost_slow.least_drive_seconds(1, 1), 2, 1e-9);
}

TEST(CostModel, GradientsOnADriveAreWrittenAndReadAtItsRates) {
  const ModelTable model = bert(1024, 4);
  const MachineProfile machine = with_drive(even_machine({}), 7e9, 5e9, 3e9);
  Plan plan = all_on_host(model, machine, true);
  for (BlockShape& block : plan.shape.blocks)
    block.place.states = block.place.grads = Place::nvme;
  plan.shape.order = AccumulationOrder::vertical;
  const CostModel cost(machine, true, model, plan.shape, plan.largest);
  double read_s = 0, write_s = 0, bytes = 0;
  int n_pieces = 0;
  for (const Action& action : make_training_list(plan.shape, make_layout(plan.shape), 1)) {
    if (action.verb == Verb::read_grads) read_s += cost.seconds(action);
    if (action.verb == Verb::write_grads) write_s += cost.seconds(action);
    n_pieces += action.verb == Verb::read_grads;
  }
  for (int b = 0; b < plan.shape.n_blocks(); ++b)
    bytes += static_cast<double>(segment_bytes(plan.shape, b, Segment::grads));
  ASSERT_GE(n_pieces, 6);
  EXPECT_NEAR(read_s, bytes / 7e9 + n_pieces * 1e-4, 0.01 * bytes / 7e9);
  EXPECT_NEAR(write_s, bytes / 5e9 + n_pieces * 1e-4, 0.01 * bytes / 5e9);
}

// All graphs of all sizes are kept: 24 layers both ways are 48 a size, of at most 256.
TEST(TokenSizes, AreAsManyAsHaveTheirGraphsKept) {
  const auto n_sizes = [](const ModelTable& model, int64_t length, int64_t n_micro) {
    MachineProfile machine = even_machine({});
    PlanRequest request = on_gpu(machine, 40 * kGiB);
    request.max_length = length;
    request.micro_batch_size = 4;
    request.train_batch_size = 4 * n_micro;
    return n_token_sizes(model, make_plan(model, request));
  };
  EXPECT_EQ(n_sizes(bert(1024, 24), 64, 1), 5);
  EXPECT_EQ(n_sizes(bert(1024, 24), 64, 2), 8) << "2 sizes would have theirs, and fit no text";
  EXPECT_EQ(n_sizes(bert(256, 12), 64, 1), 8);
  EXPECT_EQ(n_sizes(bert(1024, 24), 8192, 1), 8) << "whose kernels take longer than launches";
}

// An unknown figure must not count as taking no time.
TEST(Figures, AreMissingOneByOne) {
  const ModelTable model = bert(256, 2);
  const MachineProfile whole = even_machine({});
  EXPECT_EQ(missing_figures(whole, true, model), "");
  const auto lacks = [&](auto&& take) {
    MachineProfile machine = whole;
    take(machine);
    return missing_figures(machine, true, model);
  };
  EXPECT_NE(lacks([](auto& m) { m.gpu.reset(); }), "");
  EXPECT_NE(lacks([](auto& m) { m.gpu->copies.clear(); }), "");
  EXPECT_NE(lacks([](auto& m) { m.gpu->gemms.clear(); }), "");
  EXPECT_NE(lacks([](auto& m) { m.gpu->attentions.clear(); }), "");
  EXPECT_NE(lacks([](auto& m) { m.gpu->memory_bytes_per_s = 0; }), "");
  EXPECT_NE(lacks([](auto& m) { m.gpu->launch_s = 0; }), "");
  EXPECT_NE(lacks([](auto& m) { m.host.updates.clear(); }), "");
  EXPECT_NE(lacks([](auto& m) {
              std::erase_if(m.gpu->gemms, [](const GemmRate& r) { return r.type == DType::bf16; });
            }),
            "");
  // The CPU's attention was not measured there.
  EXPECT_NE(missing_figures(whole, false, model), "");
  MachineProfile cpu = whole;
  cpu.host.attentions = whole.gpu->attentions;
  EXPECT_EQ(missing_figures(cpu, false, model), "");
  EXPECT_NE(missing_figures(cpu, false, model, /*nvme=*/true), "");
  EXPECT_EQ(missing_figures(with_drive(cpu), false, model, /*nvme=*/true), "");
  EXPECT_NE(missing_figures(with_drive(cpu, 7e9, 0), false, model, /*nvme=*/true), "");
  cpu.host.memory_bytes_per_s = 0;
  EXPECT_NE(missing_figures(cpu, false, model), "");
}

}  // namespace
}  // namespace ferry::test
