// Each task: samples of examples, labels of micro-batches, scores and answers of outputs.

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/files/test_files.h"
#include "tests/tasks/made.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;
using test::Made;
using test::metric;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Tasks, EachHasANameAndAHeadOfItsOwn) {
  for (const TaskKind& kind : task_kinds()) {
    EXPECT_EQ(&task_kind(kind.name), &kind);
    EXPECT_EQ(kind.make({}, {})->name(), kind.name);
    EXPECT_EQ(kind.make({}, {})->head(), kind.head);
    EXPECT_EQ(kind.make({}, {})->metric_names().front(), "loss");
  }
}

TEST(Tasks, AModelsArchitectureTellsItsTask) {
  const auto task_of = [](const std::string& architecture) {
    return kind_of_model(
               HfConfig::parse(
                   ordered_json{{"model_type", "x"}, {"architectures", {architecture}}}.dump(),
                   "config.json"))
        .name;
  };
  EXPECT_EQ(task_of("BertForMaskedLM"), "mlm");
  EXPECT_EQ(task_of("GPT2LMHeadModel"), "causal-lm");
  EXPECT_EQ(task_of("LlamaForCausalLM"), "causal-lm");
  EXPECT_EQ(task_of("LlamaForSequenceClassification"), "classification");
  EXPECT_EQ(task_of("BertModel"), "classification");
}

TEST(Classification, OneClassATextIsScoredAndSaid) {
  const Made made("classification", test::classes(ProblemType::single_label, {"bad", "good"}),
                  {{.text = "hello", .label = {.class_id = 1}},
                   {.text = "the world", .label = {.class_id = 0}}});
  EXPECT_THAT(made.batch.labels, ElementsAre(1, 0));
  EXPECT_EQ(made.batch.n_label_items, 2);
  const auto scorer = made.scorer();
  std::vector<Answer> answers;
  scorer->add(made.batch, std::vector<float>{0, 2, 0, 2},
              [&](Answer answer) { answers.push_back(std::move(answer)); });
  EXPECT_EQ(metric(scorer->metrics(0.5), "accuracy"), 0.5);
  EXPECT_THAT(scorer->confusion(), ElementsAre(0, 1, 0, 1));
  ASSERT_EQ(answers.size(), 2);
  EXPECT_EQ(answers[1].example, 1);
  EXPECT_EQ(answers[1].words, "good (0.88)");
  EXPECT_EQ(answers[1].truth, "bad");
  EXPECT_EQ((*answers[1].predicted)["labels"], ordered_json({"good"}));
  EXPECT_EQ((*answers[1].compared)["label"], "bad");
}

TEST(Classification, SeveralClassesAndNumbers) {
  const Made hot("classification", test::classes(ProblemType::multi_label, {"a", "b", "c"}),
                 {{.text = "hello"}, {.text = "the", .label = {.classes = {0, 2}}}});
  EXPECT_THAT(hot.batch.values, ElementsAre(0, 0, 0, 1, 0, 1));
  EXPECT_EQ(hot.batch.n_label_items, 2);
  EXPECT_EQ(hot.task->loss(), LossKind::multi_label);
  const Made number("classification", test::classes(ProblemType::regression, {}),
                    {{.text = "hello", .label = {.value = 0.5f}}});
  EXPECT_THAT(number.batch.values, ElementsAre(0.5f));
  EXPECT_EQ(number.task->n_labels(), 1);
}

TEST(Classification, TextsWithoutLabelsGetSomeForTheHead) {
  const auto task = task_kind("classification")
                        .make(test::classes(ProblemType::single_label, {"bad", "good"}), {});
  Made bare("classification", {}, {{.text = "hello"}});
  EXPECT_FALSE(bare.data.has_labels());
  bare.batch.labels.clear();
  task->label(bare.batch, bare.data, bare.tokenizer, {});
  EXPECT_THAT(bare.batch.labels, ElementsAre(0));
}

