// A run's settings as resolved on a machine: data type, attention, states, lengths.

#include "src/request/run_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/request/ranks.h"
#include "tests/files/test_files.h"
#include "tests/request/settings.h"

namespace ferry {
namespace {

constexpr int kTuring = 75, kAmpere = 80, kAda = 89, kHopper = 90, kBlackwell = 120;

PlanMachine with_gpu(int compute_capability) {
  return {.has_gpu = true, .compute_capability = compute_capability};
}

void expect_error(Fault fault, const std::function<void()>& call, const std::string& word) {
  try {
    call();
    ADD_FAILURE() << "no error that names " << word;
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault);
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

void expect_usage_error(const std::function<void()>& call, const std::string& word) {
  expect_error(Fault::usage, call, word);
}

TEST(ChooseAttention, IsFlashWhereItsKernelsRun) {
  for (const int newer : {kAmpere, kAda, kHopper, kBlackwell}) {
    for (const DType type : {DType::bf16, DType::f16})
      EXPECT_EQ(choose_attention(type, with_gpu(newer)), AttentionBackend::flash) << newer;
    EXPECT_EQ(choose_attention(DType::f32, with_gpu(newer)), AttentionBackend::memory_efficient);
  }
  for (const DType type : {DType::f16, DType::f32})
    EXPECT_EQ(choose_attention(type, with_gpu(kTuring)), AttentionBackend::memory_efficient);
  EXPECT_EQ(choose_attention(DType::f32, {}), AttentionBackend::cpu_math);
}

TEST(PinnedMemory, IsTheOptionsOrWhatTheDoctorMetOrNotLimited) {
  PlanMachine machine = with_gpu(kAmpere);
  EXPECT_EQ(pinned_bytes_max_of(config_of({}), machine), INT64_MAX);
  machine.profile = MachineProfile{.gpu = GpuProfile{.pinned_bytes_max = 900 * kMiB}};
  EXPECT_EQ(pinned_bytes_max_of(config_of({}), machine), 900 * kMiB);
  EXPECT_EQ(pinned_bytes_max_of(config_of({{"pinned_memory", "512MiB"}}), machine), 512 * kMiB);
  EXPECT_EQ(pinned_bytes_max_of(config_of({{"pinned_memory", "auto"}}), machine), 900 * kMiB);
}

TEST(ChooseAttention, IsNotFlashWhereThatHasNoBackward) {
  for (const int capability : {80, 86, 89, 90, 100, 120, 121})
    for (const int64_t head_width : {64, 192, 200, 256})
      for (const bool drops : {false, true}) {
        const bool is_small = capability == 86 || capability == 89 || capability >= 120;
        const bool has_backward = !is_small || !drops || head_width <= 192;
        EXPECT_EQ(choose_attention(DType::bf16, with_gpu(capability), {head_width, drops}),
                  has_backward ? AttentionBackend::flash : AttentionBackend::memory_efficient)
            << capability << ", heads of " << head_width << (drops ? ", dropout" : "");
      }
}

HfConfig bert_of(int64_t hidden_size, int64_t n_heads) {
  return HfConfig::parse(fmt::format(R"({{"model_type": "bert", "vocab_size": 64, "hidden_size": {},
                      "num_hidden_layers": 1, "num_attention_heads": {},
                      "intermediate_size": 64, "max_position_embeddings": 32,
                      "type_vocab_size": 2, "hidden_act": "gelu",
                      "attention_probs_dropout_prob": 0.1}})",
                                     hidden_size, n_heads),
                         "config.json");
}

TEST(ModelTable, HasAttentionThatTrainsItsHeads) {
  const auto attention_of = [](int64_t n_heads, const Settings& settings) {
    return make_model_table(config_of(settings), bert_of(1024, n_heads), HeadKind::classification,
                            2, with_gpu(kAda))
        .attention;
  };
  EXPECT_EQ(attention_of(16, {}), AttentionBackend::flash);
  EXPECT_EQ(attention_of(4, {}), AttentionBackend::memory_efficient);
  EXPECT_EQ(attention_of(4, {{"attention_dropout", "0"}}), AttentionBackend::flash);
}

