#include "gui/models/results/text_answer.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "gui/models/results/model_form.h"
#include "gui/models/results/word_diff.h"
#include "tests/gui/run_files.h"

namespace ferry::gui {
namespace {

using nlohmann::ordered_json;

TEST(TextAnswer, ClassesComeByLikelihood) {
  const auto answer = parse_answer(
      ordered_json::parse(R"({"text":"t","labels":["b"],"scores":{"a":0.2,"b":0.7,"c":0.1}})"),
      FormKind::classification, "t");
  ASSERT_EQ(answer.scores.size(), 3u);
  EXPECT_EQ(answer.scores[0].label, "b");
  EXPECT_TRUE(answer.scores[0].is_chosen);
  EXPECT_FALSE(answer.scores[1].is_chosen);
  EXPECT_EQ(answer.scores[2].label, "c");
  EXPECT_EQ(answer.short_text(), "b (0.70)");
}

TEST(TextAnswer, SeveralLabelsNoneAndANumber) {
  const auto parse = [](const char* line) {
    return parse_answer(ordered_json::parse(line), FormKind::classification, "t");
  };
  EXPECT_EQ(parse(R"({"labels":["a","b"],"scores":{"a":0.9,"b":0.8}})").short_text(),
            "a (0.90), b (0.80)");
  EXPECT_EQ(parse(R"({"labels":[],"scores":{"a":0.1}})").short_text(), "no label is likely");
  EXPECT_EQ(parse(R"({"value":3.5})").short_text(), "3.5");
  EXPECT_TRUE(std::isnan(parse(R"({"labels":[],"scores":{"a":null}})").scores[0].share));
}

TEST(TextAnswer, PlacesAreCountedAsQStringCounts) {
  // An emoji is one character and two UTF-16 units.
  const QString text = QString::fromUtf8("\U0001F600 Angela in Berlin");
  const auto answer = parse_answer(ordered_json::parse(R"({"entities":[
        {"text":"Berlin","label":"LOC","start":12,"end":18,"score":0.98},
        {"text":"Angela","label":"PER","start":2,"end":8,"score":0.99}],"words":[],"tags":[]})"),
                                   FormKind::tokens, text);
  ASSERT_EQ(answer.marks.size(), 2u);
  EXPECT_TRUE(answer.has_entities);
  EXPECT_EQ(text.mid(answer.marks[0].begin, answer.marks[0].end - answer.marks[0].begin), "Angela");
  EXPECT_EQ(text.mid(answer.marks[1].begin, answer.marks[1].end - answer.marks[1].begin), "Berlin");
}

TEST(TextAnswer, TagsOfWordsFindTheirPlaces) {
  const auto answer = parse_answer(
      ordered_json::parse(R"({"words":["the","the","end"],"tags":["DET",null,"NOUN"]})"),
      FormKind::tokens, "the  the end");
  ASSERT_EQ(answer.marks.size(), 2u);
  EXPECT_EQ(answer.marks[0].begin, 0);
  EXPECT_EQ(answer.marks[1].begin, 9);
  EXPECT_FALSE(answer.has_entities);
}

TEST(TextAnswer, AnAnswerHasItsPlaceInTheContextOrNone) {
  const auto found =
      parse_answer(ordered_json::parse(R"({"answer":"Ann","score":0.8,"start":0,"end":3})"),
                   FormKind::question, "Who?", "Ann found it.");
  ASSERT_EQ(found.marks.size(), 1u);
  EXPECT_EQ(found.short_text(), "Ann (0.80)");
  const auto none =
      parse_answer(ordered_json::parse(R"({"answer":"","score":0.9,"start":null,"end":null})"),
                   FormKind::question, "Who?", "Ann found it.");
  EXPECT_TRUE(none.marks.empty());
  EXPECT_EQ(none.short_text(), "no answer");
}

TEST(TextAnswer, AnotherLineIsAnError) {
  EXPECT_THROW(parse_answer(ordered_json::parse(R"({"text":"t"})"), FormKind::classification, "t"),
               nlohmann::json::exception);
  EXPECT_THROW(parse_answer(ordered_json::parse(R"({"answer":1})"), FormKind::question, "t"),
               nlohmann::json::exception);
}

TEST(ModelForm, GoesByTheConfig) {
  TestHome home;
  const auto form_of = [&](const QByteArray& config) {
    write_file(home / "model/config.json", config);
    return read_model_form(QString::fromStdString((home / "model").string()));
  };
  EXPECT_EQ(form_of(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama"})").kind,
            FormKind::generation);
  EXPECT_EQ(form_of(R"({"architectures":["BertForTokenClassification"],"model_type":"bert",
                        "id2label":{"0":"O","1":"B-PER"}})")
                .kind,
            FormKind::tokens);
  const ModelForm question =
      form_of(R"({"architectures":["BertForQuestionAnswering"],"model_type":"bert"})");
  EXPECT_EQ(question.kind, FormKind::question);
  EXPECT_TRUE(question.takes_pairs);
  const ModelForm pairs =
      form_of(R"({"architectures":["BertForSequenceClassification"],"model_type":"bert",
                  "ferry_text_pairs":true,"id2label":{"0":"a","1":"b"}})");
  EXPECT_TRUE(pairs.takes_pairs);
  EXPECT_EQ(pairs.labels, (QStringList{"a", "b"}));
  EXPECT_TRUE(pairs.trouble.isEmpty()) << pairs.trouble.toStdString();
  const ModelForm masked = form_of(R"({"architectures":["BertForMaskedLM"],"model_type":"bert"})");
  EXPECT_EQ(masked.kind, FormKind::none);
  EXPECT_TRUE(masked.trouble.contains("masked"));
  EXPECT_FALSE(form_of("{").trouble.isEmpty());
  EXPECT_FALSE(read_model_form("/no/such/model").trouble.isEmpty());
}

TEST(ModelForm, AnUnfinishedRunNamesItsCheckpoint) {
  TestHome home;
  make_run(home / "run", {.phase = "stopped"});
  write_classifier_config(home / "run/checkpoint-20");
  const ModelForm form = read_model_form(QString::fromStdString((home / "run").string()));
  EXPECT_TRUE(form.trouble.contains("checkpoint-20")) << form.trouble.toStdString();
}

TEST(WordDiff, GivesBothTextsAgainWithWhatIsOther) {
  const QString a = "the old  house is red", b = "the new house is very red";
  const auto [left, right] = word_diff(a, b);
  QString joined_a, joined_b, other_a, other_b;
  for (const DiffPart& part : left) {
    joined_a += part.text;
    if (part.is_other) other_a += part.text;
  }
  for (const DiffPart& part : right) {
    joined_b += part.text;
    if (part.is_other) other_b += part.text;
  }
  EXPECT_EQ(joined_a, a);
  EXPECT_EQ(joined_b, b);
  EXPECT_EQ(other_a, "old  ");
  EXPECT_EQ(other_b, "new very ");
  EXPECT_TRUE(word_diff("", "").first.empty());
  EXPECT_EQ(word_diff("same", "same").second, (std::vector<DiffPart>{{"same", false}}));
}

TEST(WordDiff, LongTextsTakeMilliseconds) {
  QString a, b;
  for (int i = 0; i < 20000; ++i) {
    a += QString::number(i * 7 % 100) + " ";
    b += QString::number(i * 11 % 100) + " ";
  }
  const auto [left, right] = word_diff(a, b);
  QString joined;
  for (const DiffPart& part : right)
    joined += part.text;
  EXPECT_EQ(joined, b);
}

}  // namespace
}  // namespace ferry::gui
