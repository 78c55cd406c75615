// The rates of a run's drives: found by the drives themselves, measured once, and stored.

#include "src/runs/store/drive_rates.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "offload/nvme/drive.h"
#include "src/base/error.h"
#include "src/runs/store/store_room.h"
#include "tests/config/config_fixture.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using config::TemporaryDirectory;
using testing::ElementsAre;
using testing::IsEmpty;

NvmeProfile rates_of(std::vector<std::string> drives, double rate) {
  return {.drives = std::move(drives),
          .read_bytes_per_s = rate,
          .write_bytes_per_s = rate,
          .mixed_bytes_per_s = rate / 2};
}

/** Two file systems that every Linux has. */
class DriveRates : public testing::Test {
 protected:
  void SetUp() override {
    other_ = "/dev/shm";
    if (!fs::is_directory(other_) || is_on_drive(other_, drive_id_of(here_.path())))
      GTEST_SKIP() << "/dev/shm is no file system of its own";
    one_ = drive_id_of(here_.path());
    two_ = drive_id_of(other_);
  }
  TemporaryDirectory here_;
  fs::path other_;
  std::string one_, two_;
};

TEST_F(DriveRates, AreFoundByTheDrivesInAnyOrder) {
  MachineProfile profile;
  put_nvme(profile, rates_of({one_}, 1e9));
  put_nvme(profile, rates_of({two_, one_}, 2e9));
  const auto found = [&](const Directories& directories) {
    const NvmeProfile* const nvme = find_nvme(profile, directories);
    return nvme ? nvme->read_bytes_per_s : 0;
  };
  fs::create_directory(here_.path() / "deeper");
  EXPECT_EQ(found({here_.path()}), 1e9);
  EXPECT_EQ(found({here_.path() / "deeper"}), 1e9);
  EXPECT_EQ(found({here_.path(), other_}), 2e9);
  EXPECT_EQ(found({other_, here_.path()}), 2e9);
  EXPECT_EQ(found({other_}), 0);
  EXPECT_EQ(found({here_.path(), here_.path() / "deeper"}), 0) << "one drive is not two";
  EXPECT_THROW(find_nvme(profile, {here_.path() / "missing"}), Error);
}

TEST_F(DriveRates, NewOnesTakeThePlaceOfOldOnes) {
  MachineProfile profile;
  put_nvme(profile, rates_of({one_, two_}, 1e9));
  put_nvme(profile, rates_of({one_}, 2e9));
  put_nvme(profile, rates_of({two_, one_}, 3e9));
  ASSERT_EQ(profile.nvme.size(), 2u);
  EXPECT_EQ(find_nvme(profile, {here_.path()})->read_bytes_per_s, 2e9);
  EXPECT_EQ(find_nvme(profile, {here_.path(), other_})->read_bytes_per_s, 3e9);
}

TEST_F(DriveRates, APlanKeepsThoseOfItsRun) {
  PlanMachine machine{.profile = MachineProfile{}};
  put_nvme(*machine.profile, rates_of({one_}, 1e9));
  put_nvme(*machine.profile, rates_of({two_}, 2e9));
  PlanMachine without = machine, unknown = machine;
  take_nvme(machine, {other_});
  ASSERT_EQ(machine.profile->nvme.size(), 1u);
  EXPECT_EQ(machine.profile->nvme[0].read_bytes_per_s, 2e9);
  take_nvme(without, {});
  EXPECT_THAT(without.profile->nvme, IsEmpty());
  take_nvme(unknown, {here_.path(), other_});
  EXPECT_THAT(unknown.profile->nvme, IsEmpty());
}

/** Of a machine that is not here, neither are the directories. */
TEST(DriveRatesOfPresets, StandForAnyDrive) {
  PlanMachine machine{.profile = find_machine_preset("2080ti-11g")};
  take_nvme(machine, {"/no/such/directory"});
  ASSERT_EQ(machine.profile->nvme.size(), 1u);
  EXPECT_GT(machine.profile->nvme[0].mixed_bytes_per_s, 0);
}