TEST(ModelTable, IsOfNoRowsWiderThanTheGpusNormsTake) {
  const auto table_of = [](int64_t hidden_size, const char* dtype, const PlanMachine& machine) {
    return make_model_table(config_of({{"dtype", dtype}}), bert_of(hidden_size, hidden_size / 64),
                            HeadKind::classification, 2, machine);
  };
  EXPECT_NO_THROW(table_of(8192, "fp32", with_gpu(kHopper)));
  EXPECT_NO_THROW(table_of(8448, "bf16", with_gpu(kHopper)));
  EXPECT_NO_THROW(table_of(8448, "fp32", {}));
  expect_error(
      Fault::data, [&] { table_of(8448, "fp32", with_gpu(kHopper)); }, "at most 8192 in fp32");
}

TEST(PlanRequest, LeavesItToThePlannerToSayHowMuchMoreGpuMemoryItTakes) {
  const Settings settings = {{"gpu_memory", "100MiB"}};
  PlanMachine machine = with_gpu(kAda);
  machine.gpu_free_bytes = 11 * kGiB;
  machine.gpu_context_bytes = kGiB / 2;
  const ModelTable model = make_model_table(config_of(settings), bert_of(1024, 16),
                                            HeadKind::classification, 2, machine);
  const auto request_of = [&](const Settings& of) {
    return make_plan_request(config_of(of), model, machine, /*trains=*/true, 0);
  };
  EXPECT_EQ(request_of(settings).gpu_budget_bytes, 0);
  EXPECT_GT(request_of({}).gpu_budget_bytes, 10 * kGiB);
  machine.gpu_free_bytes = 100 * kMiB;  // another program has it
  expect_error(
      Fault::does_not_fit, [&] { request_of({}); }, "end what else is on the GPU");
}

TEST(PlanRequest, AsksForADriveWhereAllStatesAreToLieOnOne) {
  const config::Config config = config_of({{"placement", "nvme"}});
  const ModelTable model =
      make_model_table(config, bert_of(64, 1), HeadKind::classification, 2, {});
  expect_usage_error([&] { make_plan_request(config, model, {}, /*trains=*/true); }, "nvme_path");
  // There are no states where nothing is trained.
  EXPECT_EQ(make_plan_request(config, model, {}, /*trains=*/false).placement, std::nullopt);
}

TEST(PlanRequest, SharesAHostsMemoryBetweenItsOwnRanks) {
  const auto request_of = [](const Settings& settings) {
    const config::Config config = config_of(settings);
    const ModelTable model =
        make_model_table(config, bert_of(64, 1), HeadKind::classification, 2, {});
    PlanMachine machine;
    machine.host_budget_bytes = 64 * kGiB;
    return make_plan_request(config, model, machine, /*trains=*/true);
  };
  const PlanRequest one_host = request_of({{"gpus", "2"}}),
                    two_hosts = request_of({{"gpus", "2"}, {"nnodes", "2"}}),
                    one_each = request_of({{"nnodes", "2"}});
  EXPECT_EQ(one_host.world, 2);
  EXPECT_EQ(two_hosts.world, 4);
  EXPECT_EQ(one_each.world, 2);
  const auto shared = [](const PlanRequest& request) {
    return request.host_budget_bytes + request.host_reserved_bytes;
  };
  EXPECT_EQ(shared(one_host), 32 * kGiB);
  EXPECT_EQ(shared(two_hosts), 32 * kGiB);
  EXPECT_EQ(shared(one_each), 64 * kGiB);
}

TEST(PlanRequest, TakesSharesThatNameEachGpu) {
  const auto shares_of = [](const std::string& gpus, const std::string& shares) {
    return ranks_of(config_of({{"gpus", gpus}, {"gpu_shares", shares}})).shares;
  };
  EXPECT_EQ(shares_of("2", "2,1"), (std::vector{2, 1}));
  EXPECT_EQ(shares_of("0,2,3", "4,2,6"), (std::vector{2, 1, 3}));
  EXPECT_TRUE(shares_of("2", "").empty());
  EXPECT_TRUE(shares_of("2", "3,3").empty());  // all have as many
  EXPECT_TRUE(shares_of("1", "5").empty());
  for (const char* wrong : {"2", "2,1,1", "2,0", "2,-1", "2,1.5", "2,x", "2,1001", "2,,1"})
    expect_usage_error([&] { shares_of("2", wrong); }, "gpu_shares");
}

