// Machine profiles: what is written is read, what cannot be is refused by file and key, where they
// are kept, and that every preset is one.

#include "src/plan/machine/machine_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "src/base/error.h"
#include "src/plan/learnt_steps.h"
#include "src/request/run_plan.h"
#include "tests/config/config_fixture.h"

namespace ferry {
namespace {

using config::TemporaryDirectory;
using nlohmann::ordered_json;

MachineProfile whole_profile() {
  MachineProfile profile{.name = "GPU, CPU", .source = "measured", .assumptions = {"one", "two"}};
  profile.gpu = GpuProfile{.name = "GPU",
                           .n_of_host = 4,
                           .compute_capability = 86,
                           .memory_bytes = int64_t{24} << 30,
                           .context_bytes = 300 << 20,
                           .drives_display = true,
                           .memory_bytes_per_s = 9.1e11,
                           .launch_s = 2.5e-6,
                           .update_params_per_s = 3.1e10,
                           .power_w = 350,
                           .driver = "580.65.06",
                           .pcie_generation = 4,
                           .pcie_width = 16,
                           .kernels = {.loaded_bytes = 1001,
                                       .wide_heads_bytes = 1002,
                                       .wide_rows_bytes = 1003,
                                       .graph_bytes = 1004,
                                       .graph_host_bytes = 1009},
                           .process = {.at_start_bytes = 1005, .later_bytes = 1006},
                           .pinned_bytes_max = 1007,
                           .pins_nothing = true,
                           .copies = {{1 << 20, 1e10, 2e10, 3e9, 4e9}, {4 << 20, 2e10, 2.1e10}},
                           .gemms = {{DType::bf16, 512, 768, 1e13},
                                     {DType::bf16, 512, 1024, 2e13},
                                     {DType::bf16, 2048, 768, 3e13},
                                     {DType::f32, 512, 768, 1e12}},
                           .attentions = {{DType::f16, "flash", 128, 64, 1e13, 0.9e13}},
                           .exchange = ExchangeProfile{.source = "measured among 4",
                                                       .has_peer_access = true,
                                                       .bytes_per_s = 2.1e11,
                                                       .message_s = 1.1e-5,
                                                       .network_bytes_per_s = 2.2e10,
                                                       .network_message_s = 1.2e-5}};
  profile.host = {.cpu = "CPU",
                  .n_threads = 16,
                  .simd = "avx2",
                  .memory_bytes = int64_t{64} << 30,
                  .process = {.at_start_bytes = 1007, .later_bytes = 1008},
                  .updates = {{1, 8e8}, {16, 4.4e9, 3e9, 4.2e10, 4.1e10}},
                  .memory_bytes_per_s = 1.2e11,
                  .dram_bytes_per_s = 1.3e11,
                  .gemms = {{DType::f32, 512, 384, 1e11}},
                  .attentions = {{DType::f32, "cpu_math", 128, 64, 1e10, 2e10}},
                  .exchange = ExchangeProfile{.bytes_per_s = 1.3e9, .message_s = 1.4e-4}};
  profile.disk = {.directory = "/somewhere", .write_bytes_per_s = 1.8e9, .read_bytes_per_s = 3e9};
  profile.nvme = {{.drives = {"a/1-2"},
                   .directories = {"/mnt/a"},
                   .source = "measured today",
                   .read_bytes_per_s = 7e9,
                   .write_bytes_per_s = 5e9,
                   .mixed_bytes_per_s = 2.5e9,
                   .flush_s = 0.003,
                   .request_bytes = 1 << 19,
                   .depth = 32},
                  {.drives = {"a/1-2", "b/1-3"},
                   .read_bytes_per_s = 1.3e10,
                   .write_bytes_per_s = 9e9,
                   .mixed_bytes_per_s = 4e9}};
  profile.learnt = {{.run = "bert",
                     .plan = "host, keep",
                     .micro_batch_size = 16,
                     .n_on_gpu = 7,
                     .predicted_s = 0.09,
                     .step_s = 0.086,
                     .measured = "2026-11-27T10:00:00Z"},
                    {.run = "bert",
                     .plan = "host, keep",
                     .micro_batch_size = 32,
                     .predicted_s = 100,
                     .step_s = 120}};
  return profile;
}

ordered_json whole_json() {
  return ordered_json::parse(to_json(whole_profile()));
}

/** The message of parsing the JSON; empty if it is accepted. */
std::string complaint(const ordered_json& json) {
  try {
    parse_machine_profile(json.dump(), "m.json");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    return error.what();
  }
}

TEST(MachineProfile, WhatIsWrittenIsRead) {
  const std::string text = to_json(whole_profile());
  const MachineProfile read = parse_machine_profile(text, "m.json");
  EXPECT_EQ(to_json(read), text);
  // Each field, and in its own place.
  EXPECT_EQ(read.name, "GPU, CPU");
  EXPECT_EQ(read.source, "measured");
  EXPECT_EQ(read.assumptions, (std::vector<std::string>{"one", "two"}));
  ASSERT_TRUE(read.gpu);
  const GpuProfile& gpu = *read.gpu;
  EXPECT_EQ(gpu.compute_capability, 86);
  EXPECT_EQ(gpu.memory_bytes, int64_t{24} << 30);
  EXPECT_EQ(gpu.context_bytes, 300 << 20);
  EXPECT_TRUE(gpu.drives_display);
  EXPECT_EQ(gpu.memory_bytes_per_s, 9.1e11);
  EXPECT_EQ(gpu.launch_s, 2.5e-6);
  EXPECT_EQ(gpu.update_params_per_s, 3.1e10);
  EXPECT_EQ(gpu.power_w, 350);
  EXPECT_EQ(gpu.driver, "580.65.06");
  EXPECT_EQ(gpu.pcie_generation, 4);
  EXPECT_EQ(gpu.pcie_width, 16);
  EXPECT_EQ(gpu.kernels.loaded_bytes, 1001);
  EXPECT_EQ(gpu.kernels.wide_heads_bytes, 1002);
  EXPECT_EQ(gpu.kernels.wide_rows_bytes, 1003);
  EXPECT_EQ(gpu.kernels.graph_bytes, 1004);
  EXPECT_EQ(gpu.kernels.graph_host_bytes, 1009);
  EXPECT_EQ(gpu.process.at_start_bytes, 1005);
  EXPECT_EQ(gpu.pinned_bytes_max, 1007);
  EXPECT_TRUE(gpu.pins_nothing);
  EXPECT_EQ(gpu.process.later_bytes, 1006);
  EXPECT_EQ(read.host.process.at_start_bytes, 1007);
  EXPECT_EQ(read.host.process.later_bytes, 1008);
  ASSERT_EQ(gpu.copies.size(), 2u);
  EXPECT_EQ(gpu.copies[0].n_bytes, 1 << 20);
  EXPECT_EQ(gpu.copies[0].h2d, 1e10);
  EXPECT_EQ(gpu.copies[0].d2h, 2e10);
  EXPECT_EQ(gpu.copies[0].h2d_beside_d2h, 3e9);
  EXPECT_EQ(gpu.copies[0].d2h_beside_h2d, 4e9);
  ASSERT_EQ(gpu.gemms.size(), 4u);
  EXPECT_EQ(gpu.gemms[1].type, DType::bf16);
  EXPECT_EQ(gpu.gemms[1].rows, 512);
  EXPECT_EQ(gpu.gemms[1].width, 1024);
  EXPECT_EQ(gpu.gemms[1].flops_per_s, 2e13);
  ASSERT_EQ(gpu.attentions.size(), 1u);
  EXPECT_EQ(gpu.attentions[0].backend, "flash");
  EXPECT_EQ(gpu.attentions[0].length, 128);
  EXPECT_EQ(gpu.attentions[0].head_width, 64);
  EXPECT_EQ(gpu.attentions[0].forward_flops_per_s, 1e13);
  EXPECT_EQ(gpu.attentions[0].backward_flops_per_s, 0.9e13);
  EXPECT_EQ(gpu.n_of_host, 4);
  ASSERT_TRUE(gpu.exchange);
  EXPECT_EQ(gpu.exchange->source, "measured among 4");
  EXPECT_TRUE(gpu.exchange->has_peer_access);
  EXPECT_EQ(gpu.exchange->bytes_per_s, 2.1e11);
  EXPECT_EQ(gpu.exchange->message_s, 1.1e-5);
  EXPECT_EQ(gpu.exchange->network_bytes_per_s, 2.2e10);
  EXPECT_EQ(gpu.exchange->network_message_s, 1.2e-5);
  ASSERT_TRUE(read.host.exchange);
  EXPECT_FALSE(read.host.exchange->has_peer_access);
  EXPECT_EQ(read.host.exchange->bytes_per_s, 1.3e9);
  EXPECT_EQ(read.host.exchange->message_s, 1.4e-4);
  EXPECT_EQ(read.host.cpu, "CPU");
  EXPECT_EQ(read.host.n_threads, 16);
  EXPECT_EQ(read.host.simd, "avx2");
  EXPECT_EQ(read.host.memory_bytes, int64_t{64} << 30);
  EXPECT_EQ(read.host.memory_bytes_per_s, 1.2e11);
  EXPECT_EQ(read.host.dram_bytes_per_s, 1.3e11);
  ASSERT_EQ(read.host.updates.size(), 2u);
  EXPECT_EQ(read.host.updates[0].beside_copies, 0);
  EXPECT_EQ(read.host.updates[1].n_threads, 16);
  EXPECT_EQ(read.host.updates[1].alone, 4.4e9);
  EXPECT_EQ(read.host.updates[1].beside_copies, 3e9);
  EXPECT_EQ(read.host.updates[1].h2d_beside, 4.2e10);
  EXPECT_EQ(read.host.updates[1].d2h_beside, 4.1e10);
  EXPECT_EQ(read.host.gemms.size(), 1u);
  EXPECT_EQ(read.host.attentions.size(), 1u);
  EXPECT_EQ(read.disk.directory, "/somewhere");
  EXPECT_EQ(read.disk.write_bytes_per_s, 1.8e9);
  EXPECT_EQ(read.disk.read_bytes_per_s, 3e9);
  ASSERT_EQ(read.nvme.size(), 2u);
  const NvmeProfile& nvme = read.nvme[0];
  EXPECT_EQ(nvme.drives, std::vector<std::string>{"a/1-2"});
  EXPECT_EQ(nvme.directories, std::vector<std::string>{"/mnt/a"});
  EXPECT_EQ(nvme.source, "measured today");
  EXPECT_EQ(nvme.read_bytes_per_s, 7e9);
  EXPECT_EQ(nvme.write_bytes_per_s, 5e9);
  EXPECT_EQ(nvme.mixed_bytes_per_s, 2.5e9);
  EXPECT_EQ(nvme.flush_s, 0.003);
  EXPECT_EQ(nvme.request_bytes, 1 << 19);
  EXPECT_EQ(nvme.depth, 32);
  EXPECT_EQ(read.nvme[1].drives.size(), 2u);
  EXPECT_EQ(read.nvme[1].flush_s, 0) << "not known";
  EXPECT_EQ(read.nvme[1].depth, 0) << "not tried";
  ASSERT_EQ(read.learnt.size(), 2u);
  EXPECT_EQ(read.learnt[0].micro_batch_size, 16);
  EXPECT_EQ(read.learnt[0].n_on_gpu, 7);
  EXPECT_EQ(read.learnt[1].n_on_gpu, 0);
  EXPECT_EQ(read.learnt[1].step_s, 120);
}

TEST(MachineProfile, AStepIsLearntOnceWithBothTimes) {
  ordered_json json = whole_json();
  json["learnt"][1] = json["learnt"][0];
  EXPECT_CONTAINS(complaint(json), "each once");
  for (const char* key : {"predicted_s", "step_s"}) {
    json = whole_json();
    json["learnt"][0].erase(key);
    EXPECT_CONTAINS(complaint(json), key);
    json = whole_json();
    json["learnt"][0][key] = 0;
    EXPECT_CONTAINS(complaint(json), key);
  }
}

TEST(MachineProfile, DrivesAreThereOnceWithAllTheirRates) {
  ordered_json json = whole_json();
  json["nvme"][1]["drives"] = json["nvme"][0]["drives"];
  EXPECT_CONTAINS(complaint(json), "each once");
  json = whole_json();
  json["nvme"][0].erase("mixed_bytes_per_s");
  EXPECT_CONTAINS(complaint(json), "mixed_bytes_per_s");
}

TEST(MachineProfile, AnExchangeHasItsRateAndMayBeUnknown) {
  ordered_json json = whole_json();
  json["gpu"]["exchange"].erase("bytes_per_s");
  EXPECT_CONTAINS(complaint(json), "bytes_per_s");
  json = whole_json();
  json["host"]["exchange"]["bytes_per_s"] = 0;
  EXPECT_CONTAINS(complaint(json), "bytes_per_s");
  json["host"].erase("exchange");
  EXPECT_EQ(complaint(json), "");
  EXPECT_FALSE(parse_machine_profile(json.dump(), "m.json").host.exchange);
}

/** Files of earlier builds and of other hands: each key means what it says. */
TEST(MachineProfile, TheFormatIsFixed) {
  const MachineProfile read = parse_machine_profile(
      R"({"version": 2, "name": "n", "source": "s", "assumptions": ["a"],
    "gpu": {"name": "g", "compute_capability": 75, "memory_bytes": 1, "context_bytes": 2,
      "drives_display": true, "memory_bytes_per_s": 3, "launch_s": 4, "adamw_params_per_s": 5,
      "power_w": 6, "driver": "d", "pcie_generation": 7, "pcie_width": 8,
      "copies": [{"bytes": 9, "h2d": 10, "d2h": 11, "h2d_beside_d2h": 12, "d2h_beside_h2d": 13}],
      "gemms": [{"type": "fp16", "rows": 14, "width": 15, "flops_per_s": 16}],
      "attentions": [{"type": "bf16", "backend": "flash", "length": 17, "head_width": 18,
        "forward_flops_per_s": 19, "backward_flops_per_s": 20}]},
    "host": {"cpu": "c", "threads": 21, "simd": "avx2", "memory_bytes": 22,
      "memory_bytes_per_s": 23, "dram_bytes_per_s": 24,
      "adamw": [{"threads": 25, "alone": 26, "beside_copies": 27, "h2d_beside": 28,
        "d2h_beside": 29}]},
    "disk": {"directory": "/", "write_bytes_per_s": 30, "read_bytes_per_s": 31},
    "nvme": [{"drives": ["d"], "directories": ["/"], "source": "s", "read_bytes_per_s": 32,
      "write_bytes_per_s": 33, "mixed_bytes_per_s": 34, "flush_s": 5, "request_bytes": 35,
      "depth": 36}],
    "learnt": [{"run": "r", "plan": "p", "micro_batch_size": 37, "n_on_gpu": 38,
      "predicted_s": 39, "step_s": 40, "measured": "m"}]})",
      "m.json");
  const GpuProfile& gpu = read.gpu.value();
  EXPECT_EQ(gpu.memory_bytes, 1);
  EXPECT_EQ(gpu.context_bytes, 2);
  EXPECT_EQ(gpu.memory_bytes_per_s, 3);
  EXPECT_EQ(gpu.launch_s, 4);
  EXPECT_EQ(gpu.update_params_per_s, 5);
  EXPECT_EQ(gpu.power_w, 6);
  EXPECT_EQ(gpu.pcie_generation, 7);
  EXPECT_EQ(gpu.pcie_width, 8);
  const CopyRate& copy = gpu.copies.at(0);
  EXPECT_EQ(copy.n_bytes, 9);
  EXPECT_EQ(copy.h2d, 10);
  EXPECT_EQ(copy.d2h, 11);
  EXPECT_EQ(copy.h2d_beside_d2h, 12);
  EXPECT_EQ(copy.d2h_beside_h2d, 13);
  const GemmRate& gemm = gpu.gemms.at(0);
  EXPECT_EQ(gemm.type, DType::f16);
  EXPECT_EQ(gemm.rows, 14);
  EXPECT_EQ(gemm.width, 15);
  EXPECT_EQ(gemm.flops_per_s, 16);
  const AttentionRate& attention = gpu.attentions.at(0);
  EXPECT_EQ(attention.length, 17);
  EXPECT_EQ(attention.head_width, 18);
  EXPECT_EQ(attention.forward_flops_per_s, 19);
  EXPECT_EQ(attention.backward_flops_per_s, 20);
  EXPECT_EQ(read.host.n_threads, 21);
  EXPECT_EQ(read.host.memory_bytes, 22);
  EXPECT_EQ(read.host.memory_bytes_per_s, 23);
  EXPECT_EQ(read.host.dram_bytes_per_s, 24);
  const UpdateRate& adamw = read.host.updates.at(0);
  EXPECT_EQ(adamw.n_threads, 25);
  EXPECT_EQ(adamw.alone, 26);
  EXPECT_EQ(adamw.beside_copies, 27);
  EXPECT_EQ(adamw.h2d_beside, 28);
  EXPECT_EQ(adamw.d2h_beside, 29);
  EXPECT_EQ(read.disk.write_bytes_per_s, 30);
  EXPECT_EQ(read.disk.read_bytes_per_s, 31);
  EXPECT_EQ(read.nvme.at(0).read_bytes_per_s, 32);
  EXPECT_EQ(read.nvme.at(0).write_bytes_per_s, 33);
  EXPECT_EQ(read.nvme.at(0).mixed_bytes_per_s, 34);
  EXPECT_EQ(read.nvme.at(0).flush_s, 5);
  EXPECT_EQ(read.nvme.at(0).request_bytes, 35);
  EXPECT_EQ(read.nvme.at(0).depth, 36);
  const LearntStep& learnt = read.learnt.at(0);
  EXPECT_EQ(learnt.run + learnt.plan + learnt.measured, "rpm");
  EXPECT_EQ(learnt.micro_batch_size, 37);
  EXPECT_EQ(learnt.n_on_gpu, 38);
  EXPECT_EQ(learnt.predicted_s, 39);
  EXPECT_EQ(learnt.step_s, 40);
}

