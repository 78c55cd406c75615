// The words of a command line say what ferry export writes.

#include "src/request/export_target.h"

#include "tests/config/config_fixture.h"

namespace ferry {
namespace {

ExportTarget target(const std::string& words) {
  return export_target(config::parse("export --model m " + words).config);
}

TEST(ExportTarget, AFileByItsNameOrByTheFormat) {
  EXPECT_FALSE(target("--output dir").is_gguf);
  EXPECT_EQ(target("--output dir").path, "dir");
  EXPECT_FALSE(target("--output dir --format hf").is_gguf);
  EXPECT_TRUE(target("--output x/y.gguf").is_gguf);
  EXPECT_EQ(target("--outfile x/y.gguf --outtype q8_0").path, "x/y.gguf");
  EXPECT_EQ(target("--output dir --format gguf").path, "dir/model.gguf");
  EXPECT_EQ(target("--output dir --format gguf --dtype bf16").path, "dir/model.gguf");
}

TEST(ExportTarget, TwoThingsAtOnceAreRefused) {
  for (const char* words : {"--output y.gguf --format hf", "--output dir --gguf-type f16",
                            "--output y.gguf --gguf-type f16 --dtype bf16"}) {
    try {
      target(words);
      ADD_FAILURE() << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::usage) << words;
    }
  }
}

}  // namespace
}  // namespace ferry
