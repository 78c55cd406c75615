#include "src/files/hf/hf_directory.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::error_of;
using test::raw_safetensors;
using test::read_file;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kConfig = R"({
  "architectures": ["BertModel"],
  "hidden_size": 384,
  "zeta": {"kept": [1, 2.5, null, "é"]},
  "layer_norm_eps": 1e-12,
  "model_type": "bert",
  "num_attention_heads": 12,
  "num_hidden_layers": 6,
  "pad_token_id": 0,
  "num_labels": 2,
  "vocab_size": 30522
})";

/** kConfig with one piece of text replaced. */
std::string with(std::string_view from, std::string_view to) {
  std::string text = kConfig;
  return text.replace(text.find(from), from.size(), to);
}

TEST(HfConfig, ReadsWhatTheModelIsFor) {
  auto config = HfConfig::parse(kConfig, "config.json");
  EXPECT_EQ(config.model_type, "bert");
  EXPECT_THAT(config.architectures, ElementsAre("BertModel"));
  EXPECT_EQ(config.fields().integer("vocab_size", 1, 1 << 20), 30522);
  EXPECT_TRUE(config.id2label.empty());
  EXPECT_EQ(config.fields().number("layer_norm_eps", 0, 1), 1e-12);
  EXPECT_EQ(config.fields().integer("type_vocab_size", 1, 9, 2), 2);
  EXPECT_EQ(config.fields().text("hidden_act", "gelu"), "gelu");
  EXPECT_FALSE(config.fields().flag("is_decoder", false));
}

TEST(HfConfig, RefusesWhatIsMissingOrOutOfRange) {
  struct Case {
    std::string text;
    const char* message;
  };
  const Case cases[] = {
      {"", "not valid JSON"},
      {"[1]", "the whole is [1], expected an object"},
      {with("\"model_type\": \"bert\"", "\"model_type\": 3"), "model_type is 3, expected a text"},
      {with("\"model_type\"", "\"other\""), "model_type is missing"},
      {with("[\"BertModel\"]", "\"BertModel\""), "architectures is \"BertModel\", expected a list"},
      {with("\"num_labels\": 2", R"("id2label": {"0": "a", "2": "b"})"),
       "expected names for the numbers 0 to 1"},
      {with("\"num_labels\": 2", R"("id2label": ["a"])"), "expected an object of names"},
  };
  for (const Case& bad : cases)
    EXPECT_THAT(error_of([&] { HfConfig::parse(bad.text, "dir/config.json"); }),
                HasSubstr(bad.message));
  auto config = HfConfig::parse(kConfig, "c");
  EXPECT_THAT(error_of([&] { config.fields().number("layer_norm_eps", 1e-9, 1); }),
              HasSubstr("1e-12"));
  EXPECT_THAT(error_of([&] { config.fields().text("hidden_act"); }),
              HasSubstr("hidden_act is missing"));
}

TEST(HfConfig, WritesBackWhatItDoesNotKnowAndOnlyTheChanges) {
  TempDir dir;
  auto config = HfConfig::parse(kConfig, "c");
  write_config(dir.path(), config);
  auto same = nlohmann::ordered_json::parse(read_file(dir / "config.json"));
  EXPECT_EQ(same, nlohmann::ordered_json::parse(kConfig));  // also the order of the keys

  config.set_labels({"no", "yes"});
  config.set_problem_type("single_label_classification");
  config.set_architecture("BertForSequenceClassification");
  write_config(dir.path(), config);
  auto read = HfConfig::load(dir / "config.json");
  EXPECT_THAT(read.id2label, ElementsAre("no", "yes"));
  EXPECT_EQ(read.problem_type, "single_label_classification");
  EXPECT_THAT(read.architectures, ElementsAre("BertForSequenceClassification"));
  EXPECT_EQ(read.json()["label2id"]["yes"], 1);
  EXPECT_EQ(read.json()["zeta"], config.json()["zeta"]);
  EXPECT_FALSE(read.json().contains("num_labels"));
}