TEST(MachineProfile, WhatWasNotMeasuredIsLeftOut) {
  const MachineProfile read =
      parse_machine_profile(R"({"version": 2, "name": "a host"})", "m.json");
  EXPECT_FALSE(read.gpu);
  EXPECT_TRUE(read.host.updates.empty());
  EXPECT_EQ(read.disk.write_bytes_per_s, 0);
  EXPECT_EQ(ordered_json::parse(to_json(read)),
            ordered_json::parse(R"({"version": 7, "name": "a host"})"));
}

/** An older ferry did not measure the memory of kernels and of the process. */
TEST(MachineProfile, TheVersionBeforeIsRead) {
  ordered_json json = whole_json();
  json["version"] = 2;
  json["gpu"].erase("kernels");
  json["gpu"].erase("process");
  json["host"].erase("process");
  ASSERT_EQ(complaint(json), "");
  const MachineProfile read = parse_machine_profile(json.dump(), "m.json");
  EXPECT_EQ(read.gpu->kernels.loaded_bytes, 0);
  EXPECT_EQ(read.gpu->process.at_start_bytes, 0);
  EXPECT_EQ(read.host.process.at_start_bytes, 0);
  EXPECT_EQ(read.gpu->gemms.size(), 4u);
}

TEST(MachineProfile, WrongValuesAreRefusedByKey) {
  struct Case {
    const char* pointer;  // what is replaced; removed where the value is discarded
    ordered_json value;
    const char* message;
  };
  const ordered_json none = ordered_json::value_t::discarded;
  const Case cases[] = {
      {"/name", none, "name is missing, expected a value"},
      {"/name", 5, "name is 5, expected a text"},
      {"/assumptions/1", 1, "assumptions[1] is 1, expected a text"},
      {"/assumptions", "one", "assumptions is \"one\", expected a list"},
      {"/gpu", ordered_json::array(), "gpu is [], expected an object"},
      {"/gpu/memory_bytes", 1.5, "gpu.memory_bytes is 1.5, expected a whole number from 1 to"},
      {"/gpu/memory_bytes", 0, "gpu.memory_bytes is 0, expected"},
      {"/gpu/memory_bytes", std::numeric_limits<uint64_t>::max(), "gpu.memory_bytes is 1844"},
      {"/gpu/compute_capability", int64_t{1} << 40, "gpu.compute_capability is 1099511627776"},
      {"/gpu/drives_display", "no", "gpu.drives_display is \"no\", expected true or false"},
      {"/gpu/launch_s", 0, "gpu.launch_s is 0, expected a number from 1e-09 to 10"},
      {"/gpu/launch_s", nullptr, "gpu.launch_s is null"},
      {"/gpu/launch_s", 1e300, "gpu.launch_s is 1e+300"},
      {"/gpu/gemms/0/flops_per_s", 1e-300, "flops_per_s is 1e-300, expected a number from 1 to"},
      {"/gpu/copies/0/d2h", 1e308, "gpu.copies[0].d2h is 1e+308"},
      {"/name", "a\x1b[2Jcard", "expected a text without control characters"},
      {"/gpu/power_w", -1.0, "gpu.power_w is -1.0"},
      {"/gpu/copies", 3, "gpu.copies is 3, expected a list"},
      {"/gpu/copies/1", 3, "gpu.copies[1] is 3, expected an object"},
      {"/gpu/copies/1/bytes", none, "gpu.copies[1].bytes is missing"},
      {"/gpu/copies/1/bytes", 1 << 20, "gpu.copies[1] is "},
      {"/gpu/copies/0/h2d", "fast", "gpu.copies[0].h2d is \"fast\", expected a number"},
      {"/gpu/gemms/1/type", "int8", "gpu.gemms[1].type is \"int8\", expected fp32, fp16 or bf16"},
      {"/gpu/gemms/2/rows", 512, "gpu.gemms[2] is "},
      {"/gpu/gemms/0/width", none, "gpu.gemms[0].width is missing"},
      {"/gpu/attentions/0/backend", "", "gpu.attentions[0].backend is \"\""},
      {"/host/threads", "many", "host.threads is \"many\""},
      {"/host/adamw/1/threads", 1, "host.adamw[1] is "},
      {"/host/adamw/0/alone", none, "host.adamw[0].alone is missing"},
      {"/host/thread", 4, "host.thread is an unknown key - did you mean 'threads'?"},
      {"/hosts", 4, "hosts is an unknown key"},
      {"/gpu/copies/0/h2b", 4, "gpu.copies[0].h2b is an unknown key"},
      {"/disk/write_bytes_per_s", false, "disk.write_bytes_per_s is false"},
  };
  for (const Case& each : cases) {
    ordered_json json = whole_json();
    const ordered_json::json_pointer pointer(each.pointer);
    if (each.value.is_discarded())
      json[pointer.parent_pointer()].erase(pointer.back());
    else
      json[pointer] = each.value;
    const std::string said = complaint(json);
    EXPECT_CONTAINS(said, each.message);
    EXPECT_CONTAINS(said, "'m.json'");
  }
}

