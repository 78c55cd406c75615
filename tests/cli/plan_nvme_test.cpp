// ferry plan with drives as a third place: what it says of space, traffic, time and wear.

#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

using PlanWithDrives = FerryTest;

const std::string kPlan = "plan --model bert-large-uncased --machine 2080ti-11g ";
/** All states on a drive. */
const std::string kOnDrive = kPlan + "--nvme-path /mnt/nvme --placement nvme ";

TEST_F(PlanWithDrives, FiguresAddUp) {
  const auto all = json_of(kOnDrive + "--nvme-endurance 100TB");
  const auto& nvme = all["nvme"];
  int64_t states_bytes = 0;
  for (const auto& row : all["rows"])
    if (row["place"] == "nvme") states_bytes += row["bytes"].get<int64_t>();
  EXPECT_GT(states_bytes, 300'000'000ll * 12) << "master, m and v of 335 M parameters";
  const int64_t n_copies = nvme["n_copies"];
  EXPECT_EQ(nvme["directories"], nlohmann::json::array({"/mnt/nvme"}));
  EXPECT_GE(nvme["store_bytes"], n_copies * states_bytes);
  EXPECT_LE(nvme["store_bytes"], n_copies * states_bytes / 100 * 102);
  EXPECT_TRUE(nvme["budget_bytes"].is_null()) << "nobody knows the free space of that machine";
  const double written = nvme["step_written_bytes"];
  EXPECT_GE(written, 0.99 * static_cast<double>(states_bytes));
  EXPECT_GT(nvme["step_read_bytes"], 0);
  EXPECT_GT(nvme["window_bytes"], 0);
  EXPECT_DOUBLE_EQ(nvme["life_steps"], 1e14 / written);
  EXPECT_DOUBLE_EQ(nvme["life_s"],
                   nvme["life_steps"].get<double>() * all["time"]["step_s"].get<double>());
  const double least_s = written / 5e9;  // the drive's rate, alone
  EXPECT_GT(all["time"]["nvme_write_s"], 0.9 * least_s);
  EXPECT_GT(all["time"]["nvme_read_s"], 0);

  const auto none = json_of(kOnDrive + "--save-strategy no")["nvme"];
  EXPECT_EQ(none["n_copies"], 2);
  EXPECT_TRUE(none["life_steps"].is_null());
  EXPECT_TRUE(none["endurance_bytes"].is_null());
  EXPECT_EQ(none["step_written_bytes"], nvme["step_written_bytes"]);
}

TEST_F(PlanWithDrives, TextTellsSpaceTrafficAndWear) {
  const Outcome text = succeed(kOnDrive + "--save-strategy no --nvme-memory 400GiB");
  EXPECT_CONTAINS(text.out, "of 400.00 GiB; 2 copies of the states");
  for (const char* part : {"A step reads ", "reads from the drive", "writes to the drive"})
    EXPECT_CONTAINS(text.out, part);
  EXPECT_EQ(text.out.find("nvme_endurance"), std::string::npos) << "nobody asked for it";
  EXPECT_EQ(text.err.find("warning"), std::string::npos);
  EXPECT_CONTAINS(run(kOnDrive + "--verbose").out, "not known: give nvme_endurance");

  const Outcome worn = run(kOnDrive + "--nvme-endurance 1TB");
  EXPECT_EQ(worn.exit_code, 0) << "a warning is no refusal";
  EXPECT_CONTAINS(worn.out, "of training without a pause: ");
  EXPECT_CONTAINS(worn.err + worn.out, "warning: this run writes so much to the drive");
  const Outcome lasting = run(kOnDrive + "--nvme-endurance 9000TB --train-batch-size 1024");
  EXPECT_CONTAINS(lasting.out, " years of training without a pause: ");
  EXPECT_EQ((lasting.err + lasting.out).find("warning"), std::string::npos);
}

TEST_F(PlanWithDrives, NamesWhatIsOnThem) {
  const std::string small = kOnDrive + "--host-memory 1200MiB --save-strategy no";
  const Outcome text = succeed(small);
  EXPECT_CONTAINS(text.out, "2 copies of the states and weights, one of the gradients");
  EXPECT_CONTAINS(text.out, "gradients of ");
  EXPECT_GT(json_of(small)["nvme"]["grad_bytes"], 0);
  EXPECT_EQ(json_of(kOnDrive)["nvme"]["grad_bytes"], 0);
}

TEST_F(PlanWithDrives, TooLittleSpaceIsSaidInItsRow) {
  const Outcome small = run(kOnDrive + "--nvme-memory 1GiB");
  EXPECT_EQ(small.exit_code, 3);
  EXPECT_CONTAINS(small.err, "nvme_memory");
  EXPECT_CONTAINS(small.out, "of 1.00 GiB: too much");
}

TEST_F(PlanWithDrives, ARunThatNeedsNoneWritesNothing) {
  const auto with = json_of(kPlan + "--nvme-path /mnt/nvme");
  EXPECT_EQ(with["nvme"]["store_bytes"], 0);
  EXPECT_EQ(with["nvme"]["step_written_bytes"], 0);
  EXPECT_TRUE(json_of(kPlan)["nvme"].is_null());
  const Outcome text = run(kPlan + "--nvme-path /mnt/nvme");
  EXPECT_EQ(text.out.find("A step reads"), std::string::npos);
}

}  // namespace
}  // namespace ferry::cli