TEST(HfConfig, AClassifierOfTokensWithoutNamesHasTwoLabels) {
  auto config = HfConfig::parse(kConfig, "c");
  config.set_architecture("BertForTokenClassification");
  auto json = config.json();
  json.erase("id2label");
  EXPECT_THAT(HfConfig::parse(json.dump(), "c").id2label, ElementsAre("LABEL_0", "LABEL_1"));
}

TEST(HfDirectory, SaysWhatIsMissing) {
  TempDir dir;
  auto open = [](const std::filesystem::path& path) {
    return error_of([&] { HfDirectory::open(path); });
  };
  EXPECT_THAT(open(dir / "nowhere"), HasSubstr("nowhere' does not exist"));
  EXPECT_THAT(open(dir.write("file", "")), HasSubstr("is a file, expected a model directory"));
  EXPECT_THAT(open(dir.path()), HasSubstr("has no config.json"));
  dir.write("config.json", kConfig);
  EXPECT_THAT(open(dir.path()), HasSubstr("has neither model.safetensors"));
  EXPECT_EQ(HfDirectory::open(dir.path(), /*needs_weights=*/false).config().model_type, "bert");
  dir.write("pytorch_model.bin", "");
  EXPECT_THAT(open(dir.path()), HasSubstr("pytorch_model.bin': it is no file of torch.save"));
}

std::vector<std::string> names_of(const HfDirectory& directory) {
  std::vector<std::string> names;
  for (const auto& file : directory.copied_files())
    names.push_back(file.name);
  return names;
}

TEST(HfDirectory, CopiesTheTokenizerByteForByte) {
  TempDir from, to;
  from.write("config.json", kConfig);
  from.write("model.safetensors", raw_safetensors("{}", 0));
  const std::string odd("{ \"x\":\t1}\r\n\0\xff", 13);
  from.write("tokenizer.json", odd);
  from.write("vocab.txt", "[PAD]\n");
  from.write("tokenizer.model.v3", "pieces");
  from.write("o200k.tiktoken", "ranks");
  from.write("README.md", "not copied");
  from.write("additional_chat_templates/tool_use.jinja", "{{ tools }}");
  auto directory = HfDirectory::open(from.path());
  EXPECT_THAT(names_of(directory),
              ElementsAre("tokenizer.json", "vocab.txt", "additional_chat_templates/tool_use.jinja",
                          "o200k.tiktoken", "tokenizer.model.v3"));
  directory.copy_files(to.path());
  EXPECT_EQ(to.n_entries(), 5u);
  EXPECT_EQ(read_file(to / "additional_chat_templates/tool_use.jinja"), "{{ tools }}");
  EXPECT_EQ(read_file(to / "tokenizer.json"), odd);
  EXPECT_EQ(read_file(to / "o200k.tiktoken"), "ranks");
  EXPECT_TRUE(directory.weights().tensors().empty());
}

/** A model of somebody else could have a file of the user's copied into what is sent on. */
TEST(HfDirectory, CopiesNothingFromOutside) {
  namespace fs = std::filesystem;
  const TempDir dir;
  dir.write("secret", "a key");
  dir.write("model/config.json", kConfig);
  dir.write("model/real.json", "{}");
  const auto opened = [](const fs::path& path) {
    return HfDirectory::open(path, /*needs_weights=*/false);
  };
  fs::create_symlink("real.json", dir / "model/tokenizer_config.json");
  opened(dir / "model").check_copyable();
  fs::create_symlink(dir / "secret", dir / "model/special_tokens_map.json");
  EXPECT_THAT(error_of([&] { opened(dir / "model").check_copyable(); }, Fault::data),
              testing::AllOf(HasSubstr("special_tokens_map.json' is a link that leads out"),
                             HasSubstr("/secret'")));
  // As the hub's cache has them.
  dir.write("repo/blobs/0123", "{}");
  dir.write("repo/snapshots/abc/config.json", kConfig);
  fs::create_symlink("../../blobs/0123", dir / "repo/snapshots/abc/tokenizer.json");
  dir.write("repo/snapshots/abc/additional_chat_templates/README", "");
  fs::create_symlink("../../../blobs/0123",
                     dir / "repo/snapshots/abc/additional_chat_templates/tool_use.jinja");
  opened(dir / "repo/snapshots/abc").check_copyable();
}