TEST(MachineProfile, AnotherVersionOrNoJsonIsRefused) {
  ordered_json json = whole_json();
  json["version"] = 8;
  EXPECT_CONTAINS(complaint(json), "version is 8, and this ferry knows 7");
  json["version"] = 1;
  EXPECT_CONTAINS(complaint(json), "version is 1: an older ferry measured otherwise");
  json["version"] = "1";
  EXPECT_CONTAINS(complaint(json), "is no machine profile");
  json.erase("version");
  EXPECT_CONTAINS(complaint(json), "is no machine profile");
  EXPECT_CONTAINS(complaint(ordered_json::array()), "expected an object");
  for (const char* text : {"", "{", "{\"version\": 2, \"name\": \"x\", \"a\": 1e999}", "\xff"})
    EXPECT_THROW(parse_machine_profile(text, "m.json"), Error) << text;
}

class Stored : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_DATA_HOME", (root_.path() / "data").c_str(), 1); }
  void TearDown() override { unsetenv("XDG_DATA_HOME"); }
  TemporaryDirectory root_;
};

TEST_F(Stored, IsKeptAndReplaced) {
  EXPECT_EQ(machine_profile_path(), root_.path() / "data/ferry/machine.json");
  EXPECT_FALSE(load_machine_profile());
  MachineProfile profile = whole_profile();
  store_machine_profile(profile);
  EXPECT_EQ(to_json(load_machine_profile().value()), to_json(profile));
  profile.name = "another";
  store_machine_profile(profile);
  EXPECT_EQ(load_machine_profile()->name, "another");
  // Nothing but the file is left.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_.path() / "data/ferry"), {}), 1);
}