/** Stored under a home of its own. */
class EnsuredRates : public DriveRates {
 protected:
  void SetUp() override {
    DriveRates::SetUp();
    setenv("XDG_DATA_HOME", (here_.path() / "data").c_str(), 1);
  }
  void TearDown() override { unsetenv("XDG_DATA_HOME"); }
  std::vector<std::string> ensure(const Directories& directories) {
    std::vector<std::string> lines;
    ensure_nvme_rates(
        directories, [&](const std::string& line) { lines.push_back(line); }, 0.2);
    return lines;
  }
};

TEST_F(EnsuredRates, AreMeasuredOnceForEachSetOfDrives) {
  store_machine_profile({.name = "this", .host = {.cpu = cpu_name(), .n_threads = 3}});
  const fs::path states = here_.path() / "states";
  fs::create_directory(states);
  EXPECT_THAT(ensure({}), IsEmpty());
  EXPECT_THAT(ensure({states}), ElementsAre(testing::HasSubstr("measuring")));
  EXPECT_TRUE(fs::is_empty(states)) << "files stay";
  EXPECT_THAT(ensure({states}), IsEmpty());
  const MachineProfile stored = load_machine_profile().value();
  EXPECT_EQ(stored.host.n_threads, 3) << "the other figures stay";
  ASSERT_EQ(stored.nvme.size(), 1u);
  const NvmeProfile& rates = stored.nvme[0];
  EXPECT_THAT(rates.drives, ElementsAre(one_));
  EXPECT_THAT(rates.directories, ElementsAre(states.string()));
  for (const double rate :
       {rates.read_bytes_per_s, rates.write_bytes_per_s, rates.mixed_bytes_per_s, rates.flush_s})
    EXPECT_GT(rate, 0);
  EXPECT_GT(rates.request_bytes, 0);
  EXPECT_GT(rates.depth, 0);
  EXPECT_EQ(disk_options_of(&rates).request_bytes, rates.request_bytes);
  EXPECT_EQ(disk_options_of(&rates).depth, rates.depth);
}

/** Those of presets have none, and files are edited. */
TEST(AskingOfDrives, IsWhatWasMeasuredWhereADiskTakesIt) {
  const DiskOptions own;
  const auto asked = [](int64_t request_bytes, int depth) {
    const NvmeProfile rates = {.request_bytes = request_bytes, .depth = depth};
    const DiskOptions options = disk_options_of(&rates);
    return std::pair(options.request_bytes, options.depth);
  };
  EXPECT_EQ(disk_options_of(nullptr).depth, own.depth);
  EXPECT_EQ(asked(1 << 19, 32), std::pair(int64_t{1} << 19, 32));
  for (const auto& [request_bytes, depth] : {std::pair<int64_t, int>(0, 0),
                                             {4095, 8},
                                             {int64_t{1} << 40, 8},
                                             {1 << 20, 0},
                                             {1 << 20, 100'000}})
    EXPECT_EQ(asked(request_bytes, depth), std::pair(own.request_bytes, own.depth));
}

TEST_F(EnsuredRates, AreLeftOutWhereNoTimeIsKnownAnyway) {
  EXPECT_THAT(ensure({here_.path()}), IsEmpty());
  EXPECT_FALSE(load_machine_profile());
  store_machine_profile({.name = "another", .host = {.cpu = "of another machine"}});
  EXPECT_THAT(ensure({here_.path()}), IsEmpty());
  EXPECT_THAT(load_machine_profile()->nvme, IsEmpty());
  EXPECT_THROW(ensure({here_.path() / "missing"}), Error) << "no run could use it either";
}

/** What two get at once is no rate of the drive. */
TEST_F(EnsuredRates, AreNotMeasuredBesideARun) {
  store_machine_profile({.name = "this", .host = {.cpu = cpu_name()}});
  const auto locks = runs::lock_store_directories({here_.path()});
  EXPECT_CONTAINS(config::usage_error([&] { ensure({here_.path()}); }, Fault::machine),
                  "in use by another run");
  EXPECT_THAT(load_machine_profile()->nvme, IsEmpty());
}

}  // namespace
}  // namespace ferry