TEST(HfConfig, RefusesMoreLabelsThanAnyModelHas) {
  nlohmann::json json = nlohmann::json::parse(kConfig);
  json["id2label"] = nlohmann::json::object();
  for (int i = 0; i <= 1 << 18; ++i)
    json["id2label"][std::to_string(i)] = "x";
  EXPECT_THAT(error_of([&] { HfConfig::parse(json.dump(), "c"); }, Fault::data),
              HasSubstr("id2label has 262145 names, expected at most 262144"));
}

/** Room for the most labels, and no more: the file is not even read. */
TEST(HfConfig, RefusesAFileThatIsTooLargeBeforeItIsRead) {
  TempDir dir;
  dir.write("config.json", kConfig);
  std::filesystem::resize_file(dir / "config.json", (32 << 20) + 1);
  EXPECT_THAT(error_of([&] { HfConfig::load(dir / "config.json"); }, Fault::data),
              HasSubstr("expected at most 32.0 MiB"));
}

TEST(HfConfig, RefusesMoreKeysThanAnyModelHas) {
  const auto keys = [](int n) {
    nlohmann::json many = nlohmann::json::object();
    for (int i = 0; i < n; ++i)
      many["key_" + std::to_string(i)] = i;
    return many;
  };
  const nlohmann::json few = nlohmann::json::parse(kConfig);
  nlohmann::json whole = few;
  whole.update(keys(4096));
  EXPECT_THAT(error_of([&] { HfConfig::parse(whole.dump(), "c"); }, Fault::data),
              HasSubstr("the whole has 4106 keys, expected at most 4096"));
  nlohmann::json part = few;
  part["model_type"] = "gemma3";
  part["text_config"] = keys(4097);
  EXPECT_THAT(error_of([&] { HfConfig::parse(part.dump(), "c"); }, Fault::data),
              HasSubstr("text_config has 4097 keys, expected at most 4096"));
}

/** In the order of their ids; a name that comes twice keeps its first place and its last id. */
TEST(HfConfig, WritesAsManyLabelsAsItReads) {
  constexpr size_t kLabels_max = size_t{1} << 18;
  std::vector<std::string> names(kLabels_max);
  for (size_t id = 0; id < names.size(); ++id)
    names[id] = "name " + std::to_string(id);
  auto config = HfConfig::parse(kConfig, "c");
  config.set_labels(names);
  EXPECT_EQ(config.json()["label2id"].size(), kLabels_max);
  EXPECT_EQ(config.json()["label2id"].back(), kLabels_max - 1);
  EXPECT_EQ(HfConfig::parse(config.json().dump(), "c").id2label, names);
  config.set_labels({"a", "b", "a"});
  EXPECT_EQ(config.json()["label2id"].dump(), R"({"a":2,"b":1})");
  EXPECT_EQ(config.json()["id2label"].dump(), R"({"0":"a","1":"b","2":"a"})");
}

/** Its stop tokens stand in no other file of many models. */
TEST(HfDirectory, CopiesHowTheModelGenerates) {
  TempDir from, to;
  from.write("config.json", kConfig);
  from.write("model.safetensors", raw_safetensors("{}", 0));
  from.write("generation_config.json", "{\"eos_token_id\": [2, 28]}");
  HfDirectory::open(from.path()).copy_files(to.path());
  EXPECT_EQ(read_file(to / "generation_config.json"), "{\"eos_token_id\": [2, 28]}");
  // A model from scratch takes its tokenizer from there, and not how another model generates.
  const HfConfig config = HfConfig::load(from.path() / "config.json");
  EXPECT_THAT(names_of(HfDirectory::from_scratch(config, from.path())), ElementsAre());
}

}  // namespace
}  // namespace ferry