/** As runs that end their choice of a plan at the same moment. */
TEST_F(Stored, WhatSeveralAddAtOnceIsAllThere) {
  store_machine_profile(whole_profile());
  constexpr int kThreads = 4, kEach = 8;
  const size_t n_before = whole_profile().learnt.size();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < kEach; ++i)
        change_machine_profile([&] {
          auto profile = load_machine_profile();
          put_learnt(*profile, {.run = "run",
                                .plan = "plan",
                                .micro_batch_size = 1000 * t + i + 1,
                                .predicted_s = 1,
                                .step_s = 1,
                                .measured = "now"});
          return profile;
        });
    });
  for (std::thread& thread : threads)
    thread.join();
  std::set<int64_t> sizes;
  const MachineProfile stored = load_machine_profile().value();
  for (const LearntStep& step : stored.learnt)
    if (step.run == "run") sizes.insert(step.micro_batch_size);
  EXPECT_EQ(sizes.size(), kThreads * kEach);
  EXPECT_EQ(stored.learnt.size(), n_before + sizes.size());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_.path() / "data/ferry"), {}), 1)
      << "a lock stays";
}

TEST_F(Stored, AChangeThatGivesNothingStoresNothing) {
  change_machine_profile([] { return std::optional<MachineProfile>(); });
  EXPECT_FALSE(load_machine_profile());
  store_machine_profile(whole_profile());
  EXPECT_THROW(change_machine_profile([]() -> std::optional<MachineProfile> {
                 throw Error(Fault::machine, "test", "left", "");
               }),
               Error);
  EXPECT_EQ(to_json(load_machine_profile().value()), to_json(whole_profile()));
  change_machine_profile([] { return std::optional<MachineProfile>({.name = "after"}); });
  EXPECT_EQ(load_machine_profile()->name, "after") << "the lock was given back";
}

