// Faults of training data that raise no error, planted one by one, most of them from public reports
// about other trainers; and data without any.

#include "src/inputs/preflight.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "src/base/error.h"
#include "src/service/preview.h"
#include "tests/files/test_files.h"
#include "tests/request/settings.h"
#include "tests/train/tiny_model.h"

namespace ferry::service {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kWords = {"the", "a",    "car",  "house", "bird",
                                         "was", "very", "near", "old",   "new"};

std::string words(std::mt19937& random, unsigned n) {
  std::string text;
  for (unsigned w = 0; w < n; ++w)
    text += (w > 0 ? " " : "") + kWords[random() % kWords.size()];
  return text;
}

/** Chats whose texts all differ. */
std::string chats(int n, unsigned seed, const std::string& more_turns = "") {
  std::mt19937 random(seed);
  std::string all;
  for (int i = 0; i < n; ++i)
    all += fmt::format(
        R"({{"messages": [{}{{"role": "user", "content": "{}"}}, {{"role": "assistant", "content": "{}"}}]}})"
        "\n",
        more_turns, words(random, 8), words(random, 6));
  return all;
}

std::string rows(int n, unsigned seed, const std::function<std::string(int)>& label) {
  std::mt19937 random(seed);
  std::string all = "text\tlabel\n";
  for (int i = 0; i < n; ++i)
    all += fmt::format("{}\t{}\n", words(random, 9), label(i));
  return all;
}

std::string red_or_blue(int i) {
  return i % 2 == 0 ? "red" : "blue";
}

struct Planted {
  std::string model = "chat", file = "x.jsonl", text;
  Settings settings = {};
  std::string chat_template = {};  ///< in place of the model's own
  std::string generation_config = {};
  std::string eval_text = {};
};

class Preflights : public ::testing::Test {
 protected:
  Preflights() {
    test::write_tiny_model(directory_ / "bert");
    test::write_tiny_language_model(directory_ / "llama");
    test::write_tiny_chat_model(directory_ / "chat");
  }

  Preview preview_of(const Planted& planted) const {
    const fs::path model = directory_ / ("model" + std::to_string(n_models_++));
    fs::copy(directory_ / planted.model, model, fs::copy_options::recursive);
    if (!planted.chat_template.empty())
      std::ofstream(model / "chat_template.jinja") << planted.chat_template;
    if (!planted.generation_config.empty())
      std::ofstream(model / "generation_config.json") << planted.generation_config;
    Settings all = {{"model", model.string()},
                    {"task", planted.model == "bert" ? "classification" : "causal-lm"},
                    {"dataset", directory_.write(planted.file, planted.text).string()},
                    {"token_cache", "off"}};
    if (!planted.eval_text.empty())
      all.emplace_back("eval_dataset",
                       directory_.write("eval_" + planted.file, planted.eval_text).string());
    all.insert(all.end(), planted.settings.begin(), planted.settings.end());
    return preview(config_of(all));
  }

  /** The checks that find something, the notes that warn, and the error that is thrown. */
  std::string said_of(const Planted& planted) const {
    std::string said;
    try {
      const Preview preview = preview_of(planted);
      for (const PreflightFinding& finding : preview.findings)
        said +=
            fmt::format("{} {}: {}: {}\n", finding.gravity == Gravity::error ? "fault" : "warning",
                        finding.check, finding.text, finding.hint);
      for (const std::string& note : preview.notes)
        if (note.starts_with("warning") || note.find("left out") != note.npos) said += note + "\n";
    } catch (const Error& error) {
      said = fmt::format("error {}\n", error.what());
    }
    return said;
  }

