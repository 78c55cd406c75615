// The zip that a user sends along: nothing of other files, and nothing that a terminal obeys.

#include "src/service/runs/run_report.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <zip.h>

#include <memory>
#include <string>

#include "tests/files/test_files.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string entry_of(const fs::path& file, const char* name) {
  const std::unique_ptr<zip_t, decltype(&zip_discard)> zip(
      zip_open(file.c_str(), ZIP_RDONLY, nullptr), zip_discard);
  if (!zip) return "no zip";
  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> entry(zip_fopen(zip.get(), name, 0),
                                                                 zip_fclose);
  std::string text(1 << 16, '\0');
  const zip_int64_t n = entry ? zip_fread(entry.get(), text.data(), text.size()) : 0;
  text.resize(static_cast<size_t>(n));
  return text;
}

class RunReport : public ::testing::Test {
 protected:
  fs::path report() {
    const fs::path zip = directory_ / "report.zip";
    fs::remove(zip);
    return write_run_report(run_, zip);
  }
  test::TempDir directory_;
  const fs::path run_ = directory_
                            .write("run/run.json", R"({"phase": "finished", "plan":
      {"why": "all \u001b]0;PWN\u0007 fits", "rows": []}})")
                            .parent_path();
};

TEST_F(RunReport, PacksNoLinks) {
  const fs::path key = directory_.write("id_rsa", "-----BEGIN KEY-----\nSECRET\n");
  const fs::path record = directory_.write("secret.json", R"({"phase": "SECRET", "n": 12345})");
  for (const char* name : {"train.log", "config.toml", "metrics.jsonl"})
    fs::create_symlink(name == std::string("metrics.jsonl") ? record : key, run_ / name);
  fs::path zip = report();
  for (const char* name : {"train.log", "config.toml"})
    EXPECT_THAT(entry_of(zip, name),
                AllOf(HasSubstr("is a link: left out"), Not(HasSubstr("SECRET"))));
  EXPECT_THAT(entry_of(zip, "metrics.jsonl"), Not(HasSubstr("12345")));
  fs::remove(run_ / "run.json");
  fs::create_symlink(record, run_ / "run.json");
  zip = report();
  EXPECT_THAT(entry_of(zip, "run.json"), AllOf(HasSubstr("is a link"), Not(HasSubstr("SECRET"))));
}

TEST_F(RunReport, IsItsOwnersAndPlainText) {
  const fs::path zip = report();
  EXPECT_THAT(entry_of(zip, "plan.txt"),
              AllOf(HasSubstr("all \\x1b]0;PWN\\x07 fits"), Not(HasSubstr("\x1b"))));
  struct stat status {};
  ASSERT_EQ(::stat(zip.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace ferry::service