/** Homes and disks move between machines. */
TEST_F(Stored, OfAnotherProcessorItIsNotUsed) {
  if (cpu_name().empty()) GTEST_SKIP() << "/proc/cpuinfo does not name this processor";
  MachineProfile profile = whole_profile();
  profile.host.cpu = cpu_name();
  store_machine_profile(profile);
  EXPECT_TRUE(profile_of_this_machine(""));
  EXPECT_EQ(note_of_other_machine(), "");
  profile.host.cpu = "Another CPU @ 9.99GHz";
  store_machine_profile(profile);
  EXPECT_FALSE(profile_of_this_machine(""));
  EXPECT_CONTAINS(note_of_other_machine(), "Another CPU @ 9.99GHz");
  EXPECT_CONTAINS(note_of_other_machine(), "ferry doctor");
}

TEST_F(Stored, TheProcessorIsNamedByProc) {
  root_.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU \r\n\nmodel name\t: Other\n");
  EXPECT_EQ(cpu_name(root_.path()), "Some CPU");
  EXPECT_EQ(cpu_name(root_.path() / "nowhere"), "");
}

TEST_F(Stored, ADamagedOneIsToldByItsPath) {
  const auto file = root_.write("data/ferry/machine.json", "{\"version\": 2");
  EXPECT_CONTAINS(config::usage_error([] { load_machine_profile(); }, Fault::data), file.string());
}