TEST(PlanRequest, LeavesSharesToBeMeasured) {
  const auto of = [](const std::string& gpus, const std::string& shares) {
    return ranks_of(config_of({{"gpus", gpus}, {"gpu_shares", shares}}));
  };
  EXPECT_EQ(of("2", "").shares_by, SharesBy::models);
  EXPECT_EQ(of("2", "1,1").shares_by, SharesBy::settings);
  EXPECT_EQ(of("2", "auto").shares_by, SharesBy::to_be_measured);
  EXPECT_EQ(of("1", "auto").shares_by, SharesBy::settings) << "nobody to share with";
  expect_usage_error([&] { of("2", "auto,x"); }, "gpu_shares");
  for (const Settings& more : {Settings{{"sp_size", "2"}}, {{"pipe_size", "2"}}}) {
    Settings settings = {{"gpus", "4"}, {"gpu_shares", "auto"}};
    settings.insert(settings.end(), more.begin(), more.end());
    const config::Config config = config_of(settings);
    expect_usage_error([&] { sharing_of(config, ranks_of(config)); }, "gpu_shares");
  }

  // Measured shares are kept, and measured anew with other GPUs.
  config::Config config = config_of({{"gpus", "2"}, {"gpu_shares", "auto"}});
  keep_shares(config, ranks_of(config), {3, 1});
  EXPECT_EQ(ranks_of(config).shares, (std::vector{3, 1}));
  EXPECT_EQ(ranks_of(config).shares_by, SharesBy::measured);
  const std::string kept = config.text("gpu_shares");
  EXPECT_TRUE(of("3", kept).shares.empty());
  EXPECT_EQ(of("3", kept).shares_by, SharesBy::to_be_measured);
  EXPECT_EQ(of("1", kept).shares_by, SharesBy::settings);
  // Those of several models are kept as if they were given.
  config = config_of({{"gpus", "2"}});
  keep_shares(config, ranks_of(config), {3, 1});
  EXPECT_EQ(config.text("gpu_shares"), "3,1");
}

TEST(PlanRequest, KeepsTheBitsOfOneRankWhereSharesAreMeasured) {
  const auto request_of = [](const Settings& settings) {
    const config::Config config = config_of(settings);
    const ModelTable model =
        make_model_table(config, bert_of(64, 1), HeadKind::classification, 2, {});
    return make_plan_request(config, model, {}, /*trains=*/true);
  };
  const auto reduction_of = [&](const std::string& shares, const std::string& reduction) {
    return request_of({{"gpus", "2"}, {"gpu_shares", shares}, {"reduction", reduction}}).reduction;
  };
  EXPECT_EQ(reduction_of("2,1", "auto"), std::nullopt);
  EXPECT_EQ(reduction_of("auto", "auto"), Reduction::ordered);
  EXPECT_EQ(reduction_of("auto,2,1", "auto"), Reduction::ordered);
  EXPECT_EQ(reduction_of("auto", "fast"), Reduction::fast);
  const auto notes = request_of({{"gpus", "2"}, {"gpu_shares", "auto"}}).notes;
  EXPECT_TRUE(std::ranges::any_of(
      notes, [](const std::string& note) { return note.starts_with("gpu_shares = auto"); }));
}

/** A GPU as far as a plan knows it. */
GpuHere gpu_here(const std::string& name, int capability, int64_t free_bytes) {
  return {.name = name,
          .compute_capability = capability,
          .free_bytes = free_bytes,
          .taken_bytes = kGiB / 2};
}

TEST(UnlikeGpus, RunWhatAllOfThemCan) {
  PlanMachine machine = with_gpu(kHopper);
  machine.gpus = {gpu_here("new", kHopper, 80 * kGiB), gpu_here("old", kTuring, 11 * kGiB)};
  EXPECT_EQ(choose_dtype(config_of({}), machine), DType::f16);
  expect_usage_error(
      [&] {
        choose_dtype(config_of({{"dtype", "bf16"}}), machine);
      },
      "one of the GPUs has 7.5");
  EXPECT_EQ(choose_attention(DType::f16, machine), AttentionBackend::memory_efficient);
  machine.gpus[1].compute_capability = kAda;
  EXPECT_EQ(choose_dtype(config_of({}), machine), DType::bf16);
  EXPECT_EQ(choose_attention(DType::bf16, machine), AttentionBackend::flash);
  EXPECT_EQ(choose_attention(DType::bf16, machine, {256, true}), AttentionBackend::memory_efficient)
      << "the second one has no such backward";
}

