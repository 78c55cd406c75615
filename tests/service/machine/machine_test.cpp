// The machine as the doctor sees it: each fault and its cure, hosts and drivers that are not this
// machine's, a trainer that measures.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/service/machine/diagnosis.h"
#include "src/service/machine/measured.h"
#include "tests/config/config_fixture.h"
#include "tests/service/machine/bad_machines.h"

namespace ferry::service {
namespace {

using config::TemporaryDirectory;

TEST(Diagnosis, AHealthyMachineHasNothingToSay) {
  EXPECT_TRUE(diagnose(healthy()).empty());
  Facts facts = healthy();
  facts.profile = measured_profile();
  EXPECT_TRUE(diagnose(facts).empty());
  // A limit that the driver does not count is none; an unknown link has no rate.
  facts.host.memlock_limit_bytes = 8 * kMiB;
  facts.host.huge_pages = "madvise";
  facts.profile->gpu->pcie_generation = 0;
  facts.profile->gpu->copies = {{kMiB, 1e6, 1e6, 1e6, 1e6}};
  EXPECT_TRUE(diagnose(facts).empty());
}

TEST(Diagnosis, EveryFaultHasASeverityAndACure) {
  for (const BadMachine& each : kBadMachines) {
    Facts facts = healthy();
    each.change(facts);
    std::vector<Finding> findings = diagnose(facts);
    ASSERT_EQ(findings.size(), 1u) << each.name;
    EXPECT_EQ(findings[0].severity, each.severity) << each.name;
    EXPECT_CONTAINS(findings[0].what, each.what);
    EXPECT_CONTAINS(findings[0].cure, each.cure);
  }
}

TEST(Diagnosis, TheGravestComesFirst) {
  Facts facts;  // nothing is there
  std::vector<Finding> findings = diagnose(facts);
  ASSERT_GE(findings.size(), 3u);
  EXPECT_EQ(findings.front().severity, Severity::error);
  EXPECT_TRUE(
      std::is_sorted(findings.begin(), findings.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; }));
}

TEST(Host, IsReadFromProc) {
  TemporaryDirectory root;
  root.write("proc/cpuinfo",
             "processor\t: 0\nmodel name\t: Ryzen 5\nphysical id\t: 0\ncore id\t\t: 0\n\n"
             "processor\t: 1\nmodel name\t: Ryzen 5\nphysical id\t: 0\ncore id\t\t: 0\n\n"
             "processor\t: 2\nmodel name\t: Ryzen 5\nphysical id\t: 0\ncore id\t\t: 1\n");
  root.write("proc/meminfo", "MemTotal: 100 kB\nSwapTotal:  2048 kB\nSwapFree:  1024 kB\n");
  root.write("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  root.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  root.write("etc/os-release", "NAME=\"Ubuntu\"\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n");
  Host host = read_host(root.path());
  EXPECT_EQ(host.cpu, "Ryzen 5");
  EXPECT_EQ(host.n_cores, 2);
  EXPECT_GE(host.n_threads, 1);
  EXPECT_EQ(host.distribution, "Ubuntu 24.04 LTS");
  EXPECT_TRUE(host.is_wsl);
  EXPECT_EQ(host.huge_pages, "madvise");
  EXPECT_EQ(host.swap_total_bytes, 2 * kMiB);
  EXPECT_EQ(host.swap_free_bytes, kMiB);
}

TEST(Host, AMissingOrHostileProcIsNoFault) {
  TemporaryDirectory root;
  Host empty = read_host(root.path());
  EXPECT_EQ(empty.n_cores, 0);
  EXPECT_EQ(empty.huge_pages, "");
  EXPECT_FALSE(empty.is_wsl);
  root.write("proc/cpuinfo", std::string("model name\0:\n:\nx", 16));
  root.write("proc/meminfo", "SwapTotal: many\n");
  EXPECT_EQ(read_host(root.path()).swap_total_bytes, 0);
}

TEST(Nvidia, DevicesAreCountedOnTheBus) {
  TemporaryDirectory root;
  root.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  root.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
  root.write("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");  // its audio function
  root.write("sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
  root.write("sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
  root.write("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
  EXPECT_EQ(read_nvidia(root.path()).n_pci_devices, 1);
}

Host host_named(const std::string& cpu) {
  Host host;
  host.cpu = cpu;
  return host;
}

/** The trainer's output on a GPU of that name. */
std::string printed(const std::string& gpu_name, int64_t free_bytes) {
  MachineProfile profile{.name = "x"};
  profile.gpu = GpuProfile{
      .name = gpu_name, .compute_capability = 75, .memory_bytes = kGiB, .context_bytes = 99};
  return nlohmann::json({{"profile", nlohmann::json::parse(to_json(profile))},
                         {"skipped", {"disk: full"}},
                         {"gpu_trouble", ""},
                         {"gpu_free_bytes", free_bytes},
                         {"steps", nlohmann::json::array()},
                         {"seconds", 12.5}})
      .dump();
}

TEST(Measured, IsReadAndCompletedByTheDriversFacts) {
  Measured measured = parse_measured(printed("RTX 2080 Ti", 10 * kGiB - 300 * kMiB));
  ASSERT_TRUE(measured.profile) << measured.trouble;
  EXPECT_EQ(measured.skipped, std::vector<std::string>{"disk: full"});
  EXPECT_EQ(measured.seconds, 12.5);
  Nvidia nvidia = healthy().nvidia;
  nvidia.gpus.insert(nvidia.gpus.begin(), Gpu{.name = "another", .pcie_generation = 5});
  nvidia.gpus[1].drives_display = true;
  nvidia.gpus[1].power_limit_w = 250;
  add_facts(measured, host_named("Ryzen 5"), nvidia);
  const GpuProfile& gpu = *measured.profile->gpu;
  EXPECT_EQ(measured.profile->name, "RTX 2080 Ti, Ryzen 5");
  EXPECT_EQ(measured.profile->host.cpu, "Ryzen 5");
  EXPECT_EQ(gpu.context_bytes, 300 * kMiB);
  EXPECT_EQ(gpu.driver, "580.65.06");
  EXPECT_EQ(gpu.pcie_generation, 3);
  EXPECT_EQ(gpu.pcie_width, 16);
  EXPECT_EQ(gpu.power_w, 250);
  EXPECT_TRUE(gpu.drives_display);
}

TEST(Measured, ACardThatTheDriverDoesNotNameKeepsWhatWasMeasured) {
  Measured measured = parse_measured(printed("another", kGiB));
  add_facts(measured, host_named(""), healthy().nvidia);
  ASSERT_TRUE(measured.profile) << measured.trouble;
  EXPECT_EQ(measured.profile->gpu->context_bytes, 99);
  EXPECT_EQ(measured.profile->gpu->pcie_generation, 0);
  EXPECT_EQ(measured.profile->name, "another, an unknown processor");
}

TEST(Measured, WhatIsNoFiguresIsATrouble) {
  for (const std::string text : {"", "{}", "[1]", "{\"profile\": {\"version\": 9}}"}) {
    const Measured measured = parse_measured(text);
    EXPECT_FALSE(measured.profile);
    EXPECT_FALSE(measured.trouble.empty()) << text;
  }
  EXPECT_CONTAINS(parse_measured("{\"profile\": {\"version\": 9}}").trouble, "version is 9");
}

TEST(Measured, ATrainerMayPrintFailHangOrNotStart) {
  TemporaryDirectory directory;
  const auto trainer = [&](const std::string& script) {
    const auto file = directory.write("trainer", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  };
  directory.write("out", printed("RTX", kGiB));
  const std::string out = (directory.path() / "out").string();
  const Measured good = run_trainer_bench(trainer("[ \"$*\" = 'bench all --json' ] && cat " + out),
                                          {"all", "--json"});
  ASSERT_TRUE(good.profile) << good.trouble;
  EXPECT_EQ(good.profile->gpu->name, "RTX");
  EXPECT_CONTAINS(run_trainer_bench(trainer("cat " + out + "; exit 5"), {}).trouble, "exit code 5");
  EXPECT_CONTAINS(run_trainer_bench(trainer("kill -9 $$"), {}).trouble, "signal 9");
  EXPECT_CONTAINS(run_trainer_bench(trainer("exec sleep 60"), {}, 0.2).trouble, "did not end");
  EXPECT_CONTAINS(run_trainer_bench(trainer("exec sleep 60 >&-"), {}, 0.2).trouble, "did not end");
  EXPECT_CONTAINS(run_trainer_bench("/no/trainer", {}).trouble, "cannot start '/no/trainer'");
}

TEST(Measured, ATrainerIsEndedWhenItIsAskedFor) {
  TemporaryDirectory directory;
  for (const char* script : {"exec sleep 100000", "exec sleep 100000 >&-"}) {
    const auto file = directory.write("trainer", std::string("#!/bin/sh\n") + script + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    std::stop_source stop;
    std::jthread asks([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      stop.request_stop();
    });
    EXPECT_CONTAINS(run_trainer_bench(file, {}, 90000, stop.get_token()).trouble, "cancelled");
  }
}

TEST(Measured, SecondsAreATime) {
  EXPECT_EQ(checked_seconds("2.5"), "2.5");
  for (const char* text : {"", "x", "0", "-1", "nan", "1e9", "5s"})
    EXPECT_THROW(checked_seconds(text), Error) << text;
}

}  // namespace
}  // namespace ferry::service