TEST_F(Stored, WithoutAHomeNothingIsStored) {
  const char* home = std::getenv("HOME");
  const std::string kept = home ? home : "";
  unsetenv("XDG_DATA_HOME");
  unsetenv("HOME");
  EXPECT_EQ(machine_profile_path(), std::filesystem::path());
  EXPECT_FALSE(load_machine_profile());
  EXPECT_THROW(store_machine_profile(whole_profile()), Error);
  if (home) setenv("HOME", kept.c_str(), 1);
}

TEST(MachinePresets, EachIsAWholeProfile) {
  const std::vector<std::string> names = list_machine_presets();
  for (const char* name : {"2080ti-11g", "2080ti-11g-low", "3060-12g", "3090-24g", "4060ti-16g",
                           "4090-24g", "5060ti-16g", "5090-32g", "a100-40g", "a6000-48g",
                           "h100-80g", "v100-32g", "2xa100-40g", "4x4090-24g", "8xa100-80g"})
    EXPECT_TRUE(std::find(names.begin(), names.end(), name) != names.end()) << name;
  for (const std::string& name : names) {
    const MachineProfile profile = find_machine_preset(name);
    EXPECT_EQ(profile.name, name);
    EXPECT_FALSE(profile.source.empty()) << name;
    EXPECT_GE(profile.assumptions.size(), 5u) << name;
    ASSERT_TRUE(profile.gpu) << name;
    const GpuProfile& gpu = *profile.gpu;
    const bool has_bf16 = gpu.compute_capability >= 80;
    EXPECT_EQ(gpu.gemms.size(), (has_bf16 ? 3u : 2u) * 4 * 5) << name;
    EXPECT_EQ(gpu.attentions.size(), (has_bf16 ? 5u : 2u) * 4 * 2) << name;
    ASSERT_EQ(gpu.copies.size(), 5u) << name;
    for (const GemmRate& gemm : gpu.gemms)
      EXPECT_TRUE(has_bf16 || gemm.type != DType::bf16) << name;
    for (const AttentionRate& attention : gpu.attentions)
      EXPECT_TRUE(has_bf16 || attention.backend != "flash") << name;
    EXPECT_GT(gpu.memory_bytes_per_s, 0) << name;
    EXPECT_GT(gpu.launch_s, 0) << name;
    EXPECT_GT(gpu.update_params_per_s, 0) << name;
    EXPECT_GT(gpu.context_bytes, 0) << name;
    EXPECT_EQ(gpu.kernels.loaded_bytes, 0) << name << " was never measured";
    EXPECT_EQ(gpu.n_of_host > 1, name.find('x') == 1) << name;
    EXPECT_EQ(gpu.exchange.has_value(), gpu.n_of_host > 1) << name;
    EXPECT_EQ(profile.host.updates.back().n_threads, profile.host.n_threads) << name;
    for (const UpdateRate& rate : profile.host.updates) {
      EXPECT_LE(rate.beside_copies, rate.alone) << name;
      // Together no more than memory gives, but for the rounding to four digits.
      EXPECT_LE(28 * rate.beside_copies + rate.h2d_beside + rate.d2h_beside,
                1.001 * profile.host.dram_bytes_per_s)
          << name;
    }
    EXPECT_GT(profile.host.memory_bytes, 0) << name;
    EXPECT_GT(profile.disk.write_bytes_per_s, 0) << name;
    ASSERT_EQ(profile.nvme.size(), 1u) << name;
    EXPECT_TRUE(profile.nvme[0].drives.empty()) << name << " names drives that are not here";
    EXPECT_LT(profile.nvme[0].mixed_bytes_per_s, profile.nvme[0].write_bytes_per_s) << name;
  }
}

