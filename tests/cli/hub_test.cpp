// Models and data by name, as a user gives them: the built ferry against a hub on loopback.

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/ferry_fixture.h"
#include "tests/files/hub/fake_hub.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using test::FakeHub;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kLargeLlama = R"({"model_type": "llama", "vocab_size": 128256,
"hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
"intermediate_size": 28672, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05,
"rope_theta": 500000.0, "hidden_act": "silu"})";

class Hub : public FerryTest {
 protected:
  Hub() {
    hub_.put("models/org/tiny/main/config.json", kTinyBert);
    hub_.put("models/org/tiny/main/model.safetensors", test::bytes_of(400'000, 1));
    std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (char c = 'a'; c <= 'z'; ++c)
      words += fmt::format("{0}\n##{0}\n", c);
    hub_.put("models/org/tiny/main/vocab.txt", words);
    hub_.put("models/org/tiny/main/tokenizer_config.json",
             R"({"tokenizer_class": "BertTokenizer", "do_lower_case": true})");
  }

  /** With an empty cache of its own. */
  Outcome ferry(const std::string& line, const Environment& more = {}) {
    Environment environment = {{"HF_ENDPOINT", hub_.url()}, {"HF_HUB_CACHE", path("hub")},
                               {"HF_HUB_OFFLINE", "0"},     {"HF_TOKEN", ""},
                               {"FERRY_MODELS", ""},        {"FERRY_TRAINER", "/bin/true"}};
    environment.insert(environment.end(), more.begin(), more.end());
    return run(line, environment);
  }
  nlohmann::json answer_of(const std::string& line) {
    const Outcome outcome = ferry(line + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
  /** How often files of large size were asked for, and all files. */
  size_t n_requests(std::string_view origin) {
    size_t n = 0;
    for (const auto& request : hub_.requests())
      n += request["origin"] == origin;
    return n;
  }

  FakeHub& hub_ = FakeHub::fresh();
};

TEST_F(Hub, APlanFetchesTheConfigurationAlone) {
  EXPECT_EQ(answer_of("plan --model org/tiny --device cpu")["family"], "bert");
  EXPECT_EQ(n_requests("cdn"), 0U);
  hub_.forget_requests();
  EXPECT_EQ(ferry("plan --model org/tiny --device cpu").exit_code, 0);
  EXPECT_EQ(n_requests("hub"), 0U);  // it is here
}

TEST_F(Hub, AKnownNameIsPlannedWithoutAsking) {
  const auto plan = answer_of("plan --model Qwen/Qwen3-4B --machine 4090-24g --host-memory 128GiB");
  EXPECT_EQ(n_requests("hub"), 0U);
  EXPECT_NEAR(plan["n_parameters"].get<double>(), 4.02e9, 0.05e9);
}

TEST_F(Hub, AModelIsFetchedBeforeItIsUsed) {
  const Outcome outcome = ferry("eval --model org/tiny --dataset none.tsv");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("fetching org/tiny"),
                                 HasSubstr("kB in 1 file of weights"), HasSubstr(" free")));
  EXPECT_EQ(n_requests("cdn"), 1U);
  hub_.forget_requests();
  ferry("predict --model org/tiny 'some text'");
  EXPECT_EQ(n_requests("hub") + n_requests("cdn"), 0U);
}

TEST_F(Hub, WhatIsNotTrainedIsRefusedBeforeItsWeights) {
  hub_.put("models/org/moe/main/config.json", R"({"model_type": "qwen3_moe"})");
  hub_.put("models/org/moe/main/model.safetensors", test::bytes_of(400'000, 1));
  const Outcome outcome = ferry("train --model org/moe --dataset none.tsv");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("qwen3_moe"));
  EXPECT_EQ(n_requests("cdn"), 0U);
}

TEST_F(Hub, WhatDoesNotFitIsRefusedBeforeItsWeights) {
  hub_.put("models/org/large/main/config.json", kLargeLlama);
  hub_.put("models/org/large/main/model.safetensors", test::bytes_of(400'000, 1));
  directory_.write("book.txt", "a text\n");
  const Outcome outcome = ferry(
      "train --model org/large --dataset book.txt --task causal-lm --device cpu --host-memory "
      "4GiB");
  EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  EXPECT_EQ(n_requests("cdn"), 0U);
}

TEST_F(Hub, ADirectoryOfThatNameWins) {
  directory_.write("org/tiny/config.json", kTinyBert);
  EXPECT_EQ(ferry("plan --model org/tiny --device cpu").exit_code, 0);
  EXPECT_EQ(n_requests("hub"), 0U);
}

TEST_F(Hub, OfflineTakesWhatIsHere) {
  const std::pair<std::string, std::string> offline = {"HF_HUB_OFFLINE", "1"};
  Outcome outcome = ferry("plan --model org/tiny --device cpu", {offline});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("'org/tiny' is not in"));
  ASSERT_EQ(ferry("fetch org/tiny").exit_code, 0);
  hub_.forget_requests();
  EXPECT_EQ(ferry("plan --model org/tiny --device cpu", {offline}).exit_code, 0);
  EXPECT_EQ(ferry("fetch org/tiny", {offline}).exit_code, 0);
  EXPECT_EQ(n_requests("hub"), 0U);
}

TEST_F(Hub, FetchSaysWhatAModelDoesNotHave) {
  ASSERT_EQ(ferry("fetch org/tiny").exit_code, 0);
  const fs::path known = directory_.path() / "hub/models--org--tiny/.no_exist";
  ASSERT_TRUE(fs::is_directory(known));
  const fs::path of_commit = fs::directory_iterator(known)->path();
  EXPECT_TRUE(
      fs::exists(directory_.path() / "hub/models--org--tiny/snapshots" / of_commit.filename()));
  EXPECT_TRUE(fs::exists(of_commit / "generation_config.json"));
  EXPECT_FALSE(fs::exists(of_commit / "config.json"));
}

TEST_F(Hub, FetchBringsWhatIsHereUpToDate) {
  Outcome outcome = ferry("fetch org/tiny");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string before = outcome.out;
  EXPECT_TRUE(fs::exists(before.substr(0, before.size() - 1) + "/model.safetensors"));
  hub_.put("models/org/tiny/main/README.md", "new");
  const auto about = answer_of("fetch org/tiny")[0];
  EXPECT_NE(about["directory"].get<std::string>() + "\n", before);
  EXPECT_EQ(fs::path(about["directory"].get<std::string>()).filename().string(),
            about["commit"].get<std::string>());
}

TEST_F(Hub, AnAdapterComesWithItsModel) {
  hub_.put("models/org/lora/main/adapter_config.json",
           R"({"peft_type": "LORA", "r": 2, "base_model_name_or_path": "org/tiny"})");
  hub_.put("models/org/lora/main/adapter_model.safetensors", test::bytes_of(4'000, 2));
  const auto both = answer_of("fetch org/lora");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0]["name"], "org/lora");
  EXPECT_TRUE(fs::exists(both[0]["directory"].get<std::string>() + "/adapter_model.safetensors"));
  EXPECT_EQ(both[1]["name"], "org/tiny");
  EXPECT_TRUE(fs::exists(both[1]["directory"].get<std::string>() + "/model.safetensors"));
}

TEST_F(Hub, CtrlCLeavesWhatHasComeForTheNextTime) {
  hub_.put("models/org/tiny/main/model.safetensors", test::bytes_of(4'000'000, 1));
  hub_.set_rules({{{"in", "model.safetensors"}, {"origin", "cdn"}, {"ms_per_64k", 30}}});
  const pid_t child = ::fork();
  if (child == 0) {
    for (const auto& [name, value] :
         {std::pair<std::string, std::string>{"HF_ENDPOINT", hub_.url()},
          {"HF_HUB_CACHE", path("hub")},
          {"HF_HUB_OFFLINE", "0"}})
      ::setenv(name.c_str(), value.c_str(), 1);
    ::execl(ferry_binary().c_str(), "ferry", "fetch", "org/tiny", nullptr);
    ::_exit(127);
  }
  const auto has_begun = [&] {
    for (const auto& entry : fs::recursive_directory_iterator(directory_.path()))
      if (entry.path().extension() == ".incomplete" && entry.file_size() > 100'000) return true;
    return false;
  };
  for (int i = 0; i < 600 && !has_begun(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);  // 130 of a shell
  hub_.set_rules(nlohmann::json::array());
  hub_.forget_requests();
  EXPECT_EQ(ferry("fetch org/tiny").exit_code, 0);
  bool has_gone_on = false;
  for (const auto& request : hub_.requests())
    has_gone_on |= request["origin"] == "cdn" && !request["range"].is_null();
  EXPECT_TRUE(has_gone_on);
}

TEST_F(Hub, ADataSetIsFetchedAndRead) {
  const std::string to = "datasets/lab/news/main/";
  hub_.put(to + "README.md",
           "---\nconfigs:\n- config_name: all\n  data_files:\n"
           "  - split: train\n    path: rows/a*.jsonl\n"
           "  - split: test\n    path: rows/b.jsonl\n---\n");
  std::string rows;
  for (int i = 0; i < 40; ++i)
    rows += fmt::format("{{\"text\": \"a b c {}\", \"label\": \"{}\"}}\n", i, i % 2 ? "x" : "y");
  hub_.put(to + "rows/a1.jsonl", rows);
  hub_.put(to + "rows/a2.jsonl", rows + rows);
  hub_.put(to + "rows/b.jsonl", rows);
  const auto plan = [&](const std::string& data) {
    return ferry(
        "plan --model org/tiny --device cpu --json --train-batch-size 8 "
        "--num-train-epochs 1 --dataset " +
        data);
  };
  Outcome outcome = plan("lab/news");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("split train of train, test, configuration all"),
                                 HasSubstr("in 2 files"), HasSubstr("2 labels")));
  EXPECT_EQ(n_requests("cdn"), 2U) << "the rows, no weights";
  hub_.forget_requests();
  EXPECT_EQ(plan("lab/news:train").exit_code, 0);
  EXPECT_EQ(n_requests("hub"), 0U);
  outcome = plan("lab/news:dev");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("its splits are train, test"));
  EXPECT_EQ(answer_of("fetch --dataset lab/news:all:test")[0]["name"], "lab/news");
}

TEST_F(Hub, LabelsOfAFetchedDataSetHaveTheNamesOfItsPage) {
  const std::string to = "datasets/lab/stars/main/";
  hub_.put(to + "README.md",
           "---\ndataset_info:\n  features:\n  - name: text\n    dtype: string\n"
           "  - name: label\n    dtype:\n      class_label:\n        names:\n"
           "          '0': bad\n          '1': good\n---\n");
  hub_.put(to + "rows/train.csv", "text,label\na b,1\nc d,0\ne f,1\n");
  const auto preview = answer_of("preview --model org/tiny --dataset lab/stars");
  EXPECT_EQ(preview["labels"], nlohmann::json({"bad", "good"}));
  EXPECT_EQ(preview["samples"][0]["answer"], "good");
}

TEST_F(Hub, ADryRunFetchesNoWeights) {
  directory_.write("d.tsv", "text\tlabel\na b\tx\nb c\ty\nc d\tx\n");
  const Outcome outcome =
      ferry("train --model org/tiny --dataset d.tsv --device cpu --max-steps 1 --dry-run");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const auto& request : hub_.requests())
    EXPECT_THAT(request["path"].get<std::string>(), Not(testing::EndsWith("model.safetensors")));
}

TEST_F(Hub, NothingIsGuessedOfWhatIsNoName) {
  for (const char* name : {"./org/none", "/org/none", "a/b/c"})
    EXPECT_EQ(ferry(std::string("plan --device cpu --model ") + name).exit_code, 4) << name;
  EXPECT_EQ(n_requests("hub"), 0U);
  EXPECT_EQ(ferry("fetch").exit_code, 2);
  EXPECT_EQ(ferry("fetch ./org/none").exit_code, 2);
}

}  // namespace
}  // namespace ferry::cli
