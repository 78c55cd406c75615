// The share of a host that each of its ranks has: cores and memory bandwidth are there once.

#include "src/plan/machine/host_share.h"

#include <gtest/gtest.h>

#include "tests/plan/machines.h"

namespace ferry::test {
namespace {

/** 8 threads update 5 G parameters a second, 140 GB/s; copies ask for 10 GB/s each way. Memory
 * gives 150 GB/s in all. */
MachineProfile host() {
  MachineProfile machine = even_machine({.copy_bytes_per_s = 10e9, .update_params_per_s = 5e9});
  machine.host.dram_bytes_per_s = 150e9;
  machine.host.updates = {
      {.n_threads = 1, .alone = 2e9, .beside_copies = 2e9, .h2d_beside = 10e9, .d2h_beside = 10e9},
      {.n_threads = 4,
       .alone = 5e9,
       .beside_copies = 4.6e9,
       .h2d_beside = 10e9,
       .d2h_beside = 10e9},
      {.n_threads = 8,
       .alone = 5e9,
       .beside_copies = 4.6e9,
       .h2d_beside = 10e9,
       .d2h_beside = 10e9}};
  return machine;
}

TEST(HostShare, MemoryGivesTheMostThatWasSeen) {
  MachineProfile machine = host();
  EXPECT_EQ(host_memory_rate(machine), 150e9);
  machine.host.dram_bytes_per_s = 0;
  EXPECT_EQ(host_memory_rate(machine), 4.6e9 * 28 + 20e9) << "an update and copies at once";
  machine.host = {};
  EXPECT_EQ(host_memory_rate(machine), 0);
}

TEST(HostShare, RanksShareTheCoresThatUpdate) {
  const MachineProfile share = share_of_host(host(), 2, true);
  EXPECT_EQ(share.host.n_threads, 4);
  ASSERT_EQ(share.host.updates.size(), 3u);
  // A thread of each rank, two, three: the fourth submits the GPU's work.
  EXPECT_EQ(share.host.updates[0].n_threads, 1);
  EXPECT_DOUBLE_EQ(share.host.updates[0].alone, 3e9 / 2) << "two threads lie between one and four";
  EXPECT_EQ(share.host.updates[1].n_threads, 2);
  EXPECT_DOUBLE_EQ(share.host.updates[1].alone, 5e9 / 2);
  EXPECT_EQ(share.host.updates[2].n_threads, 3);
  EXPECT_DOUBLE_EQ(share.host.updates[2].alone, 5e9 / 2) << "memory gives no more";
  EXPECT_EQ(share_of_host(host(), 2, false).host.updates.back().n_threads, 4);
  // More ranks than cores: one thread each, all of which share the eight.
  const MachineProfile many = share_of_host(host(), 16, true);
  ASSERT_EQ(many.host.updates.size(), 1u);
  EXPECT_DOUBLE_EQ(many.host.updates[0].alone, 5e9 / 16);
}

TEST(HostShare, CopiesAndUpdatesOfAllRanksFitIntoTheMemory) {
  for (const int n : {2, 4, 8}) {
    const MachineProfile share = share_of_host(host(), n, true);
    for (const CopyRate& copy : share.gpu->copies) {
      EXPECT_LE(n * copy.h2d, 150e9 * 1.0001) << n;
      EXPECT_LE(n * (copy.h2d_beside_d2h + copy.d2h_beside_h2d), 150e9 * 1.0001) << n;
    }
    for (const UpdateRate& rate : share.host.updates) {
      EXPECT_LE(n * (28 * rate.beside_copies + rate.h2d_beside + rate.d2h_beside), 150e9 * 1.0001);
      EXPECT_LE(rate.beside_copies, rate.alone);
    }
    EXPECT_DOUBLE_EQ(share.host.dram_bytes_per_s, 150e9 / n);
  }
  // Two links of 10 GB/s each way ask for 40 GB/s; alone each has all it asks for.
  EXPECT_EQ(share_of_host(host(), 2, true).gpu->copies.back().h2d_beside_d2h, 10e9);
  // Eight ask for 160.
  EXPECT_DOUBLE_EQ(share_of_host(host(), 8, true).gpu->copies.back().h2d_beside_d2h, 150e9 / 16);
  EXPECT_EQ(share_of_host(host(), 8, true).gpu->copies.back().h2d, 10e9);
}

TEST(HostShare, AnUnknownMemorySlowsNoCopies) {
  MachineProfile machine = host();
  machine.host = {};
  const MachineProfile share = share_of_host(machine, 4, true);
  EXPECT_EQ(share.gpu->copies.back().h2d_beside_d2h, 10e9);
  EXPECT_TRUE(share.host.updates.empty());
}

TEST(HostShare, PassesOnTheCpuShareTheCores) {
  MachineProfile machine = host();
  machine.host.gemms = {{DType::f32, 512, 768, 4e11}};
  machine.host.attentions = {{DType::f32, "cpu_math", 128, 64, 4e10, 8e10}};
  const MachineProfile share = share_of_host(machine, 4, false);
  EXPECT_DOUBLE_EQ(share.host.gemms[0].flops_per_s, 1e11);
  EXPECT_DOUBLE_EQ(share.host.attentions[0].forward_flops_per_s, 1e10);
  EXPECT_DOUBLE_EQ(share.host.attentions[0].backward_flops_per_s, 2e10);
  EXPECT_EQ(share.gpu->gemms[0].flops_per_s, machine.gpu->gemms[0].flops_per_s);
}

}  // namespace
}  // namespace ferry::test
