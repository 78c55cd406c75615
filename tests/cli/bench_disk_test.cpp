// ferry bench disk: figures of each pattern with and without fio, and nothing left behind.

#include <fcntl.h>

#include <filesystem>

#include "tests/cli/ferry_fixture.h"

namespace ferry::cli {
namespace {

class BenchDisk : public FerryTest {
 protected:
  void SetUp() override {
    FerryTest::SetUp();
    const int fd = ::open(path("probe").c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
    std::filesystem::remove(path("probe"));
    if (fd < 0) GTEST_SKIP() << "the temporary directory takes no direct transfers (O_DIRECT)";
    ::close(fd);
  }
  Outcome bench(const std::string& more, const char* programs = "/no/programs") const {
    return run("bench disk --file-bytes 32MiB --seconds 0.1 " + more,
               {{"PATH", programs}, {"FERRY_TRAINER", "/no/trainer"}});
  }
};

void expect_rates(const nlohmann::json& rates, size_t n_turns) {
  ASSERT_EQ(rates.size(), n_turns);
  for (const auto& rate : rates)
    EXPECT_GT(rate.get<double>(), 0);
}

TEST_F(BenchDisk, GivesEachPatternAndLeavesNothing) {
  const Outcome outcome = bench("--json --request-bytes 64KiB --depth 4 --turns 2");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto out = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(out["request_bytes"], 64 << 10);
  EXPECT_EQ(out["depth"], 4);
  EXPECT_EQ(out["fio"], "");
  EXPECT_EQ(out["why_no_fio"], "fio is not installed");
  ASSERT_EQ(out["patterns"].size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const auto& row = out["patterns"][i];
    EXPECT_EQ(row["pattern"], (std::array{"read", "write", "mixed"}[i]));
    expect_rates(row["turns_bytes_per_s"], 2);
    EXPECT_FALSE(row.contains("share_of_fio"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(BenchDisk, ComparesWithFio) {
  const Outcome outcome = bench("--json --turns 1", "/usr/local/bin:/usr/bin:/bin");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto out = nlohmann::json::parse(outcome.out);
  if (out["why_no_fio"] != "") GTEST_SKIP() << out["why_no_fio"];
  EXPECT_CONTAINS(out["fio"].get<std::string>(), "fio-");
  for (const auto& row : out["patterns"]) {
    expect_rates(row["fio_turns_bytes_per_s"], 1);
    EXPECT_DOUBLE_EQ(row["share_of_fio"].get<double>(),
                     row["bytes_per_s"].get<double>() / row["fio_bytes_per_s"].get<double>());
  }
}

TEST_F(BenchDisk, SharesTheBytesOfSeveralDirectories) {
  std::filesystem::create_directory(path("a"));
  std::filesystem::create_directory(path("b"));
  const Outcome outcome = bench("--directory a --directory b");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_CONTAINS(outcome.err, "fio has no stripes");
  for (const char* const text : {"/a, /", "/b\n1.0 MiB in a request, 16 under way", "mixed"})
    EXPECT_CONTAINS(outcome.out, text);
}

TEST_F(BenchDisk, RefusesWhatCannotBe) {
  for (const auto& [words, message] :
       {std::pair{"--depth 0", "--depth 0, expected a whole number from 1 to 256"},
        {"--request-bytes 1000", "expected a multiple of 4 KiB up to 64.0 MiB"},
        {"--file-bytes x", "--file-bytes x, expected a multiple of 4 KiB"},
        {"--request-bytes 64MiB --depth 256", "16.00 GiB would be under way at once"},
        {"--turns", "--turns needs a value"},
        {"all", "unexpected argument 'all' - see `ferry bench disk --help`"}}) {
    const Outcome outcome = bench(words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_CONTAINS(outcome.err, message);
  }
  const Outcome missing = bench("--directory /no/such/directory");
  EXPECT_EQ(missing.exit_code, 5);
  EXPECT_CONTAINS(missing.err, "no file can be made in '/no/such/directory'");
  EXPECT_CONTAINS(bench("--help").out, "usage: ferry bench disk");
}

}  // namespace
}  // namespace ferry::cli