TEST(CausalLm, ADocumentFallsIntoWindows) {
  const Made made("causal-lm", {}, {{.text = "hello world the cafe hello world the cafe hello"}});
  // [CLS], nine words and [SEP] in windows of eight.
  ASSERT_EQ(made.data.size(), 2);
  EXPECT_THAT(made.data.lengths(), ElementsAre(8, 3));
  EXPECT_EQ(made.data.example_of(1), 0);
  EXPECT_EQ(made.batch.n_label_items, 7 + 2);
  EXPECT_EQ(made.batch.labels[0], made.batch.input_ids[1]);
  EXPECT_EQ(made.batch.labels[7], kNoLabel);
}

TEST(CausalLm, OnlyTheCompletionOfAPromptHasALoss) {
  const Made made("causal-lm", {}, {{.text = "hello world", .text_pair = "the cafe"}});
  ASSERT_EQ(made.data.size(), 1);
  const auto n_prompt = made.data.labels(0).front();  // [CLS] hello world [SEP]
  EXPECT_EQ(n_prompt, 4);
  EXPECT_EQ(made.batch.n_label_items, 2);
  for (int32_t i = 0; i < 6; ++i)
    EXPECT_EQ(made.batch.labels[static_cast<size_t>(i)] != kNoLabel, i == 3 || i == 4) << i;
}

TEST(CausalLm, PackedPromptsHaveTheLabelsOfUnpackedOnes) {
  const Made made("causal-lm", {},
                  {{.text = "hello world", .text_pair = "the cafe"},
                   {.text = "the"},
                   {.text = "cafe", .text_pair = "hello"}},
                  {}, 16);
  ASSERT_TRUE(made.task->may_be_packed());
  const TokenizedDataset packed = made.data.packed(16);
  ASSERT_EQ(packed.size(), 1);
  MicroBatch batch = collate(packed, std::vector<int64_t>{0}, std::vector<int64_t>{64}, 0);
  made.task->label(batch, packed, made.tokenizer, {.seed = 1});
  EXPECT_EQ(batch.labels, made.batch.labels);
  EXPECT_EQ(batch.input_ids, made.batch.input_ids);
  EXPECT_EQ(batch.n_label_items, made.batch.n_label_items);
}

TEST(CausalLm, APromptThatFillsTheContextIsRefused) {
  EXPECT_THAT(test::error_of([] {
                Made("causal-lm", {},
                     {{.text = "hello world hello world hello world hello", .text_pair = "the"}});
              }),
              HasSubstr("the prompt 'hello world hello world hello world hello' has 9 tokens, "
                        "max_length is 8"));
}

TEST(CausalLm, APromptThatIsTooLongIsLeftOutOrCut) {
  const std::vector<Example> examples = {
      {.text = "hello world hello world hello world hello", .text_pair = "the cafe"},
      {.text = "hello", .text_pair = "the"}};
  const Made left("causal-lm", {}, examples, {.long_prompts = LongPrompts::leave_out});
  EXPECT_EQ(left.data.size(), 1);
  EXPECT_EQ(left.data.n_examples(), 1);
  EXPECT_EQ(left.data.store().facts().n_left_out, 1);
  // [CLS], seven words and [SEP] are nine tokens of eight, the completion two.
  const Made cut("causal-lm", {}, examples, {.long_prompts = LongPrompts::cut});
  ASSERT_EQ(cut.data.size(), 2);
  EXPECT_THAT(cut.data.lengths(), ElementsAre(8, 4));
  EXPECT_EQ(cut.data.labels(0).front(), 6);
  EXPECT_EQ(cut.data.ids(0)[6], cut.tokenizer.token_to_id("the"));
  EXPECT_EQ(cut.data.n_truncated(), 1);
  EXPECT_EQ(cut.batch.n_label_items, 2 + 1);
}