TEST(UnlikeGpus, HaveBudgetsOfTheirOwn) {
  PlanMachine machine = with_gpu(kHopper);
  const std::vector<GpuHere> here = {gpu_here("large", kHopper, 23 * kGiB),
                                     gpu_here("small", kHopper, 11 * kGiB)};
  add_gpus(here, machine);
  EXPECT_EQ(machine.gpu_free_bytes, 23 * kGiB);
  const auto request_of = [&](Settings settings) {
    settings.push_back({"gpus", "2"});
    const config::Config config = config_of(settings);
    const ModelTable model =
        make_model_table(config, bert_of(1024, 16), HeadKind::classification, 2, machine);
    return make_plan_request(config, model, machine, /*trains=*/true);
  };
  const PlanRequest free = request_of({});
  ASSERT_EQ(free.gpu_budgets_bytes.size(), 2u);
  EXPECT_EQ(free.gpu_budgets_bytes[0] - free.gpu_budgets_bytes[1], 12 * kGiB);
  EXPECT_EQ(free.gpu_budget_bytes, free.gpu_budgets_bytes[1]) << "the least";
  // Each GPU takes the amount, but no more than it has.
  const PlanRequest asked = request_of({{"gpu_memory", "16GiB"}});
  EXPECT_EQ(asked.gpu_budgets_bytes[0] + asked.gpu_reserved_bytes, 16 * kGiB);
  EXPECT_EQ(asked.gpu_budgets_bytes[1] + asked.gpu_reserved_bytes, 11 * kGiB + kGiB / 2);
  EXPECT_TRUE(asked.notes.empty()) << asked.notes.front();
  PlanMachine alike = with_gpu(kHopper);
  add_gpus(std::vector{here[0], here[0]}, alike);
  EXPECT_TRUE(alike.gpus.empty());
}

TEST(UnlikeGpus, GetSharesByTheFiguresOfTheMachine) {
  const PlanMachine machine = machine_of(find_machines("4090-24g,3060-12g"));
  ASSERT_EQ(machine.gpus.size(), 2u);
  const auto request_of = [&](Settings settings) {
    settings.push_back({"gpus", "2"});
    const config::Config config = config_of(settings);
    const ModelTable model = make_model_table(config, bert_of(1024, 16), HeadKind::classification,
                                              2, machine, sharing_of(config, ranks_of(config)));
    return make_plan_request(config, model, machine, /*trains=*/true);
  };
  const auto says = [](const PlanRequest& request, const std::string& words) {
    return std::ranges::any_of(request.notes, [&](const std::string& note) {
      return note.find(words) != std::string::npos;
    });
  };
  for (const char* shares : {"", "auto"}) {
    const PlanRequest request = request_of({{"gpu_shares", shares}});
    ASSERT_EQ(request.shares.size(), 2u) << shares;
    EXPECT_GE(request.shares[0], 3 * request.shares[1]);
    EXPECT_TRUE(
        says(request, fmt::format("estimated to be {}, {}", request.shares[0], request.shares[1])));
  }
  EXPECT_EQ(request_of({{"gpu_shares", "3,2"}}).shares, (std::vector{3, 2}));
  EXPECT_TRUE(request_of({{"gpu_shares", "1,1"}}).shares.empty());
  EXPECT_TRUE(request_of({{"tp_size", "2"}}).shares.empty()) << "they share micro-batches";
  EXPECT_EQ(request_of({{"gpu_shares", "auto"}}).reduction, Reduction::ordered);
}

