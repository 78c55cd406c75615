// Things that a report leaves out, and things that it leaves.

#include "src/runs/redaction.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ferry::runs {
namespace {

const Redaction kRedaction("/home/anna");

TEST(Redaction, SecretsGo) {
  for (const char* text :
       {"ferry train --hub-token S3CRET --lr 1e-5", "--hub_token=S3CRET", "HF_TOKEN=S3CRET ferry",
        R"(hub_token = "S3CRET")", R"("api_key": "S3CRET")", "Authorization: Bearer S3CRET",
        "password: S3CRET", "https://anna:S3CRET@example.org/model", "--wandb-key 'S3CRET'",
        "aws_secret=S3CRET", R"({"token":"S3CRET","x":1})"})
    EXPECT_EQ(kRedaction.text(text).find("S3CRET"), std::string::npos)
        << text << " -> " << kRedaction.text(text);
  for (const char* token : {"hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345", "ghp_0123456789abcdefghij",
                            "sk-proj-0123456789abcdefghij"})
    EXPECT_EQ(kRedaction.text(std::string("refused ") + token + " with 401"),
              "refused *** with 401");
}

TEST(Redaction, PathsKeepTheirEnd) {
  EXPECT_EQ(kRedaction.text("'/home/anna/My Work/x/data.tsv': no such file"),
            "'~/.../data.tsv': no such file");
  EXPECT_EQ(kRedaction.text("open /data/project-x/runs/a/ failed"), "open .../a failed");
  EXPECT_EQ(kRedaction.text("can't read '/data/project-x/b.tsv:12'"), "can't read '.../b.tsv:12'");
  EXPECT_EQ(kRedaction.text("--dataset=/home/anna/secret-work/c.tsv"), "--dataset=~/.../c.tsv");
  EXPECT_EQ(kRedaction.text("see https://example.org/doc/page"),
            "see https://example.org/doc/page");
}

TEST(Redaction, PromptsGo) {
  for (const char* text : {"sample_prompts = \"my S3CRET novel\"",
                           "ferry train --sample-prompts 'my S3CRET novel' --lr 1",
                           "ferry train '--sample-prompts=my S3CRET novel' --lr 1",
                           "ferry train 'sample_prompts=it'\\''s my S3CRET novel' --lr 1"})
    EXPECT_EQ(kRedaction.text(text).find("S3CRET"), std::string::npos) << kRedaction.text(text);
  EXPECT_EQ(kRedaction.text("ferry train --sample-prompts 'my novel' --lr 1"),
            "ferry train --sample-prompts ... --lr 1");
}

TEST(Redaction, PathsWithBlanksGo) {
  const Redaction redaction("/home/anna", {"/data/Jane Doe/aids list.jsonl", "Jane Doe/model"});
  for (const char* text :
       {"ferry train --model 'Jane Doe/model' --dataset 'Jane Doe/patients/list.jsonl'",
        "read /data/Jane Doe/aids list.jsonl: 80 texts", "model: Jane Doe/model",
        "under /data/Jane Doe/runs"})
    EXPECT_EQ(redaction.text(text).find("Doe/"), std::string::npos) << redaction.text(text);
  EXPECT_EQ(redaction.text("model: Jane Doe/model"), "model: .../model");
}

TEST(Redaction, TextsThatEndAnAnswerGo) {
  for (const char* text : {"stop = [\"S3CRET\"]", "ferry train --stop 'S3CRET -- x' --lr 1",
                           "2026-11-26T10:00:00Z stop was S3CRET, and is x from step 3 on"})
    EXPECT_EQ(kRedaction.text(text).find("S3CRET"), std::string::npos) << kRedaction.text(text);
  EXPECT_EQ(kRedaction.text("the run may stop here"), "the run may stop here");
  nlohmann::ordered_json value = {{"stop", {"S3CRET"}}, {"steps", 3}};
  kRedaction.clean(value);
  EXPECT_EQ(value.dump(), R"({"stop":"...","steps":3})");
}

TEST(Redaction, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(kRedaction.text("why: \x1b]0;x\x07\nnext"), "why: \\x1b]0;x\\x07\nnext");
}

TEST(Redaction, OrdinaryLinesStay) {
  for (const char* line :
       {"step 5: loss 0.4213  lr 3.00e-05  grad 1.20", "max_length = 512", "12 tokens/s",
        R"("num_input_tokens_seen": 1200)", "ferry train --model bert --dataset train.tsv",
        "learning_rate = 3e-05", "a / b", "it's the run's own"})
    EXPECT_EQ(kRedaction.text(line), line);
}

TEST(Redaction, JsonByKeysAndByTexts) {
  nlohmann::ordered_json value = {{"hub_token", "anything"},
                                  {"n_tokens", 5},
                                  {"path", "/home/anna/a b/runs/x"},
                                  {"list", {"/etc/ferry/y", "plain"}},
                                  {"inner", {{"password", {{"a", "S3CRET"}}}}}};
  kRedaction.clean(value);
  EXPECT_EQ(value["hub_token"], "***");
  EXPECT_EQ(value["n_tokens"], 5);
  EXPECT_EQ(value["path"], "~/.../x");
  EXPECT_EQ(value["list"][0], ".../y");
  EXPECT_EQ(value["list"][1], "plain");
  EXPECT_EQ(value.dump().find("S3CRET"), std::string::npos);
}

TEST(Redaction, LongAndManyLines) {
  const std::string line(3'000'000, 'a');
  EXPECT_LT(kRedaction.text(line + "\nnext\n").size(), 10'000u);
  EXPECT_EQ(kRedaction.text("a\n\nb\n"), "a\n\nb\n");
}

}  // namespace
}  // namespace ferry::runs
