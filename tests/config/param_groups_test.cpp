// How freeze, param_groups and max_time are spelt: on a command line, in TOML, in config.toml.

#include "src/config/param_groups.h"

#include "tests/config/config_fixture.h"

namespace ferry::config {
namespace {

TEST(ParamGroups, ReadWhatTheyWrite) {
  const ParamGroups read =
      parse_param_groups(" classifier.* : lr = 1e-4, decay=0 ;*.bias:factor=2\nbert.*:decay=0.1;");
  ASSERT_EQ(read.problem, "");
  ASSERT_EQ(read.groups.size(), 3u);
  EXPECT_EQ(read.groups[0].pattern, "classifier.*");
  EXPECT_EQ(read.groups[0].learning_rate, 1e-4);
  EXPECT_EQ(read.groups[0].weight_decay, 0.0);
  EXPECT_EQ(read.groups[0].lr_factor, std::nullopt);
  EXPECT_EQ(read.groups[1].lr_factor, 2.0);
  const std::string text = to_text(read.groups);
  EXPECT_EQ(text, "classifier.*:lr=0.0001,decay=0; *.bias:factor=2; bert.*:decay=0.1");
  EXPECT_EQ(to_text(parse_param_groups(text).groups), text);
  EXPECT_TRUE(parse_param_groups(" ").groups.empty());
}

TEST(ParamGroups, SayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {{"a.*", "says nothing"},
                                                       {":lr=1e-4", "has no pattern"},
                                                       {"a:", "none of lr"},
                                                       {"a:lr", "expected a number"},
                                                       {"a:lr=", "expected a number"},
                                                       {"a:lr=nan", "expected a number"},
                                                       {"a:lr=-1", "from 0 to 1"},
                                                       {"a:decay=1.1", "from 0 to 1"},
                                                       {"a:factor=1e4", "from 0 to"},
                                                       {"a:lr=1e-4,lr=1e-5", "twice"},
                                                       {"a:lr=1e-4,factor=2", "both"},
                                                       {"a:rate=1e-4", "none of lr"},
                                                       {"a:lr=1e-4 1e-5", "'1e-4 1e-5'"}};
  for (const auto& [text, problem] : cases) {
    const std::string message = refusal("train", {std::string("--param-groups=") + text});
    EXPECT_CONTAINS(message, problem);
    EXPECT_CONTAINS(message, "--param-groups");
  }
}

TEST(ParamGroups, AreTablesAndListsInToml) {
  TemporaryDirectory directory;
  const auto file = directory.write("c.toml", R"(
freeze = ["bert.embeddings.*", "bert.encoder.layer.[0-3].*"]
max_time = "1.5h"
[[param_groups]]
pattern = "classifier.*"
learning_rate = 1e-4
weight_decay = 0.0
[[param_groups]]
pattern = "*.bias"
lr_factor = 2
)");
  const Config config = parse("train", {"--config", file.string()}).config;
  EXPECT_EQ(config.list("freeze"),
            (std::vector<std::string>{"bert.embeddings.*", "bert.encoder.layer.[0-3].*"}));
  EXPECT_EQ(config.integer("max_time"), 5400);
  EXPECT_EQ(config.text("param_groups"), "classifier.*:lr=0.0001,decay=0; *.bias:factor=2");

  const auto resolved = directory.write("config.toml", config.to_toml());
  const Config again = parse("train", {"--config", resolved.string()}).config;
  for (const Option& option : option_table())
    EXPECT_EQ(again.value(option.key), config.value(option.key)) << option.key;
  EXPECT_CONTAINS(config.to_toml(), "max_time = \"90min\"");
}

TEST(ParamGroups, InTomlAreRefusedByLine) {
  TemporaryDirectory directory;
  for (const char* group :
       {"pattern = \"a\"", "learning_rate = 1e-4", "pattern = \"a\"\nlearning_rat = 1e-4",
        "pattern = \"a\"\nlr = [1]", "pattern = \"a\"\nlr = \"fast\"", "pattern = 3\nlr = 1e-4"}) {
    const auto file = directory.write("c.toml", std::string("\n[[param_groups]]\n") + group);
    EXPECT_CONTAINS(refusal("train", {"--config", file.string()}), file.string() + ":2");
  }
}

TEST(MaxTime, IsATimeWithItsUnit) {
  const auto seconds = [](const std::string& text) {
    return parse("train", {"--max-time=" + text}).config.integer("max_time");
  };
  EXPECT_EQ(seconds("90s"), 90);
  EXPECT_EQ(seconds("90"), 90);
  EXPECT_EQ(seconds("30 min"), 1800);
  EXPECT_EQ(seconds("8h"), 28800);
  EXPECT_EQ(seconds("2d"), 172800);
  EXPECT_EQ(seconds("0.5h"), 1800);
  for (const char* bad : {"8hours", "h", "1h30min", "-5s", "inf", "nan h", "1e300d", "4000d"})
    EXPECT_CONTAINS(usage_error([&] { seconds(bad); }), "max_time");
}

}  // namespace
}  // namespace ferry::config