TEST(Hosts, ComeFromAFileOfMpirun) {
  const test::TempDir dir;
  const auto hosts_of = [&](const std::string& text) {
    std::ofstream(dir / "hosts") << text;
    return ranks_of(config_of({{"gpus", "2"}, {"hosts", "@" + (dir / "hosts").string()}})).hosts;
  };
  const std::vector<std::string> both = {"gpu1", "10.0.0.2"};
  EXPECT_EQ(hosts_of("gpu1\n10.0.0.2\n"), both);
  EXPECT_EQ(hosts_of("# ours\n\n gpu1 slots=2  # here\n10.0.0.2:2\r\n"), both);
  for (const char* wrong : {"", "# none\n", "gpu1 slots=4\n", "gpu1:4\n", "gpu1 gpu2\n",
                            "gpu1\ngpu1\n", "gpu1\n-oProxyCommand=x\n", "gpu1 slots=\n"})
    expect_usage_error([&] { hosts_of(wrong); }, "hosts");
  expect_usage_error(
      [&] {
        ranks_of(config_of({{"hosts", "@/nowhere/hosts"}}));
      },
      "/nowhere/hosts cannot be read: No such file");
}

/** All of it measured, in figures that no machine has. */
MachineProfile measured_memory() {
  MachineProfile profile;
  profile.gpu = GpuProfile{.kernels = {.loaded_bytes = 1000 * kMiB,
                                       .wide_heads_bytes = 100 * kMiB,
                                       .wide_rows_bytes = 200 * kMiB,
                                       .graph_bytes = kMiB,
                                       .graph_host_bytes = 2 * kMiB},
                           .process = {.at_start_bytes = 3000 * kMiB, .later_bytes = 30 * kMiB}};
  profile.host.process = {.at_start_bytes = 2000 * kMiB, .later_bytes = 20 * kMiB};
  return profile;
}

TEST(Reserve, IsWhatWasMeasuredOnTheMachine) {
  const config::Config config = config_of({{"gpu_memory", "8GiB"}, {"host_memory", "16GiB"}});
  PlanMachine machine = with_gpu(kHopper);
  machine.gpu_free_bytes = 20 * kGiB;
  machine.gpu_context_bytes = 400 * kMiB;
  machine.profile = measured_memory();
  const auto request_on = [&](const PlanMachine& on) {
    const ModelTable model =
        make_model_table(config, bert_of(1024, 16), HeadKind::classification, 2, on);
    return make_plan_request(config, model, on, /*trains=*/true, 0);
  };
  const PlanRequest gpu = request_on(machine);
  EXPECT_FALSE(gpu.is_reserve_assumed);
  const int64_t kernels_bytes = 1000 * kMiB + kBlockGraphs_max * kMiB;
  EXPECT_EQ(gpu.gpu_reserved_bytes, 400 * kMiB + kernels_bytes);
  EXPECT_EQ(gpu.gpu_budget_bytes, 8 * kGiB - 400 * kMiB - kernels_bytes);
  const int64_t process_bytes = 3046 * kMiB + kBlockGraphs_max * 2 * kMiB;
  EXPECT_EQ(gpu.host_reserved_bytes, process_bytes);
  EXPECT_EQ(gpu.host_budget_bytes, 16 * kGiB - process_bytes);

  const PlanRequest cpu = request_on({.profile = measured_memory()});
  EXPECT_FALSE(cpu.is_reserve_assumed);
  EXPECT_EQ(cpu.host_reserved_bytes, 2036 * kMiB);
}

TEST(PinnedMemory, APlanSaysWhereTheSystemPinsNothing) {
  const config::Config config = config_of({{"gpu_memory", "8GiB"}, {"host_memory", "16GiB"}});
  PlanMachine machine = with_gpu(kHopper);
  machine.gpu_free_bytes = 20 * kGiB;
  machine.profile = measured_memory();
  const ModelTable model =
      make_model_table(config, bert_of(1024, 16), HeadKind::classification, 2, machine);
  const auto says_so = [&] {
    const auto notes = make_plan_request(config, model, machine, /*trains=*/true, 0).notes;
    return std::ranges::any_of(notes, [](const std::string& note) {
      return note.find("refused to pin any host memory") != std::string::npos;
    });
  };
  EXPECT_FALSE(says_so());
  machine.profile->gpu->pins_nothing = true;
  EXPECT_TRUE(says_so());
}

