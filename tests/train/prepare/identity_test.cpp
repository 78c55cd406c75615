#include "src/train/prepare/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "src/base/error.h"

namespace ferry {
namespace {

TEST(Identity, AllowsALargerSizeBesideThoseThatWere) {
  const auto with = [](std::vector<int64_t> sizes) {
    return nlohmann::ordered_json{{"seed", 1}, {"token_sizes", std::move(sizes)}};
  };
  EXPECT_NO_THROW(check_identity(with({64, 128}), with({64, 128}), config::Config()));
  EXPECT_NO_THROW(check_identity(with({64, 128}), with({64, 128, 256}), config::Config()));
  for (const auto& other : {with({64}), with({64, 192, 256}), with({})})
    EXPECT_THROW(check_identity(with({64, 128}), other, config::Config()), Error);
}

std::string refusal_of(const nlohmann::ordered_json& then,
                       const nlohmann::ordered_json& now,
                       const config::Config& config) {
  try {
    check_identity(then, now, config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/** The longest text is as long as the data have it, and the user did not name a length. */
TEST(Identity, NamesTheDataWhereALengthFollowsFromThem) {
  const auto with = [](int64_t length, const char* data, const char* eval) {
    return nlohmann::ordered_json{{"problem_type", "single_label_classification"},
                                  {"max_length", length},
                                  {"dataset", data},
                                  {"eval_dataset", eval}};
  };
  config::Config config;
  config.set("dataset", "other.tsv", {config::Source::command_line, "--dataset"});
  config.set("eval_dataset", "dev.tsv", {config::Source::file, "config.toml"});
  const auto then = with(64, "a", "b");
  EXPECT_THAT(refusal_of(then, with(63, "c", "d"), config),
              testing::HasSubstr("the texts or labels of 'other.tsv' have changed"));
  EXPECT_THAT(refusal_of(then, with(63, "a", "d"), config),
              testing::HasSubstr("the evaluation data of 'dev.tsv' have changed"));
  EXPECT_THAT(refusal_of(then, with(63, "a", "b"), config),
              testing::HasSubstr("max_length was 64"));
  auto labels = with(64, "c", "b");
  labels["problem_type"] = "multi_label_classification";
  EXPECT_THAT(refusal_of(then, labels, config), testing::HasSubstr("'other.tsv'"));
  config.set("max_length", "63", {config::Source::command_line, "--max-length"});
  EXPECT_THAT(refusal_of(then, with(63, "c", "d"), config),
              testing::HasSubstr("max_length was 64"));
}

TEST(Identity, OtherEvaluationDataOfARunThatTheyDecideAreRefused) {
  const nlohmann::ordered_json then = {{"dataset", "a"}, {"eval_dataset", "b"}},
                               now = {{"dataset", "a"}, {"eval_dataset", "c"}},
                               older = {{"dataset", "a"}};
  config::Config config;
  EXPECT_EQ(refusal_of(then, now, config), "");
  for (const auto& [key, value, off] : {std::tuple{"load_best_model_at_end", "true", "false"},
                                        {"early_stopping_patience", "2", "0"}}) {
    config.set(key, value, {config::Source::command_line, key});
    EXPECT_THAT(refusal_of(then, now, config), testing::HasSubstr("the evaluation data"));
    EXPECT_EQ(refusal_of(older, now, config), "");
    config.set(key, off, {config::Source::command_line, key});
  }
}

}  // namespace
}  // namespace ferry