TEST(MachineProfile, GpusOfSeveralKindsStandInTheirOrder) {
  MachineProfile profile = whole_profile();
  GpuProfile small = *profile.gpu, large = small;
  small.name = "small";
  small.memory_bytes /= 2;
  large.name = "large";
  large.memory_bytes *= 2;
  profile.other_gpus = {large, small, large};
  const MachineProfile read = parse_machine_profile(to_json(profile), "m.json");
  EXPECT_EQ(read.other_gpus, profile.other_gpus);
  EXPECT_EQ(read.n_gpus(), 4);
  EXPECT_EQ(read.gpu_at(0), *profile.gpu);
  EXPECT_EQ(read.gpu_at(2).name, "small");
  ordered_json json = ordered_json::parse(to_json(profile));
  json["other_gpus"][1].erase("memory_bytes");
  EXPECT_CONTAINS(complaint(json), "other_gpus[1]");

  const MachineProfile two = with_gpus(read, std::vector{2, 1});
  EXPECT_EQ(two.gpu->name, "small");
  ASSERT_EQ(two.other_gpus.size(), 1u);
  EXPECT_EQ(two.other_gpus[0].name, "large");
  EXPECT_EQ(two.gpu->n_of_host, 2);
  const MachineProfile alike = with_gpus(read, std::vector{1, 3});
  EXPECT_EQ(alike.gpu->name, "large");
  EXPECT_FALSE(alike.has_unlike_gpus()) << "a number of one kind";
  EXPECT_EQ(alike.gpu->n_of_host, 2);
}

