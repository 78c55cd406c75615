#pragma once
// The built ferry in a directory of the test's own.

#include <nlohmann/json.hpp>

#include "tests/cli/run_ferry.h"
#include "tests/config/config_fixture.h"

namespace ferry::cli {

inline constexpr const char* kTinyBert =
    R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 100,
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 64, "type_vocab_size": 2, "hidden_act": "gelu"})";

class FerryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (ferry_binary().empty())
      GTEST_SKIP() << "FERRY_BINARY names no ferry; run through meson test";
  }
  /** Runs it in the directory with the words of a line, as they are typed after "ferry". Its own
   * presets are in ferry/presets, its index of runs and its profile in data/ferry. */
  Outcome run(const std::string& line, const Environment& more = {}) const {
    Start start = {.arguments = config::words_of(line),
                   .environment = {{"XDG_CONFIG_HOME", path("")},
                                   {"XDG_DATA_HOME", path("data")},
                                   {"HOME", path("home")},
                                   {"LC_ALL", "C"}},
                   .directory = path("")};
    start.environment.insert(start.environment.end(), more.begin(), more.end());
    return run_ferry(start);
  }
  /** The same where it succeeds. */
  Outcome succeed(const std::string& line, const Environment& more = {}) const {
    Outcome outcome = run(line, more);
    EXPECT_EQ(outcome.exit_code, 0) << line << ": " << outcome.err;
    return outcome;
  }
  /** Its answer for programs; it succeeds. */
  nlohmann::json json_of(const std::string& line, const Environment& more = {}) const {
    return nlohmann::json::parse(succeed(line + " --json", more).out, nullptr,
                                 /*allow_exceptions=*/false);
  }
  /** It ends with the exit code and says the message. */
  void expect_refused(const std::string& line,
                      int exit_code,
                      std::string_view message,
                      const Environment& more = {}) const {
    const Outcome outcome = run(line, more);
    EXPECT_EQ(outcome.exit_code, exit_code) << line << ": " << outcome.err;
    EXPECT_CONTAINS(outcome.err, message);
  }
  std::string path(std::string_view name) const { return (directory_.path() / name).string(); }

  config::TemporaryDirectory directory_;
};

}  // namespace ferry::cli