TEST(Reserve, IsAssumedWhereAnyOfItIsMissing) {
  const auto is_assumed = [](const PlanMachine& machine) {
    const config::Config config = config_of({{"gpu_memory", "8GiB"}});
    const ModelTable model =
        make_model_table(config, bert_of(1024, 16), HeadKind::classification, 2, machine);
    const PlanRequest request = make_plan_request(config, model, machine, /*trains=*/true, 0);
    EXPECT_GE(request.host_reserved_bytes, 168 * kMiB);
    EXPECT_TRUE(!machine.has_gpu || request.gpu_reserved_bytes > 142 * kMiB);
    return request.is_reserve_assumed;
  };
  EXPECT_TRUE(is_assumed({}));
  EXPECT_TRUE(is_assumed({.profile = MachineProfile{}}));
  PlanMachine machine = with_gpu(kHopper);
  machine.gpu_free_bytes = 20 * kGiB;
  EXPECT_TRUE(is_assumed(machine));
  for (int64_t KernelMemory::*figure :
       {&KernelMemory::loaded_bytes, &KernelMemory::graph_bytes, &KernelMemory::wide_heads_bytes,
        &KernelMemory::wide_rows_bytes}) {
    machine.profile = measured_memory();
    EXPECT_FALSE(is_assumed(machine));
    machine.profile->gpu->kernels.*figure = 0;
    EXPECT_TRUE(is_assumed(machine));
  }
  for (int64_t KernelMemory::*figure :
       {&KernelMemory::wide_heads_bytes, &KernelMemory::wide_rows_bytes}) {
    machine.profile = measured_memory();
    machine.profile->gpu->kernels.*figure = kMiB;  // nothing was seen
    EXPECT_TRUE(is_assumed(machine));
  }
  machine.profile = measured_memory();
  machine.profile->gpu->process = {};
  EXPECT_TRUE(is_assumed(machine));
}

TEST(LoadedKernels, CountTheGraphsOfThePlanForEachTokenCount) {
  const ModelTable model = make_model_table(config_of({}), bert_of(384, 6),
                                            HeadKind::classification, 2, with_gpu(kHopper));
  Plan plan;
  plan.n_micro = 4;
  plan.typical = {.tokens = 64, .n_seqs_max = 1, .max_length = 64};
  const int64_t per_size =
      2 * std::ranges::count(model.blocks, BlockKind::layer, &BlockTable::kind) * plan.n_micro;
  EXPECT_EQ(n_graphs_of(model, plan, {{64}}), per_size);
  EXPECT_EQ(n_graphs_of(model, plan, {{32, 64}}), 2 * per_size);
  EXPECT_EQ(n_graphs_of(model, plan, {{64, 1 << 20}}), per_size);  // large passes are none
  plan.n_micro = 1000;
  EXPECT_EQ(n_graphs_of(model, plan, {{64}}), n_graphs_max(model));

  const KernelMemory measured = measured_memory().gpu->kernels;
  EXPECT_EQ(loaded_kernels_bytes(model, measured, 7) - loaded_kernels_bytes(model, measured, 0),
            7 * kMiB);
  PlanMachine machine = with_gpu(kHopper);
  machine.profile = measured_memory();
  EXPECT_EQ(process_memory_of(machine, 7).later_bytes - process_memory_of(machine, 0).later_bytes,
            14 * kMiB);
}

TEST(LoadedKernels, AreMoreWhereTheySpillAndAsOnAnH200WhereNobodyMeasured) {
  const auto bytes_of = [](int64_t width, int64_t n_heads, const KernelMemory& measured) {
    return loaded_kernels_bytes(make_model_table(config_of({}), bert_of(width, n_heads),
                                                 HeadKind::classification, 2, with_gpu(kHopper)),
                                measured, kBlockGraphs_max);
  };
  const KernelMemory measured = measured_memory().gpu->kernels;
  const int64_t plain_bytes = bytes_of(1024, 16, measured);
  EXPECT_EQ(bytes_of(1024, 8, measured), plain_bytes + 100 * kMiB);
  EXPECT_EQ(bytes_of(8192, 128, measured), plain_bytes + 200 * kMiB);
  EXPECT_EQ(bytes_of(8192, 64, measured), plain_bytes + 200 * kMiB);
  KernelMemory unseen = measured;
  unseen.wide_heads_bytes = unseen.wide_rows_bytes = kMiB;  // as one H100 showed it
  EXPECT_EQ(bytes_of(1024, 16, unseen), plain_bytes);
  EXPECT_EQ(bytes_of(1024, 8, unseen), plain_bytes + 84 * kMiB);
  EXPECT_EQ(bytes_of(8192, 64, unseen), plain_bytes + 176 * kMiB);
  EXPECT_EQ(bytes_of(1024, 16, {}), 176 * kMiB);
  EXPECT_EQ(bytes_of(1024, 16, {.loaded_bytes = 234 * kMiB}), 268 * kMiB);
  EXPECT_EQ(bytes_of(1024, 8, {}), 260 * kMiB);
}