  test::TempDir directory_;
  mutable int n_models_ = 0;
};

constexpr const char* kTurns = "{% for m in messages %}";

/** A template like the model's own, with other words for a turn. */
std::string template_with(const std::string& turn) {
  return std::string(kTurns) + turn + "{% endfor %}{% if add_generation_prompt %}is{% endif %}";
}

TEST_F(Preflights, NameEachPlantedFault) {
  struct Case {
    std::string source, expected;
    Planted planted;
  };
  const std::string marked_without_end = template_with(
      "{% if m.role == 'assistant' %}is {% generation %}{{ m.content }}"
      "{% endgeneration %} very{% else %}[BOS] {{ m.content }} [EOS]{% endif %}");
  const std::string own =
      template_with("{{ '[BOS]' if m.role == 'user' else 'is' }} {{ m.content }} [EOS]");
  const std::string without_system = template_with(
      "{% if m.role != 'system' %}{{ '[BOS]' if m.role == 'user' else 'is' }} {{ m.content }} "
      "[EOS]{% endif %}");
  const std::string without_questions = template_with(
      "{% if m.role == 'user' %}[BOS] [EOS]{% else %}is {{ m.content }} [EOS]{% endif %}");
  const std::string thinking =
      R"({"messages": [{"role": "user", "content": "the car"}, {"role": "assistant", )"
      R"("reasoning_content": "very very old", "content": "a bird"}]})"
      "\n";
  const std::string tools =
      R"({"messages": [{"role": "user", "content": "the car"}, {"role": "assistant", )"
      R"("content": "a bird", "tool_calls": [{"id": "1", "type": "function", "function": )"
      R"({"name": "near", "arguments": "{}"}}]}, {"role": "tool", "content": "new", )"
      R"("tool_call_id": "1"}, {"role": "assistant", "content": "old"}]})"
      "\n";
  std::string empty_answers, unlearnt;
  for (const char* word : {"car", "house", "bird", "old"}) {
    empty_answers += fmt::format(
        R"({{"messages": [{{"role": "user", "content": "the {}"}}, {{"role": "assistant", "content": ""}}]}})"
        "\n",
        word);
    unlearnt += fmt::format(
        R"({{"messages": [{{"role": "user", "content": "the {}"}}, {{"role": "assistant", "content": "a", "weight": 0}}]}})"
        "\n",
        word);
  }
  const std::string half = rows(40, 1, red_or_blue);
  std::string twice = half + half.substr(half.find('\n') + 1);
  std::string contradicted = "text\tlabel\n";
  std::mt19937 random(5);
  for (int i = 0; i < 20; ++i) {
    const std::string text = words(random, 9);
    contradicted += text + "\tred\n" + text + "\tblue\n";
  }
  const std::string typed =
      R"({"messages": [{"role": "user", "content": "the [EOS] car"}, {"role": "assistant", "content": "a bird"}]})"
      "\n";
  const std::string long_question = fmt::format(
      R"({{"messages": [{{"role": "user", "content": "{}"}}, {{"role": "assistant", "content": "a bird"}}]}})"
      "\n",
      words(random, 60));

  const std::vector<Case> cases = {
      {"no answer is learnt (marin#7237, transformers#34172)", "learn", {.text = unlearnt}},
      {"results of tools are learnt (Megatron-Bridge#3359, LlamaFactory#9772)",
       "warning tools",
       {.text = tools, .settings = {{"train_on_turns", "all"}}, .chat_template = own}},
      {"no end of a turn is learnt (TRL#5988, #6044)",
       "fault stop_token",
       {.text = chats(20, 1), .chat_template = marked_without_end}},
      {"generation stops at another token (axolotl#3756, spotlight#32, ollama#8363)",
       "warning stop_token",
       {.text = chats(20, 2), .generation_config = R"({"eos_token_id": 1})"}},
      {"the template does not say what answers say (unsloth#6926)",
       "error",
       {.text = chats(20, 3), .chat_template = template_with("[BOS] [EOS]")}},
      {"a question fills max_length (unsloth#11333, UniVR#13)",
       "left out",
       {.text = long_question + chats(9, 4), .settings = {{"max_length", "32"}}}},
      {"answers are empty (TRL#6548, #6588)", "empty", {.text = empty_answers}},
      {"the template loses questions (TRL#6433)",
       "fault template",
       {.text = chats(20, 5), .chat_template = without_questions}},
      {"the template loses the system prompt",
       "warning template",
       {.text = chats(20, 6, R"({"role": "system", "content": "very near"}, )"),
        .chat_template = without_system}},
      {"the template loses thinking (TRL#6363)",
       "warning template",
       {.text = thinking, .chat_template = own}},
      {"packing gains nothing (unsloth#7234)",
       "warning packing",
       {.text = chats(20, 7), .settings = {{"packing", "true"}, {"max_length", "20"}}}},
      {"another template than the model's own (LlamaFactory#6020, OpenRLHF#1069)",
       "warning template",
       {.text = chats(20, 8), .settings = {{"chat_template", "vicuna"}}}},
      {"control tokens in people's words (transformers#29279, #47822)",
       "control tokens",
       {.text = typed + chats(5, 9)}},
      {"a rate for another method (aprender#2258, TRL#2070)",
       "warning learning_rate",
       {.text = chats(20, 10), .settings = {{"learning_rate", "0.01"}}}},
      {"a rate a hundred times too small",
       "warning learning_rate",
       {.text = chats(20, 10), .settings = {{"learning_rate", "1e-7"}}}},
      {"roles that nobody converted",
       "error",
       {.text =
            R"({"messages": [{"role": "human", "content": "a"}, {"role": "robot", "content": "b"}]})"
            "\n"}},
      {"most answers are cut", "cut", {.text = chats(20, 11), .settings = {{"max_length", "13"}}}},
      {"all have one label",
       "fault labels",
       {.model = "bert",
        .file = "x.tsv",
        .text = rows(40, 12, [](int i) { return i < 39 ? "red" : "blue"; }),
        .settings = {{"max_train_samples", "30"}}}},
      {"a label that training lacks",
       "warning labels",
       {.model = "bert",
        .file = "x.tsv",
        .text = rows(40, 13, [](int i) { return i < 39 ? red_or_blue(i) : "green"; }),
        .settings = {{"max_train_samples", "30"}},
        .eval_text = rows(10, 14, [](int) { return "green"; })}},
      {"the same texts in both",
       "warning in_both",
       {.model = "bert", .file = "x.tsv", .text = half, .eval_text = half}},
      {"rows are there twice",
       "warning repeated",
       {.model = "bert", .file = "x.tsv", .text = twice}},
      {"one text with two labels",
       "warning contradicted",
       {.model = "bert", .file = "x.tsv", .text = contradicted}},
      {"chosen template and file differ (two templates)",
       "warning template",
       {.model = "two_templates", .text = chats(20, 15)}},
      {"an image in a chat",
       "error",
       {.text =
            R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}, {"role": "assistant", "content": "b"}]})"
            "\n"}},
      {"the answer comes first",
       "error",
       {.text = R"({"messages": [{"role": "user", "content": "b"}]})"
                "\n"}},
  };
  fs::copy(directory_ / "chat", directory_ / "two_templates", fs::copy_options::recursive);
  auto config = nlohmann::json::object();
  if (fs::exists(directory_ / "chat/tokenizer_config.json"))
    config = nlohmann::json::parse(std::ifstream(directory_ / "chat/tokenizer_config.json"));
  config["chat_template"] = template_with("[BOS] a {{ m.content }} [EOS]");
  std::ofstream(directory_ / "two_templates/tokenizer_config.json") << config.dump();
  EXPECT_GE(cases.size(), 25u);
  for (const Case& its : cases)
    EXPECT_THAT(said_of(its.planted), HasSubstr(its.expected)) << its.source;
}