TEST(CausalLm, ACompletionGoesOnWithItsPrompt) {
  // A tokenizer that puts a blank before a text, as those of Llama 2 and Mistral do.
  const auto tokenizer = test::open_model(nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "\u2581"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": false,
      "merges": [], "dropout": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
      "vocab": {"<unk>": 0, "\u2581": 1, "2": 2, "+": 3, "=": 4, "4": 5}}})"));
  const auto task = task_kind("causal-lm").make({}, {});
  std::vector<TokenizedExample> samples;
  task->encode({.text = "2+2=", .text_pair = "4"}, tokenizer, 16, samples);
  task->encode({.text = "2+2=", .text_pair = " 4"}, tokenizer, 16, samples);
  EXPECT_THAT(samples[0].ids, ElementsAre(1, 2, 3, 2, 4, 5));
  EXPECT_THAT(samples[1].ids, ElementsAre(1, 2, 3, 2, 4, 1, 5));
  EXPECT_THAT(samples[0].labels, ElementsAre(5));
}

TEST(Classification, AModelWithOneLabelGivesANumber) {
  const auto config = HfConfig::parse(
      R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"],
          "id2label": {"0": "LABEL_0"}})",
      "config.json");
  const auto task = kind_of_model(config).of_model(config, {});
  EXPECT_EQ(task->loss(), LossKind::regression);
  EXPECT_EQ(task->n_labels(), 1);
  EXPECT_EQ(task->metric_names()[1], "mean_absolute_error");
}

TEST(Classification, UnbalancedLabelsGoByMacroF1) {
  LabelScheme scheme = test::classes(ProblemType::single_label, {"a", "b"});
  const auto metrics_of = [](const LabelScheme& labels) {
    const Made made("classification", labels, {{.text = "hello", .label = {.class_id = 0}}});
    const auto names = made.task->metric_names();
    const auto metrics = made.scorer()->metrics(0.5);
    for (size_t i = 0; i < metrics.size(); ++i)
      EXPECT_EQ(metrics[i].first, names.at(i + 1));
    return metrics.front().first;
  };
  EXPECT_EQ(metrics_of(scheme), "accuracy");
  scheme.is_unbalanced = true;
  EXPECT_EQ(metrics_of(scheme), "f1_macro");
}

TEST(MaskedLm, MasksByTheKey) {
  Made made("mlm", {}, {{.text = "hello world the cafe hello"}});
  EXPECT_EQ(made.batch.n_label_items, static_cast<int64_t>(made.batch.label_rows.size()));
  EXPECT_EQ(metric(made.scorer()->metrics(0), "perplexity"), 1);
  EXPECT_FALSE(made.task->wants_logits());
}

TEST(Tasks, AClassifierPassesOverPaddingAtATextsEnd) {
  const LabelScheme scheme = test::classes(ProblemType::single_label, {"a", "b"});
  const std::vector<Example> examples = {{.text = "hello world", .label = {.class_id = 0}},
                                         {.text = "hello", .label = {.class_id = 1}}};
  const Made whole("classification", scheme, examples);
  const int32_t end = whole.tokenizer.special_ids().sep;
  const Made made("classification", scheme, examples, {.padding = end});
  for (int64_t i = 0; i < 2; ++i) {
    const auto all = whole.data.ids(i), kept = made.data.ids(i);
    EXPECT_EQ(all.back(), end);
    EXPECT_TRUE(std::ranges::equal(kept, std::span(all).first(all.size() - 1)));
  }
  auto config = HfConfig::parse(R"({"model_type": "llama"})", "config.json");
  made.task->write(config);
  EXPECT_EQ(config.json().at("pad_token_id"), end);
  // A text of padding alone keeps its first token.
  const int32_t unknown = made.tokenizer.special_ids().unk;
  const auto task = task_kind("classification").make(scheme, {.padding = unknown});
  nlohmann::json bare = test::small_model();
  bare["post_processor"] = nullptr;
  std::vector<TokenizedExample> samples;
  task->encode({.text = "zzz zzz"}, test::open_model(bare), 8, samples);
  EXPECT_EQ(samples[0].ids, std::vector<int32_t>{unknown});
}

}  // namespace
}  // namespace ferry