TEST(ChooseDtype, Is16BitsWhereTheGpuHasThem) {
  EXPECT_EQ(choose_dtype(config_of({}), with_gpu(kHopper)), DType::bf16);
  EXPECT_EQ(choose_dtype(config_of({}), with_gpu(kAmpere)), DType::bf16);
  EXPECT_EQ(choose_dtype(config_of({}), with_gpu(kTuring)), DType::f16);
  EXPECT_EQ(choose_dtype(config_of({}), {}), DType::f32);
  EXPECT_EQ(choose_dtype(config_of({{"dtype", "fp16"}}), with_gpu(kHopper)), DType::f16);
  EXPECT_EQ(choose_dtype(config_of({{"dtype", "fp32"}}), with_gpu(kTuring)), DType::f32);
  EXPECT_EQ(choose_dtype(config_of({{"dtype", "bf16"}}), {}), DType::bf16);
  expect_usage_error(
      [] {
        choose_dtype(config_of({{"dtype", "bf16"}}), with_gpu(kTuring));
      },
      "this GPU has 7.5");
}

TEST(ChooseStates, AreNeverReducedUnasked) {
  EXPECT_EQ(choose_optim(config_of({})), simd::Optim::adamw);
  EXPECT_EQ(choose_optim(config_of({{"optim", "adamw_bf16"}})), simd::Optim::adamw_bf16);
  EXPECT_EQ(choose_optim(config_of({{"optim", "adamw_8bit"}})), simd::Optim::adamw_8bit);
  EXPECT_EQ(choose_optim(config_of({{"optim", "lion"}})), simd::Optim::lion);
  EXPECT_EQ(choose_optim(config_of({{"optim", "sgd"}})), simd::Optim::sgd);
  EXPECT_EQ(choose_optim(config_of({{"optim", "sgd"}, {"momentum", "0.9"}, {"nesterov", "true"}})),
            simd::Optim::sgd_momentum);
  EXPECT_THROW(choose_optim(config_of({{"momentum", "0.9"}})), Error);
  EXPECT_THROW(choose_optim(config_of({{"optim", "sgd"}, {"nesterov", "true"}})), Error);
  EXPECT_FALSE(choose_split_master(config_of({}), DType::bf16));
  EXPECT_TRUE(choose_split_master(config_of({{"master", "split"}}), DType::bf16));
  for (const DType type : {DType::f16, DType::f32})
    expect_usage_error(
        [&] {
          choose_split_master(config_of({{"master", "split"}}), type);
        },
        std::string(name_of(type)));
}

TEST(ChooseMaxLength, IsTheModelsLimitUpTo2048) {
  EXPECT_EQ(choose_max_length(config_of({}), 512, false), 512);
  EXPECT_EQ(choose_max_length(config_of({}), 32768, false), 2048);
  EXPECT_EQ(choose_max_length(config_of({{"max_length", "4096"}}), 32768, false), 4096);
  EXPECT_EQ(choose_max_length(config_of({{"max_length", "20000"}}), 32768, true), 20000);
  expect_usage_error(
      [] {
        choose_max_length(config_of({{"max_length", "513"}}), 512, true);
      },
      "at most 512");
  expect_usage_error(
      [] {
        choose_max_length(config_of({{"max_length", "20000"}}), 32768, false);
      },
      "at most 16384");
}

}  // namespace
}  // namespace ferry