TEST_F(Preflights, FindNothingInSoundData) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::mt19937 random(seed);
    std::string prompts, documents, scores = "text\tscore\n", pairs = "a\tb\tlabel\n";
    for (int i = 0; i < 60; ++i) {
      prompts += fmt::format(R"({{"prompt": "{}", "completion": "{}"}})"
                             "\n",
                             words(random, 8), words(random, 5));
      documents += fmt::format("{{\"text\": \"{}\"}}\n", words(random, 12));
      scores += fmt::format("{}\t{}.5\n", words(random, 9), random() % 5);
      pairs += fmt::format("{}\t{}\t{}\n", words(random, 7), words(random, 7), red_or_blue(i));
    }
    const Settings held_out = {{"eval_fraction", "0.2"}};
    const std::vector<Planted> sound = {
        {.text = chats(60, seed), .settings = held_out},
        {.text = chats(60, seed, R"({"role": "system", "content": "very near"}, )")},
        {.text = prompts, .settings = held_out},
        {.text = documents},
        {.model = "bert",
         .file = "x.tsv",
         .text = rows(60, seed, red_or_blue),
         .settings = held_out},
        {.model = "bert",
         .file = "x.tsv",
         .text = pairs,
         .settings = {{"text_column", "a"}, {"text_pair_column", "b"}, {"label_column", "label"}}},
    };
    for (const Planted& its : sound)
      EXPECT_THAT(said_of(its), IsEmpty()) << its.text.substr(0, 200);
  }
}

TEST_F(Preflights, MayBeLeftOut) {
  const std::string twice = rows(40, 1, red_or_blue) + rows(40, 1, red_or_blue).substr(11);
  EXPECT_THAT(said_of({.model = "bert", .file = "x.tsv", .text = twice}), HasSubstr("repeated"));
  EXPECT_THAT(
      said_of(
          {.model = "bert", .file = "x.tsv", .text = twice, .settings = {{"preflight", "false"}}}),
      IsEmpty());
}

TEST(PreflightFindings, FaultsAreThrownAndWarningsAreSaid) {
  const std::vector<PreflightFinding> warned = {
      {"cut", Gravity::warning, "9 texts are cut", "raise it"}};
  EXPECT_EQ(take_warnings(warned), std::vector<std::string>{"warning: 9 texts are cut: raise it"});
  const std::string said = test::error_of([] {
    take_warnings({{"empty", Gravity::error, "all texts are empty", "leave them out"}});
  });
  EXPECT_THAT(said, HasSubstr("preflight.empty"));
  EXPECT_THAT(said, HasSubstr("--preflight off"));
}

}  // namespace
}  // namespace ferry::service