TEST(MachinePresets, SeveralNamesAreTheGpusOfOneHost) {
  const MachineProfile both = find_machines("4090-24g,3060-12g"),
                       large = find_machine_preset("4090-24g"),
                       small = find_machine_preset("3060-12g");
  EXPECT_EQ(both.name, "4090-24g,3060-12g");
  EXPECT_EQ(both.n_gpus(), 2);
  EXPECT_EQ(both.gpu_at(0).name, large.gpu->name);
  EXPECT_EQ(both.gpu_at(0).gemms, large.gpu->gemms);
  EXPECT_EQ(both.gpu_at(1).gemms, small.gpu->gemms);
  EXPECT_EQ(both.gpu_at(1).memory_bytes, small.gpu->memory_bytes);
  EXPECT_EQ(both.host.cpu, large.host.cpu) << "the first one's host";
  for (const MachineProfile* its : {&large, &small})
    for (const std::string& assumption : its->assumptions)
      EXPECT_EQ(std::count(both.assumptions.begin(), both.assumptions.end(), assumption), 1);

  EXPECT_EQ(find_machines("4x4090-24g,3060-12g").n_gpus(), 5) << "each of a host with several";
  const MachineProfile same = find_machines("4090-24g,4090-24g");
  EXPECT_FALSE(same.has_unlike_gpus());
  EXPECT_EQ(same.gpu->n_of_host, 2);
  EXPECT_EQ(find_machines("4x4090-24g").gpu->n_of_host, 4) << "one name is as ever";
  EXPECT_CONTAINS(config::usage_error([] { find_machines("4090-24g,"); }), "no machine ''");
  EXPECT_CONTAINS(config::usage_error([] { find_machines("4090-24g,3090-24"); }),
                  "did you mean '3090-24g'?");
  TemporaryDirectory root;
  MachineProfile none = whole_profile();
  none.gpu.reset();
  const std::string file = root.write("none.json", to_json(none)).string();
  EXPECT_CONTAINS(config::usage_error([&] { find_machines("4090-24g," + file); }), "has no GPU");
}

TEST(MachinePresets, ANearNameIsHelped) {
  EXPECT_CONTAINS(config::usage_error([] { find_machine_preset("3090-24"); }),
                  "did you mean '3090-24g'?");
}

TEST(MachinePresets, AFileIsTakenAndAWrongNameIsHelped) {
  TemporaryDirectory root;
  const auto file = root.write("card.json", to_json(whole_profile()));
  EXPECT_EQ(find_machine_preset(file.string()).name, "GPU, CPU");
  EXPECT_CONTAINS(config::usage_error([] { find_machine_preset("/no/such.json"); }),
                  "no machine '/no/such.json'");
}

}  // namespace
}  // namespace ferry
